// A small picture of an effect for a row of the table: its curve, its bars or its heat map.
"use strict";

HK.thumbnail = (() => {
  const { el, svg } = HK.dom;
  const { views } = HK;
  const WIDTH = 84;
  const HEIGHT = 28;
  const MOST_CELLS = 10;

  function create(effect) {
    const { view } = effect;
    if (!view) return el("span", { class: "thumb" });
    const picture = svg("svg", {
      class: "thumb", "aria-hidden": "true",
      width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    });
    const limits = views.extent(view.values);
    if (view.axes.length > 1) tiles(picture, view, Math.max(-limits[0], limits[1]));
    else if (view.axes[0].kind === "number") curves(picture, view, limits);
    else columns(picture, view, limits);
    return picture;
  }

  function height([low, high]) {
    return (value) => 2 + (HEIGHT - 4) * (1 - (value - low) / (high - low));
  }

  function zero(picture, y) {
    picture.append(svg("line", { class: "thumb-zero", x1: 0, x2: WIDTH, y1: y, y2: y }));
  }

  function curves(picture, view, limits) {
    const y = height(limits);
    const xs = view.axes[0].values;
    const wide = xs[xs.length - 1] - xs[0] || 1;
    zero(picture, y(0));
    view.values.slice(0, 8).forEach((values, k) => {
      const x = (i) => 2 + ((WIDTH - 4) * (xs[i] - xs[0])) / wide;
      const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value ?? 0).toFixed(1)}`);
      const line = { class: `thumb-line series-${k + 1}`, points: points.join(" ") };
      picture.append(svg("polyline", line));
    });
  }

  function columns(picture, view, limits) {
    const y = height(limits);
    const values = view.values.length === 1 ? view.values[0] : largest(view.values);
    const wide = (WIDTH - 4) / values.length;
    zero(picture, y(0));
    values.forEach((value, i) => picture.append(svg("rect", {
      class: value < 0 ? "thumb-negative" : "thumb-positive",
      x: 2 + i * wide + 0.1 * wide, width: 0.8 * wide,
      y: Math.min(y(value), y(0)), height: Math.max(1, Math.abs(y(value) - y(0))),
    })));
  }

  function largest(outputs) {
    const larger = (a, b) => (Math.abs(b) > Math.abs(a) ? b : a);
    return outputs[0].map((_, i) => outputs.map((values) => values[i]).reduce(larger));
  }

  function tiles(picture, view, size) {
    const values = views.grid(view, 0, (view.axes[2]?.values.length || 1) - 1);
    const across = thinned(values.length);
    const up = thinned(values[0].length);
    across.forEach((i, a) => up.forEach((j, b) => {
      const value = values[i][j] ?? 0;
      picture.append(svg("rect", {
        class: value < 0 ? "thumb-negative" : "thumb-positive",
        "fill-opacity": (Math.abs(value) / size).toFixed(2),
        x: (WIDTH * a) / across.length, width: WIDTH / across.length + 0.3,
        y: HEIGHT - (HEIGHT * (b + 1)) / up.length, height: HEIGHT / up.length + 0.3,
      }));
    }));
  }

  function thinned(n) {
    const most = Math.min(n, MOST_CELLS);
    const step = (n - 1) / Math.max(1, most - 1);
    return Array.from({ length: most }, (_, i) => Math.round(i * step));
  }

  return { create };
})();
