// The page of a model: source in colours, commands to copy.
(() => {
  "use strict";
  const WORDS = "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return self True try while with yield";
  const KEYWORDS = new Set(WORDS.split(" "));
  const PARTS = /(?<comment>#.*)|(?<string>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<number>\b\d[\w.]*(?:(?<=[eE])[+-]\d+)?)|(?<=\b(?:def|class)\s+)(?<name>\w+)|(?<word>[A-Za-z_]\w*)/g;

  // The browser colours ranges of a text that stays one text: nothing is made of it.
  function colour(text) {
    for (const found of text.data.matchAll(PARTS)) {
      let [kind] = Object.entries(found.groups).find(([, part]) => part !== undefined);
      if (kind === "word") kind = KEYWORDS.has(found[0]) ? "keyword" : "";
      if (!kind) continue;
      const range = new Range();
      range.setStart(text, found.index);
      range.setEnd(text, found.index + found[0].length);
      if (!CSS.highlights.has(kind)) CSS.highlights.set(kind, new Highlight());
      CSS.highlights.get(kind).add(range);
    }
  }

  if (window.Highlight && CSS.highlights) {
    for (const details of document.querySelectorAll("details.source")) {
      const text = details.querySelector("code.python").firstChild;
      details.addEventListener("toggle", () => colour(text), { once: true });
    }
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);  // Where the page may not write there, the reader copies it.
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
})();
