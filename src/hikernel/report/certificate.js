// What is proven about the choice of terms, in words a layman can follow, and the gap against work.
"use strict";

HK.certificate = (() => {
  const { el, bar, line } = HK.dom;
  const { format } = HK;
  const { known } = format;
  const { color } = HK.theme;
  const WEAK = 0.5; // a bound that leaves half of the objective open says next to nothing

  function draw(summary, box) {
    const { certificate } = summary;
    if (!certificate) {
      HK.dom.nothing(box, "This model carries no certificate.");
      return;
    }
    HK.dom.append(box, [
      el("p", { class: "verdict" }, verdict(certificate)),
      el("p", {}, HK.dom.powers(meaning(certificate))),
      known(summary.refit) ? el("p", {}, "The proof is about the choice of terms; the refit of ",
        "their coefficients that followed is not part of it.") : null,
      certificate.words ? el("blockquote", {}, HK.dom.powers(certificate.words)) : null,
      known(certificate.gap) ? gauge(certificate) : null,
      closing(summary, certificate),
    ]);
  }

  function verdict({ certified, kind, gap, tol, confidence }) {
    if (kind === "none" || !known(gap)) {
      return "Not proven: no bound on better choices was computed.";
    }
    const sure = kind === "statistical" ? `, with ${format.percent(confidence)} confidence` : "";
    const much = format.bound(gap);
    if (isWeak(gap)) {
      return `${gap >= 1 ? "Nothing" : "Next to nothing"} is proven: as far as is known, another `
        + `choice of terms could be better by ${gap >= 1 ? "any amount" : `up to ${much}`}.`;
    }
    if (certified) return `Proven${sure}: no other choice of terms is better by more than ${much}.`;
    return "Not proven as far as asked for: another choice of terms could be better by up to "
      + `${much}${known(tol) ? `, and ${format.bound(tol)} was asked for` : ""}.`;
  }

  function isWeak(gap) {
    return gap >= WEAK;
  }

  function meaning(certificate) {
    const many = certificate.n_kernels_in_graph || "very many";
    return `There are ${many} terms to choose from, and more ways to combine them than anyone `
      + "could try. Here the choice is one mathematical problem with a single best value, and a "
      + "bound from below is computed for everything that was left out. The distance between the "
      + "two, the gap, tells how much better any other choice could be. It is about which terms "
      + "are chosen for the rows at hand, not about how well new rows are predicted: that is what "
      + "the errors above tell.";
  }

  // The gap beside the one that was asked for, as bars.
  function gauge({ gap, tol }) {
    const gaps = [["Gap of this model", gap, "main"], ["Gap that was asked for", tol, ""]];
    const shown = gaps.filter(([, value]) => known(value));
    const longest = Math.max(...shown.map(([, value]) => value), 1e-300);
    const rows = shown.map(([label, value, kind]) =>
      line(label, bar(value / longest, format.percent(value), kind)));
    return HK.dom.table("compare", ["Gap", "Size"], rows, { hidden: true });
  }

  // How the gap closed, where more than one is on record.
  function closing(summary, certificate) {
    const steps = (summary.search || []).filter(({ gap }) => gap > 0);
    if (steps.length < 2) return null;
    const plot = el("div", { class: "short" });
    const end = format.percent(certificate.gap);
    const label = `Plot of the gap after each step of the search; it ends at ${end}.`;
    HK.figure.mount(plot, label, () => build(steps, certificate));
    return [el("h3", {}, "How the gap closed"), plot];
  }

  function build(steps, { tol }) {
    const percents = steps.map((step) => 100 * step.gap);
    const numbers = steps.map((step, i) => (step.step ?? i) + 1);
    const low = Math.min(...percents, 100 * (tol || 1)) / 2;
    const figure = HK.figure.plot({
      x: { label: "step of the search" },
      y: { label: "gap (%)", range: [low, 2 * Math.max(...percents)] },
      yType: "log",
      height: 220,
    });
    if (tol > 0) asked(figure, tol);
    const main = color("series-1");
    const curve = figure.line(numbers, percents, { line_width: 2.5, line_color: main });
    figure.scatter(numbers, percents, { size: 5, fill_color: main, line_color: null });
    HK.tooltip.add(figure, [curve], (i) => [
      ["step", format.count(numbers[i])],
      ["terms looked at", format.count(steps[i].explored)],
      ["in the problem", format.count(steps[i].kernels)],
      ["gap", format.percent(steps[i].gap)],
    ], { mode: "vline" });
    return figure;
  }

  function asked(figure, tol) {
    figure.add_layout(new Bokeh.Span({
      location: 100 * tol, dimension: "width", line_color: color("negative"), line_dash: [6, 4],
    }));
    figure.add_layout(new Bokeh.Label({
      x: 0, x_units: "screen", x_offset: 6, y: 100 * tol, y_offset: 3,
      text: `asked for: ${format.percent(tol)}`,
      text_color: color("negative"), text_font_size: "12px",
    }));
  }

  return { draw, isWeak };
})();
