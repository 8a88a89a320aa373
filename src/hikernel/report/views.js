// Reading a view: an effect on a grid, values[output][axis 0][axis 1][axis 2].
"use strict";

HK.views = (() => {
  const { format } = HK;
  const WITHIN = 1.96; // standard deviations on either side that hold an effect with 95 %
  const BAND_ROOM = 0.3; // of the range of an effect: a wider band is cut off, or curves were flat

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

  // Both ends of the error bars of an effect, {low, high}; null where it has none.
  function errorBars({ values, std }) {
    if (!std) return null;
    const end = (side) => values.map((value, i) => (value ?? 0) + side * WITHIN * (std[i] ?? 0));
    return { low: end(-1), high: end(1) };
  }

  // The error bars at one value, as a line of a tooltip.
  function within({ low, high }, i) {
    return ["95 % within", `\u00b1 ${format.number(0.5 * (high[i] - low[i]))}`];
  }

  // Limits of values that also show their error bars, where these are not much wider.
  function widened([low, high], bars, room = BAND_ROOM) {
    if (!bars) return [low, high];
    const [least, most] = extent([bars.low, bars.high]);
    const spare = room * (high - low);
    const [bottom, top] = [Math.min(low, least), Math.max(high, most)];
    return [Math.max(bottom, low - spare), Math.min(top, high + spare)];
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
    if (kind === "hazard") return "log hazard";
    if (kind === "logistic") return `log-odds of ${classes[1]}`;
    if (kind === "sign") return `score of ${classes[1]}`;
    if (kind === "softmax" || kind === "argmax") return `score of ${summary.outputs[output]}`;
    return target;
  }

  return {
    grid, extent, errorBars, within, widened, column,
    categoryShare, allLeftOut, place, scaleWords,
  };
})();
