// The table of a zoo: search, filters, sorting, what cells show, and the keys. Rows are made a few at a time.
(() => {
  "use strict";
  const zoo = JSON.parse(document.getElementById("zoo").textContent);
  const table = document.getElementById("models");
  const form = document.getElementById("filters");
  const get = (name) => document.getElementById(name);
  const [NAME, PAGE, PACKAGE, FORMAT, TASK, OPSETS, SIZE, NODES, PARAMETERS, OPS, CELLS] = Array(11).keys();
  const FIELDS = ["q", "format", "task", "opset", "verdict", "target", "op", "show"];
  const MEASURES = ["verdict", "error", "seconds", "speed", "memory", "size"];
  const FIRST_ROWS = 60, MORE_ROWS = 120;
  const targets = zoo.targets.map(([name]) => name);
  const kinds = zoo.verdicts.map((verdict) => verdict.replaceAll(" ", "-"));
  let sort = { by: "name", down: false }, shown = [], current = { row: 0, column: 0 }, turn = 0;

  // An element with text or children; nothing is ever read as HTML.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // ---- Words ----
  const digits = (value) => (value >= 100 || value === 0 ? Math.round(value).toLocaleString("en") : value < 0.001 ? value.toExponential(0) : String(Number(value.toPrecision(2))));
  function bytes(value) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
    return `${digits(value)} ${units[unit]}`;
  }
  const WORDS = {
    error: (value) => digits(value), seconds: (value) => `${digits(value)} s`, speed: (value) => `${digits(value)} ×`,
    memory: (value) => bytes(value * 1e6), size: bytes,
  };
  const figure = (cell, measure) => cell[1 + MEASURES.indexOf(measure)];
  const shortly = { "out of memory": "memory", "not verified": "unverified" };
  function words(cell, measure) {
    const value = measure === "verdict" ? null : figure(cell, measure);
    if (value !== null) return make("span", { class: "figure" }, WORDS[measure](value));
    return make("span", {}, shortly[zoo.verdicts[cell[0]]] ?? zoo.verdicts[cell[0]]);
  }

  // ---- Filters ----
  const texts = zoo.models.map((model) => [
    model[NAME], model[PACKAGE], zoo.formats[model[FORMAT]], zoo.tasks[model[TASK]],
    ...model[CELLS].map((cell) => (cell && cell[1] >= 0 ? zoo.messages[cell[1]] : "")),
  ].join("\n").toLowerCase());

  function chosen() {
    const values = Object.fromEntries(FIELDS.map((name) => [name, get(name).value]));
    values.words = values.q.toLowerCase().split(/\s+/).filter(Boolean);
    values.op = values.op.trim().toLowerCase();
    return values;
  }

  function opNumbers(wanted) {
    const exact = zoo.ops.findIndex((op) => op.toLowerCase() === wanted);
    if (exact >= 0) return new Set([exact]);
    return new Set(zoo.ops.flatMap((op, i) => (op.toLowerCase().includes(wanted) ? [i] : [])));
  }

  function matching(values) {
    const ops = values.op ? opNumbers(values.op) : null;
    const verdict = zoo.verdicts.indexOf(values.verdict), target = targets.indexOf(values.target);
    return zoo.models.flatMap((model, number) => {
      const cells = target >= 0 ? [model[CELLS][target]] : model[CELLS];
      const holds = values.words.every((word) => texts[number].includes(word))
        && (!values.format || zoo.formats[model[FORMAT]] === values.format)
        && (!values.task || zoo.tasks[model[TASK]] === values.task)
        && (!values.opset || model[OPSETS].some((opset) => zoo.opsets[opset] === values.opset))
        && (!ops || model[OPS].some((op) => ops.has(op)))
        && (verdict < 0 ? target < 0 || cells[0] : cells.some((cell) => cell && cell[0] === verdict));
      return holds ? [number] : [];
    });
  }

  // ---- Sorting ----
  function key(number, measure) {
    const model = zoo.models[number];
    if (sort.by === "name") return model[NAME].toLowerCase();
    if (sort.by === "size") return model[SIZE];
    if (sort.by === "nodes") return model[NODES];
    const cell = model[CELLS][targets.indexOf(sort.by)];
    if (!cell) return null;
    return measure === "verdict" ? cell[0] : figure(cell, measure);
  }

  function sorted(numbers, measure) {
    const collator = new Intl.Collator("en", { numeric: true });
    const keys = new Map(numbers.map((number) => [number, key(number, measure)]));
    const sign = sort.down ? -1 : 1;
    return numbers.sort((a, b) => {
      const [left, right] = [keys.get(a), keys.get(b)];
      if (left === null || right === null) return (left === null) - (right === null);  // What is not known comes last.
      const order = typeof left === "string" ? collator.compare(left, right) : left - right;
      return sign * order || a - b;
    });
  }

  function sortBy(name) {
    const worstFirst = targets.includes(name) || name === "size" || name === "nodes";
    sort = { by: name, down: sort.by === name ? !sort.down : worstFirst };
    show();
  }

  // ---- Drawing ----
  const COLUMNS = [["name", "Model"], ["nodes", "Nodes"], ["size", "Size"]];

  function head() {
    const titled = [...COLUMNS, ...zoo.targets];
    table.querySelector("colgroup").replaceChildren(...titled.map(([name]) => make("col", { class: targets.includes(name) ? "target" : name })));
    const cells = titled.map(([name, title], column) => {
      const button = make("button", { type: "button" }, make("span", {}, title));
      button.addEventListener("click", () => sortBy(name));
      const peer = name.startsWith("peer:") ? " peer" : "";
      const kind = targets.includes(name) ? "target" + peer : name;
      const made = make("th", { scope: "col", class: kind, title: column < COLUMNS.length ? "" : name }, button);
      made.dataset.sort = name;
      return made;
    });
    table.tHead.replaceChildren(make("tr", {}, ...cells));
  }

  function markSorted() {
    for (const cell of table.tHead.rows[0].cells) {
      if (cell.dataset.sort === sort.by) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  function row(number, measure) {
    const model = zoo.models[number], slash = model[NAME].lastIndexOf("/") + 1;
    const name = make("a", { href: model[PAGE], tabindex: -1, title: model[NAME] });
    name.append(make("b", {}, model[NAME].slice(slash)));
    const from = model[PACKAGE] || model[NAME].slice(0, slash);
    const about = [from, zoo.formats[model[FORMAT]], zoo.tasks[model[TASK]]].filter(Boolean).join(" · ");
    const first = make("th", { scope: "row" }, name);
    if (about) first.append(make("small", { class: "about" }, about));
    const made = make("tr", {}, first,
      make("td", { class: "nodes number" }, model[NODES] ? model[NODES].toLocaleString("en") : ""),
      make("td", { class: "size number" }, model[SIZE] ? bytes(model[SIZE]) : ""));
    model[CELLS].forEach((cell, i) => {
      if (!cell) return made.append(make("td", { class: "target none" }, make("span", { class: "hidden-text" }, "not run")));
      const told = zoo.verdicts[cell[0]] + (cell[1] >= 0 ? `: ${zoo.messages[cell[1]]}` : "");
      const text = words(cell, measure);
      const link = make("a", { href: `${model[PAGE]}#${zoo.targets[i][2]}`, tabindex: -1, class: `verdict ${kinds[cell[0]]}`, title: told }, text);
      if (text.className) link.setAttribute("aria-label", `${zoo.verdicts[cell[0]]}, ${text.textContent}`);
      made.append(make("td", { class: "target" }, link));
    });
    return made;
  }

  function show() {
    const values = chosen(), mine = (turn += 1);
    shown = sorted(matching(values), values.show);
    markSorted();
    const body = table.tBodies[0];
    body.replaceChildren();
    const add = (from, to) => body.append(...shown.slice(from, to).map((number) => row(number, values.show)));
    add(0, FIRST_ROWS);
    const later = (from) => {
      if (mine !== turn || from >= shown.length) return;
      add(from, from + MORE_ROWS);
      setTimeout(() => later(from + MORE_ROWS));
    };
    requestAnimationFrame(() => setTimeout(() => later(FIRST_ROWS)));
    if (!shown.length) {
      body.append(make("tr", {}, make("td", { class: "nothing", colspan: COLUMNS.length + targets.length }, "No model matches.")));
    }
    const amount = (n) => n.toLocaleString("en");
    get("found").textContent = `${amount(shown.length)} of ${amount(zoo.models.length)} ${zoo.models.length === 1 ? "model" : "models"}`;
    current = { row: 0, column: 0 };
    enter(false);
    remember(values);
  }

  // ---- What is chosen is a part of the address, so that it can be sent and gone back to ----
  function remember(values) {
    const kept = new URLSearchParams();
    for (const name of FIELDS) if (values[name] && !(name === "show" && values[name] === "verdict")) kept.set(name, values[name]);
    if (sort.by !== "name" || sort.down) kept.set("sort", (sort.down ? "-" : "") + sort.by);
    const text = kept.toString();
    if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  function recall() {
    if (/^#[\w.-]*$/.test(location.hash) && location.hash.length > 1) return;  // A place on the page.
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) get(name).value = kept.get(name) ?? (name === "show" ? "verdict" : "");
    if (!get("show").value) get("show").value = "verdict";
    const by = kept.get("sort") ?? "name", plain = by.replace(/^-/, "");
    const known = [...COLUMNS.map(([name]) => name), ...targets].includes(plain);
    sort = known ? { by: plain, down: by.startsWith("-") } : { by: "name", down: false };
  }

  // ---- Keys: one cell at a time can be reached by Tab, the others by the arrow keys ----
  const stops = (line) => [line.cells[0], ...line.querySelectorAll("td.target")];
  const inner = (cell) => cell.querySelector("a") ?? cell;

  function enter(focused) {
    table.querySelector('tbody [tabindex="0"]')?.setAttribute("tabindex", "-1");
    const line = table.tBodies[0].rows[current.row];
    if (!line || !line.cells[0].querySelector("a")) return;
    const cell = inner(stops(line)[current.column]);
    cell.setAttribute("tabindex", "0");
    if (focused) cell.focus();
  }

  table.addEventListener("keydown", (event) => {
    if (!event.target.closest("tbody") || event.altKey || event.metaKey) return;
    const rows = table.tBodies[0].rows.length - 1, columns = targets.length, far = event.ctrlKey;
    const goes = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [far ? -rows : 0, -columns], End: [far ? rows : 0, columns],
    }[event.key];
    if (!goes) return;
    event.preventDefault();
    current.row = Math.max(0, Math.min(rows, current.row + goes[0]));
    current.column = Math.max(0, Math.min(columns, current.column + goes[1]));
    enter(true);
  });
  table.addEventListener("focusin", (event) => {
    const line = event.target.closest("tbody tr"), cell = event.target.closest("th, td");
    if (!line || inner(cell) !== event.target) return;
    current = { row: line.sectionRowIndex, column: Math.max(0, stops(line).indexOf(cell)) };
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    get("q").focus();
  });

  // ---- Choices ----
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 60);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { get("show").value = "verdict"; show(); }));
  for (const button of document.querySelectorAll("button[data-verdict]")) {
    button.addEventListener("click", () => {
      form.reset();
      get("target").value = button.dataset.target;
      get("verdict").value = button.dataset.verdict;
      show();
      get("table").scrollIntoView({ block: "start" });
    });
  }
  addEventListener("hashchange", () => { recall(); show(); });
  addEventListener("pageshow", (event) => { if (event.persisted) { recall(); show(); } });
  table.style.setProperty("--targets", targets.length);
  head();
  recall();
  show();
})();
