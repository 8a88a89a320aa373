// The path: from a model with hardly a term to one with many, with a slider.
"use strict";

HK.path = (() => {
  const { el, name, note, bar } = HK.dom;
  const { format } = HK;
  const { color, series } = HK.theme;
  const MOST_EFFECTS = 10;

  function draw(summary, box) {
    const path = summary.path || [];
    if (path.length < 2) {
      box.append(note("This model was fitted at a single alpha, so that there is no path to walk along."));
      return;
    }
    const chosen = path.findIndex((point) => point.chosen);
    const state = { at: Math.max(0, chosen), cursor: null };
    const plot = el("div", { class: "short" });
    HK.figure.mount(plot, "Plot of the error along the path. The slider below reads it out point by point.", () => build(summary, path, state));
    const id = HK.dom.id("path");
    const slider = el("input", { type: "range", id, class: "wide", min: 0, max: path.length - 1, step: 1, value: state.at, on: { input: () => move(Number(slider.value)) } });
    const reading = el("div", { class: "reading", "aria-live": "polite" });

    function move(at) {
      state.at = at;
      slider.value = String(at);
      slider.setAttribute("aria-valuetext", `alpha ${format.number(path[at].alpha, 3)}, ${format.plural(path[at].n_effects, "effect")}`);
      if (state.cursor) state.cursor.location = path[at].alpha;
      HK.dom.replace(reading, read(path[at]));
    }

    const back = chosen < 0 ? null : el("button", { type: "button", on: { click: () => move(chosen) } }, "Go to the chosen model");
    box.append(
      el("p", {}, "The number alpha decides how much a term must earn its place: a large one gives a small model, a small one a large model. ",
        "Move the slider to see the models that were considered", chosen < 0 ? "." : "; the chosen one is marked."),
      plot,
      el("div", { class: "slide" }, el("label", { for: id }, "Fewer terms"), slider, el("span", {}, "more terms")),
      el("p", { class: "buttons" }, back), reading);
    move(state.at);
  }

  function read(point) {
    const errors = Object.entries(point.cv || {}).map(([refit, { mean, se }]) => [
      `error by cross-validation${refit === "None" ? "" : `, refit ${refit}`}`,
      `${format.number(mean, 4)}${se === null || se === undefined ? "" : ` \u00b1 ${format.number(se, 2)}`}`]);
    const rows = [["alpha", format.number(point.alpha, 3)], ["terms", format.count(point.n_terms)], ["effects", format.count(point.n_effects)],
      ...(point.explained === null || point.explained === undefined ? [] : [["explained on the training rows", format.percent(point.explained)]]), ...errors];
    const effects = point.effects || [];
    return [
      el("div", {}, el("h3", {}, point.chosen ? "The chosen model" : "At this point"),
        el("dl", { class: "pairs" }, rows.map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text))))),
      el("div", {}, el("h3", {}, "Its effects"), effects.length
        ? el("table", { class: "plain shares" },
          el("thead", { class: "hidden" }, el("tr", {}, ["Effect", "Share"].map((text) => el("th", { scope: "col" }, text)))),
          el("tbody", {}, effects.slice(0, MOST_EFFECTS).map(([label, share]) =>
            el("tr", {}, el("th", { scope: "row" }, name(label, 40)), el("td", {}, bar(share, format.percent(share)))))))
        : el("p", { class: "small" }, point.n_terms ? "Not on record for this point." : "None: this model is a constant."),
      effects.length > MOST_EFFECTS ? el("p", { class: "small" }, `and ${effects.length - MOST_EFFECTS} smaller ones`) : null),
    ];
  }

  function build(summary, path, state) {
    const refits = [...new Set(path.flatMap((point) => Object.keys(point.cv || {})))];
    const alphas = path.map((point) => point.alpha);
    const curves = refits.length
      ? refits.map((refit) => ({ label: refit === "None" ? "no refit" : `refit ${refit}`, refit, values: path.map((point) => point.cv?.[refit]?.mean ?? NaN), spread: path.map((point) => point.cv?.[refit]?.se ?? NaN) }))
      : [{ label: "explained", values: path.map((point) => (point.explained === null ? NaN : 100 * point.explained)) }];
    const figure = HK.figure.plot({
      x: { label: "alpha (smaller to the right)", range: [Math.max(...alphas) * 1.15, Math.min(...alphas) / 1.15] }, xType: "log", height: 260,
      y: { label: refits.length ? "error by cross-validation" : "explained on the training rows (%)" },
    });
    const lines = curves.map(({ label, values, spread }, k) => {
      const style = series(k);
      if (spread?.some(Number.isFinite)) {
        figure.segment({ x0: alphas, x1: alphas, y0: values.map((value, i) => value - spread[i]), y1: values.map((value, i) => value + spread[i]), line_color: style.color, line_alpha: 0.45, line_width: 1.5 });
      }
      const legend = curves.length > 1 ? format.plain(label) : undefined;
      return figure.line(alphas, values, { line_color: style.color, line_dash: style.dash, line_width: 2.5, name: String(k), legend_label: legend });
    });
    if (curves.length > 1) HK.figure.legend(figure);
    markChosen(figure, summary, path, curves);
    state.cursor = new Bokeh.Span({ location: alphas[state.at], dimension: "height", line_color: color("ink"), line_dash: [2, 3], line_width: 1.5 });
    figure.add_layout(state.cursor);
    HK.tooltip.add(figure, lines, (i, k) => [
      ["alpha", format.number(alphas[i], 3)], ["terms", format.count(path[i].n_terms)],
      [curves[k].label, format.number(curves[k].values[i], 4)],
    ], { mode: "vline" });
    return figure;
  }

  function markChosen(figure, summary, path, curves) {
    const at = path.findIndex((point) => point.chosen);
    if (at < 0) return;
    const curve = curves.find(({ refit }) => refit === String(summary.refit ?? "None")) || curves[0];
    if (!Number.isFinite(curve.values[at])) return;
    figure.scatter([path[at].alpha], [curve.values[at]], { marker: "diamond", size: 16, fill_color: color("negative"), line_color: color("card") });
    figure.add_layout(new Bokeh.Label({ x: path[at].alpha, y: curve.values[at], x_offset: 10, y_offset: 6, text: "chosen", text_color: color("negative"), text_font_size: "12px", background_fill_color: color("card"), background_fill_alpha: 0.8 }));
  }

  return { draw };
})();
