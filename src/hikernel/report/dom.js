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

  // Text in which 10^14 has its exponent raised.
  function powers(text) {
    return String(text).split(/10\^(\d+)/).map((part, i) => (i % 2 ? ["10", el("sup", {}, part)] : part));
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

  // A labelled select; `options` are texts, and `pick` gets the position of the chosen one.
  function select(label, options, chosen, pick) {
    const control = el(
      "select",
      { on: { change: (event) => pick(Number(event.target.value)) } },
      options.map((option, i) => el("option", { value: i, selected: i === chosen }, HK.format.shorten(option, 60))),
    );
    return el("label", { class: "choice" }, el("span", {}, label), control);
  }

  // A bar of a share between 0 and 1, with the number beside it.
  function bar(share, text, kind = "") {
    const width = `${100 * Math.max(0, Math.min(1, share || 0))}%`;
    return el(
      "span",
      { class: `bar ${kind}` },
      el("span", { class: "bar-track", "aria-hidden": "true" }, el("span", { class: "bar-fill", style: { width } })),
      el("span", { class: "bar-text" }, text),
    );
  }

  return { el, svg, name, powers, replace, append, id, note, select, bar };
})();
