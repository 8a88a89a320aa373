// How much each variable matters: alone, and in all effects it takes part in.
"use strict";

HK.variables = (() => {
  const { el, name, bar, line } = HK.dom;
  const { format } = HK;
  const MOST = 12;

  function draw(summary, box) {
    const variables = summary.variables || [];
    if (!variables.length) {
      HK.dom.nothing(box, summary.data?.has_columns === false
        ? "This model was fitted on a graph of kernels, not on columns of a table, so that "
          + "there are no variables to compare."
        : "The model uses no variable.");
      return;
    }
    const ordered = [...variables].sort((a, b) => b.share - a.share);
    const longest = Math.max(ordered[0].share, 1e-12);
    box.append(
      el("p", {}, "The dark part is what a variable does alone, the light part what it does ",
        "together with others. An effect of two variables counts for both, so that shares may add ",
        "up to more than 100\u202f%."),
      list(ordered.slice(0, MOST), longest));
    if (ordered.length > MOST) {
      const rest = ordered.slice(MOST);
      box.append(HK.dom.folded(format.plural(rest.length, "more variable"), list(rest, longest)));
    }
  }

  function list(variables, longest) {
    const rows = variables.map(({ name: label, share, alone }) => {
      const lengths = [share / longest, Math.min(alone || 0, share) / longest];
      return line(name(label, 40), bar(lengths, words(share, alone)));
    });
    return HK.dom.table("shares", ["Variable", "Share"], rows, { hidden: true });
  }

  function words(share, alone) {
    if (!(alone > 0)) return `${format.percent(share)}, only with others`;
    if (alone > share - 5e-4) return format.percent(share);
    return `${format.percent(share)}, ${format.percent(alone)} alone`;
  }

  return { draw };
})();
