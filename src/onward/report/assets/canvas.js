// A graph on a canvas: pan, zoom, pointing, choosing, and an overview of a deep graph along the right edge.
//
// `window.onward.graph` takes what a page says of its nodes, by their place in the graph: `face(node)` is the name of a
// colour, and of `--NAME-ink` for what is written on it; `lines(node)` the two lines of its box; `hint(node)` what is
// shown beside the pointer; `level(node)` how much it stands out in the overview, 0 for not at all. `round(node)`,
// `marked(node)`, `dim(node)`: how its box is drawn; `label(edge)`: what is written at an edge. `chosen(node)` hears of
// a choice, `opened(node)` of a double click or Enter. With `walks`, arrow keys go from node to node.
(() => {
  "use strict";
  const { clamp } = window.onward;
  const STEP_X = 158, STEP_Y = 76, WIDTH = 138, HEIGHT = 42, STRIP = 16;
  const SHARED = ["card", "ink", "muted", "line", "strong-line", "accent", "bad", "sunken"];

  window.onward.graph = (page) => {
    const canvas = document.getElementById("graph-canvas"), hintBox = document.getElementById("graph-hint");
    const get = (name) => document.getElementById(`graph-${name}`);
    const pen = canvas.getContext("2d");
    const no = () => false;
    const { marked = no, dim = no, round = no, level = () => 0, label = () => "", opened = () => {} } = page;
    let graph = { x: [], y: [], edges: [] }, xs = [], ys = [], rows = [], depth = 0, before = [], after = [];
    let bounds = { left: 0, right: 1, top: 0, bottom: 1 }, peaks = [], tags = [];
    let scale = 1, left = 0, top = 0;  // The world's point at the canvas's upper left corner.
    let width = 1, height = 1, selected = -1, hovered = -1, found = new Set(), colours = {}, waiting = false;

    // ---- Which graph ----
    function show(shown) {
      graph = shown;
      xs = graph.x.map((x) => x * STEP_X);
      ys = graph.y.map((y) => y * STEP_Y);
      depth = graph.y.reduce((a, b) => Math.max(a, b), 0) + 1;
      rows = Array.from({ length: depth }, () => []);
      graph.y.forEach((y, node) => rows[y].push(node));
      for (const row of rows) row.sort((a, b) => xs[a] - xs[b]);
      bounds = {
        left: xs.reduce((a, b) => Math.min(a, b), 0) - STEP_X, right: xs.reduce((a, b) => Math.max(a, b), 0) + STEP_X,
        top: -STEP_Y, bottom: depth * STEP_Y,
      };
      before = graph.x.map(() => []);
      after = graph.x.map(() => []);
      for (const [from, to] of graph.edges) { after[from].push(to); before[to].push(from); }
      [selected, hovered, found] = [-1, -1, new Set()];
      hintBox.hidden = true;
      tags = tagged();
      refresh();
    }

    function refresh() {
      peaks = rows.map((row) => row.reduce((best, node) => (level(node) > (best < 0 ? 0 : level(best)) ? node : best), -1));
      redraw();
    }

    function readColours() {
      const style = getComputedStyle(document.documentElement);
      colours = { mono: style.getPropertyValue("--mono"), sans: style.getPropertyValue("--sans") };
      for (const name of [...page.faces.flatMap((name) => [name, `${name}-ink`]), ...SHARED]) {
        colours[name] = style.getPropertyValue(`--${name}`).trim();
      }
    }

    // ---- Drawing ----
    function redraw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    }

    function draw() {
      const ratio = window.devicePixelRatio || 1;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.setTransform(ratio * scale, 0, 0, ratio * scale, -left * scale * ratio, -top * scale * ratio);
      const bottom = top + height / scale;
      drawEdges(bottom);
      const first = clamp(Math.floor(top / STEP_Y) - 1, 0, depth), last = clamp(Math.ceil(bottom / STEP_Y) + 1, 0, depth);
      for (let row = first; row < last; row += 1) for (const node of rows[row]) drawNode(node);
      if (scale > 0.6) drawLabels(bottom);
      pen.globalAlpha = 1;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      drawStrip();
    }

    function drawEdges(bottom) {
      const thin = Math.max(1.1, 0.6 / scale);
      for (const kind of ["dim", "plain", "chosen"]) {
        pen.strokeStyle = kind === "chosen" ? colours.accent : colours["strong-line"];
        pen.lineWidth = kind === "chosen" ? 2 * thin : thin;
        pen.globalAlpha = kind === "dim" ? 0.25 : 1;
        pen.beginPath();
        for (const [from, to, ...bends] of graph.edges) {
          const chosen = from === selected || to === selected;
          if (kind !== (chosen ? "chosen" : dim(from) || dim(to) ? "dim" : "plain")) continue;
          if (Math.max(ys[to], ys[from]) < top || Math.min(ys[from], ys[to]) > bottom) continue;
          if (bends.length || graph.y[to] - graph.y[from] === 1 || chosen) trace(from, to, bends);
          else stubs(from, to);
        }
        pen.stroke();
      }
      pen.globalAlpha = 1;
    }

    function trace(from, to, bends) {
      if (ys[to] <= ys[from]) return backwards(from, to);
      let x = xs[from], y = ys[from] + HEIGHT / 2;
      pen.moveTo(x, y);
      bends.forEach((bend, place) => {
        const nextX = bend * STEP_X, nextY = ys[from] + (place + 1) * STEP_Y;
        curve(x, y, nextX, nextY - HEIGHT / 2);
        pen.lineTo(nextX, nextY + HEIGHT / 2);
        [x, y] = [nextX, nextY + HEIGHT / 2];
      });
      curve(x, y, xs[to], ys[to] - HEIGHT / 2);
    }

    // Around the right of two modules that read each other.
    function backwards(from, to) {
      const right = Math.max(xs[from], xs[to]) + WIDTH / 2 + 24;
      pen.moveTo(xs[from] + WIDTH / 2, ys[from]);
      pen.bezierCurveTo(right, ys[from], right, ys[to], xs[to] + WIDTH / 2, ys[to]);
    }

    // An edge too long to be led around nodes shows its two ends, until one of them is chosen.
    function stubs(from, to) {
      pen.moveTo(xs[from] + WIDTH / 4, ys[from] + HEIGHT / 2);
      pen.lineTo(xs[from] + WIDTH / 4, ys[from] + HEIGHT / 2 + 10);
      pen.moveTo(xs[to] + WIDTH / 4, ys[to] - HEIGHT / 2);
      pen.lineTo(xs[to] + WIDTH / 4, ys[to] - HEIGHT / 2 - 10);
    }

    function curve(x, y, toX, toY) {
      const half = Math.min((toY - y) / 2, STEP_Y);
      pen.bezierCurveTo(x, y + half, toX, toY - half, toX, toY);
    }

    // What is written at edges, between two layers: below the node where all of its edges carry the same, else above
    // those that read it.
    function tagged() {
      const texts = graph.x.map(() => new Set());
      graph.edges.forEach(([from], place) => { if (label(place)) texts[from].add(label(place)); });
      const placed = new Map();
      graph.edges.forEach(([from, to], place) => {
        const text = label(place);
        if (!text || ys[to] <= ys[from]) return;
        if (texts[from].size === 1) placed.set(`${from} below`, [from, xs[from], ys[from] + STEP_Y / 2 - 3, text]);
        else if (before[to].length === 1) placed.set(`${to} above`, [from, xs[to], ys[to] - STEP_Y / 2 + 5, text]);
      });
      return [...placed.values()];
    }

    function drawLabels(bottom) {
      pen.font = `10px ${colours.mono}`;
      pen.textAlign = "center";
      for (const [from, x, y, text] of tags) {
        if (y < top - 20 || y > bottom + 20) continue;
        const wide = pen.measureText(text).width + 6;
        pen.globalAlpha = dim(from) ? 0.3 : 1;
        pen.fillStyle = colours.card;
        pen.fillRect(x - wide / 2, y - 7, wide, 13);
        pen.fillStyle = colours.muted;
        pen.fillText(text, x, y + 3);
      }
      pen.globalAlpha = 1;
    }

    function drawNode(node) {
      const x = xs[node] - WIDTH / 2, y = ys[node] - HEIGHT / 2;
      if ((x - left) * scale > width || (x + WIDTH - left) * scale < 0) return;
      const name = page.face(node);
      pen.globalAlpha = dim(node) ? 0.3 : 1;
      pen.beginPath();
      if (scale > 0.2) pen.roundRect(x, y, WIDTH, HEIGHT, round(node) ? HEIGHT / 2 : 8);
      else pen.rect(x, y, WIDTH, HEIGHT);
      pen.fillStyle = colours[name];
      pen.fill();
      pen.strokeStyle = marked(node) ? colours.bad : node === hovered ? colours.ink : colours["strong-line"];
      pen.lineWidth = marked(node) ? 3 : 1;
      pen.stroke();
      if (node === selected || found.has(node)) {
        pen.beginPath();
        pen.roundRect(x - 5, y - 5, WIDTH + 10, HEIGHT + 10, 12);
        pen.strokeStyle = colours.accent;
        pen.lineWidth = (node === selected ? 3.5 : 1.5) * Math.max(1, 0.5 / scale);
        pen.stroke();
      }
      if (scale < 0.35) return;
      const [first, second] = page.lines(node);
      pen.fillStyle = colours[`${name}-ink`];
      pen.textAlign = "center";
      pen.font = `600 14px ${colours.sans}`;
      const named = second && scale > 0.6;
      const wide = pen.measureText(first).width, room = WIDTH - 10, size = Math.max(10, Math.min(14, (14 * room) / wide));
      pen.font = `600 ${size}px ${colours.sans}`;
      const most = Math.floor((first.length * room * 14) / (wide * size));
      pen.fillText(shortened(first, Math.max(most, 4)), xs[node], ys[node] + (named ? -2 : 5));
      if (!named) return;
      pen.font = `10.5px ${colours.mono}`;
      pen.fillText(shortened(second, 20), xs[node], ys[node] + 13);
    }

    // The end of a name tells more than its beginning.
    const shortened = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

    function drawStrip() {
      if (!deep()) return;
      const x = width - STRIP, size = Math.max(1, height / depth);
      pen.fillStyle = colours.sunken;
      pen.fillRect(x, 0, STRIP, height);
      const places = peaks.map((node, place) => [node, place]).filter(([node]) => node >= 0);
      places.sort(([a], [b]) => level(a) - level(b));  // what stands out most is on top
      for (const [node, place] of places) {
        pen.fillStyle = colours[page.face(node)];
        pen.fillRect(x + 4, (place / depth) * height, STRIP - 8, Math.max(size, level(node) > 2 ? 4 : 1));
      }
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.5;
      const y = clamp((top / (depth * STEP_Y)) * height, 0, height - 6);
      pen.strokeRect(x + 1, y, STRIP - 2, Math.max(6, (height * height) / scale / (depth * STEP_Y)));
    }

    const deep = () => (bounds.bottom - bounds.top) * scale > height * 1.5;

    // ---- Where one looks ----
    function keepInside() {
      const wide = width / scale, tall = height / scale;
      left = clamp(left, bounds.left - wide * 0.8, bounds.right - wide * 0.2);
      top = clamp(top, bounds.top - tall * 0.8, bounds.bottom - tall * 0.2);
      redraw();
    }

    function zoom(factor, x = width / 2, y = height / 2) {
      const next = clamp(scale * factor, 0.002, 3);
      left += x / scale - x / next;
      top += y / scale - y / next;
      scale = next;
      keepInside();
    }

    function pan(x, y) {
      left += x / scale;
      top += y / scale;
      keepInside();
    }

    function fit() {
      scale = clamp(Math.min(width / (bounds.right - bounds.left), height / (bounds.bottom - bounds.top)), 0.002, 1.2);
      centreOn((bounds.left + bounds.right) / 2, (bounds.top + bounds.bottom) / 2);
    }

    // All of the graph, or where that would be too small to read, its beginning.
    function begin() {
      fit();
      if (scale < 0.7 && rows[0]?.length) {
        scale = 0.9;
        centreOn(xs[rows[0][0]], height / 2 / scale - STEP_Y);
      }
    }

    function centreOn(x, y) {
      left = x - width / 2 / scale;
      top = y - height / 2 / scale;
      redraw();
    }

    // ---- Choosing a node ----
    function choose(node, centred = true) {
      selected = node;
      page.chosen(node);
      if (node >= 0 && centred) {
        scale = Math.max(scale, 0.9);
        centreOn(xs[node], ys[node]);
      }
      redraw();
    }

    function walk(key) {
      const row = rows[graph.y[selected]], place = row.indexOf(selected);
      const nearest = (nodes) => [...nodes].sort((a, b) => Math.abs(xs[a] - xs[selected]) - Math.abs(xs[b] - xs[selected]))[0];
      const next = {
        ArrowUp: nearest(before[selected]), ArrowDown: nearest(after[selected]),
        ArrowLeft: row[place - 1], ArrowRight: row[place + 1],
      }[key];
      if (next !== undefined) choose(next);
    }

    function hit(x, y) {
      const worldX = left + x / scale, worldY = top + y / scale;
      const row = rows[Math.round(worldY / STEP_Y)] ?? [];
      if (deep() && x > width - STRIP) return -1;
      return row.find((n) => Math.abs(xs[n] - worldX) <= WIDTH / 2 && Math.abs(ys[n] - worldY) <= HEIGHT / 2) ?? -1;
    }

    function hover(node, x, y) {
      if (node !== hovered) redraw();
      hovered = node;
      hintBox.hidden = node < 0;
      if (node < 0) return;
      hintBox.replaceChildren(...page.hint(node));
      hintBox.style.left = `${clamp(x + 14, 0, width - hintBox.offsetWidth - 4)}px`;
      const below = y + 18 + hintBox.offsetHeight <= height;
      hintBox.style.top = `${below ? y + 18 : Math.max(0, y - hintBox.offsetHeight - 10)}px`;
    }

    // ---- Pointer and keys ----
    const pointers = new Map();
    let moved = 0, onStrip = false;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const jump = (y) => centreOn(left + width / 2 / scale, (y / height) * depth * STEP_Y);

    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, [x, y]);
      [moved, onStrip] = [0, deep() && x > width - STRIP];
      canvas.classList.add("moving");
      if (onStrip) jump(y);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event), old = pointers.get(event.pointerId);
      if (!old) return hover(hit(x, y), x, y);
      hover(-1);
      if (onStrip) return jump(y);
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        zoom(apart([x, y]) / apart(old), (x + other[0]) / 2, (y + other[1]) / 2);
        moved += 10;
      } else {
        pan(old[0] - x, old[1] - y);
        moved += Math.hypot(old[0] - x, old[1] - y);
      }
      pointers.set(event.pointerId, [x, y]);
    });
    for (const kind of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(kind, (event) => {
        if (!pointers.delete(event.pointerId)) return;
        if (!pointers.size) canvas.classList.remove("moving");
        if (kind === "pointerup" && moved < 4 && !onStrip) choose(hit(...at(event)), false);
      });
    }
    canvas.addEventListener("pointerleave", () => hover(-1));
    canvas.addEventListener("dblclick", (event) => { if (hit(...at(event)) >= 0) opened(hit(...at(event))); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      zoom(Math.exp(-clamp(event.deltaY * lines, -120, 120) / (event.ctrlKey ? 100 : 300)), ...at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const far = event.shiftKey ? 300 : 60, walks = page.walks && selected >= 0 && !event.shiftKey;
      const go = (x, y) => () => (walks ? walk(event.key) : pan(x, y));
      const does = {
        ArrowLeft: go(-far, 0), ArrowRight: go(far, 0), ArrowUp: go(0, -far), ArrowDown: go(0, far),
        "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fit,
        PageUp: () => pan(0, -height * 0.8), PageDown: () => pan(0, height * 0.8), Escape: () => choose(-1),
        Enter: () => { if (selected >= 0) opened(selected); else if (page.walks && rows[0]?.length) choose(rows[0][0]); },
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
    });
    get("in").addEventListener("click", () => zoom(1.25));
    get("out").addEventListener("click", () => zoom(0.8));
    get("fit").addEventListener("click", fit);

    function resize() {
      const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      const [x, y] = [left + width / 2 / scale, top + height / 2 / scale];
      [width, height] = [box.width, box.height];
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      centreOn(x, y);
      draw();
    }
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(query).addEventListener("change", () => { readColours(); draw(); });
    }
    readColours();
    resize();
    new ResizeObserver(resize).observe(canvas);

    return {
      show, refresh, redraw, fit, begin, choose, resize,
      match: (nodes) => { found = new Set(nodes); redraw(); },
      before: (node) => before[node], after: (node) => after[node], selected: () => selected,
    };
  };
})();
