// The numbers behind the plot of an effect, for those who would rather read them.
"use strict";

HK.numberTable = (() => {
  const { el, name } = HK.dom;
  const { views, format } = HK;
  const MOST_ROWS = 13;
  const MOST_COLUMNS = 7;

  // Returns the element and `update({output, slice})`, which fills it when it is open.
  return function create(summary, view) {
    let state = { output: 0, slice: 0 };
    const body = HK.dom.scroller("Values of this effect");
    const element = HK.dom.folded(title(summary, view), body);
    element.classList.add("numbers");
    const fill = () => element.open && HK.dom.replace(body, table(summary, view, state));
    element.addEventListener("toggle", fill);
    return { element, update: (next) => { state = { ...next }; fill(); } };
  };

  function title(summary, view) {
    const left = views.allLeftOut(summary, view);
    return ["Show the numbers", left.length ? [" (", HK.dom.names(left, 3, 80), ")"] : ""];
  }

  function table(summary, view, { output, slice }) {
    const [first, second] = view.axes;
    const rows = places(first, MOST_ROWS);
    const shown = output < 0 ? summary.outputs.map((_, k) => k) : [output];
    const columns = second
      ? places(second, MOST_COLUMNS).map((j) => ({
          head: `${format.shorten(second.variable, 24)} = ${views.place(second, j)}`,
          value: (i) => views.grid(view, shown[0], slice)[i][j],
        }))
      : shown.map((k) => ({
          head: summary.outputs.length > 1 ? summary.outputs[k] : "effect",
          value: (i) => view.values[k][i],
        }));
    const std = second || shown.length > 1 ? null : view.std?.[shown[0]];
    if (std) columns.push({ head: "standard deviation", value: (i) => std[i], plain: true });
    return el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, name(first.variable, 30)),
        columns.map(({ head }) => el("th", { scope: "col", class: "num" }, name(head, 40))))),
      el("tbody", {}, rows.map((i) => el("tr", {},
        el("th", { scope: "row" }, name(views.place(first, i), 40)),
        columns.map(({ value, plain }) => el("td", { class: "num" },
          plain ? format.number(value(i), 3) : format.signed(value(i))))))));
  }

  // All categories, or numbers spread over the axis.
  function places(axis, most) {
    const n = axis.values.length;
    if (axis.kind !== "number" || n <= most) return axis.values.map((_, i) => i);
    return Array.from({ length: most }, (_, i) => Math.round((i * (n - 1)) / (most - 1)));
  }
})();
