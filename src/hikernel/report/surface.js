// Effects of two variables as a heat map; colours are the same for all slices and classes.
"use strict";

HK.surface = (() => {
  const { format, views } = HK;

  function build({ axes, values, limits }) {
    const [across, up] = axes;
    const size = Math.max(Math.abs(limits[0]), Math.abs(limits[1]));
    const figure = HK.figure.plot({
      x: side(across),
      y: side(up),
      height: up.kind === "number" ? 380 : Math.max(240, 110 + 26 * up.values.length),
    });
    for (const grid of figure.grids) grid.visible = false;
    const mapper = new Bokeh.LinearColorMapper({
      palette: HK.theme.diverging(), low: -size, high: size, nan_color: HK.theme.color("line"),
    });
    const [left, right] = edges(across);
    const [bottom, top] = edges(up);
    const cells = across.values.flatMap((_, i) => up.values.map((__, j) => [i, j]));
    const numbers = cells.map(([i, j]) => values[i][j] ?? NaN);
    const fill = { field: "value", transform: mapper };
    const source = new Bokeh.ColumnDataSource({ data: {
      left: cells.map(([i]) => left[i]), right: cells.map(([i]) => right[i]),
      bottom: cells.map(([, j]) => bottom[j]), top: cells.map(([, j]) => top[j]), value: numbers,
    } });
    const drawn = figure.quad({
      source, left: { field: "left" }, right: { field: "right" }, bottom: { field: "bottom" },
      top: { field: "top" }, fill_color: fill, line_color: fill, line_width: 0.7,
    });
    figure.add_layout(scale(mapper), "right");
    HK.tooltip.add(figure, [drawn], (k) => {
      const [i, j] = cells[k];
      return [
        [across.variable, views.place(across, i)],
        [up.variable, views.place(up, j)],
        ["effect", Number.isNaN(numbers[k]) ? "not known" : format.signed(numbers[k])],
      ];
    });
    return figure;
  }

  function side(axis) {
    const { variable: label, values } = axis;
    if (axis.kind === "number") return { label, range: [values[0], values[values.length - 1]] };
    const texts = values.map((text) => format.plain(text, 16));
    return { label, texts, turned: values.length > 5 };
  }

  // Where the cells of an axis begin and end: half-way between its values.
  function edges(axis) {
    const { values } = axis;
    const around = (half) => values.map((_, i) => i + half);
    if (axis.kind !== "number") return [around(-0.48), around(0.48)];
    const middles = values.slice(1).map((value, i) => 0.5 * (value + values[i]));
    return [[values[0], ...middles], [...middles, values[values.length - 1]]];
  }

  function scale(mapper) {
    const { color } = HK.theme;
    return new Bokeh.ColorBar({
      color_mapper: mapper,
      width: 10,
      padding: 6,
      background_fill_alpha: 0,
      bar_line_color: null,
      major_tick_line_color: null,
      major_label_text_color: color("muted"),
      major_label_text_font_size: "12px",
    });
  }

  return { build };
})();
