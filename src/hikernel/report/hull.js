// The hull: what the convex problem selected, as a diagram one can walk through.
"use strict";

HK.hull = (() => {
  const { el, svg, name, note } = HK.dom;
  const { format } = HK;

  function draw(summary, box) {
    const hull = summary.hull || [];
    if (!hull.length) {
      box.append(note("The hull of this model is not on record."));
      return;
    }
    const active = hull.filter((node) => node.active).length;
    box.append(el("p", {}, "The search starts at the constant and adds a term only together with all simpler terms it is built on (its parents). ",
      `This is what it selected: ${format.plural(hull.length, "term")}, ${format.count(active)} of which ${active === 1 ? "carries" : "carry"} weight (filled); the others only lead there (hollow). `,
      "Choose a term with the pointer, or walk with the arrow keys: up to parents, down to children, left and right along a layer."));
    const walk = new Walk(summary, hull);
    box.append(walk.chooser(), el("div", { class: "hull" }, walk.diagram, walk.panel));
    walk.place();
    walk.select(hull.findIndex((node) => node.share === Math.max(...hull.map(({ share }) => share ?? 0))), false);
    new ResizeObserver(() => walk.place()).observe(walk.diagram);
  }

  class Walk {
    constructor(summary, hull) {
      Object.assign(this, { summary, hull, current: 0, width: 0 });
      this.children = HK.hullLayout.children(hull);
      this.largest = Math.max(...hull.map(({ share }) => share ?? 0), 1e-12);
      this.titles = hull.map(({ term, parents }) => (term === "1" && !parents.length ? "constant" : term));
      this.effects = new Map((summary.terms || []).map((term) => [term.term, term.effect]));
      this.diagram = el("div", { class: "hull-diagram" });
      this.panel = el("div", { class: "hull-panel", role: "region", "aria-label": "The chosen term", "aria-live": "polite" });
    }

    // A list to jump to any term, for hulls that are too large to find one by eye.
    chooser() {
      const order = this.hull.map((_, i) => i).sort((a, b) => (this.hull[b].share ?? 0) - (this.hull[a].share ?? 0));
      this.order = order;
      const label = HK.dom.select("Go to", order.map((i) => this.titles[i]), 0, (k) => this.select(order[k], false));
      this.list = label.querySelector("select");
      return el("div", { class: "choices" }, label);
    }

    // Draws the diagram for the width there is.
    place() {
      const width = Math.floor(this.diagram.clientWidth);
      if (!width || width === this.width) return;
      this.width = width;
      const { places, layers, height } = HK.hullLayout.layout(this.hull, width);
      this.layers = layers;
      this.places = places;
      this.edges = this.hull.flatMap((node, i) => node.parents.map((parent) => ({
        from: parent, to: i, line: svg("path", { class: "edge", d: curve(places[parent], places[i]) }),
      })));
      this.nodes = this.hull.map((node, i) => this.node(node, i));
      this.tag = svg("text", { class: "tag", "text-anchor": "middle", "aria-hidden": "true" });
      HK.dom.replace(this.diagram, svg("svg", {
        width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Diagram of the hull", on: { keydown: (event) => this.key(event) },
      }, this.edges.map(({ line }) => line), this.nodes, this.tag));
      this.mark();
    }

    node(node, i) {
      const { x, y } = this.places[i];
      const radius = 5 + 8 * Math.sqrt((node.share || 0) / this.largest);
      return svg("g", {
        class: `node${node.active ? " active" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, role: "button", tabindex: "-1",
        "aria-label": `${this.titles[i]}, ${this.words(node)}`, on: { click: () => this.select(i, true), focus: () => this.select(i, false) },
      },
      svg("title", {}, this.titles[i]),
      svg("circle", { class: "halo", r: radius + 5 }),
      svg("circle", { class: "dot", r: radius }),
      svg("text", { y: radius + 15, "text-anchor": "middle" }, this.short(i)));
    }

    // The name below a node, as long as there is room for it; nothing where there is none.
    short(i) {
      const most = Math.floor(this.places[i].room / 7.5);
      return most > 4 ? HK.format.plain(this.titles[i], most) : "";
    }

    // The name of the chosen node on top of everything else, where the node itself has no room for it.
    label(i) {
      const { x, y } = this.places[i];
      const text = this.short(i) ? "" : HK.format.plain(this.titles[i], 28);
      const half = 3.8 * text.length;
      this.tag.textContent = text;
      this.tag.setAttribute("x", Math.min(Math.max(x, half), this.width - half));
      this.tag.setAttribute("y", y - 22);
    }

    outside(node) {
      if (!node.parents.length && node.term === "1") return "The constant is in every model: it is the base value.";
      if (!node.active) return "This term carries no weight, so that it has no effect to show.";
      return "This term is not in the final model: it was left out when the coefficients were estimated again.";
    }

    words(node) {
      return node.active ? `share ${format.percent(node.share)}` : "only leads to others";
    }

    key(event) {
      const layer = this.layers[this.places[this.current].layer];
      const at = layer.indexOf(this.current);
      const next = {
        ArrowLeft: layer[at - 1], ArrowRight: layer[at + 1],
        ArrowUp: this.hull[this.current].parents[0], ArrowDown: this.children[this.current][0],
        Home: 0, Enter: this.current, " ": this.current,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      this.select(next, true);
    }

    select(i, focus) {
      this.list.value = String(this.order.indexOf(i));
      if (i !== this.current || !this.panel.childElementCount) {
        this.current = i;
        this.describe();
      }
      this.mark();
      if (focus) this.nodes?.[i].focus();
    }

    mark() {
      if (!this.nodes) return;
      const { current } = this;
      const near = new Set([...this.hull[current].parents, ...this.children[current]]);
      this.nodes.forEach((node, i) => {
        node.classList.toggle("chosen", i === current);
        node.classList.toggle("near", near.has(i));
        node.setAttribute("tabindex", i === current ? "0" : "-1");
        node.setAttribute("aria-pressed", String(i === current));
      });
      this.label(current);
      this.edges.forEach(({ from, to, line }) => line.classList.toggle("near", from === current || to === current));
    }

    describe() {
      const node = this.hull[this.current];
      const links = (title, list) => el("div", { class: "kin" }, el("h4", {}, title), list.length
        ? el("p", {}, list.map((i) => el("button", { type: "button", class: "chip", on: { click: () => this.select(i, false) } }, name(this.titles[i], 36))))
        : el("p", { class: "small" }, "none"));
      const place = this.effects.get(node.term);
      const effect = place === null || place === undefined ? null : this.summary.effects[place];
      HK.dom.replace(this.panel, el("h3", {}, name(this.titles[this.current])),
        el("p", {}, `${format.capital(this.words(node))}. ${format.capital(format.plural(node.order, "variable"))}, degree ${format.count(node.degree)}.`),
        links("Parents", node.parents), links("Children", this.children[this.current]),
        effect ? [el("h4", {}, "Its effect: ", name(effect.name, 60)), HK.effectView.create(this.summary, effect)]
          : el("p", { class: "small" }, this.outside(node)));
    }
  }

  function curve(a, b) {
    const middle = (a.y + b.y) / 2;
    return `M${a.x.toFixed(1)} ${a.y.toFixed(1)}C${a.x.toFixed(1)} ${middle.toFixed(1)} ${b.x.toFixed(1)} ${middle.toFixed(1)} ${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
  }

  return { draw };
})();
