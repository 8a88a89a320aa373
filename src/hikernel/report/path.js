// The path: from a model with hardly a term to one with many, with a slider.
"use strict";

HK.path = (() => {
  const { el, name, bar, line, small } = HK.dom;
  const { format } = HK;
  const { known } = format;
  const MOST_EFFECTS = 10;

  function draw(summary, box) {
    const path = summary.path || [];
    if (path.length < 2) {
      HK.dom.nothing(box, "This model was fitted at a single alpha, so that there is no path to ",
        "walk along.");
      return;
    }
    const chosen = path.findIndex((point) => point.chosen);
    const state = { at: Math.max(0, chosen), cursor: null };
    const plot = el("div", { class: "short" });
    const label = "Plot of the error along the path. The slider below reads it out point by point.";
    HK.figure.mount(plot, label, (width) =>
      HK.pathPlot.build(summary, path, state, width));
    const id = HK.dom.id("path");
    const slider = el("input", {
      type: "range", id, min: 0, max: path.length - 1, step: 1, value: state.at,
      on: { input: () => move(Number(slider.value)) },
    });
    const reading = el("div", { class: "reading", "aria-live": "polite" });

    function move(at) {
      const { alpha, n_effects: n } = path[at];
      state.at = at;
      slider.value = String(at);
      slider.setAttribute("aria-valuetext",
        `alpha ${format.number(alpha, 3)}, ${format.plural(n, "effect")}`);
      if (state.cursor) state.cursor.location = alpha;
      HK.dom.replace(reading, facts(summary, path[at]), effects(path[at]));
    }

    const back = HK.dom.button("Go to the chosen model", () => move(chosen));
    HK.dom.append(box, [
      el("p", {}, "The number alpha decides how much a term must earn its place: a large one ",
        "gives a small model, a small one a large model. Move the slider to see the models that ",
        chosen < 0 ? "were considered." : "were considered; the chosen one is marked."),
      plot,
      el("div", { class: "slide" },
        el("label", { for: id }, "Fewer terms"), slider, el("span", {}, "more terms")),
      chosen < 0 ? null : el("p", { class: "buttons" }, back),
      reading,
    ]);
    move(state.at);
  }

  // The path holds models of the convex problem; the refit comes after it.
  function before({ refit, effects: kept }, point) {
    if (!known(refit)) return null;
    if (!point.chosen || !kept) return small("Terms, effects and shares before the refit.");
    const many = format.plural(kept.length, "effect");
    const grown = kept.length > point.n_effects;
    const after = grown ? `after which it has ${many}` : `which kept ${many}`;
    return small("Terms, effects and shares before the refit (", name(refit, 30), `), ${after}.`);
  }

  function facts(summary, point) {
    const errors = Object.entries(point.cv || {}).map(([refit, { mean, se }]) => [
      `error by cross-validation${refit === "None" ? "" : `, refit ${refit}`}`,
      `${format.number(mean)}${known(se) ? ` \u00b1 ${format.number(se, 2)}` : ""}`,
    ]);
    const explained = known(point.explained)
      ? [["explained on the training rows", format.percent(point.explained)]]
      : [];
    return el("div", {},
      el("h3", {}, point.chosen ? "The chosen model" : "At this point"),
      before(summary, point),
      HK.dom.pairs([
        ["alpha", format.number(point.alpha, 3)],
        ["terms", format.count(point.n_terms)],
        ["effects", format.count(point.n_effects)],
        ...explained,
        ...errors,
      ]));
  }

  function effects(point) {
    const all = point.effects || [];
    const title = el("h3", {}, "Its effects");
    if (!all.length) {
      return el("div", {}, title,
        small(point.n_terms ? "Not on record for this point." : "None: this model is a constant."));
    }
    const rows = all.slice(0, MOST_EFFECTS).map(([label, share]) =>
      line(name(label, 40), bar(share, format.percent(share))));
    const more = all.length - MOST_EFFECTS;
    return el("div", {}, title,
      HK.dom.table("shares", ["Effect", "Share"], rows, { hidden: true }),
      more > 0 ? small(`and ${format.plural(more, "smaller one")}`) : null);
  }

  return { draw };
})();
