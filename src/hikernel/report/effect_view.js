// The plot of one effect with its choices, class and slice, wherever an effect is shown.
"use strict";

HK.effectView = (() => {
  const { el, name, names, note, select, small } = HK.dom;
  const { views, format } = HK;

  // Returns an element; the plot in it is drawn when it is seen.
  function create(summary, effect) {
    const { view } = effect;
    if (!view) return note("This effect has no plot: it is not a function of columns of a table.");
    const { outputs } = summary;
    const sliced = view.axes[2];
    // The classes of an effect of one variable fit into one plot.
    const several = outputs.length > 1 && outputs.length <= HK.curves.MOST_LINES;
    const together = several && view.axes.length === 1;
    const state = {
      output: together ? -1 : 0,
      slice: sliced ? Math.floor(sliced.values.length / 2) : 0,
    };
    const box = el("div");
    const left = views.allLeftOut(summary, view);
    const caption = el("p", { class: "small caption" });
    const table = HK.numberTable(summary, view);
    const plot = HK.figure.mount(box, description(effect), (width) =>
      build(summary, view, state, width));
    const choices = [];
    if (outputs.length > 1) {
      const options = [...(together ? ["all classes"] : []), ...outputs];
      const pick = (i) => change({ output: together ? i - 1 : i });
      choices.push(select("Class", options, 0, pick));
    }
    if (sliced) choices.push(sliceChoice(sliced, state.slice, (slice) => change({ slice })));

    function change(part) {
      Object.assign(state, part);
      plot.redraw();
      describe();
    }

    function describe() {
      table.update(state);
      if (isMap(view)) HK.dom.replace(caption, "Colour: ", name(words(summary, state.output)), ".");
    }

    describe();
    return el("div", { class: "effect-view" },
      choices.length ? el("div", { class: "choices" }, choices) : null,
      isMap(view) ? caption : null, box,
      left.length ? small("Categories of ", names(left, 3, 80), ".") : null,
      held(view), barWords(summary, view), table.element);
  }

  // Two variables make a heat map, unless a curve for each value of the second is easier to read.
  function isMap({ axes: [first, second] }) {
    if (!second) return false;
    const few = second.kind !== "number" && second.values.length <= HK.curves.MOST_LINES;
    return first.kind !== "number" || !few;
  }

  function words(summary, output) {
    return output < 0 ? "effect on the score" : `effect on ${views.scaleWords(summary, output)}`;
  }

  function build(summary, view, { output, slice }, width) {
    const [first, second] = view.axes;
    const limits = views.extent(view.values);
    const common = { summary, axis: first, limits, width, effect: words(summary, output) };
    if (!second) {
      const chosen = output < 0 ? summary.outputs.map((_, k) => k) : [output];
      const lines = chosen.map((k) => (
        { label: summary.outputs[k], values: view.values[k], std: (view.std || [])[k] }));
      const { build: draw } = first.kind === "number" ? HK.curves : HK.bars;
      return draw({ ...common, lines });
    }
    const values = views.grid(view, output, slice);
    if (isMap(view)) return HK.surface.build({ axes: [first, second], values, limits });
    const lines = second.values.map((label, j) => ({
      label: String(label),
      values: values.map((row) => row[j]),
    }));
    return HK.curves.build({ ...common, lines });
  }

  function sliceChoice(axis, chosen, pick) {
    const group = HK.dom.id("slice");
    const option = (_, i) => el("label", {},
      el("input", {
        type: "radio", name: group, value: i, checked: i === chosen, on: { change: () => pick(i) },
      }),
      name(views.place(axis, i), 24));
    return el("fieldset", { class: "segments" },
      el("legend", {}, name(axis.variable, 40)), axis.values.map(option));
  }

  function held({ held: fixed }) {
    if (!fixed?.length) return null;
    const parts = fixed.map(({ variable, value }) =>
      `${variable} at ${typeof value === "number" ? format.number(value) : value}`);
    return small("Held fixed in this plot: ", names(parts, 12, 60), ".");
  }

  function barWords(summary, view) {
    if (!view.std || summary.outputs.length > 1) return null;
    const [what, holds] = view.axes[0].kind === "number" ? ["band", "holds"] : ["lines", "hold"];
    return small(`The ${what} ${holds} the effect with 95 %, with the model's terms as given.`);
  }

  function description({ name: label, view }) {
    const along = view.axes.map((axis) => `${axis.variable} (${axis.kind})`).join(" and ");
    return `Plot of the effect ${label} along ${along}. "Show the numbers" below lists its values.`;
  }

  return { create };
})();
