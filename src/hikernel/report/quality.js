// How good the model is, beside a linear model and a constant.
"use strict";

HK.quality = (() => {
  const { el, bar, note } = HK.dom;
  const { format } = HK;

  function draw(summary, box) {
    const { quality } = summary;
    if (!quality || (!known(quality.model) && !known(quality.explained))) {
      box.append(note("No error was measured for this model, so that nothing can be said about how good it is."));
      return;
    }
    if (quality.words) box.append(el("p", { class: "words" }, quality.words));
    box.append(comparison(summary, quality), explanation(quality));
  }

  function known(value) {
    return value !== null && value !== undefined;
  }

  function comparison(summary, quality) {
    const explained = known(quality.explained);
    const measured = known(quality.model);
    const models = [["This model", quality.model, quality.explained, "main"], ["Linear model", quality.linear, quality.linear_explained, ""],
      ["Constant", quality.constant, explained ? 0 : null, ""]].filter(([, value, share]) => known(value) || known(share));
    const longest = Math.max(...models.map(([, value]) => Math.abs(value ?? 0)), 1e-300);
    const head = ["Model", ...(explained ? ["Explained"] : []), ...(measured ? [metricName(quality)] : [])];
    return el("table", { class: "plain compare" },
      el("caption", { class: "hidden" }, "Error of this model beside a linear model and a constant"),
      el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, models.map(([label, value, share, kind]) => {
        const text = `${format.number(value, 4)}${kind && known(quality.standard_error) ? ` \u00b1 ${format.number(quality.standard_error, 2)}` : ""}`;
        const cells = explained
          ? [el("td", {}, known(share) ? bar(share, format.percent(share, share ? 1 : 0), kind) : "not known"), measured ? el("td", { class: "num" }, text) : null]
          : [el("td", {}, bar(Math.abs(value) / longest, text, kind))];
        return el("tr", {}, el("th", { scope: "row" }, label), cells);
      })));
  }

  function metricName({ metric, larger_is_better: larger }) {
    return `${format.capital(metric || "error")} (${larger ? "larger" : "smaller"} is better)`;
  }

  function explanation(quality) {
    const how = quality.kind === "training"
      ? "These numbers are from the rows the model was fitted to, and flatter it. The cross-validated estimators measure it on rows it has not seen."
      : `Measured by cross-validation: the rows were split into ${format.plural(quality.n_folds, "part")}, and each part was predicted by a model that had not seen it.`;
    const what = known(quality.explained)
      ? " Explained is the share of the error of a constant prediction that is gone: a constant has 0\u202f%, a perfect model 100\u202f%."
      : "";
    return el("p", { class: "small" }, how, what);
  }

  return { draw };
})();
