// How good the model is, beside a linear model and a constant.
"use strict";

HK.quality = (() => {
  const { el, bar, line, note, small } = HK.dom;
  const { format } = HK;
  const { known } = format;
  const LEAST = 0.01; // share explained from which on there is something to read
  const WARNING = "The model is hardly better than a constant: the effects below are not to be "
    + "trusted.";

  function draw(summary, box) {
    const { quality } = summary;
    if (!quality || (!known(quality.model) && !known(quality.explained))) {
      HK.dom.nothing(box, "No error was measured for this model, so that nothing can be said ",
        "about how good it is.");
      return;
    }
    if (quality.words) box.append(el("p", { class: "words" }, quality.words));
    if (summary.effects?.length && isWeak(quality)) box.append(note(WARNING));
    box.append(comparison(quality), explanation(quality));
  }

  // Whether the model is hardly better than a constant, or worse; false where it is not known.
  function isWeak(quality) {
    const { explained, model, constant, larger_is_better: larger } = quality || {};
    if (known(explained)) return explained <= LEAST;
    if (!known(model) || !known(constant)) return false;
    return larger ? model <= constant : model >= constant;
  }

  // Bars of what is explained with the errors beside them; where there is no such share, of errors.
  function comparison(quality) {
    const explained = known(quality.explained);
    const measured = known(quality.model);
    const models = [
      ["This model", quality.model, quality.explained, "main"],
      ["Linear model", quality.linear, quality.linear_explained, ""],
      ["Constant", quality.constant, explained ? 0 : null, ""],
    ].filter(([, value, share]) => known(value) || known(share));
    const longest = Math.max(...models.map(([, value]) => Math.abs(value ?? 0)), 1e-300);
    const rows = models.map(([label, value, share, kind]) => {
      const text = errorText(value, kind ? quality.standard_error : null);
      if (!explained) return line(label, bar(Math.abs(value) / longest, text, kind));
      const percent = format.percent(share, 1);
      const shown = known(share) ? bar(share, percent, kind) : "not known";
      return line(label, shown, measured ? el("td", { class: "num" }, text) : null);
    });
    const titles = ["Model", explained ? "Explained" : null, measured ? metricName(quality) : null];
    return HK.dom.table("compare", titles.filter(known), rows, {
      caption: "This model beside a linear model and a constant",
    });
  }

  function errorText(value, spread) {
    return `${format.number(value)}${known(spread) ? ` \u00b1 ${format.number(spread, 2)}` : ""}`;
  }

  function metricName({ metric, larger_is_better: larger }) {
    return `${format.capital(metric || "error")} (${larger ? "larger" : "smaller"} is better)`;
  }

  function explanation(quality) {
    const how = quality.kind === "training"
      ? "These numbers are from the rows the model was fitted to, and flatter it. "
        + "The cross-validated estimators measure it on rows it has not seen."
      : `Measured by cross-validation: the rows were split into ${quality.n_folds} parts, and each `
        + "part was predicted by a model that had not seen it.";
    const what = " Explained is the share of the error of a constant prediction that is gone: "
      + "a constant has 0\u202f%, a perfect model 100\u202f%.";
    const alone = known(quality.constant) ? ""
      : " There is no constant to compare with: its error was not measured.";
    return small(how, known(quality.explained) ? what : alone);
  }

  return { draw, isWeak, WARNING };
})();
