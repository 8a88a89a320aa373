// Reads the summary and draws the page part by part. One that fails says so and leaves the others.
"use strict";

(() => {
  const { el, note } = HK.dom;

  const PARTS = [
    // id, heading, link in the contents, drawing
    ["quality", "How good it is", "Quality", HK.quality.draw],
    ["effects", "Effects", "Effects", HK.effects.draw],
    ["variables", "Variables", "Variables", HK.variables.draw],
    ["whatif", "What if", "What if", HK.whatif.draw],
    ["certificate", "What is proven", "Proof", HK.certificate.draw],
    ["hull", "The hull: how the terms build on each other", "Hull", HK.hull.draw],
    ["path", "The path: smaller and larger models", "Path", HK.path.draw],
    ["data", "Data", "Data", HK.about.data],
    ["settings", "Settings", "Settings", HK.about.settings],
    ["load", "How to load the model", "Load", HK.about.load],
  ];

  function guarded(draw, summary, box) {
    try {
      draw(summary, box);
    } catch (error) {
      console.error(error);
      box.append(note("This part could not be drawn: the data it needs are not as expected."));
    }
  }

  // The summary: as JSON, or deflated where it is large.
  async function read() {
    const block = document.getElementById("summary");
    if (block.type === "application/json") return JSON.parse(block.textContent);
    const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(unpacked).text());
  }

  async function start() {
    if (typeof DecompressionStream === "undefined") {
      document.getElementById("main").append(note("This browser is too old to show the report; ",
        "open it in one from 2023 or later."));
      return;
    }
    const summary = HK.spelling.apply(await read());
    Bokeh.set_log_level("off");
    guarded(HK.head.draw, summary, document.getElementById("top"));
    const main = document.getElementById("main");
    const links = PARTS.map(([id, title, short, draw]) => {
      const body = el("div");
      const heading = el("h2", { id: `${id}-title` }, title);
      const attributes = { id, class: "card", "aria-labelledby": heading.id };
      main.append(el("section", attributes, heading, body));
      guarded(draw, summary, body);
      if (body.dataset.empty) return null; // it only says that there is nothing
      return el("li", {}, el("a", { href: `#${id}` }, short));
    });
    document.getElementById("contents").append(el("ul", {}, links));
    document.documentElement.dataset.ready = "yes";
  }

  start();
})();
