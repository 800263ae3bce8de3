"""The first page of a site: what Onward is, what was found so far, and where everything is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from onward.report.html import document, escape
from onward.report.navigation import Navigation
from onward.report.wording import counted, share
from onward.report.zoo.verdicts import ORDER, is_peer, kind, title
from onward.zoo.results import Results

ABOUT = {
    "Docs": "How to convert, verify, train and score, what every option means, and why things are as they are.",
    "Models": "Real models on every target: what came out the same, what is refused and why, and the source of each.",
    "Ops": "Every op of ONNX and ONNX Runtime: which backends have it, and its gradient.",
    "Speed": "How fast converted models are, beside their sources in their own runtimes.",
    "Scoreboard": "ONNX’s own suite on every runner, with known and unknown shapes and in every dtype.",
}
COMMANDS = {
    "onward convert model.onnx --to torch --out net/": "readable source, proved to be the same model",
    "onward verify model.onnx net/": "compare two models on the same data",
    "onward zoo run models/ --to torch,jax --out zoo/": "all of your models",
}
Guides = Sequence[tuple[str, str]]


def page(zoo: Results | None, scoreboard: Mapping[str, Any] | None, guides: Guides, navigation: Navigation) -> str:
    """`guides` are pages of the documentation: titles, and paths in it."""
    figures = _figures(zoo, scoreboard)
    numbers = "".join(f"<div><dd>{number}</dd><dt>{words}</dt></div>" for number, words in figures)
    paths = {part.title: part.path for part in navigation.parts}
    cards = "".join(
        f'<a class="card part" href="{escape(paths[name])}"><h2>{name}</h2><p>{words}</p></a>'
        for name, words in ABOUT.items()
        if name in paths
    )
    body = f"""{navigation.bar("index.html", "Onward")}<main id="content"><header>
<h1>The same model in another framework, <br>and the proof.</h1>
<p class="lead">Onward moves machine-learning models between PyTorch, TensorFlow, Keras, TensorFlow Lite, JAX,
scikit-learn and ONNX, trained or still training, and proves that each result is still the same model.</p>
<pre class="card commands" tabindex="0"><code>{_commands()}</code></pre>
{f'<dl class="numbers">{numbers}</dl>' if numbers else ""}</header>
<section class="parts" aria-label="Parts of this site">{cards}</section>
{_targets(zoo) if zoo is not None else ""}{_guides(guides)}
<footer>Written by <code>onward site</code>. Every page opens without a server or a network.</footer></main>"""
    return document("Onward", body, styles=["navigation.css", "site.css", "home.css"])


def _commands() -> str:
    width = max(map(len, COMMANDS)) + 3
    lines = (f'{command:{width}}<span class="muted"># {words}</span>' for command, words in COMMANDS.items())
    return "\n".join(lines)


def _figures(zoo: Results | None, scoreboard: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    found = []
    if zoo is not None:
        own = [cell for cell in zoo.cells.values() if not is_peer(cell.target)]
        verdicts = Counter(cell.verdict for cell in own)
        models, targets = len({cell.model for cell in own}), len({cell.target for cell in own})
        found.append((f"{models:,}", f"real models on {counted(targets, 'target')}"))
        if held := len(own) - verdicts["refused"]:
            found.append((share(verdicts["same"] / held), "the same, of what is not refused"))
        found.append((f"{verdicts['different']:,}", "that differ"))
    if scoreboard is not None:
        for totals in list(scoreboard["totals"].values())[:1]:
            name, counts = max(totals["runners"].items(), key=lambda item: item[1]["pass"])
            found.append(
                (f"{counts['pass']:,}", f"of {totals['tests']:,} tests of ONNX’s own suite, by {escape(name)}")
            )
    return found


def _targets(zoo: Results) -> str:
    rows = []
    for target in zoo.targets:
        found = Counter(cell.verdict for cell in zoo.cells.values() if cell.target == target)
        bar = "".join(f'<i class="{kind(v)}" style="flex-grow:{found[v]}"></i>' for v in ORDER if found[v])
        words = ", ".join(f"{found[v]:,} {v}" for v in ORDER if found[v])
        peer = ' <span class="muted">other converter</span>' if is_peer(target) else ""
        rows.append(
            f'<tr><th scope="row">{escape(title(target), 60)}{peer}</th>'
            f'<td class="wide"><div class="bar" role="img" aria-label="{words}" title="{words}">{bar}</div></td>'
            f'<td class="number"><b>{found["same"]:,}</b> <span class="muted">of {found.total():,}</span></td></tr>'
        )
    seen = [v for v in ORDER if any(cell.verdict == v for cell in zoo.cells.values())]
    legend = "".join(
        f'<span><span class="bar"><i class="{kind(v)}" style="flex-grow:1"></i></span>{v}</span>' for v in seen
    )
    return f"""<section aria-labelledby="models-title"><h2 id="models-title">Real models, target by target</h2>
<p class="muted">How many came out the same. <a href="zoo/index.html">All of them, and why the others did not</a></p>
<div class="scroll"><table class="targets">{"".join(rows)}</table></div><p class="legend">{legend}</p></section>
"""


def _guides(guides: Guides) -> str:
    if not guides:
        return ""
    items = "".join(f'<li><a href="docs/{escape(path)}">{escape(name)}</a></li>' for name, path in guides)
    head = '<h2 id="guide-title">The guide</h2>'
    return f'<section aria-labelledby="guide-title">{head}<ul class="guides">{items}</ul></section>'
