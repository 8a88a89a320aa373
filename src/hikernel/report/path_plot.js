// The plot of the path: errors of cross-validation against alpha, else the share explained.
"use strict";

HK.pathPlot = (() => {
  const { format } = HK;
  const { color, series } = HK.theme;

  // `state.at` is the point that is read; `state.cursor` becomes the line that marks it.
  function build(summary, path, state, width) {
    const alphas = path.map((point) => point.alpha);
    const curves = curvesOf(path);
    const measured = curves[0].refit !== undefined;
    const figure = HK.figure.plot({
      x: {
        label: "alpha (smaller to the right)",
        range: [Math.max(...alphas) * 1.15, Math.min(...alphas) / 1.15],
      },
      y: { label: measured ? "error by cross-validation" : "explained on the training rows (%)" },
      xType: "log",
      height: 260,
    });
    const lines = curves.map((curve, k) => draw(figure, alphas, curve, k, curves.length > 1));
    if (curves.length > 1) HK.figure.legend(figure, width);
    markChosen(figure, summary, path, curves);
    state.cursor = new Bokeh.Span({
      location: alphas[state.at], dimension: "height", line_color: color("ink"), line_dash: [2, 3],
    });
    figure.add_layout(state.cursor);
    HK.tooltip.add(figure, lines.slice(0, 1), (i) => [
      ["alpha", format.number(alphas[i], 3)],
      ["terms", format.count(path[i].n_terms)],
      ...curves.map(({ label, values }) => [label, format.number(values[i])]),
    ], { mode: "vline" });
    return figure;
  }

  function curvesOf(path) {
    const refits = [...new Set(path.flatMap((point) => Object.keys(point.cv || {})))];
    if (!refits.length) {
      return [{ label: "explained", values: path.map((point) => 100 * (point.explained ?? NaN)) }];
    }
    return refits.map((refit) => ({
      refit,
      label: refit === "None" ? "no refit" : `refit ${refit}`,
      values: path.map((point) => point.cv?.[refit]?.mean ?? NaN),
      spread: path.map((point) => point.cv?.[refit]?.se ?? NaN),
    }));
  }

  function draw(figure, alphas, { label, values, spread }, k, several) {
    const style = series(k);
    if (spread?.some(Number.isFinite)) {
      figure.segment({
        x0: alphas,
        x1: alphas,
        y0: values.map((value, i) => value - spread[i]),
        y1: values.map((value, i) => value + spread[i]),
        line_color: style.color,
        line_alpha: 0.45,
        line_width: 1.5,
      });
    }
    return figure.line(alphas, values, {
      line_color: style.color,
      line_dash: style.dash,
      line_width: 2.5,
      legend_label: several ? format.plain(label) : undefined,
    });
  }

  function markChosen(figure, summary, path, curves) {
    const at = path.findIndex((point) => point.chosen);
    if (at < 0) return;
    const refit = String(summary.refit ?? "None");
    const curve = curves.find((one) => one.refit === refit) || curves[0];
    if (!Number.isFinite(curve.values[at])) return;
    const [x, y] = [path[at].alpha, curve.values[at]];
    figure.scatter([x], [y], {
      marker: "diamond", size: 16, fill_color: color("negative"), line_color: color("card"),
    });
    // On the right half the word stands to the left of the mark, where there is room for it.
    const alphas = path.map((point) => point.alpha);
    const late = x * x < Math.max(...alphas) * Math.min(...alphas);
    figure.add_layout(new Bokeh.Label({
      x, y, x_offset: late ? -10 : 10, y_offset: 6, text: "chosen",
      text_align: late ? "right" : "left",
      text_color: color("negative"), text_font_size: "12px",
      background_fill_color: color("card"), background_fill_alpha: 0.8,
    }));
  }

  return { build };
})();
