"""A model as one web page: its graph, every node with its weights and its source, and what the file says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onward.errors import OnwardError
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.report.describe import about
from onward.report.html import asset, document, escape, json_script, table
from onward.report.verify_page import section
from onward.report.view.code import listing
from onward.report.view.contents import Contents, contents
from onward.report.view.facts import details, headline, quantization, training
from onward.report.view.kinds import KINDS
from onward.report.view.sheets import sheets
from onward.report.wording import bytes_in_words, counted, dims_in_words

MOST_NODES = 60_000
"""Of which a browser can hold all that is said of them."""
SCRIPTS = ["base.js", "canvas.js", "weights.js", "view.js"]


@dataclass(frozen=True)
class Code:
    """Source that a model became."""

    title: str
    """What it is for: `PyTorch`."""
    file: str
    text: str
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By origin: the lines that come from it."""
    is_traced: bool = True
    """Whether anything is known of where lines come from."""


def page(model: Model, kind: str = "ONNX", code: Code | None = None, remark: str = "") -> str:
    """The page, complete in itself. `remark` is a line on what is not shown, and why."""
    count = sum(1 for _ in model.ir.graph)
    if count > MOST_NODES:
        raise OnwardError(
            f"{model.name}: it has {count:,} nodes, more than the {MOST_NODES:,} that a page can hold; `onward inspect`"
            " says what it consists of"
        )
    found, known = contents(model), about(model) | {"format": kind}
    parts = [
        _header(model.name, headline(known, sum(1 for _ in all_nodes(model.ir.graph))), remark),
        asset("view.html"),
        _ends(known),
        _code(code, found) if code is not None else "",
        _weights(found.weights),
        _ops(found),
        _facts(model, known, found),
    ]
    body = f'<main class="view">\n{"".join(parts)}\n<footer>Written by Onward.</footer>\n</main>\n'
    return document(
        model.name,
        body + json_script("view-data", _data(found, code)),
        styles=["parts.css", "view.css"],
        scripts=SCRIPTS,
    )


def package_page(name: str, kind: str, weights: Sequence[Mapping[str, Any]], code: Sequence[Code], remark: str) -> str:
    """A package of generated source, which is not run: its source and its weights."""
    amount = sum(weight["bytes"] for weight in weights)
    parts = [_header(name, {"Format": kind, "Weights": bytes_in_words(amount)}, remark)]
    parts += [_listing(one, f"code-{place}", set()) for place, one in enumerate(code)]
    rows = [[_name(w["name"]), escape(w["dtype"]), _shape(w["shape"]), bytes_in_words(w["bytes"])] for w in weights]
    if rows:
        body = table(["name", "type", "shape", "size"], rows, numbers=(3,), caption="weights")
        parts.append(section("weights", "Weights", counted(len(rows), "tensor") + ".", body))
    body = f'<main class="view">\n{"".join(parts)}\n<footer>Written by Onward.</footer>\n</main>\n'
    return document(name, body, styles=["parts.css", "view.css"])


def _data(found: Contents, code: Code | None) -> dict[str, Any]:
    """What the scripts draw."""
    drawn, shown = sheets(found)
    data: dict[str, Any] = {
        "parts": [{"title": part.title, "kind": part.kind, "up": part.up} for part in found.parts],
        "sheets": drawn,
        "shown": shown,
        "nodes": found.nodes,
        "values": found.values,
        "weights": found.weights,
        "kinds": KINDS,
        "lines": None,
    }
    if code is not None and code.is_traced:
        named = Counter(found.origins)
        data["file"] = code.file
        data["lines"] = {n: list(code.lines[o]) for n, o in enumerate(found.origins) if o in code.lines}
        data["sharing"] = [named[origin] for origin in found.origins]
    return data


def _header(name: str, facts: Mapping[str, str], remark: str) -> str:
    listed = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(value, 120)}</dd></div>" for key, value in facts.items())
    return f"""<header>
<h1>{_name(name)}</h1>
<dl class="facts">{listed}</dl>
{f'<p class="muted">{escape(remark)}</p>' if remark else ""}
</header>
"""


