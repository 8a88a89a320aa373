// Reading a view: an effect on a grid, values[output][axis 0][axis 1][axis 2].
"use strict";

HK.views = (() => {
  const { format } = HK;

  // The values of one output; of a view with three axes, one slice of the third.
  function grid(view, output, slice = 0) {
    const values = view.values[output];
    if (view.axes.length < 3) return values;
    return values.map((row) => row.map((cell) => cell[slice]));
  }

  // The smallest and the largest value of all outputs and slices, with zero between them.
  function extent(values) {
    const found = values.flat(Infinity).filter((value) => value !== null && Number.isFinite(value));
    const low = found.reduce((a, b) => Math.min(a, b), 0);
    const high = found.reduce((a, b) => Math.max(a, b), 0);
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  function column(summary, variable) {
    return (summary.data?.columns || []).find(({ name }) => name === variable) || null;
  }

  // The share of the rows that have a category; null where it is not known.
  function categoryShare(summary, variable, label) {
    const { categories, values } = column(summary, variable) || {};
    if (categories) return categories.find((category) => category.label === label)?.share ?? null;
    // A number with two values is shown as a category; its labels have six digits.
    return values?.find(([value]) => Number(value.toPrecision(6)) === Number(label))?.[1] ?? null;
  }

  // Which categories an axis shows where it leaves some out: "30 most frequent of 80"; else "". The
  // third axis has slices, which are not chosen by frequency.
  function leftOut(summary, { variable, kind, values }, k) {
    const all = kind === "number" ? 0 : column(summary, variable)?.categories?.length ?? 0;
    const which = k < 2 ? " most frequent" : "";
    return all > values.length ? `${values.length}${which} of ${format.count(all)}` : "";
  }

  // The same for all axes of a view, with the names of the variables.
  function allLeftOut(summary, { axes }) {
    const parts = axes.map((axis, k) => [axis.variable, leftOut(summary, axis, k)]);
    return parts.filter(([, words]) => words).map(([label, words]) => `${label}: ${words}`);
  }

  // A value of an axis as text.
  function place(axis, i) {
    const value = axis.values[i];
    return axis.kind === "number" ? format.number(value) : String(value);
  }

  // What an effect adds to, in words: the target, or the scale on which effects add up.
  function scaleWords(summary, output = 0) {
    const target = summary.target || "the prediction";
    const classes = summary.classes || [];
    const kind = summary.link?.kind;
    if (kind === "exp") return `log of ${target}`;
    if (kind === "logistic") return `log-odds of ${classes[1]}`;
    if (kind === "sign") return `score of ${classes[1]}`;
    if (kind === "softmax" || kind === "argmax") return `score of ${summary.outputs[output]}`;
    return target;
  }

  return { grid, extent, column, categoryShare, allLeftOut, place, scaleWords };
})();
