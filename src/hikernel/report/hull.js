// The hull: what the convex problem selected, as a diagram one can walk through.
"use strict";

HK.hull = (() => {
  const { el, svg, name, nothing, small } = HK.dom;
  const { format } = HK;

  function draw(summary, box) {
    const hull = summary.hull || [];
    if (!hull.length) {
      nothing(box, "The hull of this model is not on record.");
      return;
    }
    const terms = format.plural(hull.length, "term");
    const active = hull.filter((node) => node.active).length;
    const walk = new Walk(summary, hull);
    const start = walk.rooted ? "the constant" : "the terms without parents";
    const shares = format.known(summary.refit) ? " Shares are those before the refit." : "";
    box.append(
      el("p", {}, `The search starts at ${start} and adds a term only together with all `,
        `simpler terms it is built on (its parents). This is what it selected: ${terms}, `,
        `${format.count(active)} of which ${active === 1 ? "carries" : "carry"} weight (filled); `,
        "the others only lead there (hollow). Choose a term with the pointer, or walk with the ",
        "arrow keys: up to parents, down to children, left and right along a layer.", shares),
      walk.chooser(),
      el("div", { class: "hull" }, walk.diagram, walk.panel));
    walk.place();
    walk.select(walk.order[0], false);
    new ResizeObserver(() => walk.place()).observe(walk.diagram);
  }

  class Walk {
    constructor(summary, hull) {
      const share = (i) => hull[i].share ?? 0;
      Object.assign(this, { summary, hull, current: 0, width: 0 });
      this.children = HK.hullLayout.children(hull);
      // Models on a graph have no constant in their hull; a node may still be called 1.
      const table = summary.data?.has_columns !== false;
      this.constant = table ? hull.findIndex(isConstant) : -1;
      this.rooted = this.constant >= 0;
      this.titles = hull.map((node, i) => (i === this.constant ? "constant" : node.term));
      this.order = hull.map((_, i) => i).sort((a, b) => share(b) - share(a) || a - b);
      this.largest = Math.max(share(this.order[0]), 1e-12);
      this.effects = new Map((summary.terms || []).map((term) => [term.term, term.effect]));
      this.diagram = el("div", { class: "hull-diagram" });
      this.panel = el("div", {
        class: "hull-panel", role: "region", "aria-label": "The chosen term", "aria-live": "polite",
      });
    }

    // A list to jump to any term, for hulls that are too large to find one by eye.
    chooser() {
      const texts = this.order.map((i) => this.titles[i]);
      const label = HK.dom.select("Go to", texts, 0, (k) => this.select(this.order[k], false));
      this.list = label.querySelector("select");
      return el("div", { class: "choices" }, label);
    }

    // Draws the diagram for the width there is.
    place() {
      const width = Math.floor(this.diagram.clientWidth);
      if (!width || width === this.width) return;
      this.width = width;
      const { places, layers, height } = HK.hullLayout.layout(this.hull, width);
      Object.assign(this, { places, layers });
      this.edges = this.hull.flatMap((node, to) => node.parents.map((from) => ({
        from, to, line: svg("path", { class: "edge", d: curve(places[from], places[to]) }),
      })));
      this.nodes = this.hull.map((node, i) => this.node(node, i));
      this.tag = svg("text", { class: "tag", "text-anchor": "middle", "aria-hidden": "true" });
      const attributes = {
        width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
        "aria-label": "Diagram of the hull", on: { keydown: (event) => this.key(event) },
      };
      HK.dom.replace(this.diagram,
        svg("svg", attributes, this.edges.map(({ line }) => line), this.nodes, this.tag));
      this.mark();
    }

    node(node, i) {
      const { x, y } = this.places[i];
      const radius = 5 + 8 * Math.sqrt((node.share || 0) / this.largest);
      const attributes = {
        class: `node${node.active ? " active" : ""}`,
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        role: "button",
        tabindex: "-1",
        "aria-label": `${this.titles[i]}, ${words(node)}`,
        on: { click: () => this.select(i, true), focus: () => this.select(i, false) },
      };
      return svg("g", attributes,
        svg("title", {}, this.titles[i]),
        svg("circle", { class: "halo", r: radius + 5 }),
        svg("circle", { class: "dot", r: radius }),
        svg("text", { y: radius + 15, "text-anchor": "middle" }, this.short(i)));
    }

    // The name below a node, as long as there is room for it; nothing where there is none.
    short(i) {
      const most = Math.floor(this.places[i].room / 8.4);
      return most > 4 ? format.plain(this.titles[i], most) : "";
    }

    // The name of the chosen node above everything else, where the node itself has no room for it.
    label(i) {
      const { x, y } = this.places[i];
      const text = this.short(i) ? "" : format.plain(this.titles[i], 28);
      const half = 3.8 * text.length;
      this.tag.textContent = text;
      this.tag.setAttribute("x", Math.min(Math.max(x, half), this.width - half));
      this.tag.setAttribute("y", y - 22);
    }

    key(event) {
      const layer = this.layers[this.places[this.current].layer];
      const at = layer.indexOf(this.current);
      const next = {
        ArrowLeft: layer[at - 1],
        ArrowRight: layer[at + 1],
        ArrowUp: this.hull[this.current].parents[0],
        ArrowDown: this.children[this.current][0],
        Home: 0,
        Enter: this.current,
        " ": this.current,
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
      for (const { from, to, line } of this.edges) {
        line.classList.toggle("near", from === current || to === current);
      }
    }

    describe() {
      const node = this.hull[this.current];
      const place = this.effects.get(node.term);
      const effect = format.known(place) ? this.summary.effects[place] : null;
      HK.dom.replace(this.panel,
        el("h3", {}, name(this.titles[this.current])),
        el("p", {}, `${format.capital(words(node))}.`, node.order
          ? ` ${format.plural(node.order, "variable")}, degree ${format.count(node.degree)}.` : ""),
        this.kin("Parents", node.parents),
        this.kin("Children", this.children[this.current]),
        effect
          ? [el("h4", {}, "Its effect: ", name(effect.name, 60)),
            HK.effectView.create(this.summary, effect)]
          : small(outside(node, this.current === this.constant)));
    }

    kin(title, list) {
      const chips = list.map((i) => el("button", {
        type: "button", class: "chip", on: { click: () => this.select(i, false) },
      }, name(this.titles[i], 36)));
      return el("div", { class: "kin" }, el("h4", {}, title),
        chips.length ? el("p", {}, chips) : small("none"));
    }
  }

  function isConstant({ term, parents }) {
    return term === "1" && !parents.length;
  }

  function words(node) {
    return node.active ? `share ${format.percent(node.share)}` : "only leads to others";
  }

  // Why a term has no effect to show.
  function outside(node, constant) {
    if (constant) return "The constant is in every model: it is the base value.";
    if (!node.active) return "This term carries no weight, so that it has no effect to show.";
    return "This term is not in the final model: it was left out when the coefficients were "
      + "estimated again.";
  }

  function curve(a, b) {
    const [ax, ay, bx, by] = [a.x, a.y, b.x, b.y].map((value) => value.toFixed(1));
    const middle = ((a.y + b.y) / 2).toFixed(1);
    return `M${ax} ${ay}C${ax} ${middle} ${bx} ${middle} ${bx} ${by}`;
  }

  return { draw };
})();
