// The top of the page: what was fitted, and the three facts one takes away.
"use strict";

HK.head = (() => {
  const { el, name } = HK.dom;
  const { format } = HK;

  function draw(summary, box) {
    const { data = {} } = summary;
    HK.dom.append(box, [
      el("p", { class: "kicker" }, `Model report \u00b7 ${summary.task || "model"}`),
      el("h1", {}, "What drives ", summary.target ? name(summary.target) : "the prediction"),
      el("p", { class: "lead" }, learned(summary, data)),
      el("dl", { class: "facts" }, [goodness(summary), size(summary, data), proof(summary)].map(fact)),
      largest(summary),
    ]);
  }

  function learned(summary, data) {
    const many = format.plural(summary.effects?.length ?? 0, "effect");
    const rows = format.plural(data.n_rows, "row");
    const aim = summary.classes
      ? [" It tells ", format.plural(summary.classes.length, "class", "classes"), " apart: ", listed(summary.classes), "."]
      : [];
    if (data.has_columns === false) return [`Learned from ${rows}. The model is a sum of ${many}, each a kernel of a graph.`, aim];
    return [`Learned from ${rows} and ${format.plural(data.n_columns, "column")}. The model is a sum of ${many}, which can be read one by one below.`, aim];
  }

  function listed(texts, most = 6) {
    const shown = texts.slice(0, most).flatMap((text, i) => [i ? ", " : "", name(text, 30)]);
    return texts.length > most ? [shown, ` and ${texts.length - most} more`] : shown;
  }

  function fact({ term, value, text, tone = "" }) {
    return el("div", { class: `fact ${tone}` }, el("dt", {}, term), el("dd", {}, el("strong", {}, value), el("span", {}, HK.dom.powers(text))));
  }

  function goodness({ quality, task }) {
    const unknown = (value) => value === null || value === undefined;
    if (!quality || (unknown(quality.model) && unknown(quality.explained))) return { term: "How good", value: "not known", text: "no error was measured" };
    const how = quality.kind === "training" ? "on the rows it was fitted to" : "on rows it had not seen";
    if (!unknown(quality.explained)) {
      const what = task === "classification" ? "of the uncertainty about the class" : "of the variation";
      return { term: "How good", value: format.percent(quality.explained, 1), text: `${what} explained, measured ${how}` };
    }
    return { term: "How good", value: format.number(quality.model, 3), text: `${quality.metric}, measured ${how}` };
  }

  function size(summary, data) {
    const effects = summary.effects?.length ?? 0;
    const used = summary.function?.inputs.length ?? usedColumns(data);
    const text = data.has_columns === false ? "make up the model" : `of ${format.plural(used, "column")} out of ${format.count(data.n_columns)}`;
    return { term: "How simple", value: format.plural(effects, "effect"), text };
  }

  // The list of columns ends with those that tell where a value is missing; the table has none of them.
  function usedColumns({ columns = [], n_columns: n }) {
    return columns.slice(0, n).filter((column) => column.used).length;
  }

  function proof({ certificate }) {
    const term = "How sure the choice is";
    if (!certificate || certificate.kind === "none" || certificate.gap === null || certificate.gap === undefined) {
      return { term, value: "not proven", text: "no bound on better choices was computed", tone: "warn" };
    }
    const among = certificate.n_kernels_in_graph ? ` among ${certificate.n_kernels_in_graph} possible terms` : "";
    if (!certificate.certified) {
      return { term, value: "not proven", text: `a better choice${among} could gain up to ${format.percent(certificate.gap)}`, tone: "warn" };
    }
    const confidence = certificate.kind === "statistical" ? `, with ${format.percent(certificate.confidence)} confidence` : "";
    return { term, value: "proven", text: `within ${format.percent(certificate.gap)} of the best choice${among}${confidence}`, tone: "good" };
  }

  function largest({ effects }) {
    const top = (effects || []).slice(0, 3);
    if (!top.length) return HK.dom.note("The model has no effect: it predicts the same for every row.");
    const parts = top.flatMap((effect, i) => [
      i === 0 ? "" : i === top.length - 1 ? " and " : ", ", name(effect.name, 60), ` (${format.percent(effect.share)})`]);
    return el("p", {}, top.length > 1 ? "The largest effects are " : "The largest effect is ", parts, ".");
  }

  return { draw };
})();
