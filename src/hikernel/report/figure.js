// Figures of Bokeh: one style, drawn when they come into view, drawn again when colours change.
"use strict";

HK.figure = (() => {
  const { color } = HK.theme;
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const WIDTH = 600; // where a box has no width yet
  const LETTER = 7; // width of a letter of 12 px, on the safe side
  const ROW = 30; // height of a row of a legend
  const BESIDE = 70; // width of what stands beside a plot: its axis
  const live = new Set();

  // A figure of the page: `x` and `y` have a label and, if given, a range [low, high] or a list of
  // texts for the positions 0, 1, ... (categories). Marks stand on numbers throughout, so that no
  // category is ever a name of something to Bokeh.
  function plot({ x = {}, y = {}, height = 320, xType = "linear", yType = "linear" }) {
    const figure = Bokeh.Plotting.figure({
      height,
      sizing_mode: "stretch_width",
      tools: [],
      toolbar_location: null,
      x_axis_type: xType,
      y_axis_type: yType,
      x_range: range(x),
      y_range: range(y),
      x_axis_label: HK.format.plain(x.label || "", 60),
      y_axis_label: HK.format.plain(y.label || "", Math.floor(height / 9)),
      background_fill_alpha: 0,
      border_fill_alpha: 0,
      outline_line_alpha: 0,
      min_border_right: 12,
      min_border_top: 6,
    });
    for (const [axis, spec] of [[figure.xaxes[0], x], [figure.yaxes[0], y]]) dress(axis, spec);
    for (const grid of figure.grids) {
      grid.grid_line_color = color("line");
      grid.grid_line_alpha = 0.7;
    }
    if (x.texts) figure.xgrids[0].visible = false;
    if (y.texts) figure.ygrids[0].visible = false;
    return figure;
  }

  function range({ range: limits, texts }) {
    if (texts) return new Bokeh.Range1d({ start: -0.6, end: texts.length - 0.4 });
    if (limits) return new Bokeh.Range1d({ start: limits[0], end: limits[1] });
    return new Bokeh.DataRange1d();
  }

  function dress(axis, { texts, turned }) {
    Object.assign(axis, {
      axis_line_color: color("line-strong"),
      major_tick_line_color: color("line-strong"),
      minor_tick_line_color: null,
      major_label_text_color: color("muted"),
      major_label_text_font: FONT,
      major_label_text_font_size: "12px",
      axis_label_text_color: color("ink"),
      axis_label_text_font: FONT,
      axis_label_text_font_size: "13px",
      axis_label_text_font_style: "normal",
    });
    if (axis.formatter instanceof Bokeh.LogTickFormatter) {
      axis.formatter = new Bokeh.PrintfTickFormatter({ format: "%g" });
    }
    axis.major_label_policy = new Bokeh.NoOverlap();
    if (!texts) return;
    axis.ticker = new Bokeh.FixedTicker({ ticks: texts.map((_, i) => i) });
    axis.major_label_overrides = new Map(texts.map((text, i) => [i, HK.format.plain(text, 28)]));
    axis.major_label_policy = new Bokeh.AllLabels();
    axis.major_tick_line_color = null;
    if (turned) axis.major_label_orientation = Math.PI / 4;
  }

  function zeroLine(figure, dimension = "width") {
    figure.add_layout(new Bokeh.Span({
      location: 0, dimension, line_color: color("line-strong"), line_width: 1, level: "underlay",
    }));
  }

  // The legend has as many columns as there is room for in a plot of this width.
  function legend(figure, width, place = "above") {
    const box = figure.legend;
    const longest = Math.max(...box.items.map(({ label }) => (label.value ?? label).length));
    const columns = Math.floor((width - BESIDE) / (longest * LETTER + 28 + 16));
    const ncols = Math.max(1, Math.min(columns, box.items.length));
    figure.height += ROW * (Math.ceil(box.items.length / ncols) - 1);
    Object.assign(box, {
      ncols,
      orientation: "horizontal", background_fill_alpha: 0, border_line_alpha: 0,
      label_text_color: color("ink"), label_text_font: FONT, label_text_font_size: "12px",
      glyph_width: 28, spacing: 10, margin: 0, padding: 4,
    });
    figure.remove_layout?.(box);
    figure.add_layout(box, place);
  }

  // Puts what `build(width)` returns, a figure, into `box` as soon as `box` is seen, and again
  // whenever the colours change. `label` describes it to those who cannot see it.
  function mount(box, label, build) {
    box.classList.add("plot");
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    const entry = { box, build, view: null, drawn: false, turn: 0 };
    live.add(entry);
    watcher.observe(box);
    return { redraw: () => entry.drawn && draw(entry) };
  }

  async function draw(entry) {
    const turn = (entry.turn += 1);
    entry.drawn = true;
    const frame = HK.dom.el("div", { class: "plot-frame" });
    try {
      const figure = entry.build(entry.box.clientWidth || WIDTH);
      entry.box.style.minHeight = `${entry.box.offsetHeight}px`;
      entry.view?.remove();
      entry.view = null;
      entry.box.replaceChildren(frame);
      const view = await Bokeh.Plotting.show(figure, frame);
      if (turn === entry.turn) entry.view = view;
      else view.remove();
      entry.box.dataset.drawn = "yes";
    } catch (error) {
      console.error(error);
      entry.box.replaceChildren(HK.dom.note("This plot could not be drawn."));
    }
    entry.box.style.minHeight = "";
  }

  const watcher = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) {
        const entry = isIntersecting && [...live].find(({ box }) => box === target);
        if (!entry) continue;
        watcher.unobserve(target);
        draw(entry);
      }
    },
    { rootMargin: "300px" },
  );

  HK.theme.onChange(() => {
    for (const entry of [...live]) {
      if (!entry.box.isConnected) live.delete(entry);
      else if (entry.drawn) draw(entry);
    }
  });

  return { plot, mount, zeroLine, legend };
})();
