"use strict";
(() => {
  const board = JSON.parse(document.getElementById("board").textContent);
  const [NAME, OP, OPSET, FAMILY, COUNTED, FIRST] = [0, 1, 2, 3, 4, 5];
  const PASS = board.statuses.indexOf("pass");
  const GLYPHS = { pass: "✓", imprecise: "≈", wrong: "✗", refused: "–", crash: "!", timeout: "…" };

  /* An element with text or children; nothing is ever read as HTML. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("--")) element.style.setProperty(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const statusOf = (result) => (Array.isArray(result) ? result[0] : result);
  const messageOf = (result) => (Array.isArray(result) ? board.messages[result[1]] : "");
  const chip = (name) => make("span", { class: `chip ${name}` }, name);

  function pressed(container, attribute, chosen) {
    for (const button of container.querySelectorAll(`button[${attribute}]`)) {
      button.setAttribute("aria-pressed", String(button.getAttribute(attribute) === String(chosen)));
    }
  }

  function onChoice(attribute, act) {
    const buttons = document.querySelectorAll(`button[${attribute}]`);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        pressed(button.parentElement, attribute, button.getAttribute(attribute));
        act(button.getAttribute(attribute));
      });
    }
  }

  function soon(act) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(act, 80);
    };
  }

  /* The suite: rows of tests that open. */
  function suite() {
    const table = document.getElementById("results");
    if (!table) return;
    const filter = document.getElementById("filter");
    const failing = document.getElementById("failing");
    const state = { view: "op", what: 0 };
    const columns = { op: OP, opset: OPSET, family: FAMILY };
    const results = (test) => test[FIRST + state.what];
    const passes = (test, runner) => statusOf(results(test)[runner]) === PASS;
    const passesAll = (test) => results(test).every((result) => statusOf(result) === PASS);

    function matches(test, words) {
      const texts = [test[NAME], test[OP], ...results(test).map(messageOf)].join("\n").toLowerCase();
      return words.every((word) => texts.includes(word));
    }

    function groups() {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = new Map();
      for (const test of board.tests) {
        if ((failing.checked && passesAll(test)) || !matches(test, words)) continue;
        const key = test[columns[state.view]];
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(test);
      }
      const rank = (key) => (state.view !== "op" || /^[A-Z]/.test(key) ? 0 : /^[a-z]/.test(key) ? 1 : 2);
      return [...found].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
    }

    function meter(tests, runner) {
      const counted = tests.filter((test) => test[COUNTED]);
      if (!counted.length) return make("td", { class: "number muted small" }, "not counted");
      const passed = counted.filter((test) => passes(test, runner)).length;
      const share = passed / counted.length;
      const kind = share === 1 ? "full" : share === 0 ? "zero" : "";
      return make("td", { class: "number" }, make("span", { class: `meter ${kind}`, "--share": share }, `${passed} / ${counted.length}`));
    }

    function oneTest(test) {
      const failed = board.runners.flatMap((runner, i) => {
        const result = results(test)[i];
        if (statusOf(result) === PASS || statusOf(result) < 0) return [];
        const message = make("span", { class: "message" }, messageOf(result));
        message.addEventListener("click", () => message.classList.toggle("whole"));
        return [make("li", {}, make("code", {}, runner), chip(board.statuses[statusOf(result)]), message)];
      });
      const about = test[COUNTED] ? "" : " · not counted";
      const name = make("div", {}, make("code", {}, test[NAME]), make("div", { class: "muted" }, test[OPSET] + about));
      const rest = failed.length ? make("ul", {}, ...failed) : make("div", { class: "all" }, "passes everywhere");
      return make("div", { class: "test small" }, name, rest);
    }

    function toggle(button, row, tests) {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      row.classList.toggle("open", open);
      if (!open) return row.nextElementSibling.remove();
      const inside = make("td", { class: "inside", colspan: board.runners.length + 2 });
      const sorted = [...tests].sort((a, b) => passesAll(a) - passesAll(b));
      inside.append(...sorted.map(oneTest));
      row.after(make("tr", {}, inside));
    }

    function show() {
      const titles = [state.view, "tests", ...board.runners];
      const head = titles.map((title, i) => make("th", { scope: "col", class: i ? "number" : "" }, title));
      table.tHead.replaceChildren(make("tr", {}, ...head));
      const found = groups();
      const rows = found.map(([key, tests]) => {
        const about = state.view === "family" ? make("span", { class: "muted small" }, board.families[key] || "") : "";
        const button = make("button", { type: "button", class: "row", "aria-expanded": "false" }, key, about);
        const row = make("tr", { class: "group" }, make("th", { scope: "row" }, button));
        row.append(make("td", { class: "number" }, String(tests.length)), ...board.runners.map((_, i) => meter(tests, i)));
        button.addEventListener("click", () => toggle(button, row, tests));
        return row;
      });
      table.tBodies[0].replaceChildren(...rows);
      const shown = found.reduce((sum, [, tests]) => sum + tests.length, 0);
      const count = (n) => n.toLocaleString("en");
      document.getElementById("found").textContent =
        `${count(shown)} of ${count(board.tests.length)} tests in ${count(found.length)} ${found.length === 1 ? "row" : "rows"}`;
      if (found.length === 1) table.querySelector("button.row").click();
    }

    onChoice("data-view", (view) => { state.view = view; show(); });
    onChoice("data-what", (what) => { state.what = board.suites.indexOf(what); show(); });
    filter.addEventListener("input", soon(show));
    failing.addEventListener("change", show);
    show();
  }

  /* Dtypes: a matrix of one runner at a time. */
  function dtypes() {
    const table = document.getElementById("matrix");
    if (!table) return;
    const filter = document.getElementById("dtype-filter");
    const detail = document.getElementById("cell-detail");
    const nothing = detail.firstElementChild;
    const RESULTS = 7;
    let runner = 0;

    function rows() {
      const found = new Map();
      for (const cell of board.cells) {
        const [op, parameter, , dtype] = cell;
        const key = `${op} ${parameter}`;
        if (!found.has(key)) found.set(key, { op, parameter, cells: new Map() });
        const cells = found.get(key).cells;
        if (!cells.has(dtype)) cells.set(dtype, []);
        cells.get(dtype).push(cell);
      }
      return [...found.values()];
    }

    function worst(cells) {
      const known = cells.map((cell) => statusOf(cell[RESULTS][runner])).filter((status) => status >= 0);
      return known.length ? board.statuses[Math.max(...known)] : "none";
    }

    function explain(op, parameter, cells) {
      const items = cells.map((cell) => {
        const result = cell[RESULTS][runner];
        const status = statusOf(result) < 0 ? "no reference" : board.statuses[statusOf(result)];
        const about = cell[5] ? ` expected result: ${cell[5]}; made from ${cell[4]}.` : ` ${cell[6]}.`;
        return make("li", {}, make("code", {}, cell[2]), " ", chip(status), make("span", { class: "muted" }, about), " ", messageOf(result));
      });
      detail.replaceChildren(make("p", {}, make("b", {}, op), ` · ${parameter} · ${board.runners[runner]}`), make("ul", {}, ...items));
    }

    function box(entry, dtype) {
      const cells = entry.cells.get(dtype);
      if (!cells) return make("td");
      const status = worst(cells);
      const label = `${entry.op} ${entry.parameter} ${dtype}: ${status === "none" ? "no reference" : status}`;
      const button = make("button", { type: "button", class: status, title: label, "aria-label": label }, GLYPHS[status] || "");
      button.addEventListener("click", () => {
        for (const other of table.querySelectorAll("button[aria-pressed]")) other.removeAttribute("aria-pressed");
        button.setAttribute("aria-pressed", "true");
        explain(entry.op, entry.parameter, cells);
      });
      return make("td", {}, button);
    }

    function show() {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const head = board.dtypes.map((name) => make("th", { scope: "col" }, make("span", {}, name)));
      table.tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "op"), ...head));
      const shown = rows().filter((entry) => words.every((word) => entry.op.toLowerCase().includes(word)));
      table.tBodies[0].replaceChildren(
        ...shown.map((entry) => {
          const title = make("th", { scope: "row" }, entry.op, " ", make("small", {}, entry.parameter));
          return make("tr", {}, title, ...board.dtypes.map((dtype) => box(entry, dtype)));
        }),
      );
      detail.replaceChildren(nothing);
    }

    onChoice("data-runner", (chosen) => { runner = Number(chosen); show(); });
    filter.addEventListener("input", soon(show));
    show();
  }

  suite();
  dtypes();
})();
