// Elements with text. Text from data reaches the page through text nodes and attributes of known
// names only, so that no name or category can become markup.
"use strict";

HK.dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  let serial = 0;

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") {
        for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      } else if (key === "style") {
        for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
      } else if (key.startsWith("on")) {
        throw new Error(`the attribute ${key} would run text as a script`);
      } else {
        node.setAttribute(key, value === true ? "" : String(value));
      }
    }
    append(node, children);
    return node;
  }

  function append(node, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }

  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  // A name from data: isolated, so that its direction does not turn the text around it.
  function name(text, most = 80) {
    const whole = String(text);
    const shown = HK.format.shorten(whole, most);
    return el("bdi", { class: "name", title: shown === whole ? null : whole }, shown);
  }

  // Names from data with commas between them; of many, the first ones and how many there are more.
  function names(texts, most, width) {
    const shown = texts.slice(0, most).flatMap((text, i) => [i ? ", " : "", name(text, width)]);
    return texts.length > most ? [shown, ` and ${texts.length - most} more`] : shown;
  }

  // Text in which 10^14 has its exponent raised.
  function powers(text) {
    const parts = String(text).split(/10\^(\d+)/);
    return parts.map((part, i) => (i % 2 ? ["10", el("sup", {}, part)] : part));
  }

  function replace(node, ...children) {
    node.replaceChildren();
    append(node, children);
    return node;
  }

  function id(prefix) {
    serial += 1;
    return `${prefix}-${serial}`;
  }

  function note(...children) {
    return el("p", { class: "note" }, ...children);
  }

  // A note in place of a part that has nothing to show; the contents leave such parts out.
  function nothing(box, ...children) {
    box.dataset.empty = "yes";
    box.append(note(...children));
  }

  function small(...children) {
    return el("p", { class: "small" }, ...children);
  }

  function folded(title, ...children) {
    return el("details", {}, el("summary", {}, title), ...children);
  }

  function button(text, click) {
    return el("button", { type: "button", on: { click } }, text);
  }

  // A table: titles of the columns (hidden ones are read aloud only), rows that `line` makes.
  function table(kind, titles, rows, { hidden = false, caption = null } = {}) {
    const heads = titles.map((title) => el("th", { scope: "col" }, title));
    return el("table", { class: `plain ${kind}` },
      caption ? el("caption", { class: "hidden" }, caption) : null,
      el("thead", { class: hidden ? "hidden" : null }, el("tr", {}, heads)),
      el("tbody", {}, rows));
  }

  // A row of a table; cells are elements td, or what stands in one.
  function line(label, ...cells) {
    const wrapped = cells.filter((cell) => cell !== null).map((cell) =>
      (cell instanceof Node && cell.tagName === "TD" ? cell : el("td", {}, cell)));
    return el("tr", {}, el("th", { scope: "row" }, label), wrapped);
  }

  // Terms with what they are, from pairs.
  function pairs(rows, kind = "") {
    const items = rows.map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text)));
    return el("dl", { class: `pairs ${kind}` }, items);
  }

  // A part of the page that scrolls on its own, by keyboard too.
  function scroller(label, ...children) {
    const attributes = { class: "scroll", tabindex: "0", role: "region", "aria-label": label };
    return el("div", attributes, ...children);
  }

  // A labelled select; `options` are texts, and `pick` gets the position of the chosen one.
  function select(label, options, chosen, pick) {
    const items = options.map((option, i) =>
      el("option", { value: i, selected: i === chosen }, HK.format.shorten(option, 60)));
    const change = (event) => pick(Number(event.target.value));
    return el("label", { class: "choice" }, el("span", {}, label),
      el("select", { on: { change } }, items));
  }

  // A bar of one or several shares between 0 and 1, drawn over each other, with a text beside it.
  function bar(shares, text, kind = "") {
    const fills = [shares].flat().map((share, i, all) => {
      const width = `${100 * Math.max(0, Math.min(1, share || 0))}%`;
      const tone = i < all.length - 1 ? "bar-fill light" : "bar-fill";
      return el("span", { class: tone, style: { width } });
    });
    return el("span", { class: `bar ${kind}` },
      el("span", { class: "bar-track", "aria-hidden": "true" }, fills),
      el("span", { class: "bar-text" }, text));
  }

  return {
    el, svg, name, names, powers, replace, append, id, note, nothing, small, folded, button, table,
    line, pairs, scroller, select, bar,
  };
})();
