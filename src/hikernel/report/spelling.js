// Names of variables as all parts of the page show them: in quotes where they could be mistaken.
"use strict";
globalThis.HK = globalThis.HK || {};

HK.spelling = (() => {
  const UNSEEN = /[\p{C}\p{Z}]/gu; // a space is one of them and is let through below

  // The rule of the names of effects: a name is quoted if it looks like a product, a step, rare
  // categories or a power of another variable, starts with a quote, or cannot be seen as it is.
  function doubtful(text, all) {
    const power = /^([^]*)\^\d+$/.exec(text);
    return text === "intercept" || text === "" || text !== text.trim()
      || ` ${text} `.includes(" * ") || text.includes(" > ") || /^['"]/.test(text)
      || /^rare(r|\d+)? /.test(text)
      || text.replace(/ /g, "").search(UNSEEN) >= 0 || Boolean(power && all.has(power[1]));
  }

  // Text as Python writes it.
  function quoted(text) {
    const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
    const inner = text.replace(/\\/g, "\\\\").replaceAll(mark, `\\${mark}`)
      .replace(UNSEEN, escaped);
    return `${mark}${inner}${mark}`;
  }

  function escaped(letter) {
    const short = { " ": " ", "\n": "\\n", "\r": "\\r", "\t": "\\t" }[letter];
    if (short) return short;
    const code = letter.codePointAt(0).toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  }

  // Writes the names of variables in a summary as they are shown, all of them alike.
  function apply(summary) {
    const columns = summary.data?.columns || [];
    const all = new Set(columns.map(({ name }) => name));
    const shown = (text) => (doubtful(String(text), all) ? quoted(String(text)) : text);
    const rename = (list, key) => (list || []).forEach((one) => { one[key] = shown(one[key]); });
    for (const list of [columns, summary.variables, summary.function?.inputs]) rename(list, "name");
    for (const effect of summary.effects || []) {
      rename(effect.view?.axes, "variable");
      rename(effect.view?.held, "variable");
    }
    return summary;
  }

  return { apply };
})();
