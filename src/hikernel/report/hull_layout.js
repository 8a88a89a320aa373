// Where the nodes of the hull stand: layers by depth, parents above children. Only numbers.
"use strict";
globalThis.HK = globalThis.HK || {};

HK.hullLayout = (() => {
  const LABEL_WIDTH = 96;
  const LABEL_HEIGHT = 46;
  const MOST_LABELS = 40;
  const NODE_WIDTH = 26;
  const LAYER_HEIGHT = 74;
  const ROW_HEIGHT = 30;
  const TOP = 24;

  // The longest way from the root, in edges.
  function depths(hull) {
    const known = new Array(hull.length).fill(-1);
    function depth(i) {
      if (known[i] < 0) {
        known[i] = 0; // also ends a circle, which a hull does not have
        known[i] = hull[i].parents.reduce((most, parent) => Math.max(most, depth(parent) + 1), 0);
      }
      return known[i];
    }
    hull.forEach((_, i) => depth(i));
    return known;
  }

  function children(hull) {
    const found = hull.map(() => []);
    hull.forEach((node, i) => node.parents.forEach((parent) => found[parent].push(i)));
    return found;
  }

  // Returns {places: [{x, y, layer, room}], layers: [[node, ...]], height}. `room` is the width of
  // a label, 0 in layers with too many nodes for labels. A wide layer is broken into rows.
  function layout(hull, width) {
    const depth = depths(hull);
    const layers = [];
    hull.forEach((_, i) => (layers[depth[i]] = layers[depth[i]] || []).push(i));
    const places = new Array(hull.length);
    let y = TOP;
    layers.forEach((layer, d) => {
      const wanted = (i) => {
        const above = hull[i].parents.map((parent) => places[parent].x);
        return above.length ? above.reduce((a, b) => a + b, 0) / above.length : width / 2;
      };
      layer.sort((a, b) => wanted(a) - wanted(b) || a - b);
      const labelled = layer.length <= MOST_LABELS;
      const most = Math.max(1, Math.floor(width / (labelled ? LABEL_WIDTH : NODE_WIDTH)));
      const rows = Math.ceil(layer.length / most);
      const each = Math.ceil(layer.length / rows);
      const rowHeight = labelled ? LABEL_HEIGHT : ROW_HEIGHT;
      layer.forEach((node, k) => {
        const row = Math.floor(k / each);
        const inRow = Math.min(each, layer.length - row * each);
        const gap = width / inRow;
        places[node] = {
          x: gap * ((k % each) + 0.5),
          y: y + row * rowHeight,
          layer: d,
          room: labelled ? gap : 0,
        };
      });
      y += (rows - 1) * rowHeight + LAYER_HEIGHT;
    });
    return { places, layers, height: y - LAYER_HEIGHT + 44 };
  }

  return { depths, children, layout };
})();
