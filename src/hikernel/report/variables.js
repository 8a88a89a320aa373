// How much each variable matters: alone, and in all effects it takes part in.
"use strict";

HK.variables = (() => {
  const { el, name, note } = HK.dom;
  const { format } = HK;
  const MOST = 12;

  function draw(summary, box) {
    const variables = summary.variables || [];
    if (!variables.length) {
      box.append(note(summary.data?.has_columns === false
        ? "This model was fitted on a graph of kernels, not on columns of a table, so that there are no variables to compare."
        : "The model uses no variable."));
      return;
    }
    box.append(el("p", {}, "The dark part is what a variable does alone, the light part what it does together with others. ",
      "An effect of two variables counts for both, so that shares may add up to more than 100\u202f%."));
    const ordered = [...variables].sort((a, b) => b.share - a.share);
    const longest = Math.max(...ordered.map(({ share }) => share), 1e-12);
    box.append(list(ordered.slice(0, MOST), longest));
    if (ordered.length > MOST) {
      box.append(el("details", {}, el("summary", {}, `${ordered.length - MOST} more variables`), list(ordered.slice(MOST), longest)));
    }
  }

  function list(variables, longest) {
    return el("table", { class: "plain shares" },
      el("thead", { class: "hidden" }, el("tr", {}, ["Variable", "Share"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, variables.map(({ name: label, share, alone }) => {
        const width = (value) => `${(100 * Math.max(0, value || 0)) / longest}%`;
        const text = alone > 0 && alone < share - 5e-4 ? `${format.percent(share)}, ${format.percent(alone)} alone`
          : alone > 0 ? format.percent(share) : `${format.percent(share)}, only with others`;
        return el("tr", {}, el("th", { scope: "row" }, name(label, 40)), el("td", {},
          el("span", { class: "bar" },
            el("span", { class: "bar-track", "aria-hidden": "true" },
              el("span", { class: "bar-fill light", style: { width: width(share) } }),
              el("span", { class: "bar-fill", style: { width: width(Math.min(alone || 0, share)) } })),
            el("span", { class: "bar-text" }, text))));
      })));
  }

  return { draw };
})();
