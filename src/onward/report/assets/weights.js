// The weights of a model: a table to filter and sort, and what is said of one of them beside a node.
(() => {
  "use strict";
  const { element, number } = window.onward;
  const { weights, nodes } = JSON.parse(document.getElementById("view-data").textContent);
  const SVG = "http://www.w3.org/2000/svg", PAGE = 25;

  function histogram(statistics) {
    const counts = statistics.histogram;
    if (!counts) return "";
    const picture = document.createElementNS(SVG, "svg"), most = Math.max(...counts);
    picture.setAttribute("viewBox", `0 0 ${counts.length * 4} 32`);
    picture.setAttribute("class", "histogram");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `Histogram from ${number(statistics.min)} to ${number(statistics.max)}`);
    counts.forEach((count, place) => {
      const bar = document.createElementNS(SVG, "rect"), tall = count ? Math.max(1, (30 * count) / most) : 0;
      for (const [key, value] of Object.entries({ x: place * 4, y: 32 - tall, width: 3.4, height: tall })) bar.setAttribute(key, value);
      picture.append(bar);
    });
    return picture;
  }

  const share = (part) => (part === 0 ? "0 %" : part < 0.001 ? "<0.1 %" : `${(100 * part).toFixed(1)} %`);
  const size = (bytes) => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
    return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
  };

  function words(weight) {
    const found = weight.statistics;
    if (!found) return "";
    const about = found.sampled ? "≈ " : "";
    const parts = found.min === undefined ? [] : [["min", found.min], ["max", found.max], ["mean", found.mean], ["std", found.std]];
    const told = parts.filter(([, value]) => value !== null).map(([name, value]) => `${name} ${about}${number(value)}`);
    told.push(`zeros ${about}${share(found.zeros)}`);
    if (found.odd) told.push(`${found.odd.toLocaleString("en")} not finite`);
    if (found.sampled) told.push(`of ${found.sampled.toLocaleString("en")} elements in ${weight.count.toLocaleString("en")}`);
    return told.join(" · ");
  }

  window.onward.weight = (weight) => {
    const held = element("div", undefined, "weight");
    held.append(element("div", `${weight.kind}, ${weight.count.toLocaleString("en")} numbers, ${size(weight.bytes)}`, "muted"));
    if (weight.items) held.append(element("code", weight.items));
    if (weight.statistics) held.append(element("div", words(weight)), histogram(weight.statistics));
    return held;
  };

  const table = document.getElementById("weights-table");
  if (!table) return;
  const filter = document.getElementById("weights-filter"), order = document.getElementById("weights-order");
  const more = document.getElementById("weights-more"), found = document.getElementById("weights-found");
  let amount = PAGE;
  const ORDERS = {
    size: (a, b) => b.bytes - a.bytes, name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }), file: () => 0,
    largest: (a, b) => largest(b) - largest(a), zeros: (a, b) => (b.statistics?.zeros ?? -1) - (a.statistics?.zeros ?? -1),
  };
  const largest = ({ statistics: s }) => (s?.min === undefined ? -1 : Math.max(Math.abs(s.min), Math.abs(s.max)));

  function fill() {
    const wanted = filter.value.trim().toLowerCase();
    const rows = weights.filter((w) => !wanted || `${w.name}\n${w.type}\n${w.shape.join("×")}`.toLowerCase().includes(wanted));
    rows.sort(ORDERS[order.value]);
    found.textContent = `${rows.length.toLocaleString("en")} of ${weights.length.toLocaleString("en")}`;
    more.hidden = rows.length <= amount;
    table.replaceChildren(...rows.slice(0, amount).map((weight) => {
      const row = element("tr"), name = element("th"), picture = element("td");
      name.scope = "row";
      name.append(element("code", weight.name));
      const reader = weight.readers.find((node) => nodes[node].kind === "layer") ?? weight.readers[0];
      if (reader !== undefined) {
        const to = element("button", `${nodes[reader].op}`, "jump");
        to.type = "button";
        to.setAttribute("aria-label", `Show the ${nodes[reader].op} that reads ${weight.name}`);
        to.addEventListener("click", () => window.onward.go(reader));
        name.append(" ", to);
      }
      if (weight.statistics) picture.append(histogram(weight.statistics));
      const about = element("td", words(weight) || weight.items || "");
      row.append(name, element("td", weight.type), element("td", weight.shape.join("×") || "scalar"), element("td", size(weight.bytes), "number"), about, picture);
      return row;
    }));
  }
  filter.addEventListener("input", () => { amount = PAGE; fill(); });
  order.addEventListener("change", fill);
  more.addEventListener("click", () => { amount += 10 * PAGE; fill(); });
  fill();
})();
