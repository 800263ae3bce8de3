"""The pages of ops: which models of a zoo use one, which backends have it, and its gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from onward.backends.backend import backend
from onward.backends.coverage import WORDS, split, status, with_rules
from onward.report.coverage import ops, versions
from onward.report.html import document, escape, table
from onward.report.navigation import Navigation, up
from onward.report.wording import counted
from onward.report.zoo.index_page import anchor, footer, models
from onward.report.zoo.verdicts import chip, title
from onward.training.autodiff.coverage import WORDS as GRADIENTS
from onward.training.autodiff.coverage import gradient_status
from onward.zoo.results import Results

INDEX = "ops/index.html"
TONES = {
    "exact": "good",
    "rule": "good",
    "lowered": "good",
    "definition": "good",
    "partial": "warn",
    "none": "",
    "unsupported": "bad",
    "missing": "bad",
}
SIGNS = {"good": "✓", "warn": "◐", "bad": "✗", "": "·"}


def used(results: Results) -> Counter[str]:
    """How many models use each op."""
    return Counter(op for facts in results.models.values() for op in facts.ops)


def index(results: Results, op_pages: Mapping[str, str], navigation: Navigation) -> str:
    """All ops of ONNX and ONNX Runtime, and whatever else models use."""
    counts = used(results)
    known = [op for names in ops().values() for op in names]
    everything = sorted({*known, *counts}, key=lambda op: (split(op)[0], op.casefold()))
    names = with_rules()
    rows = []
    for op in everything:
        link = f'<a href="{escape(up(INDEX) + op_pages[op])}">{escape(op)}</a>' if op in op_pages else escape(op)
        cells = [_word(str(found.status), found.why) for found in (status(op, name) for name in names)]
        gradient = gradient_status(op)
        usage = f"{counts[op]:,}" if counts[op] else ""
        rows.append([link, usage, *cells, _word(gradient.status, gradient.why)])
    titles = ["op", "models", *(backend(name).title for name in names), "gradient"]
    legend = "".join(
        f"<div><dt>{_word(word, '')}</dt><dd>{escape(meaning)}</dd></div>"
        for word, meaning in (WORDS | GRADIENTS).items()
    )
    body = f"""{navigation.bar(INDEX, "Ops")}<main id="content"><header><p class="eyebrow">Ops</p>
<h1>{len(everything):,} ops, {counted(len(names), "backend")}</h1>
<p class="lead">What each backend makes of each op, and what a gradient meets there, read from the rules themselves.
Keras and TensorFlow Lite are made by those of TensorFlow.</p>
<p class="muted small">{escape(versions())}; {len(counts):,} of these ops are used by the {len(results.models):,}
models of the zoo.</p></header>
<form class="filters screen-only" role="search" id="op-filters"><label class="wide">Search<input type="search" id="q"
 placeholder="Op" autocomplete="off" spellcheck="false"></label><label class="check"><input type="checkbox" id="used">
used by a model</label><label class="check"><input type="checkbox" id="gaps"> with a gap</label></form>
<p class="muted small" id="found" role="status"></p>
<div id="all-ops">{table(titles, rows, numbers=[1], caption="Ops by backends")}</div>
<section><h2>Words</h2><dl class="words">{legend}</dl></section>{footer()}</main>"""
    return document(
        "Ops and backends", body, styles=["navigation.css", "site.css", "zoo.css", "ops.css"], scripts=["ops.js"]
    )


def _word(word: str, why: str) -> str:
    """A status, with its reason for whoever points at it."""
    tone = TONES[word]
    hint = f' title="{escape(why, 300)}"' if why else ""
    return f'<span class="badge {tone}"{hint}><span aria-hidden="true">{SIGNS[tone]} </span>{word}</span>'


def page(
    op: str, results: Results, pages: Mapping[str, str], op_pages: Mapping[str, str], navigation: Navigation
) -> str:
    """The page of an op that models use."""
    here = op_pages[op]
    users = sorted(name for name in models(results) if op in getattr(results.models.get(name), "ops", {}))
    rows = []
    for name in with_rules():
        found = status(op, name)
        rows.append([escape(backend(name).title), _word(found.status, ""), escape(found.why or WORDS[found.status])])
    gradient = gradient_status(op)
    rows.append(["gradient", _word(gradient.status, ""), escape(gradient.why or GRADIENTS[gradient.status])])
    body = f"""{navigation.bar(here, "Ops")}<main id="content"><header>
<p class="eyebrow"><a href="index.html">Ops</a></p><h1>{escape(op)}</h1>
<p class="lead">Used by {counted(len(users), "model")} of {len(results.models):,}. {_fate(op, results, users)}</p>
<p><a href="{up(here)}index.html#op={_quoted(op)}">These models in the table</a></p></header>
<section><h2>Support</h2>{table(["", "status", ""], rows, caption="Support of the op", stacked=True)}</section>
<section><h2>Models</h2>{_users(op, users, results, pages, up(here))}</section>{footer()}</main>"""
    return document(f"{op}: ops", body, styles=["navigation.css", "site.css", "zoo.css", "model.css"])


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return escape(quote(text, safe=""))


def _fate(op: str, results: Results, users: Sequence[str]) -> str:
    """Whether models are refused because of it."""
    blamed = [cell for name in users for cell in results.of(name).values() if cell.verdict == "refused"]
    named = [cell for cell in blamed if op in cell.first_node.replace("(", " ").replace(")", " ").split()]
    return f"{counted(len(named), 'refusal')} name it." if named else ""


def _users(op: str, users: Sequence[str], results: Results, pages: Mapping[str, str], root: str) -> str:
    targets = results.targets
    rows = []
    for name in users:
        cells = results.of(name)
        link = f'<a href="{root}{escape(pages[name])}">{escape(name, 200)}</a>'
        verdicts = [
            f'<a href="{root}{escape(pages[name])}#{anchor(t)}">{chip(cells[t].verdict)}</a>' if t in cells else ""
            for t in targets
        ]
        rows.append([link, f"{results.models[name].ops[op]:,}", *verdicts])
    titles = ["model", "times", *(title(target) for target in targets)]
    return f'<div class="users">{table(titles, rows, numbers=[1], caption="Models", stacked=True)}</div>'
