"""Models and verifications in a notebook, and in words.

It is static HTML with its style in the elements, since a notebook may run no script and keep no style sheet, and small
whatever the size of what it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from onward.report.describe import parameters_of
from onward.report.wording import counted, number, printable

if TYPE_CHECKING:
    import onnx_ir as ir

    from onward.model import Model
    from onward.verification.results import Report, SideResult

MOST_ENDS = 6
"""Inputs, and outputs, that are listed."""
MOST_OPS = 8
MOST_ROWS = 10
"""Outputs of a side of a verification."""
LONGEST = 60
MOST_DRAWN = 30_000
"""Nodes of a graph that gets a picture."""
COLOURS = {"same": "#17713f", "different": "#b3261e", "failed": "#855400"}


def model_words(model: Model) -> str:
    """`Model('digits': 76 nodes, 43,421 parameters, ai.onnx 20; image float[batch, 1, 8, 8] → logits float[…])`."""
    graph = model.ir.graph
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in islice(model.opset.items(), 4))
    takes, gives = (", ".join(_few(values)) for values in (_inputs(graph), graph.outputs))
    counts = f"{counted(len(graph), 'node')}, {counted(parameters_of(model), 'parameter')}"
    return f"Model({printable(model.name)!r}: {counts}, {printable(opsets)}; {takes} → {gives})"


def model_html(model: Model) -> str:
    from onward.report.html import escape
    from onward.report.zoo.outline import picture
    from onward.zoo.outline import outline

    graph = model.ir.graph
    ops = Counter(node.op_type for node in graph)
    most = [f"{escape(op, LONGEST)} × {amount:,}" for op, amount in ops.most_common(MOST_OPS)]
    opsets = [f"{escape(domain or 'ai.onnx', LONGEST)} {v}" for domain, v in islice(model.opset.items(), MOST_OPS)]
    rows = [
        ("inputs", [escape(words, 200) for words in _few(_inputs(graph))]),
        ("outputs", [escape(words, 200) for words in _few(graph.outputs)]),
        ("opset", opsets),
        ("parameters", [f"{parameters_of(model):,}"]),
        ("nodes", [f"{len(graph):,}: {', '.join([*most, *(['…'] if len(ops) > MOST_OPS else [])])}"]),
        ("training", [counted(len(model.training_info), "training info")] if model.training_info else []),
    ]
    facts = "".join(_row(name, words) for name, words in rows if words)
    drawn = picture(outline(graph), f"The graph of {model.name}") if len(graph) <= MOST_DRAWN else ""
    frame = f'<div style="max-height:32rem;max-width:30rem;overflow:auto">{drawn}</div>' if drawn else ""
    hint = '<p style="opacity:.7;font-size:.9em"><code>onward.view(model)</code> shows every node.</p>'
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start">'
        f"<div><table>{_caption(escape(model.name, LONGEST))}<tbody>{facts}</tbody></table>{hint}</div>{frame}</div>"
    )


def report_words(report: Report) -> str:
    from onward.report.verify_words import VERDICTS, verdict, worst

    figures = worst(report)
    return f"Report({VERDICTS[report.status]}: {verdict(report)}{f' {figures}' if figures else ''})"


def report_html(report: Report) -> str:
    """The essence: the verdict, the outputs of each side where they fared worst, the first node that differs."""
    from onward.report.html import escape
    from onward.report.verify_words import VERDICTS, verdict

    colour = COLOURS[report.status]
    head = f'<p><b style="color:{colour};font-size:1.2em">{VERDICTS[report.status]}</b> {escape(verdict(report))}</p>'
    notes = "".join(f'<p style="opacity:.7">{escape(note, 300)}</p>' for note in report.notes[:MOST_ENDS])
    return f"<div>{head}{''.join(_side(side) for side in report.sides[:MOST_ENDS])}{notes}</div>"


def _side(side: SideResult) -> str:
    from onward.report.html import escape
    from onward.report.verify_words import VERDICTS, culprit_words, measured, rows, verdict_of, worst_element

    found, cells = rows(side), []
    for row in found[:MOST_ROWS]:
        output, colour = row.output, COLOURS[row.output.status]
        figures = [number(output.metrics.worst), number(output.tolerance.worst)] if measured(output) else ["", ""]
        where = worst_element(output) or output.reason
        words = [f'<span style="color:{colour}">{escape(verdict_of(output))}</span>', *figures, escape(where, 200)]
        cells.append(_row(escape(output.name, LONGEST), ["</td><td>".join(words)]))
    lines = [escape(f"could not be prepared: {side.failure}", 300)] if side.failure else []
    lines += [f"and {len(found) - MOST_ROWS:,} more outputs"] if len(found) > MOST_ROWS else []
    lines += [escape(words, 300) for words in culprit_words(side.culprit)] if side.culprit is not None else []
    title = f"{escape(side.name, LONGEST)}: {VERDICTS[side.status].lower()}"
    head = "".join(f"<th>{name}</th>" for name in ("output", "verdict", "worst error", "allowed", "worst element"))
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody>" if cells else ""
    return f"<table>{_caption(title)}{body}</table>" + "".join(f"<p>{line}</p>" for line in lines)


def _caption(title: str) -> str:
    return f'<caption style="text-align:left;font-weight:bold">{title}</caption>'


def _row(name: str, cells: Sequence[str]) -> str:
    """A heading and one cell, whose lines are HTML already."""
    return f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{"<br>".join(cells)}</td></tr>'


def _inputs(graph: ir.Graph) -> list[ir.Value]:
    return [value for value in graph.inputs if not value.is_initializer()]


def _few(values: Iterable[ir.Value]) -> list[str]:
    """`image float[batch, 1, 8, 8]`, of the first ones."""
    from onward.report.describe import dtype_name

    found = list(values)
    words = []
    for value in found[:MOST_ENDS]:
        dims = None if value.shape is None else [str(d if isinstance(d, int) else d.value or "?") for d in value.shape]
        shape = "" if dims is None else f"[{', '.join(dims)}]"
        words.append(printable(f"{value.name} {dtype_name(value.dtype) if value.dtype else ''}{shape}", LONGEST))
    return [*words, f"and {len(found) - MOST_ENDS:,} more"] if len(found) > MOST_ENDS else words
