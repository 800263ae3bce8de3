// The table of ops: search, only what models use, only what has a gap.
(() => {
  "use strict";
  const get = (name) => document.getElementById(name);
  const rows = [...document.querySelectorAll("#all-ops tbody tr")].map((row) => ({
    row, name: row.cells[0].textContent.toLowerCase(), used: row.cells[1].textContent !== "",
    gap: row.querySelector(".badge.bad, .badge.warn") !== null,
  }));

  function show() {
    const words = get("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, name, used, gap } of rows) {
      row.hidden = !words.every((word) => name.includes(word)) || (get("used").checked && !used) || (get("gaps").checked && !gap);
      shown += !row.hidden;
    }
    get("found").textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ops`;
  }

  get("op-filters").addEventListener("input", show);
  get("op-filters").addEventListener("submit", (event) => event.preventDefault());
  show();
})();
