// Effects along a number: one curve, or one per class or category, over the density of the data.
"use strict";

HK.curves = (() => {
  const { color, series } = HK.theme;
  const { views, format } = HK;
  const MOST_LINES = 8;
  const DENSITY = 0.18; // share of the height that the density may take

  // `lines` are {label, values, std}; one is drawn in the main colour, with a band if it has a std,
  // several in colours of their own.
  function build({ summary, axis, lines, limits, width, effect }) {
    const several = lines.length > 1;
    const bars = several ? null : views.errorBars(lines[0]);
    const [low, high] = views.widened(limits, bars);
    const room = high - low;
    const floor = low - (DENSITY + 0.08) * room;
    const figure = HK.figure.plot({
      x: { label: axis.variable, range: span(axis.values) },
      y: { label: effect, range: [floor, high + 0.06 * room] },
    });
    density(figure, views.column(summary, axis.variable), floor, DENSITY * room, axis.values);
    HK.figure.zeroLine(figure);
    if (bars) {
      figure.varea(axis.values, bars.low, bars.high,
        { fill_color: color("series-1"), fill_alpha: 0.18 });
    }
    const drawn = lines.map((line, i) => {
      const style = several ? series(i) : { color: color("series-1"), dash: [] };
      return figure.line(axis.values, line.values, {
        line_width: 2.5, line_color: style.color, line_dash: style.dash,
        line_join: "round", legend_label: several ? format.plain(line.label, 24) : undefined,
      });
    });
    if (several) HK.figure.legend(figure, width);
    HK.tooltip.add(figure, drawn.slice(0, 1), (i) => [
      [axis.variable, format.number(axis.values[i])],
      ...lines.map(({ label, values }) => [several ? label : "effect", format.signed(values[i])]),
      ...(bars ? [views.within(bars, i)] : []),
    ], { mode: "vline" });
    return figure;
  }

  function span(values) {
    const [low, high] = [values[0], values[values.length - 1]];
    const pad = 0.01 * (high - low) || 0.5;
    return [low - pad, high + pad];
  }

  // A histogram along the bottom: where there are rows to learn from. Bins wider than others are
  // lower, as in every density, and bins outside the axis are left out.
  function density(figure, column, floor, height, shown) {
    const [low, high] = [shown[0], shown[shown.length - 1]];
    const bins = binsOf(column, high - low).filter(({ left, right }) => right > low && left < high);
    const tallest = Math.max(...bins.map(dense), 0);
    if (!(tallest > 0)) return;
    figure.quad({
      left: bins.map(({ left }) => Math.max(left, low)),
      right: bins.map(({ right }) => Math.min(right, high)),
      bottom: floor,
      top: bins.map((bin) => floor + (height * dense(bin)) / tallest),
      fill_color: color("density"),
      line_color: color("card"),
      line_width: 0.5,
    });
  }

  // The bins of a histogram; of a column with few values, a narrow bar at each.
  function binsOf(column, wide) {
    const { histogram, values } = column || {};
    if (histogram) {
      const { edges, shares } = histogram;
      return shares.map((share, i) => ({ left: edges[i], right: edges[i + 1], share }));
    }
    const half = 0.008 * wide;
    return (values || []).map(([x, share]) => ({ left: x - half, right: x + half, share }));
  }

  function dense({ left, right, share }) {
    return right > left ? share / (right - left) : 0;
  }

  return { build, MOST_LINES };
})();
