// The what-if panel: move the inputs, see the prediction and what each effect adds to it.
"use strict";

HK.whatif = (() => {
  const { el, name, note, bar, select } = HK.dom;
  const { format } = HK;
  const MOST_INPUTS = 10;

  function draw(summary, box) {
    const fn = summary.function;
    if (!fn) {
      box.append(note(summary.function_note || "This model cannot be written as plain numbers, so that the page cannot compute its predictions."));
      return;
    }
    if (!fn.inputs.length) {
      box.append(note("The model uses no column: its prediction is always the same."));
      return;
    }
    const inputs = fn.inputs.map((input) => ({ ...input, values: few(summary, input) }));
    const state = { row: inputs.map(start), output: null }; // output: null follows the prediction
    const result = el("div", { class: "result" });
    const update = () => show(summary, state, result, update);
    const fields = inputsByShare(summary, fn).map((i) => HK.inputs.create(inputs[i], i, state.row[i], (value) => {
      state.row[i] = value;
      update();
    }));
    const reset = el("button", { type: "button", on: { click: () => {
      fields.forEach((field) => field.reset());
    } } }, "Back to a typical row");
    const all = fields.map(({ element }) => element);
    box.append(
      el("p", {}, "Move the inputs and see what the model predicts. The page computes exactly what ", el("code", {}, "predict"), " does."),
      el("div", { class: "whatif" },
        el("form", { class: "inputs", "aria-label": "Inputs", on: { submit: (event) => event.preventDefault() } },
          all.slice(0, MOST_INPUTS),
          all.length > MOST_INPUTS ? el("details", {}, el("summary", {}, `${all.length - MOST_INPUTS} more inputs`), all.slice(MOST_INPUTS)) : null,
          el("p", { class: "buttons" }, reset)),
        result));
    update();
  }

  // The row one starts from: the usual value of each input, as a number or a position.
  function start(input) {
    return HK.inputs.value(input, input.default);
  }

  // All values of a number that has few.
  function few(summary, input) {
    const values = input.kind === "number" && HK.views.column(summary, input.name)?.values;
    return values ? values.map(([value]) => value) : null;
  }

  // Inputs that matter most come first.
  function inputsByShare(summary, fn) {
    const shares = new Map((summary.variables || []).map((variable) => [variable.name, variable.share]));
    return fn.inputs.map((_, i) => i).sort((a, b) => (shares.get(fn.inputs[b].name) ?? 0) - (shares.get(fn.inputs[a].name) ?? 0) || a - b);
  }

  function show(summary, state, box, update) {
    const effects = summary.effects || [];
    const found = HK.evaluate.evaluate(summary.function, state.row, effects.length);
    const prediction = HK.evaluate.predict(summary.link, found.f, summary.classes);
    const k = state.output ?? likeliest(summary, prediction, found.f);
    const parts = effects.map((effect, i) => ({ label: effect.name, value: found.effects[i][k] })).filter(({ value }) => value !== 0);
    if (found.rest[k] !== 0) parts.push({ label: "terms outside the listed effects", value: found.rest[k], ours: true });
    const chooser = found.f.length > 1
      ? select("Show the score of", summary.outputs, k, (chosen) => { state.output = chosen; update(); })
      : null;
    const old = box.contains(document.activeElement) && document.activeElement.tagName === "SELECT";
    HK.dom.replace(box, head(summary, prediction, found.f),
      el("h3", {}, "What each effect adds"), scaleNote(summary, k), chooser,
      HK.waterfall.create(summary.function.intercept[k], parts, sumWords(summary)));
    if (old) box.querySelector("select")?.focus();
  }

  // The output that is explained unless another is chosen: the predicted class where each has its own.
  function likeliest(summary, prediction, f) {
    return f.length > 1 ? Math.max(0, summary.classes.indexOf(prediction.label)) : 0;
  }

  function head(summary, prediction, f) {
    const { probabilities, label, value } = prediction;
    if (value !== undefined) {
      return el("div", { class: "prediction" }, el("p", { class: "small" }, "Prediction", summary.target ? [" of ", name(summary.target, 40)] : ""),
        el("output", { "aria-live": "polite", "data-value": JSON.stringify([value]), "data-f": JSON.stringify(f) }, format.number(value, 5)));
    }
    const bars = probabilities && el("ul", { class: "probabilities" }, summary.classes.map((text, i) =>
      el("li", {}, name(text, 30), bar(probabilities[i], format.percent(probabilities[i]), text === label ? "main" : ""))));
    return el("div", { class: "prediction" }, el("p", { class: "small" }, "Prediction", summary.target ? [" of ", name(summary.target, 40)] : ""),
      el("output", { "aria-live": "polite", "data-value": JSON.stringify(probabilities || label), "data-f": JSON.stringify(f) }, name(label, 40)), bars);
  }

  function scaleNote(summary, output) {
    const words = HK.views.scaleWords(summary, output);
    if (summary.link?.kind === "identity") return null;
    return el("p", { class: "small" }, "Effects add up on the scale of the ", name(words, 60), ".", summary.link?.words ? ` ${summary.link.words}.` : "");
  }

  function sumWords(summary) {
    return summary.link?.kind === "identity" ? "Prediction" : "Sum";
  }

  return { draw };
})();
