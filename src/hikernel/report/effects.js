// The sortable table of effects; each row opens the plot of its effect.
"use strict";

HK.effects = (() => {
  const { el, name, bar, note } = HK.dom;
  const { format } = HK;
  const OPEN_AT_FIRST = 1;

  const COLUMNS = [
    { key: "name", title: "Effect", value: (effect) => effect.name, first: "ascending" },
    { key: "share", title: "Share", value: (effect) => effect.share ?? -1, first: "descending" },
    { key: "shape", title: "Shape", value: (effect) => effect.shape || "", first: "ascending" },
    { key: "order", title: "Variables", value: (effect) => effect.order, first: "ascending", extra: true },
    { key: "terms", title: "Terms", value: (effect) => effect.n_terms, first: "descending", extra: true },
  ];

  function draw(summary, box) {
    const effects = summary.effects || [];
    if (!effects.length) {
      box.append(note("The model has no effect: it predicts the same for every row."));
      return;
    }
    box.append(el("p", {}, "An effect is what one variable, or several together, adds to ",
      summary.outputs?.length > 1 ? "the score of each class" : HK.dom.name(HK.views.scaleWords(summary), 60),
      ". The share tells how much of the model's variation comes from it. Open a row to see its plot; click a heading to sort."));
    const rows = effects.map((effect, i) => makeRow(summary, effect, i));
    const body = el("tbody");
    const status = el("p", { class: "hidden", role: "status" });
    const table = el("table", { class: "effects" }, el("caption", { class: "hidden" }, "Effects of the model"), el("thead", {}, headings(rows, body, status)), body);
    body.append(...rows.flatMap(({ row, detail }) => [row, detail]));
    box.append(buttons(rows), status, table);
    rows.slice(0, OPEN_AT_FIRST).forEach((entry) => entry.toggle(true));
  }

  function buttons(rows) {
    if (rows.length < 2) return null;
    const all = (open) => () => rows.forEach((entry) => entry.toggle(open));
    return el("p", { class: "buttons" },
      el("button", { type: "button", on: { click: all(true) } }, "Open all"),
      el("button", { type: "button", on: { click: all(false) } }, "Close all"));
  }

  function headings(rows, body, status) {
    const heads = COLUMNS.map((column) => {
      const button = el("button", { type: "button", class: "sort" }, column.title, el("span", { class: "arrow", "aria-hidden": "true" }));
      const head = el("th", { scope: "col", class: `col-${column.key}${column.extra ? " extra" : ""}`, "aria-sort": column.key === "share" ? "descending" : "none" }, button);
      button.addEventListener("click", () => sort(column, head));
      return head;
    });

    function sort(column, head) {
      const now = head.getAttribute("aria-sort");
      const other = { ascending: "descending", descending: "ascending" };
      const direction = other[now] || column.first;
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? direction : "none"));
      const factor = direction === "ascending" ? 1 : -1;
      const ordered = [...rows].sort((a, b) => factor * compare(column.value(a.effect), column.value(b.effect)) || a.position - b.position);
      body.append(...ordered.flatMap(({ row, detail }) => [row, detail]));
      status.textContent = `Sorted by ${column.title}, ${direction}.`;
    }

    return el("tr", {}, heads);
  }

  function compare(a, b) {
    return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  }

  function makeRow(summary, effect, position) {
    const panel = HK.dom.id("effect");
    const button = el("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": panel }, name(effect.name));
    const detail = el("tr", { class: "detail", id: panel, hidden: true }, el("td", { colspan: COLUMNS.length }));
    const row = el("tr", { class: "effect" },
      el("th", { scope: "row", class: "col-name" }, button),
      el("td", { class: "col-share" }, bar(effect.share, format.percent(effect.share))),
      el("td", { class: "col-shape" }, HK.thumbnail.create(effect), el("span", { class: "shape" }, effect.shape || "")),
      el("td", { class: "num col-order extra" }, format.count(effect.order)),
      el("td", { class: "num col-terms extra" }, format.count(effect.n_terms)));

    function toggle(open) {
      button.setAttribute("aria-expanded", String(open));
      row.classList.toggle("open", open);
      detail.hidden = !open;
      const cell = detail.firstChild;
      if (open && !cell.childElementCount) cell.append(HK.effectView.create(summary, effect), terms(summary, effect));
    }

    button.addEventListener("click", () => toggle(detail.hidden));
    row.addEventListener("click", (event) => {
      if (!event.target.closest("button")) toggle(detail.hidden);
    });
    return { row, detail, effect, position, toggle };
  }

  function terms(summary, effect) {
    const own = (effect.terms || []).map((i) => summary.terms[i]).filter(Boolean);
    if (!own.length) return el("p", { class: "small" });
    const most = 12;
    const parts = own.slice(0, most).flatMap((term, i) => [i ? ", " : "", name(term.term, 60)]);
    return el("p", { class: "small" }, `${format.capital(format.plural(own.length, "term"))}: `, parts, own.length > most ? ` and ${own.length - most} more.` : ".");
  }

  return { draw };
})();
