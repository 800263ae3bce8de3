// The graph of a model: sheets of modules that open, what is known of a node, and the lines of source that it became.
(() => {
  "use strict";
  const { element, number, search } = window.onward;
  const data = JSON.parse(document.getElementById("view-data").textContent);
  const { parts, sheets, shown, nodes, values, weights, kinds, lines } = data;
  const get = (name) => document.getElementById(`graph-${name}`);
  const canvas = get("canvas");

  // ---- What is where ----
  const makers = new Array(values.length).fill(-1), readers = values.map(() => []);
  nodes.forEach((node, place) => {
    for (const [, value] of node.outputs) makers[value] = place;
    for (const value of read(node)) readers[value].push(place);
  });
  const places = new Map();  // By sheet: where each node, each sheet below it, and each value is.
  const home = { modules: new Array(nodes.length).fill(-1), flat: new Array(nodes.length).fill(-1) };
  sheets.forEach((sheet, number) => {
    const root = top(number), mode = shown[sheet.part].flat === root ? "flat" : "modules";
    places.set(number, new Map(sheet.items.map(([kind, place], i) => [`${kind} ${place}`, i])));
    for (const [kind, place] of sheet.items) {
      if (kind !== "node") continue;
      home[mode][place] = number;
      if (shown[sheet.part].modules === undefined) home.modules[place] = number;
      if (shown[sheet.part].flat === undefined) home.flat[place] = number;
    }
  });
  let sheet = -1, mode = "modules", lit = null;

  function read(node) { return [...node.inputs.map(([, value]) => value), ...(node.captured ?? [])]; }
  function top(number) { while (sheets[number].up !== null) number = sheets[number].up; return number; }
  const item = (place) => sheets[sheet].items[place];
  const within = new Map();
  function inside(number) {  // All nodes of a sheet and of those below it.
    if (!within.has(number)) {
      within.set(number, sheets[number].items.flatMap(([kind, place]) => (kind === "node" ? [place] : kind === "sheet" ? inside(place) : [])));
    }
    return within.get(number);
  }

  const shape = (dims) => (dims === null ? "" : dims.length ? dims.join("×") : "scalar");
  const typed = (value) => `${value.type}${value.shape ? `[${value.shape.join(", ")}]` : ""}`;

  // ---- The picture ----
  const faces = Object.keys(kinds);
  const view = window.onward.graph({
    faces: [...faces, "port", "module"],
    walks: true,
    face: (place) => {
      const [kind, number] = item(place);
      return kind === "node" ? nodes[number].kind : kind === "sheet" ? "module" : "port";
    },
    lines: (place) => {
      const [kind, number] = item(place);
      if (kind === "node") return [nodes[number].op, nodes[number].line];
      if (kind === "sheet") return [sheets[number].title, `${sheets[number].count.toLocaleString("en")} nodes`];
      return [values[number].name, kind === "outside" ? "from outside" : typed(values[number])];
    },
    round: (place) => ["input", "output", "outside"].includes(item(place)[0]),
    dim: (place) => lit !== null && !glows(place),
    label: (edge) => {
      const carried = sheets[sheet].values[edge];
      return carried.length === 1 ? shape(values[carried[0]].shape) : `${carried.length} values`;
    },
    hint: (place) => hint(...item(place)),
    chosen: describe,
    opened: (place) => open(...item(place)),
  });

  function glows(place) {
    const [kind, number] = item(place);
    if (kind === "node") return lit.nodes.has(number);
    return kind === "sheet" ? inside(number).some((node) => lit.nodes.has(node)) : lit.values.has(number);
  }

  function hint(kind, number) {
    if (kind === "sheet") return [element("b", sheets[number].title), `: ${sheets[number].count} nodes; open it by a double click`];
    if (kind !== "node") return [element("b", values[number].name), ` ${typed(values[number])}`];
    const node = nodes[number], found = [element("b", node.op), " ", element("code", node.name)];
    for (const [, value] of node.outputs) found.push(element("br"), `→ ${typed(values[value])}`);
    return found;
  }

  function show(number) {
    sheet = number;
    const root = top(sheet), part = sheets[sheet].part;
    view.show(sheets[sheet]);
    crumbs(root, part);
    for (const name of ["modules", "flat"]) {
      const known = shown[part][name];
      get(name).setAttribute("aria-pressed", String(known === root));
      get(name).disabled = known === undefined;
    }
    get("modules").parentElement.hidden = shown[part].modules === undefined || shown[part].flat === undefined;
    describe(-1);
  }

  function crumbs(root, part) {
    const steps = [];
    for (let at = sheet; at !== null; at = sheets[at].up) steps.unshift([sheets[at].title, at]);
    for (let at = parts[part].up; at !== null; at = parts[at].up) steps.unshift([parts[at].title, first(at)]);
    if (parts[part].kind === "function") steps.unshift([parts[0].title, first(0)]);
    get("path").replaceChildren(...steps.flatMap(([title, number], place) => {
      const last = place === steps.length - 1;
      const step = last ? element("b", title) : button(title, () => { show(number); view.begin(); });
      return place ? [" › ", step] : [step];
    }));
    get("path").hidden = steps.length < 2;
  }

  const first = (part) => shown[part][mode] ?? shown[part].modules ?? shown[part].flat;

  function open(kind, number) {
    if (kind === "sheet") { show(number); view.begin(); }
    else if (kind !== "node") return;
    else if (nodes[number].function !== undefined) { show(first(nodes[number].function)); view.begin(); }
    else if (nodes[number].bodies) { show(first(nodes[number].bodies[0][1])); view.begin(); }
  }

  // Show a node wherever it is, and choose it.
  function go(number) {
    if (number < 0) return view.choose(-1);
    const wanted = home[mode][number] >= 0 ? home[mode][number] : home.modules[number];
    if (wanted !== sheet) show(wanted);
    view.choose(places.get(sheet).get(`node ${number}`));
  }

  // ---- What a node depends on, and what depends on it ----
  function along(start, next) {
    const found = new Set(start), pending = [...start];
    while (pending.length) for (const other of next(pending.pop())) if (!found.has(other)) { found.add(other); pending.push(other); }
    return found;
  }
  const sources = (node) => read(nodes[node]).map((value) => makers[value]).filter((maker) => maker >= 0);
  const users = (node) => nodes[node].outputs.flatMap(([, value]) => readers[value]);

  function light(number, back) {
    const found = along([number], back ? sources : users);
    const touched = new Set([...found].flatMap((node) => (back ? read(nodes[node]) : nodes[node].outputs.map(([, value]) => value))));
    lit = { nodes: found, values: touched, from: number, back };
    describe(view.selected());
    view.redraw();
  }

  function unlight() { lit = null; describe(view.selected()); view.redraw(); }

  // ---- The panel ----
  const button = (text, act, kind) => {
    const made = element("button", text, kind);
    made.type = "button";
    made.addEventListener("click", act);
    return made;
  };
  const list = (title, rows) => {
    const held = element("div");
    if (rows.length) held.append(element("h3", title), ...rows);
    return held;
  };
  const pair = (name, ...what) => {
    const row = element("div", undefined, "pair");
    const cell = element("div");
    cell.append(...what);
    row.append(element("span", name, "muted"), cell);
    return row;
  };

  function describe(place) {
    const panel = get("node"), [kind, number] = place < 0 ? ["", -1] : item(place);
    document.querySelectorAll(".source .chosen").forEach((line) => line.classList.remove("chosen"));
    if (kind === "node") panel.replaceChildren(...ofNode(number));
    else if (kind === "sheet") panel.replaceChildren(...ofSheet(number));
    else if (kind) panel.replaceChildren(...ofValue(kind, number));
    else panel.replaceChildren(...ofNothing());
    panel.scrollTop = 0;
  }

  function ofNothing() {
    const words = "Choose a node to see its attributes, its weights and its source. Double-click a module to open it.";
    const functions = parts.map((part, place) => [part, place]).filter(([part]) => part.kind === "function");
    return [element("h2", sheets[sheet].title), element("p", words, "muted"), ...lights(),
      list("Functions", functions.map(([part, place]) => button(part.title, () => { show(first(place)); view.begin(); })))];
  }

  function ofSheet(number) {
    const counts = new Map();
    for (const node of inside(number)) counts.set(nodes[node].op, (counts.get(nodes[node].op) ?? 0) + 1);
    const rows = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([op, count]) => pair(op, String(count)));
    return [element("h2", sheets[number].title), element("p", `A module of ${sheets[number].count.toLocaleString("en")} nodes.`),
      button("Open it", () => open("sheet", number)), list("Ops", rows)];
  }

  function ofValue(kind, number) {
    const value = values[number], words = { input: "Input of the graph", output: "Output of the graph", outside: "A value from outside" };
    const title = element("h2");
    title.append(element("code", value.name));
    return [title, element("p", `${words[kind]}: ${typed(value)}`), connected(number)];
  }

  function ofNode(number) {
    const node = nodes[number], title = element("h2", node.op), name = element("p");
    name.append(element("code", node.name || "no name"));
    if (node.domain) title.append(element("span", ` ${node.domain}`, "muted small"));
    const found = [title, name];
    if (node.doc) found.push(element("p", node.doc, "muted"));
    const way = element("p", undefined, "buttons");
    way.append(button("What it depends on", () => light(number, true)), button("What depends on it", () => light(number, false)));
    found.push(way, ...lights());
    const held = (node.bodies ?? []).map(([body, part]) => button(`Open ${body}`, () => { show(first(part)); view.begin(); }));
    if (node.function !== undefined) held.push(button("Open the function", () => open("node", number)));
    found.push(list("Graphs inside", held));
    found.push(list("Attributes", (node.attributes ?? []).map(([key, text]) => pair(key, element("code", text)))));
    found.push(list("Inputs", node.inputs.map(([slot, value]) => pair(slot, input(value)))));
    found.push(list("Outputs", node.outputs.map(([slot, value]) => pair(slot, output(value)))));
    found.push(source(number));
    return found;
  }

  function lights() {
    if (!lit) return [];
    const node = nodes[lit.from], line = element("p", undefined, "lit");
    const words = lit.back ? "nodes that this one depends on" : "nodes that depend on this one";
    line.append(`Shown: ${(lit.nodes.size - 1).toLocaleString("en")} ${words}: `, element("code", node.name || node.op), " ", button("Show all", unlight));
    return [line];
  }

  function input(number) {
    const value = values[number], held = element("div");
    held.append(element("code", value.name), element("div", typed(value), "muted"));
    if (value.weight !== undefined) held.append(window.onward.weight(weights[value.weight]));
    else if (makers[number] >= 0) held.append(jump(makers[number]));
    return held;
  }

  function output(number) {
    const held = element("div");
    held.append(element("code", values[number].name), element("div", typed(values[number]), "muted"), connected(number));
    return held;
  }

  function connected(number) {
    const held = element("div"), found = [...new Set(readers[number])];
    if (makers[number] >= 0 && item(Math.max(0, view.selected()))[0] !== "node") held.append(element("div", "made by ", "muted"), jump(makers[number]));
    if (found.length) held.append(element("div", "read by ", "muted"), ...found.slice(0, 8).map(jump));
    if (found.length > 8) held.append(` and ${found.length - 8} more`);
    return held;
  }

  const jump = (number) => button(`${nodes[number].op} ${nodes[number].name}`, () => go(number), "jump");

  // ---- The source ----
  const MOST_LINES = 14;
  function source(number) {
    if (!lines) return element("div");
    const own = lines[number] ?? [], held = element("div", undefined, "source");
    const told = data.sharing[number] > 1 ? ` (of ${data.sharing[number]} nodes of this name and op)` : "";
    if (!own.length) {
      const words = "No line is its own: it was folded into others, became a part of a larger idiom, or is not needed.";
      return list(`In ${data.file}`, [element("p", words, "muted")]);
    }
    const indent = Math.min(...own.slice(0, MOST_LINES).map((line) => document.getElementById(`line-${line}`).textContent.search(/\S|$/)));
    own.slice(0, MOST_LINES).forEach((line, place) => {
      if (place && own[place - 1] !== line - 1) held.append(element("div", "⋯", "muted gap"));
      const original = document.getElementById(`line-${line}`);
      original.classList.add("chosen");
      const copy = original.cloneNode(true);
      copy.removeAttribute("id");
      copy.classList.remove("chosen", "from");
      if (copy.firstChild.nodeType === Node.TEXT_NODE) copy.firstChild.textContent = copy.firstChild.textContent.slice(indent);
      held.append(copy);
    });
    if (own.length > MOST_LINES) held.append(element("div", `and ${own.length - MOST_LINES} more`, "muted"));
    const whole = button("Show it in the source", () => document.getElementById(`line-${own[0]}`).scrollIntoView({ block: "center" }));
    return list(`In ${data.file}${told}`, [held, whole]);
  }
  document.getElementById("code")?.addEventListener("click", (event) => {
    const line = Number(event.target.closest(".line")?.id.slice(5));
    const owner = line ? Object.keys(lines).find((node) => lines[node].includes(line)) : undefined;
    if (owner === undefined) return;
    go(Number(owner));
    canvas.scrollIntoView({ block: "center", behavior: "smooth" });
  });

  // ---- Search, legend, ways to look ----
  const text = (node) => [node.name, node.op, node.domain, ...node.outputs.map(([, v]) => values[v].name),
    ...node.inputs.filter(([, v]) => values[v].weight !== undefined).map(([, v]) => values[v].name), ...(node.attributes ?? []).map(([key, value]) => `${key}=${value}`)];
  search({
    words: nodes.map((node) => text(node).join("\n").toLowerCase()),
    go,
    changed: (matches) => {
      const wanted = new Set(matches);
      view.match(sheets[sheet].items.flatMap(([kind, number], place) =>
        ((kind === "node" && wanted.has(number)) || (kind === "sheet" && wanted.size && inside(number).some((n) => wanted.has(n))) ? [place] : [])));
    },
  });
  const present = new Set(nodes.map((node) => node.kind));
  get("legend").replaceChildren(...faces.filter((kind) => present.has(kind)).map((kind) => {
    const key = element("span"), box = element("i", undefined, "key box");
    box.style.background = `var(--${kind})`;
    key.append(box, kinds[kind]);
    return key;
  }));
  for (const name of ["modules", "flat"]) {
    get(name).addEventListener("click", () => {
      const place = view.selected(), [kind, number] = place < 0 ? ["", -1] : item(place);
      mode = name;
      show(shown[sheets[sheet].part][name]);
      if (kind === "node") go(number);
      else view.begin();
    });
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.key !== "Backspace") return;
    event.preventDefault();
    const { up, part } = sheets[sheet], inner = sheet;
    if (up !== null) {
      show(up);
      view.choose(places.get(up).get(`sheet ${inner}`));
    } else if (parts[part].up !== null || parts[part].kind === "function") {
      show(first(parts[part].up ?? 0));
      view.begin();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    get("search").focus();
  });
  for (const row of document.querySelectorAll("[data-op]")) {
    row.addEventListener("click", () => {
      get("search").value = row.dataset.op;
      get("search").dispatchEvent(new Event("input"));
      canvas.scrollIntoView({ block: "center" });
    });
  }

  window.onward.go = (number) => { go(number); canvas.scrollIntoView({ block: "center" }); };
  show(first(0));
  view.begin();
})();
