// The graph on a canvas: pan, zoom, search, and an overview of a deep graph along the right edge.
(() => {
  "use strict";
  const canvas = document.getElementById("graph-canvas");
  if (!canvas) return;
  const { element, figures, number } = window.onward;
  const { graph, sides } = JSON.parse(document.getElementById("report-data").textContent);
  const get = (name) => document.getElementById(`graph-${name}`);
  const pen = canvas.getContext("2d");

  const STEP_X = 158, STEP_Y = 76, WIDTH = 138, HEIGHT = 42, STRIP = 16;
  const CLASSES = [
    ["none", "not measured"], ["exact", "equal"], ["low", "at most a tenth of what is allowed"],
    ["near", "within what is allowed"], ["over", "beyond it"], ["far", "beyond ten times it"],
  ];
  const count = graph.names.length;
  const xs = graph.x.map((x) => x * STEP_X), ys = graph.y.map((y) => y * STEP_Y);
  const depth = Math.max(...graph.y) + 1;
  const rows = Array.from({ length: depth }, () => []);
  graph.y.forEach((y, node) => rows[y].push(node));
  const bounds = {
    left: xs.reduce((a, b) => Math.min(a, b)) - STEP_X, right: xs.reduce((a, b) => Math.max(a, b)) + STEP_X,
    top: -STEP_Y, bottom: depth * STEP_Y,
  };
  const before = Array.from({ length: count }, () => []), after = Array.from({ length: count }, () => []);
  for (const [from, to] of graph.edges) { after[from].push(to); before[to].push(from); }
  const words = graph.names.map((name, node) => [name, graph.ops[node], ...graph.values[node]].join("\n").toLowerCase());

  let scale = 1, left = 0, top = 0;  // The world's point at the canvas's upper left corner.
  let width = 1, height = 1, side = -1, measure = "own", classes = [], worst = [];
  let selected = -1, hovered = -1, matches = [], match = -1, colours = {}, waiting = false;

  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  // ---- Colours ----
  function classify() {
    worst = new Array(count).fill(-1);
    const ratio = new Array(count).fill(-1), profile = sides[side];
    profile?.nodes.forEach((node, place) => {
      if (node < 0 || profile[measure][place] === null) return;
      const error = Number(profile[measure][place]), allowed = Number(profile.allowed[place]);
      const found = error === 0 ? 0 : allowed > 0 && !Number.isNaN(error) ? error / allowed : Infinity;
      if (found > ratio[node]) [ratio[node], worst[node]] = [found, place];
    });
    profile?.nodes.forEach((node, place) => { if (node >= 0 && worst[node] < 0) worst[node] = place; });
    classes = ratio.map((r) => (r < 0 ? 0 : r === 0 ? 1 : r <= 0.1 ? 2 : r <= 1 ? 3 : r <= 10 ? 4 : 5));
    const legend = CLASSES.map(([name, meaning], place) => {
      const amount = classes.filter((c) => c === place).length, item = element("span");
      const box = element("i", undefined, "key box");
      box.style.background = `var(--${name})`;
      item.dataset.count = amount;
      item.append(box, `${meaning}: ${amount.toLocaleString("en")}`);
      return amount ? item : "";
    });
    get("legend").replaceChildren(...(profile ? legend : []));
    get("culprit").hidden = !(profile?.culprit >= 0);
  }

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = CLASSES.flatMap(([name]) => [name, `${name}-ink`]);
    for (const name of [...names, "card", "ink", "muted", "line", "strong-line", "accent", "bad", "sunken"]) {
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    colours.mono = style.getPropertyValue("--mono");
    colours.sans = style.getPropertyValue("--sans");
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
    const found = new Set(matches);
    for (let row = first; row < last; row += 1) for (const node of rows[row]) drawNode(node, found);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawStrip();
  }

  function drawEdges(bottom) {
    const thin = Math.max(1.1, 0.6 / scale);
    for (const chosen of [false, true]) {
      pen.strokeStyle = chosen ? colours.accent : colours["strong-line"];
      pen.lineWidth = chosen ? 2 * thin : thin;
      pen.beginPath();
      for (const [from, to, ...bends] of graph.edges) {
        if ((from === selected || to === selected) !== chosen) continue;
        if (ys[to] < top || ys[from] > bottom) continue;
        if (bends.length || graph.y[to] - graph.y[from] === 1 || chosen) trace(from, to, bends);
        else stubs(from, to);
      }
      pen.stroke();
    }
  }

  function trace(from, to, bends) {
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

  function drawNode(node, found) {
    const x = xs[node] - WIDTH / 2, y = ys[node] - HEIGHT / 2;
    if ((x - left) * scale > width || (x + WIDTH - left) * scale < 0) return;
    const [name] = CLASSES[classes[node]];
    pen.beginPath();
    if (scale > 0.2) pen.roundRect(x, y, WIDTH, HEIGHT, 8);
    else pen.rect(x, y, WIDTH, HEIGHT);
    pen.fillStyle = colours[name];
    pen.fill();
    const culprit = sides[side]?.culprit === node;
    pen.strokeStyle = culprit ? colours.bad : node === hovered ? colours.ink : colours["strong-line"];
    pen.lineWidth = culprit ? 3 : 1;
    pen.stroke();
    if (node === selected || found.has(node)) {
      pen.beginPath();
      pen.roundRect(x - 5, y - 5, WIDTH + 10, HEIGHT + 10, 12);
      pen.strokeStyle = colours.accent;
      pen.lineWidth = (node === selected ? 3.5 : 1.5) * Math.max(1, 0.5 / scale);
      pen.stroke();
    }
    if (scale < 0.35) return;
    pen.fillStyle = colours[`${name}-ink`];
    pen.textAlign = "center";
    pen.font = `600 14px ${colours.sans}`;
    const named = graph.names[node] && scale > 0.6;
    pen.fillText(shortened(graph.ops[node], 17), xs[node], ys[node] + (named ? -2 : 5));
    if (!named) return;
    pen.font = `10.5px ${colours.mono}`;
    pen.fillText(shortened(graph.names[node], 20), xs[node], ys[node] + 13);
  }

  // The end of a name tells more than its beginning.
  const shortened = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

  function drawStrip() {
    if (!deep()) return;
    const x = width - STRIP;
    pen.fillStyle = colours.sunken;
    pen.fillRect(x, 0, STRIP, height);
    const size = Math.max(1, height / depth);
    const highest = rows.map((row) => row.reduce((most, node) => Math.max(most, classes[node]), 0));
    for (let level = 2; level < CLASSES.length; level += 1) {
      pen.fillStyle = colours[CLASSES[level][0]];
      const tall = Math.max(size, level > 3 ? 4 : 1);
      highest.forEach((found, place) => {
        if (found === level) pen.fillRect(x + 4, (place / depth) * height, STRIP - 8, tall);
      });
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

  function centreOn(x, y) {
    left = x - width / 2 / scale;
    top = y - height / 2 / scale;
    redraw();
  }

  // ---- Choosing a node ----
  function choose(node, centred = true) {
    selected = node;
    describe();
    if (node >= 0 && centred) {
      scale = Math.max(scale, 0.9);
      centreOn(xs[node], ys[node]);
    }
    redraw();
  }

  function errors(node) {
    const profile = sides[side], place = worst[node];
    if (!profile || place === undefined || place < 0) return ["not compared"];
    return figures(profile.path[place], profile.own[place], profile.allowed[place]);
  }

  function describe() {
    if (selected < 0) {
      return get("node").replaceChildren(element("p", "Choose a node to see its errors and its neighbours.", "muted"));
    }
    const title = element("p"), facts = element("p");
    title.append(element("b", graph.ops[selected]), " ", element("code", graph.names[selected]));
    facts.append(...errors(selected));
    get("node").replaceChildren(title, facts, neighbours("Reads from", before), neighbours("Read by", after));
  }

  function neighbours(title, table) {
    const line = element("p"), nodes = table[selected];
    if (!nodes.length) return line;
    line.append(element("span", `${title} `, "muted"));
    for (const node of nodes.slice(0, 8)) {
      const button = element("button", graph.names[node] || graph.ops[node]);
      button.type = "button";
      button.addEventListener("click", () => choose(node));
      line.append(button);
    }
    if (nodes.length > 8) line.append(`and ${number(nodes.length - 8)} more`);
    return line;
  }

  function hit(x, y) {
    const worldX = left + x / scale, worldY = top + y / scale;
    const row = rows[Math.round(worldY / STEP_Y)] ?? [];
    if (deep() && x > width - STRIP) return -1;
    return row.find((n) => Math.abs(xs[n] - worldX) <= WIDTH / 2 && Math.abs(ys[n] - worldY) <= HEIGHT / 2) ?? -1;
  }

  function hover(node, x, y) {
    const hint = get("hint");
    if (node !== hovered) redraw();
    hovered = node;
    hint.hidden = node < 0;
    if (node < 0) return;
    const name = element("code", graph.names[node]);
    hint.replaceChildren(element("b", graph.ops[node]), " ", name, element("br"), ...errors(node));
    hint.style.left = `${clamp(x + 14, 0, width - hint.offsetWidth - 4)}px`;
    hint.style.top = `${y + 18 + hint.offsetHeight > height ? Math.max(0, y - hint.offsetHeight - 10) : y + 18}px`;
  }

  // ---- Search ----
  function search() {
    const wanted = get("search").value.trim().toLowerCase();
    matches = [];
    if (wanted) words.forEach((text, node) => { if (text.includes(wanted)) matches.push(node); });
    match = -1;
    if (matches.length) step(1);
    else {
      get("found").textContent = wanted ? "no match" : "";
      choose(-1);
    }
  }

  function step(by) {
    if (!matches.length) return;
    match = (match + by + matches.length) % matches.length;
    get("found").textContent = `${match + 1} of ${matches.length.toLocaleString("en")}`;
    choose(matches[match]);
  }

  get("search").addEventListener("input", search);
  get("search").addEventListener("keydown", (event) => {
    const steps = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) step(steps[event.key]);
    else if (event.key === "Escape") { get("search").value = ""; search(); }
    else return;
    event.preventDefault();
  });
  get("next").addEventListener("click", () => step(1));
  get("previous").addEventListener("click", () => step(-1));

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
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(-clamp(event.deltaY * lines, -120, 120) / (event.ctrlKey ? 100 : 300)), ...at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 300 : 60;
    const does = {
      ArrowLeft: () => pan(-far, 0), ArrowRight: () => pan(far, 0), ArrowUp: () => pan(0, -far),
      ArrowDown: () => pan(0, far), "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fit,
      PageUp: () => pan(0, -height * 0.8), PageDown: () => pan(0, height * 0.8), Escape: () => choose(-1),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does();
  });
  get("in").addEventListener("click", () => zoom(1.25));
  get("out").addEventListener("click", () => zoom(0.8));
  get("fit").addEventListener("click", fit);
  get("culprit").addEventListener("click", () => choose(sides[side].culprit));

  // ---- Which side, by which error ----
  const profiled = sides.map((_, place) => place).filter((place) => sides[place].values.length);
  function show(place) {
    side = place;
    get("side").value = String(place);
    classify();
    describe();
    redraw();
  }
  for (const place of profiled) get("side").append(new Option(sides[place].name, String(place)));
  get("side").closest("label").hidden = profiled.length < 2;
  get("measure").closest("label").hidden = !profiled.length;
  get("side").addEventListener("change", () => show(Number(get("side").value)));
  get("measure").addEventListener("change", () => { measure = get("measure").value; show(side); });
  document.addEventListener("onward-node", (event) => {
    show(event.detail.side);
    choose(event.detail.node);
    canvas.scrollIntoView({ block: "center", behavior: "smooth" });
  });

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
  if (profiled.length && !sides[profiled[0]].own.some((own) => own !== null)) get("measure").value = measure = "path";
  show(profiled.length ? profiled[0] : -1);
  resize();
  if (sides[side]?.culprit >= 0) choose(sides[side].culprit);
  else {
    fit();
    if (scale < 0.7) { scale = 0.9; centreOn(xs[rows[0][0]], height / 2 / scale - STEP_Y); }
  }
  new ResizeObserver(resize).observe(canvas);
})();
