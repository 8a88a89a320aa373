// The sortable table of effects; each row opens the plot of its effect.
"use strict";

HK.effects = (() => {
  const { el, name, names, bar, button, nothing, small } = HK.dom;
  const { format } = HK;

  const COLUMNS = [
    { key: "name", title: "Effect", value: (effect) => effect.name, first: "ascending" },
    { key: "share", title: "Share", value: (effect) => effect.share, first: "descending" },
    { key: "shape", title: "Shape", value: (effect) => effect.shape, first: "ascending" },
    { key: "order", title: "Variables", value: (effect) => effect.order, first: "ascending" },
    { key: "terms", title: "Terms", value: (effect) => effect.n_terms, first: "descending" },
  ];
  const EXTRA = new Set(["order", "terms"]); // left out on narrow screens

  function draw(summary, box) {
    const effects = summary.effects || [];
    if (!effects.length) {
      nothing(box, "The model has no effect: it predicts the same for every row.");
      return;
    }
    const rows = effects.map((effect, i) => makeRow(summary, effect, i));
    const body = el("tbody", {}, rows.map(({ row, detail }) => [row, detail]));
    const status = el("p", { class: "hidden", role: "status" });
    const several = summary.outputs?.length > 1;
    const scale = several ? "the score of each class" : name(HK.views.scaleWords(summary), 60);
    HK.dom.append(box, [
      el("p", {}, "An effect is what one variable, or several together, adds to ", scale, ". ",
        "Its share is its part of the sum of the variances of all terms on the training rows; ",
        "effects that cancel each other can both be large. ",
        "Open a row to see its plot; click a heading to sort."),
      rows.length > 1 ? buttons(rows) : null,
      status,
      el("table", { class: effects.some(({ order }) => order) ? "effects" : "effects kernels" },
        el("caption", { class: "hidden" }, "Effects of the model"),
        el("thead", {}, headings(rows, body, status)),
        body),
    ]);
    rows[0].toggle(true);
  }

  function buttons(rows) {
    const all = (open) => () => rows.forEach((entry) => entry.toggle(open));
    return el("p", { class: "buttons" },
      button("Open all", all(true)), button("Close all", all(false)));
  }

  function headings(rows, body, status) {
    const heads = COLUMNS.map((column) => {
      const arrow = el("span", { class: "arrow", "aria-hidden": "true" });
      const head = el("th", {
        scope: "col",
        class: `col-${column.key}${EXTRA.has(column.key) ? " extra" : ""}`,
        "aria-sort": column.key === "share" ? "descending" : "none",
      });
      const on = { click: () => sort(column, head) };
      head.append(el("button", { type: "button", class: "sort", on }, column.title, arrow));
      return head;
    });

    function sort(column, head) {
      const other = { ascending: "descending", descending: "ascending" };
      const direction = other[head.getAttribute("aria-sort")] || column.first;
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? direction : "none"));
      const factor = direction === "ascending" ? 1 : -1;
      const order = (a, b) =>
        factor * compare(column.value(a.effect), column.value(b.effect)) || a.position - b.position;
      body.append(...[...rows].sort(order).flatMap(({ row, detail }) => [row, detail]));
      status.textContent = `Sorted by ${column.title}, ${direction}.`;
    }

    return el("tr", {}, heads);
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : String(a).localeCompare(b, "en", { numeric: true });
  }

  function makeRow(summary, effect, position) {
    const panel = HK.dom.id("effect");
    const cell = el("td", { colspan: COLUMNS.length });
    const detail = el("tr", { class: "detail", id: panel, hidden: true }, cell);
    const opener = el("button", {
      type: "button", class: "opener", "aria-expanded": "false", "aria-controls": panel,
    }, name(effect.name));
    const row = el("tr", { class: "effect" },
      el("th", { scope: "row", class: "col-name" }, opener),
      el("td", { class: "col-share" }, bar(effect.share, format.percent(effect.share))),
      el("td", { class: "col-shape" }, HK.thumbnail.create(effect),
        el("span", { class: "shape" }, effect.shape || "")),
      el("td", { class: "num col-order extra" }, format.count(effect.order)),
      el("td", { class: "num col-terms extra" }, format.count(effect.n_terms)));

    function toggle(open) {
      opener.setAttribute("aria-expanded", String(open));
      row.classList.toggle("open", open);
      detail.hidden = !open;
      if (open && !cell.childElementCount) {
        cell.append(HK.effectView.create(summary, effect), terms(summary, effect));
      }
    }

    row.addEventListener("click", () => toggle(detail.hidden));
    return { row, detail, effect, position, toggle };
  }

  function terms(summary, effect) {
    const own = (effect.terms || []).map((i) => summary.terms[i]?.term).filter(format.known);
    if (!own.length) return "";
    return small(`${format.plural(own.length, "term")}: `, names(own, 12, 60), ".");
  }

  return { draw };
})();
