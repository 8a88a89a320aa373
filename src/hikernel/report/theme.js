// The colours of the style sheet, for what is drawn on a canvas, and word when they change.
"use strict";

HK.theme = (() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 4], [6, 2, 2, 2]];
  const HEAT = ["heat-low", "heat-lower", "heat-zero", "heat-higher", "heat-high"];

  dark.addEventListener("change", () => listeners.forEach((listener) => listener()));

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  // After Okabe and Ito: people with any kind of colour vision tell them apart, by dashes as well.
  function series(i) {
    return { color: color(`series-${(i % DASHES.length) + 1}`), dash: DASHES[i % DASHES.length] };
  }

  function channels(hex) {
    return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  }

  // `steps` colours from low over the colour of zero to high.
  function diverging(steps = 101) {
    const stops = HEAT.map((name) => channels(color(name)));
    return Array.from({ length: steps }, (_, i) => {
      const place = (i / (steps - 1)) * (stops.length - 1);
      const left = Math.min(Math.floor(place), stops.length - 2);
      const mix = (c, k) => Math.round(c + (place - left) * (stops[left + 1][k] - c));
      return `#${stops[left].map(mix).map((c) => c.toString(16).padStart(2, "0")).join("")}`;
    });
  }

  return { color, series, diverging, onChange: (listener) => listeners.add(listener) };
})();
