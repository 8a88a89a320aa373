// The colours of the style sheet, for what is drawn on a canvas, and word when they change.
"use strict";

HK.theme = (() => {
  const dark = globalThis.matchMedia ? matchMedia("(prefers-color-scheme: dark)") : null;
  const listeners = new Set();

  if (dark) dark.addEventListener("change", () => listeners.forEach((listener) => listener()));

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  // Okabe and Ito's colours, which people with any kind of colour vision tell apart, with a dash each.
  function series(i) {
    const names = ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8"];
    const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 4], [6, 2, 2, 2]];
    return { color: color(names[i % names.length]), dash: dashes[i % dashes.length] };
  }

  function channels(hex) {
    return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  }

  // `steps` colours from low over the colour of zero to high.
  function diverging(steps = 101) {
    const stops = ["heat-low", "heat-lower", "heat-zero", "heat-higher", "heat-high"].map((name) => channels(color(name)));
    return Array.from({ length: steps }, (_, i) => {
      const place = (i / (steps - 1)) * (stops.length - 1);
      const left = Math.min(Math.floor(place), stops.length - 2);
      const mixed = stops[left].map((c, k) => Math.round(c + (place - left) * (stops[left + 1][k] - c)));
      return `#${mixed.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
    });
  }

  return { color, series, diverging, onChange: (listener) => listeners.add(listener) };
})();
