// The plot of one effect with its choices: which class, which slice. Used wherever an effect is shown.
"use strict";

HK.effectView = (() => {
  const { el, name, note, select } = HK.dom;
  const { views, format } = HK;

  // Returns an element; the plot in it is drawn when it is seen.
  function create(summary, effect) {
    const { view } = effect;
    if (!view) return note("This effect has no plot: it is not a function of columns of a table.");
    const outputs = summary.outputs || ["f"];
    const sliced = view.axes.length > 2 ? view.axes[2] : null;
    const along = view.axes.length === 1;
    // Classes of an effect of one variable fit into one plot.
    const together = along && outputs.length > 1 && outputs.length <= HK.curves.MOST_LINES;
    const state = { output: together ? -1 : 0, slice: sliced ? Math.floor(sliced.values.length / 2) : 0 };
    const box = el("div");
    const caption = isMap(view) ? el("p", { class: "small caption" }) : null;
    const table = HK.numberTable(summary, view);
    let mounted = null;
    const choices = el("div", { class: "choices" });
    if (outputs.length > 1) {
      const options = [...(together ? ["all classes"] : []), ...outputs];
      choices.append(select("Class", options, 0, (i) => change({ output: together ? i - 1 : i })));
    }
    if (sliced) choices.append(sliceChoice(sliced, state.slice, (slice) => change({ slice })));

    function change(part) {
      Object.assign(state, part);
      mounted.redraw();
      table.update(state);
      say();
    }

    function say() {
      if (isMap(view)) HK.dom.replace(caption, "Colour: ", name(effectWords(summary, state.output)), ".");
    }

    table.update(state);
    say();
    mounted = HK.figure.mount(box, description(summary, effect), () => build(summary, view, state));
    return el("div", { class: "effect-view" }, choices.childElementCount ? choices : null, caption, box, held(view), table.element);
  }

  // Two variables make a heat map, unless the second is a category with few values: a curve for each.
  function isMap({ axes: [first, second] }) {
    if (!second) return false;
    return first.kind !== "number" || second.kind === "number" || second.values.length > HK.curves.MOST_LINES;
  }

  function effectWords(summary, output) {
    return output < 0 ? "effect on the score" : `effect on ${views.scaleWords(summary, output)}`;
  }

  function build(summary, view, { output, slice }) {
    const chosen = output < 0 ? summary.outputs.map((_, k) => k) : [output];
    const effect = effectWords(summary, output);
    const limits = views.extent(view.values);
    const [first, second] = view.axes;
    const common = { summary, axis: first, limits, effect };
    if (!second) {
      const lines = chosen.map((k) => ({ label: summary.outputs[k], values: view.values[k] }));
      return first.kind === "number" ? HK.curves.build({ ...common, lines }) : HK.bars.build({ ...common, lines });
    }
    const values = views.grid(view, chosen[0], slice);
    if (!isMap(view)) {
      const lines = second.values.map((label, j) => ({ label: String(label), values: values.map((row) => row[j]) }));
      return HK.curves.build({ ...common, lines });
    }
    return HK.surface.build({ axes: [first, second], values, limits });
  }

  function sliceChoice(axis, chosen, pick) {
    const group = HK.dom.id("slice");
    const texts = axis.values.map((_, i) => views.place(axis, i));
    return el("fieldset", { class: "segments" }, el("legend", {}, name(axis.variable, 40)),
      texts.map((text, i) => el("label", {},
        el("input", { type: "radio", name: group, value: i, checked: i === chosen, on: { change: () => pick(i) } }),
        el("span", {}, HK.format.shorten(text, 24)))));
  }

  function held(view) {
    if (!view.held?.length) return null;
    const parts = view.held.flatMap(({ variable, value }, i) => [
      i ? ", " : "", name(variable, 40), ` at ${typeof value === "number" ? format.number(value) : value}`]);
    return el("p", { class: "small" }, "Held fixed in this plot: ", parts, ".");
  }

  function description(summary, effect) {
    const kind = effect.view.axes.map((axis) => `${axis.variable} (${axis.kind})`).join(" and ");
    return `Plot of the effect ${effect.name} along ${kind}. The button "Show the numbers" below lists its values.`;
  }

  return { create };
})();
