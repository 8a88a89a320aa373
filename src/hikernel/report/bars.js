// Effects of categories: a bar for each, with the share of the rows that have it.
"use strict";

HK.bars = (() => {
  const { color, series } = HK.theme;
  const { views, format } = HK;
  const BAND = 0.68; // of the distance between two categories

  // `lines` are {label, values, std}, one value per category of the axis; several stand side by
  // side, and a single one has error bars if it has a std.
  function build({ summary, axis, lines, limits, width, effect }) {
    const several = lines.length > 1;
    const names = axis.values.map(String);
    const shares = names.map((name) => views.categoryShare(summary, axis.variable, name));
    // The first category is at the top, as in a list.
    const texts = names.map((name, i) => label(name, shares[i])).reverse();
    const where = (i) => names.length - 1 - i;
    const bars = several ? null : views.errorBars(lines[0]);
    const [low, high] = views.widened(limits, bars, Infinity);
    const room = high - low;
    const figure = HK.figure.plot({
      x: { label: effect, range: [low - 0.05 * room, high + 0.05 * room] },
      y: { label: axis.variable, texts },
      height: Math.max(170, 90 + names.length * (several ? 14 + 9 * lines.length : 26)),
    });
    figure.xgrids[0].visible = true;
    const band = BAND / lines.length;
    const drawn = lines.map((line, k) => {
      const offset = 0.5 * BAND - (k + 0.5) * band;
      const values = line.values.map((value) => value ?? 0);
      const tone = (value) => color(value < 0 ? "negative" : "positive");
      return figure.hbar({
        y: names.map((_, i) => where(i) + offset),
        left: values.map(() => 0),
        right: values,
        height: band * 0.92,
        fill_color: several ? series(k).color : values.map(tone),
        line_color: null,
        name: String(k),
        legend_label: several ? format.plain(line.label, 24) : undefined,
      });
    });
    if (bars) {
      const y = names.map((_, i) => where(i));
      figure.segment({
        x0: bars.low, x1: bars.high, y0: y, y1: y, line_color: color("ink"), line_width: 1.5,
      });
    }
    HK.figure.zeroLine(figure, "height");
    if (several) HK.figure.legend(figure, width);
    HK.tooltip.add(figure, drawn, (i, name) => [
      ...(several ? [["", lines[name].label]] : []),
      [axis.variable, names[i]],
      ["effect", format.signed(lines[name].values[i])],
      ...(bars ? [views.within(bars, i)] : []),
      ...(shares[i] === null ? [] : [["share of the rows", format.percent(shares[i])]]),
    ]);
    return figure;
  }

  function label(name, share) {
    const short = format.plain(name, 16);
    return share === null ? short : `${short} \u00b7 ${format.percent(share)}`;
  }

  return { build };
})();
