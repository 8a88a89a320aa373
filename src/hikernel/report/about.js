// Data, settings, and how to use the model again.
"use strict";

HK.about = (() => {
  const { el, name, line, note } = HK.dom;
  const { format } = HK;
  const { known } = format;
  const MOST_COLUMNS = 12;
  const MOST_UNUSED = 1000; // a browser takes seconds to lay out a table of many thousands

  function data(summary, box) {
    const { data: facts } = summary;
    if (!facts) {
      HK.dom.nothing(box, "Nothing is on record about the data.");
      return;
    }
    const rows = format.plural(facts.n_rows, "row");
    const also = [facts.weighted && "sample weights", facts.offset && `the offset ${facts.offset}`,
      facts.exposure && `the exposure ${facts.exposure}`].filter(Boolean);
    const weights = also.length ? `, with ${also.join(" and ")}.` : ".";
    if (facts.has_columns === false) {
      box.append(el("p", {}, rows, weights),
        note("This model was fitted on a graph of kernels and not on the columns of a table, so ",
          "that there are no columns to list."));
      return;
    }
    const columns = [...(facts.columns || [])].sort((a, b) => Number(b.used) - Number(a.used));
    const used = columns.filter((column) => column.used).length;
    const cut = Math.max(used, MOST_COLUMNS);
    box.append(
      el("p", {}, `${rows} and ${format.plural(facts.n_columns, "column")}`, weights),
      table(columns.slice(0, cut)));
    if (columns.length > cut) {
      const rest = format.plural(columns.length - cut, "more column");
      const unused = columns.slice(cut, cut + MOST_UNUSED);
      const first = cut + MOST_UNUSED < columns.length
        ? note(`The first ${format.count(MOST_UNUSED)} of them:`) : null;
      box.append(HK.dom.folded(`${rest} the model does not use`, first, table(unused)));
    }
  }

  function table(columns) {
    const rows = columns.map((column) => line(
      name(column.name, 40),
      column.kind,
      column.used ? "yes" : "no",
      el("td", { class: "num" }, format.count(column.n_missing ?? 0)),
      values(column),
      el("td", { title: column.why }, column.basis || "")));
    const titles = ["Column", "Kind", "Used", "Missing", "Values", "Basis"];
    return HK.dom.scroller("Columns of the data", HK.dom.table("columns", titles, rows));
  }

  // The year of a date is no amount, and has no thousands apart.
  function amount(column, x) {
    return Number.isInteger(x) && column.endsWith(" (year)") ? String(x) : format.number(x, 3);
  }

  function values({ name: column, min, max, quantiles, categories }) {
    if (categories) {
      const shown = categories.slice(0, 3).flatMap(({ label, share }, i) =>
        [i ? ", " : "", name(label, 20), ` ${format.percent(share)}`]);
      const more = categories.length - 3;
      return [shown, more > 0 ? ` and ${more} more` : ""];
    }
    if (!known(min)) return "";
    const middle = quantiles?.["0.5"];
    const half = known(middle) ? `, half below ${amount(column, middle)}` : "";
    return `${amount(column, min)} to ${amount(column, max)}${half}`;
  }

  function settings(summary, box) {
    const rows = [
      ["estimator", summary.estimator],
      ["hikernel", summary.version],
      ["loss", summary.loss],
      ["alpha", known(summary.alpha) ? format.number(summary.alpha) : null],
    ];
    if (summary.refit_words) box.append(el("p", {}, summary.refit_words));
    box.append(pairs(rows.filter(([, value]) => known(value))));
    const given = Object.entries(summary.settings || {});
    if (given.length) box.append(HK.dom.folded("All parameters", pairs(given)));
  }

  function pairs(rows) {
    const texts = rows.map(([term, value]) => [name(term, 40), name(shown(value), 200)]);
    return HK.dom.pairs(texts, "wide");
  }

  // A parameter as Python would show it.
  function shown(value) {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  const CODE = `import hikernel

model = hikernel.load("model.hik")  # written by model.save("model.hik")
model.predict(X)  # X: a table with the same columns`;

  const GRAPH_CODE = `import joblib

model = joblib.load("model.joblib")  # written by joblib.dump(model, "model.joblib")
model.predict(X)  # X: as in fit`;

  function load(summary, box) {
    const graph = summary.data?.has_columns === false;
    const words = graph
      ? "A model that was fitted on a graph of kernels has no model file of its own. Use pickle or "
        + "joblib, and open such files only where you trust their source: they can run any code."
      : "The model itself is a file of its own, which is safe to open: loading it runs no code "
        + "from the file.";
    box.append(
      el("p", {}, words),
      el("pre", { tabindex: "0", role: "region", "aria-label": "Code that loads the model" },
        el("code", {}, graph ? GRAPH_CODE : CODE)));
  }

  return { data, settings, load };
})();
