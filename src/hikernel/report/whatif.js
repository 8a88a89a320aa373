// The what-if panel: move the inputs, see the prediction and what each effect adds to it.
"use strict";

HK.whatif = (() => {
  const { el, name, nothing, bar, select, small } = HK.dom;
  const { format } = HK;
  const MOST_INPUTS = 10;

  function draw(summary, box) {
    const fn = summary.function;
    if (!fn) {
      nothing(box, summary.function_note || "This model cannot be written as plain numbers.",
        " So the page cannot compute its predictions.");
      return;
    }
    if (!fn.inputs.length) {
      nothing(box, "The model uses no column: its prediction is always the same.");
      return;
    }
    const inputs = fn.inputs.map((input) => ({ ...input, values: fewValues(summary, input) }));
    // The output that is explained is the predicted class until another one is chosen.
    const state = { row: inputs.map((one) => HK.inputs.value(one, one.default)), output: null };
    const result = el("div", { class: "result" });
    const update = () => show(summary, state, result, update);
    const fields = byShare(summary, inputs).map((i) =>
      HK.inputs.create(inputs[i], i, state.row[i], (value) => {
        state.row[i] = value;
        update();
      }));
    box.append(
      el("p", {}, "Move the inputs and see what the model predicts. The page computes exactly ",
        "what ", el("code", {}, "predict"), " does."),
      el("div", { class: "whatif" }, form(fields), result));
    update();
  }

  function form(fields) {
    const all = fields.map(({ element }) => element);
    const more = all.slice(MOST_INPUTS);
    const reset = () => fields.forEach((field) => field.reset());
    const submit = (event) => event.preventDefault();
    return el("form", { class: "inputs", "aria-label": "Inputs", on: { submit } },
      all.slice(0, MOST_INPUTS),
      more.length ? HK.dom.folded(format.plural(more.length, "more input"), more) : null,
      el("p", { class: "buttons" }, HK.dom.button("Back to a typical row", reset)));
  }

  // All values of a number that has few.
  function fewValues(summary, input) {
    const values = input.kind === "number" && HK.views.column(summary, input.name)?.values;
    return values ? values.map(([value]) => value) : null;
  }

  // Positions of the inputs; those that matter most come first.
  function byShare(summary, inputs) {
    const shares = new Map((summary.variables || []).map(({ name: key, share }) => [key, share]));
    // A date has several variables, one for each part.
    const named = (variable) => shares.get(summary.data.columns[variable.column].name) ?? 0;
    const share = (i) => summary.function.variables
      .filter(({ input, missing }) => input === i && !missing)
      .reduce((sum, variable) => sum + named(variable), 0);
    return inputs.map((_, i) => i).sort((a, b) => share(b) - share(a) || a - b);
  }

  function show(summary, state, box, update) {
    const effects = summary.effects || [];
    const found = HK.evaluate.evaluate(summary.function, state.row, effects.length);
    const prediction = HK.evaluate.predict(summary.link, found.f, summary.classes);
    const k = state.output ?? likeliest(summary, prediction, found.f);
    const parts = effects
      .map((effect, i) => ({ label: effect.name, value: found.effects[i][k] }))
      .filter(({ value }) => value !== 0);
    if (found.rest[k] !== 0) {
      parts.push({ label: "terms in no effect", value: found.rest[k], ours: true });
    }
    const pick = (chosen) => {
      state.output = chosen;
      update();
    };
    const several = found.f.length > 1;
    const focused = box.contains(document.activeElement);
    HK.dom.replace(box,
      head(summary, prediction, found.f),
      el("h3", {}, "What each effect adds"),
      scaleNote(summary, k),
      several ? select("Show the score of", summary.outputs, k, pick) : null,
      HK.waterfall.create(summary.function.intercept[k], parts,
        summary.link.kind === "identity" ? "Prediction" : "Sum"));
    if (focused) box.querySelector("select")?.focus();
  }

  function likeliest(summary, prediction, f) {
    return f.length > 1 ? Math.max(0, summary.classes.indexOf(prediction.label)) : 0;
  }

  // The prediction; its attributes have every digit.
  function head(summary, { probabilities, label, value }, f) {
    const number = value !== undefined;
    const exact = {
      "aria-live": "polite",
      "data-value": JSON.stringify(number ? [value] : probabilities || label),
      "data-f": JSON.stringify(f),
    };
    const bars = (probabilities || []).map((share, i) => {
      const text = summary.classes[i];
      const shown = bar(share, format.percent(share), text === label ? "main" : "");
      return el("li", {}, name(text, 30), shown);
    });
    const target = summary.link.kind === "hazard" ? "log hazard" : summary.target;
    return el("div", { class: "prediction" },
      small("Prediction", target ? [" of ", name(target, 40)] : "", known(summary.data)),
      el("output", exact, number ? format.number(value, 5) : name(label, 40)),
      bars.length ? el("ul", { class: "probabilities" }, bars) : null);
  }

  // What the rows of the fit had beside their columns, and the page has no input for.
  function known({ offset, exposure }) {
    const parts = [[offset, 0], [exposure, 1]].filter(([what]) => HK.format.known(what));
    return parts.map(([what, value], i) => [i ? " and " : " for ", name(what, 40), ` = ${value}`]);
  }

  function scaleNote(summary, output) {
    const { kind, words } = summary.link;
    if (kind === "identity") return null;
    const scale = name(HK.views.scaleWords(summary, output), 60);
    return small("Effects add up on the scale of the ", scale, ".", words ? ` ${words}.` : "");
  }

  return { draw };
})();
