// Numbers and names as text. Pure functions; what they return is text, never markup.
"use strict";
globalThis.HK = globalThis.HK || {};

HK.format = (() => {
  const MINUS = "\u2212";
  const NARROW = "\u202f"; // narrow no-break space, before a percent sign

  function sign(text) {
    return text.replace(/-/g, MINUS);
  }

  function known(value) {
    return value !== null && value !== undefined;
  }

  // A number with so many significant digits, its thousands apart; tiny and huge ones with a power
  // of ten.
  function number(x, digits = 4) {
    if (!known(x) || !Number.isFinite(x)) return "not known";
    if (x === 0) return "0";
    const size = Math.abs(x);
    if (size >= 1e9 || size < 1e-4) {
      const [mantissa, exponent] = x.toExponential(Math.max(0, digits - 2)).split("e");
      return sign(`${mantissa}e${Number(exponent)}`);
    }
    const decimals = Math.min(20, Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
    const rounded = Number(x.toFixed(decimals));
    return sign(rounded.toLocaleString("en-US", { maximumFractionDigits: decimals }));
  }

  function signed(x, digits = 3) {
    const text = number(x, digits);
    return x > 0 ? `+${text}` : text;
  }

  function count(n) {
    return known(n) ? n.toLocaleString("en-US") : "an unknown number of";
  }

  function plural(n, one, many = `${one}s`) {
    return `${count(n)} ${n === 1 ? one : many}`;
  }

  // With `digits`, as many decimals; else the fewer the larger the share is.
  function percent(share, digits) {
    if (!known(share) || !Number.isFinite(share)) return "not known";
    const value = 100 * share;
    const size = Math.abs(value);
    if (value > 0 && value < 0.005) return `<${NARROW}0.01${NARROW}%`;
    const usual = size === 0 || size >= 10 ? 0 : size >= 1 ? 1 : 2;
    const decimals = digits === undefined || size === 0 ? usual : digits;
    return `${sign(value.toFixed(decimals))}${NARROW}%`;
  }

  // A share as a limit ("by more than", "up to"): rounded up where it is tiny.
  function bound(share) {
    return percent(share > 0 && share < 1e-4 ? 1e-4 : share);
  }

  // Cuts long text in the middle, by characters and not by halves of them.
  function shorten(text, most = 40) {
    const characters = Array.from(String(text));
    if (characters.length <= most) return characters.join("");
    const left = Math.ceil((most - 1) * 0.6);
    const end = characters.slice(left + 1 - most);
    return [...characters.slice(0, left), "\u2026", ...end].join("");
  }

  // A name for a canvas, which has no markup to isolate it: marks that turn the direction of text
  // are dropped, and what Bokeh would read as mathematics ($$, \[, \() is taken apart.
  function plain(text, most = 40) {
    const one = String(text)
      .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
      .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")
      .replace(/\$(?=\$)/g, "$\u200b")
      .replace(/\\(?=[[\]()])/g, "\\\u200b");
    return shorten(one, most);
  }

  function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

  return { known, number, signed, count, plural, percent, bound, shorten, plain, capital };
})();