def _ends(known: Mapping[str, Any]) -> str:
    rows = [
        [_name(value["name"]), word, escape(value["type"]), _shape(value["shape"])]
        for word in ("input", "output")
        for value in known[f"{word}s"]
    ]
    if not rows:
        return ""
    body = table(["name", "", "type", "shape"], rows, caption="inputs and outputs", stacked=True)
    return section("ends", "Inputs and outputs", "What the model takes, and what it gives.", body)


def _code(code: Code, found: Contents) -> str:
    owned = {line for origin in set(found.origins) for line in code.lines.get(origin, ())}
    return _listing(code, "code", owned)


def _listing(code: Code, name: str, owned: set[int]) -> str:
    words = f"What <code>onward convert</code> writes for {escape(code.title)}."
    words += " Click a line to see the node it comes from." if owned else ""
    body = f'<div class="card source" id="{name}" tabindex="0" role="region" aria-label="{escape(code.file)}">'
    body += f"{listing(code.text, owned, name == 'code')}</div>"
    return section(f"{name}-section", f"<code>{escape(code.file)}</code>", words, body)


def _weights(weights: Sequence[Mapping[str, Any]]) -> str:
    if not weights:
        return ""
    titles = ("name", "type", "shape", "size", "numbers", "")
    head = "".join(f'<th scope="col"{" class=number" if t == "size" else ""}>{t}</th>' for t in titles)
    body = f"""<div class="controls">
<label class="hidden-text" for="weights-filter">Filter the weights</label>
<input type="search" id="weights-filter" placeholder="Filter by name, type, shape…" autocomplete="off"
 spellcheck="false">
<label>Order <select id="weights-order">
<option value="size">largest first</option><option value="file">as in the file</option>
<option value="name">by name</option>
<option value="largest">by largest number</option><option value="zeros">most zeros</option>
</select></label>
<span id="weights-found" class="muted small" role="status"></span>
</div>
<div class="scroll" tabindex="0" role="region" aria-label="weights"><table>
<caption class="hidden-text">Weights and constants</caption>
<thead><tr>{head}</tr></thead><tbody id="weights-table"></tbody></table></div>
<p><button type="button" id="weights-more" hidden>Show more</button></p>
<noscript><p>The table of weights needs JavaScript.</p></noscript>"""
    words = "Initializers and constants. Of a large one a sample is looked at: figures of it are marked ≈."
    return section("weights", "Weights", words, body)


def _ops(found: Contents) -> str:
    counts = Counter((node["op"], node["domain"], node["kind"]) for node in found.nodes)
    if not counts:
        return ""
    rows = [
        [
            f'<button type="button" class="jump" data-op="{escape(op)}">{escape(op)}</button>',
            escape(domain or "ai.onnx"),
            KINDS[kind],
            f"{count:,}",
        ]
        for (op, domain, kind), count in counts.most_common()
    ]
    body = table(["op", "domain", "what it does", "nodes"], rows, numbers=(3,), caption="ops")
    return section("ops", "Ops", "What the graph is made of; a click finds the first node.", body)


def _facts(model: Model, known: Mapping[str, Any], found: Contents) -> str:
    cards = [_pairs("The file", details(known))]
    if quantized := quantization(found):
        cards.append(_pairs("Quantisation", quantized))
    for place, info in enumerate(training(model), 1):
        cards.append(_pairs(f"Training info {place}", info))
    if columns := known["data_processing"]:
        rows = {column["name"]: column["type"] for column in columns["inputs"]}
        cards.append(_pairs(f"Columns of {columns['library']}", rows))
    return section(
        "about", "About the model", "What the file says of itself.", f'<div class="columns">{"".join(cards)}</div>'
    )


def _pairs(title: str, facts: Mapping[str, str]) -> str:
    cells = "".join(f"<div><dt>{escape(key, 200)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items())
    return f'<div class="card"><h3>{escape(title)}</h3><dl class="pairs">{cells}</dl></div>'


def _name(text: str) -> str:
    return f"<code>{escape(text, 300)}</code>"


def _shape(dims: Sequence[object] | None) -> str:
    return escape(dims_in_words(dims))
