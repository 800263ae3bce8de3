// Reading values off the error profile: by pointer, or by the arrow keys.
(() => {
  "use strict";
  const { sides } = JSON.parse(document.getElementById("report-data").textContent);

  const { element, number } = window.onward;

  // What the graph shows of a node, too.
  const figures = (path, own, allowed) => {
    const beyond = (value) => value !== null && Number(value) > Number(allowed);
    return [["own error", own], ["piled up", path], ["allowed", allowed]].flatMap(([name, value], place) => [
      place ? " · " : "", name + " ", element("b", number(value), place < 2 && beyond(value) ? "value bad" : "value"),
    ]);
  };

  for (const figure of document.querySelectorAll("figure.profile")) {
    const side = Number(figure.dataset.side), profile = sides[side], count = profile.values.length;
    const plot = figure.querySelector(".plot"), reading = figure.querySelector(".reading");
    const cursor = element("div", undefined, "cursor");
    let at = profile.place >= 0 ? profile.place : 0;
    cursor.hidden = true;
    plot.append(cursor);
    reading.textContent = "Point at the plot, or use the arrow keys, to read a value; click to see the node in the graph.";

    const read = (place) => {
      at = Math.max(0, Math.min(count - 1, place));
      cursor.hidden = false;
      cursor.style.left = `${(100 * (at + 0.5)) / count}%`;
      const name = element("code", profile.names[at] || profile.values[at]);
      const shown = [element("b", profile.ops[at]), " ", name, element("br")];
      reading.replaceChildren(...shown, ...figures(profile.path[at], profile.own[at], profile.allowed[at]));
    };
    const pointed = (event) => {
      const box = plot.getBoundingClientRect();
      return Math.floor((count * (event.clientX - box.left)) / box.width);
    };
    const open = () => {
      const detail = { side, node: profile.nodes[at] };
      if (detail.node >= 0) document.dispatchEvent(new CustomEvent("onward-node", { detail }));
    };

    plot.addEventListener("pointermove", (event) => read(pointed(event)));
    plot.addEventListener("click", (event) => { read(pointed(event)); open(); });
    figure.addEventListener("keydown", (event) => {
      const far = Math.max(1, Math.round(count / 20));
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -far, PageDown: far, Home: -count, End: count };
      if (event.target !== figure || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in steps) read(cursor.hidden ? at : at + steps[event.key]);
      else if (event.key === "Enter") open();
      else return;
      event.preventDefault();
    });
  }

  window.onward.figures = figures;
})();
