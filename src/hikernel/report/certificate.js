// What is proven about the choice of terms, in words a layman can follow, and the gap against work.
"use strict";

HK.certificate = (() => {
  const { el, note, bar } = HK.dom;
  const { format } = HK;
  const { color } = HK.theme;

  function draw(summary, box) {
    const { certificate } = summary;
    if (!certificate) {
      box.append(note("This model carries no certificate."));
      return;
    }
    box.append(el("p", { class: "verdict" }, verdict(certificate)), el("p", {}, HK.dom.powers(meaning(certificate))));
    if (certificate.words) box.append(el("blockquote", {}, HK.dom.powers(certificate.words)));
    gap(summary, certificate, box);
  }

  function known(value) {
    return value !== null && value !== undefined;
  }

  function verdict(certificate) {
    const { certified, kind, gap, tol, confidence } = certificate;
    if (kind === "none" || !known(gap)) return "Not proven: no bound on better choices was computed.";
    const sure = kind === "statistical" ? `, with ${format.percent(confidence)} confidence` : "";
    if (certified) return `Proven${sure}: no other choice of terms is better by more than ${format.percent(gap)}.`;
    return `Not proven to the tolerance that was asked for: another choice of terms could be better by up to ${format.percent(gap)}, and ${format.percent(tol)} was asked for.`;
  }

  function meaning(certificate) {
    const many = certificate.n_kernels_in_graph ? `There are ${certificate.n_kernels_in_graph} terms to choose from` : "There are very many terms to choose from";
    return `${many}, and more ways to combine them than anyone could try. Here the choice is one mathematical problem with a single best value, and a bound from below is computed for everything that was left out. The distance between the two, the gap, tells how much better any other choice could be. It is about which terms are chosen for the rows at hand, not about how well new rows are predicted: that is what the errors above tell.`;
  }

  function gap(summary, certificate, box) {
    const steps = (summary.search || []).filter((step) => known(step.gap) && step.gap > 0 && step.explored > 0);
    if (known(certificate.gap)) box.append(gauge(certificate));
    if (steps.length < 2) return;
    const plot = el("div", { class: "short" });
    HK.figure.mount(plot, `Plot of the gap against the number of terms looked at; it ends at ${format.percent(certificate.gap)}.`, () => build(steps, certificate));
    box.append(el("h3", {}, "How the gap closed"), plot);
  }

  // The gap beside the one that was asked for, as bars.
  function gauge({ gap: found, tol }) {
    const rows = [["Gap of this model", found, "main"], ["Gap that was asked for", tol, ""]].filter(([, value]) => known(value));
    const longest = Math.max(...rows.map(([, value]) => value), 1e-300);
    return el("table", { class: "plain compare" }, el("caption", { class: "hidden" }, "The gap beside the one that was asked for"),
      el("tbody", {}, rows.map(([label, value, kind]) => el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, bar(value / longest, format.percent(value), kind))))));
  }

  function build(steps, certificate) {
    const percents = steps.map((step) => 100 * step.gap);
    const low = Math.min(...percents, 100 * (certificate.tol || 1)) / 2;
    const figure = HK.figure.plot({
      x: { label: "terms looked at" }, y: { label: "gap (%)", range: [low, 2 * Math.max(...percents)] }, yType: "log", height: 220,
    });
    if (certificate.tol > 0) {
      figure.add_layout(new Bokeh.Span({ location: 100 * certificate.tol, dimension: "width", line_color: color("negative"), line_dash: [6, 4], line_width: 1.5 }));
      figure.add_layout(new Bokeh.Label({ x: 0, x_units: "screen", x_offset: 6, y: 100 * certificate.tol, y_offset: 3, text: `asked for: ${format.percent(certificate.tol)}`, text_color: color("negative"), text_font_size: "12px" }));
    }
    const explored = steps.map((step) => step.explored);
    const line = figure.line(explored, percents, { line_width: 2.5, line_color: color("series-1"), name: "gap" });
    figure.scatter(explored, percents, { size: 5, fill_color: color("series-1"), line_color: null });
    HK.tooltip.add(figure, [line], (i) => [
      ["terms looked at", format.count(steps[i].explored)],
      ["in the problem", format.count(steps[i].kernels)],
      ["gap", format.percent(steps[i].gap)],
    ], { mode: "vline" });
    return figure;
  }

  return { draw };
})();
