// The top of the page: what was fitted, and the three facts one takes away.
"use strict";

HK.head = (() => {
  const { el, name, names } = HK.dom;
  const { format } = HK;
  const { known } = format;

  function draw(summary, box) {
    const { data = {} } = summary;
    const target = summary.target ? name(summary.target) : "the prediction";
    const weak = HK.quality.isWeak(summary.quality);
    const found = summary.effects?.length && !weak;
    HK.dom.append(box, [
      el("p", { class: "kicker" }, `Model report \u00b7 ${summary.task || "model"}`),
      el("h1", {}, found ? "What drives " : "Nothing found that drives ", target),
      el("p", { class: "lead" }, learned(summary, data)),
      el("dl", { class: "facts" },
        [goodness(summary), size(summary, data), proof(summary)].map(fact)),
      summary.effects?.length && weak ? HK.dom.note(HK.quality.WARNING) : largest(summary),
    ]);
  }

  function learned(summary, data) {
    const many = format.plural(summary.effects?.length ?? 0, "effect");
    const rows = format.plural(data.n_rows, "row");
    if (!summary.effects?.length) {
      return `Learned from ${rows}. The model has no effect: it predicts the same for every row.`;
    }
    const classes = summary.classes || [];
    const aim = classes.length
      ? [` It tells ${classes.length} classes apart: `, names(classes, 6, 30), "."]
      : [];
    if (data.has_columns === false) {
      const what = `The model is a sum of ${many}, each a kernel of a graph.`;
      return [`Learned from ${rows}. `, what, aim];
    }
    const columns = format.plural(data.n_columns, "column");
    return [
      `Learned from ${rows} and ${columns}. `,
      `The model is a sum of ${many}, which can be read one by one below.`,
      aim,
    ];
  }

  function fact({ term, value, text, tone = "" }) {
    return el("div", { class: `fact ${tone}` }, el("dt", {}, term),
      el("dd", {}, el("strong", {}, value), el("span", {}, HK.dom.powers(text))));
  }

  function goodness({ quality, task }) {
    const term = "How good";
    if (!quality || (!known(quality.model) && !known(quality.explained))) {
      return { term, value: "not known", text: "no error was measured" };
    }
    const seen = quality.kind === "training";
    const how = seen ? "on the rows it was fitted to" : "on rows it had not seen";
    if (!known(quality.explained)) {
      const value = `${quality.metric || "error"} ${format.number(quality.model, 3)}`;
      const beside = known(quality.constant)
        ? `a constant has ${format.number(quality.constant, 3)}` : "no constant to compare with";
      return { term, value, text: `${beside}; measured ${how}` };
    }
    const classes = task === "classification";
    const risk = task === "survival" ? "of the variation of the risk" : "of the variation";
    const what = classes ? "of the uncertainty about the class" : risk;
    const value = format.percent(quality.explained, 1);
    return { term, value, text: `${what} explained, measured ${how}` };
  }

  function size(summary, data) {
    const used = summary.function?.inputs.length ?? usedColumns(data);
    const of = `of ${format.plural(used, "column")} out of ${format.count(data.n_columns)}`;
    return {
      term: "How simple",
      value: format.plural(summary.effects?.length ?? 0, "effect"),
      text: data.has_columns === false ? "make up the model" : of,
    };
  }

  // The list of columns ends with those that tell where a value is missing; the table has none.
  function usedColumns({ columns = [], n_columns: n }) {
    return columns.slice(0, n).filter((column) => column.used).length;
  }

  function proof({ certificate, refit }) {
    const term = "How sure the choice is";
    if (!certificate || certificate.kind === "none" || !known(certificate.gap)) {
      const text = "no bound on better choices was computed";
      return { term, value: "not proven", text, tone: "warn" };
    }
    const graph = certificate.n_kernels_in_graph;
    const among = graph ? ` among ${graph} possible terms` : "";
    const gap = format.bound(certificate.gap);
    if (HK.certificate.isWeak(certificate.gap)) {
      const text = "the bound on better choices says next to nothing";
      return { term, value: "not proven", text, tone: "warn" };
    }
    if (!certificate.certified) {
      const text = `a better choice${among} could gain up to ${gap}`;
      return { term, value: "not proven", text, tone: "warn" };
    }
    const confidence = format.percent(certificate.confidence);
    const sure = certificate.kind === "statistical" ? `, with ${confidence} confidence` : "";
    const also = known(refit) ? "; the refit is not part of the proof" : "";
    const text = `choice of terms${among}${sure}${also}`;
    return { term, value: `proven within ${gap}`, text, tone: "good" };
  }

  function largest({ effects }) {
    const top = (effects || []).slice(0, 3);
    if (!top.length) return null;
    const between = (i) => (i === 0 ? "" : i === top.length - 1 ? " and " : ", ");
    const parts = top.flatMap((effect, i) =>
      [between(i), name(effect.name, 60), ` (${format.percent(effect.share)})`]);
    const start = top.length > 1 ? "The largest effects are " : "The largest effect is ";
    return el("p", {}, start, parts, ".");
  }

  return { draw };
})();
