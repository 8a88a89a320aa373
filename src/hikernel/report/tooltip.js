// What a plot says under the pointer: rows of a label and a value, as text nodes.
"use strict";

HK.tooltip = (() => {
  const { el } = HK.dom;
  const { shorten } = HK.format;

  // Adds the hover tool. `rows(index, name)` returns pairs of a label and a value for point `index`
  // of the renderer with that name. With mode "vline", the point above or below the pointer counts;
  // one renderer is enough then, and says what all curves have there.
  function add(figure, renderers, rows, { mode = "mouse", line = "nearest" } = {}) {
    figure.add_tools(new Bokeh.HoverTool({
      renderers,
      mode,
      line_policy: line,
      point_policy: "follow_mouse",
      attachment: "horizontal",
      show_arrow: false,
      tooltips: (source, { index, indices, name }) => box(rows(index ?? indices?.[0], name)),
    }));
  }

  // Bokeh draws its tooltips in a shadow tree, out of reach of the style sheet.
  function box(pairs) {
    const { color } = HK.theme;
    const style = {
      margin: "-5px", padding: "6px 10px", font: "13px/1.45 system-ui, sans-serif",
      color: color("ink"), background: color("raised"),
      "max-width": "280px", "overflow-wrap": "anywhere",
    };
    const lines = pairs.map(([label, value]) => el("div", {},
      el("bdi", { style: { color: color("muted") } }, label ? `${shorten(label, 60)}: ` : ""),
      el("bdi", { style: { "font-weight": "600" } }, shorten(value, 60))));
    return el("div", { class: "hk-tip", style }, lines);
  }

  return { add };
})();
