// What the scripts of every page with a graph use: elements, numbers, a search that steps through its matches.
(() => {
  "use strict";
  const number = (value) => {
    if (value === null) return "not measured";
    const v = Number(value), size = Math.abs(v);
    if (Number.isNaN(v)) return "NaN";
    if (!Number.isFinite(v)) return v < 0 ? "-infinite" : "infinite";
    if (v === 0 || (size >= 1000 && size < 1e5)) return v.toFixed(0);
    if (size >= 0.001 && size < 1000) return String(Number(v.toPrecision(3)));
    return v.toExponential(1).replace(/e([+-])(\d)$/, "e$10$2");
  };

  const element = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  // The field #graph-search with its buttons. `words` are what is looked through, one text each, in lower case; `go`
  // shows one of them; `changed` hears which of them match.
  const search = ({ words, go, changed }) => {
    const get = (name) => document.getElementById(`graph-${name}`);
    let matches = [], match = -1;
    function look() {
      const wanted = get("search").value.trim().toLowerCase();
      matches = [];
      if (wanted) words.forEach((text, place) => { if (text.includes(wanted)) matches.push(place); });
      match = -1;
      changed(matches);
      if (matches.length) return step(1);
      get("found").textContent = wanted ? "no match" : "";
      go(-1);
    }
    function step(by) {
      if (!matches.length) return;
      match = (match + by + matches.length) % matches.length;
      get("found").textContent = `${match + 1} of ${matches.length.toLocaleString("en")}`;
      go(matches[match]);
    }
    get("search").addEventListener("input", look);
    get("search").addEventListener("keydown", (event) => {
      const steps = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 };
      if (event.key in steps) step(steps[event.key]);
      else if (event.key === "Escape") { get("search").value = ""; look(); }
      else return;
      event.preventDefault();
    });
    get("next").addEventListener("click", () => step(1));
    get("previous").addEventListener("click", () => step(-1));
  };

  window.onward = { clamp, element, number, search };
})();
