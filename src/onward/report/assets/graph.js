// The graph of a verified model, each node coloured by its error against what is allowed.
(() => {
  "use strict";
  const canvas = document.getElementById("graph-canvas");
  if (!canvas) return;
  const { element, figures, number, search } = window.onward;
  const { graph, sides } = JSON.parse(document.getElementById("report-data").textContent);
  const get = (name) => document.getElementById(`graph-${name}`);
  const CLASSES = [
    ["none", "not measured"], ["exact", "equal"], ["low", "at most a tenth of what is allowed"],
    ["near", "within what is allowed"], ["over", "beyond it"], ["far", "beyond ten times it"],
  ];
  const count = graph.names.length;
  let side = -1, measure = "own", classes = new Array(count).fill(0), worst = [];

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

  function errors(node) {
    const profile = sides[side], place = worst[node];
    if (!profile || place === undefined || place < 0) return ["not compared"];
    return figures(profile.path[place], profile.own[place], profile.allowed[place]);
  }

  function describe(node) {
    if (node < 0) {
      return get("node").replaceChildren(element("p", "Choose a node to see its errors and its neighbours.", "muted"));
    }
    const title = element("p"), facts = element("p");
    title.append(element("b", graph.ops[node]), " ", element("code", graph.names[node]));
    facts.append(...errors(node));
    const lines = [neighbours("Reads from", view.before(node)), neighbours("Read by", view.after(node))];
    get("node").replaceChildren(title, facts, ...lines);
  }

  function neighbours(title, nodes) {
    const line = element("p");
    if (!nodes.length) return line;
    line.append(element("span", `${title} `, "muted"));
    for (const node of nodes.slice(0, 8)) {
      const button = element("button", graph.names[node] || graph.ops[node]);
      button.type = "button";
      button.addEventListener("click", () => view.choose(node));
      line.append(button);
    }
    if (nodes.length > 8) line.append(`and ${number(nodes.length - 8)} more`);
    return line;
  }

  const view = window.onward.graph({
    faces: CLASSES.map(([name]) => name),
    face: (node) => CLASSES[classes[node]][0],
    lines: (node) => [graph.ops[node], graph.names[node]],
    level: (node) => Math.max(0, classes[node] - 1),
    marked: (node) => sides[side]?.culprit === node,
    hint: (node) => [element("b", graph.ops[node]), " ", element("code", graph.names[node]), element("br"), ...errors(node)],
    chosen: describe,
  });

  search({
    words: graph.names.map((name, node) => [name, graph.ops[node], ...graph.values[node]].join("\n").toLowerCase()),
    go: view.choose,
    changed: view.match,
  });
  get("culprit").addEventListener("click", () => view.choose(sides[side].culprit));

  // ---- Which side, by which error ----
  const profiled = sides.map((_, place) => place).filter((place) => sides[place].values.length);
  function show(place) {
    side = place;
    get("side").value = String(place);
    classify();
    describe(view.selected());
    view.refresh();
  }
  for (const place of profiled) get("side").append(new Option(sides[place].name, String(place)));
  get("side").closest("label").hidden = profiled.length < 2;
  get("measure").closest("label").hidden = !profiled.length;
  get("side").addEventListener("change", () => show(Number(get("side").value)));
  get("measure").addEventListener("change", () => { measure = get("measure").value; show(side); });
  document.addEventListener("onward-node", (event) => {
    show(event.detail.side);
    view.choose(event.detail.node);
    canvas.scrollIntoView({ block: "center", behavior: "smooth" });
  });

  if (profiled.length && !sides[profiled[0]].own.some((own) => own !== null)) get("measure").value = measure = "path";
  view.show(graph);
  show(profiled.length ? profiled[0] : -1);
  if (sides[side]?.culprit >= 0) view.choose(sides[side].culprit);
  else view.begin();
})();
