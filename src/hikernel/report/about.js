// Data, settings, and how to use the model again.
"use strict";

HK.about = (() => {
  const { el, name, note } = HK.dom;
  const { format } = HK;
  const MOST_COLUMNS = 12;

  function data(summary, box) {
    const { data: facts } = summary;
    if (!facts) {
      box.append(note("Nothing is on record about the data."));
      return;
    }
    box.append(el("p", {}, `${format.capital(format.plural(facts.n_rows, "row"))}${facts.has_columns === false ? "" : ` and ${format.plural(facts.n_columns, "column")}`}`,
      facts.weighted ? ", with sample weights." : "."));
    if (facts.has_columns === false) {
      box.append(note("This model was fitted on a graph of kernels and not on the columns of a table, so that there are no columns to list."));
      return;
    }
    const columns = [...(facts.columns || [])].sort((a, b) => Number(b.used) - Number(a.used));
    const used = columns.filter((column) => column.used).length;
    const cut = Math.max(used, Math.min(MOST_COLUMNS, columns.length));
    box.append(table(columns.slice(0, cut)));
    if (columns.length > cut) {
      box.append(el("details", {}, el("summary", {}, `${format.plural(columns.length - cut, "more column")} the model does not use`), table(columns.slice(cut))));
    }
  }

  function table(columns) {
    const heads = ["Column", "Kind", "Used", "Missing", "Values", "Written as"];
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns of the data" },
      el("table", { class: "plain columns" },
        el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, columns.map((column) => el("tr", {},
          el("th", { scope: "row" }, name(column.name, 40)), el("td", {}, column.kind), el("td", {}, column.used ? "yes" : "no"),
          el("td", { class: "num" }, format.count(column.n_missing ?? 0)), el("td", {}, values(column)),
          el("td", { title: column.why }, column.basis || ""))))));
  }

  function values({ min, max, quantiles, categories }) {
    if (categories) {
      const parts = categories.slice(0, 3).flatMap(({ label, share }, i) => [i ? ", " : "", name(label, 20), ` ${format.percent(share)}`]);
      return [parts, categories.length > 3 ? ` and ${categories.length - 3} more` : ""];
    }
    if (min === null || min === undefined) return "";
    const middle = quantiles?.["0.5"];
    return `${format.number(min, 3)} to ${format.number(max, 3)}${middle === undefined || middle === null ? "" : `, half below ${format.number(middle, 3)}`}`;
  }

  function settings(summary, box) {
    const rows = [["estimator", summary.estimator], ["hikernel", summary.version], ["loss", summary.loss],
      ["alpha", summary.alpha === null || summary.alpha === undefined ? null : format.number(summary.alpha, 4)]].filter(([, text]) => text !== null && text !== undefined);
    if (summary.refit_words) box.append(el("p", {}, summary.refit_words));
    box.append(pairs(rows));
    const given = Object.entries(summary.settings || {});
    if (given.length) box.append(el("details", {}, el("summary", {}, "All parameters"), pairs(given)));
  }

  function pairs(rows) {
    return el("dl", { class: "pairs wide" }, rows.map(([term, text]) => el("div", {}, el("dt", {}, name(term, 40)), el("dd", {}, name(shown(text), 200)))));
  }

  // A parameter as Python would show it.
  function shown(value) {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  function load(summary, box) {
    const code = 'import hikernel\n\nmodel = hikernel.load("model.hik")   # written by model.save("model.hik")\nmodel.predict(X)                       # X: a table with the columns of above';
    box.append(el("p", {}, "The model itself is a file of its own, which is safe to open: loading it runs no code from the file."),
      el("pre", { tabindex: "0", role: "region", "aria-label": "Code that loads the model" }, el("code", {}, code)));
  }

  return { data, settings, load };
})();
