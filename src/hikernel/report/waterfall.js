// A prediction as a sum: from the base value over the effects to the result, one row each.
"use strict";

HK.waterfall = (() => {
  const { el, name } = HK.dom;
  const { format } = HK;
  const MOST = 12;
  const ROUNDING = 1e-12; // of the largest part
  const NEAR = 0.4; // of the largest value: below, the axis leaves zero out

  // `parts` are {label, value}, with `ours` where the label is not from data; `words` name the sum.
  function create(start, parts, words) {
    const shown = largest(parts);
    const ends = [tidy(start, shown)];
    shown.forEach(({ value }) => ends.push(ends[ends.length - 1] + value));
    const total = ends[ends.length - 1];
    const axis = axisOf(ends);
    const rows = shown.map(({ label, value, ours }, i) => row(axis, {
      label: ours ? label : name(label, 48),
      from: ends[i],
      to: ends[i + 1],
      text: format.signed(value),
      kind: value < 0 ? "negative" : "positive",
    }));
    const whole = (label, to, kind) =>
      row(axis, { label, from: axis.near ? to : 0, to, text: format.number(to), kind });
    return HK.dom.table("waterfall", ["Part", "Bar", "Value"],
      [whole("Base value", ends[0], "base"), rows, whole(words, total, "total")], { hidden: true });
  }

  // A base value that is zero but for rounding errors is zero.
  function tidy(start, parts) {
    const size = Math.max(...parts.map(({ value }) => Math.abs(value)), 0);
    return Math.abs(start) < ROUNDING * size ? 0 : start;
  }

  // The largest parts first; the smallest are added up into one.
  function largest(parts) {
    const ordered = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const others = ordered.slice(MOST);
    if (!others.length) return ordered;
    const sum = others.reduce((total, { value }) => total + value, 0);
    const label = format.plural(others.length, "smaller effect");
    return [...ordered.slice(0, MOST), { label, value: sum, ours: true }];
  }

  // Where effects are small beside the base value, the axis leaves zero out.
  function axisOf(ends) {
    const spread = Math.max(...ends) - Math.min(...ends);
    const near = spread < NEAR * Math.max(...ends.map(Math.abs));
    const all = near ? ends : [...ends, 0];
    const low = Math.min(...all);
    const room = Math.max(...all) - low || 1;
    return { near, place: (value) => (100 * (value - low)) / room };
  }

  function row({ near, place }, { label, from, to, text, kind }) {
    const left = `${place(Math.min(from, to))}%`;
    const width = `${Math.abs(place(to) - place(from))}%`;
    return el("tr", { class: kind }, el("th", { scope: "row" }, label),
      el("td", { class: "fall", "aria-hidden": "true" },
        near ? null : el("span", { class: "fall-zero", style: { left: `${place(0)}%` } }),
        el("span", { class: "fall-bar", style: { left, width } })),
      el("td", { class: "num" }, text));
  }

  return { create };
})();
