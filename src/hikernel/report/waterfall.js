// A prediction as a sum: from the base value over the effects to the result, one row each.
"use strict";

HK.waterfall = (() => {
  const { el, name } = HK.dom;
  const { format } = HK;
  const MOST = 12;

  // `parts` are {label, value}; the largest come first, the smallest are added up into one row.
  function create(start, parts, words) {
    const ordered = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const shown = ordered.slice(0, MOST);
    const others = ordered.slice(MOST);
    if (others.length) {
      shown.push({ label: format.plural(others.length, "smaller effect"), value: others.reduce((sum, { value }) => sum + value, 0), ours: true });
    }
    const ends = [start];
    shown.forEach(({ value }) => ends.push(ends[ends.length - 1] + value));
    const total = ends[ends.length - 1];
    // Where effects are small beside the base value, the axis leaves zero out.
    const near = Math.max(...ends) - Math.min(...ends) < 0.4 * Math.max(...ends.map(Math.abs));
    const all = near ? ends : [...ends, 0];
    const low = Math.min(...all);
    const room = Math.max(...all) - low || 1;
    const place = (value) => (100 * (value - low)) / room;

    function row(label, from, to, text, kind) {
      const left = place(Math.min(from, to));
      const width = Math.abs(place(to) - place(from));
      return el("tr", { class: kind }, el("th", { scope: "row" }, label),
        el("td", { class: "fall", "aria-hidden": "true" },
          near ? null : el("span", { class: "fall-zero", style: { left: `${place(0)}%` } }),
          el("span", { class: "fall-bar", style: { left: `${left}%`, width: `${width}%` } })),
        el("td", { class: "num" }, text));
    }

    return el("table", { class: "plain waterfall" },
      el("thead", { class: "hidden" }, el("tr", {}, ["Part", "Bar", "Value"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {},
        row("Base value", near ? start : 0, start, format.number(start), "base"),
        shown.map(({ label, value, ours }, i) =>
          row(ours ? label : name(label, 48), ends[i], ends[i + 1], format.signed(value), value < 0 ? "negative" : "positive")),
        row(words, near ? total : 0, total, format.number(total), "total")));
  }

  return { create };
})();
