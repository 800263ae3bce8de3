"""A divided model, as a page and as words: what went where and why, what crosses, and whether it pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onward.graph.origin import origin
from onward.partitioning.divide import Partition, reasons
from onward.partitioning.stages import TARGET
from onward.partitioning.timing import Times
from onward.report.html import document, escape, table
from onward.report.verify_words import measured
from onward.report.wording import counted, duration, number
from onward.verification.environment import served_by

MOST_REASONS = 200
"""Nodes that are listed one by one."""


def summary(made: Partition, times: Times | None) -> list[str]:
    """A few sentences."""
    own = sum(part.side == TARGET for part in made.parts)
    lines = [
        f"{counted(len(made.parts), 'part')}, of which {own} on {made.target}, "
        f"with {100 * made.taken:.1f} % of the nodes that compute anything"
    ]
    if made.written:
        words = f"{counted(len(made.written), 'node')} of these {'is' if len(made.written) == 1 else 'are'} there in"
        lines.append(f"{words} simpler ops; of the ops as written, {100 * made.taken_as_written:.1f} % are there")
    if made.result is None:
        lines.append(f"{made.target} is not here: its parts are not proven")
    else:
        worst = max((o for t in made.result.trials for o in t.outputs), key=lambda o: o.closeness, default=None)
        if worst is not None and measured(worst):
            words = f"worst error {number(worst.metrics.worst)}, allowed {number(worst.tolerance.worst)}"
            lines.append(f"the same as on {made.fallback} alone: {words}")
        else:
            lines.append(f"the same as on {made.fallback} alone")
    if times is not None:
        ratio = times.chain / times.whole if times.whole else 1.0
        words = f"{duration(times.chain)} in parts, {duration(times.whole)} on {made.fallback} alone"
        if not any(part.side == TARGET for part in made.parts):
            verdict = f"nothing of it runs on {made.target}"
        elif times.pays:
            verdict = f"{1 / ratio:.2f} times as fast"
        else:
            verdict = f"splitting does not pay here: it takes {ratio:.2f} times as long"
        lines.append(f"{words}: {verdict}")
    return lines + served_by(made.model)


def page(made: Partition, times: Times | None) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in summary(made, times))
    body = f"""<main>
<header><p class="eyebrow">Partition</p><h1>{escape(made.name)}</h1>
<p>Divided among {escape(made.target)} and {escape(made.fallback)}.</p><ul class="notes">{items}</ul></header>
<section><h2>Parts</h2>{_parts(made, times)}</section>
<section><h2>Why nodes are on {escape(made.fallback)}</h2>{_reasons(made)}</section>
{_written(made)}<footer>Written by Onward.</footer>
</main>"""
    return document(f"{made.name}, divided", body, styles=["parts.css", "verify.css"])


def _parts(made: Partition, times: Times | None) -> str:
    rows = []
    for place, (part, link) in enumerate(zip(made.parts, made.chain.links, strict=True)):
        ops = Counter(node.op_type for node in part.nodes).most_common(4)
        rows.append(
            [
                escape(link.file),
                escape(made.target if part.side == TARGET else made.fallback),
                str(len(part.nodes)),
                escape(", ".join(f"{count} {op}" for op, count in ops)),
                escape(", ".join(part.inputs)),
                escape(_size(part.across)),
                "" if times is None else escape(duration(times.parts[place])),
            ]
        )
    titles = ["part", "runs on", "nodes", "most of them", "takes", "from other parts", "time"]
    return table(titles, rows, numbers=(2, 5, 6), caption="Parts of the model", stacked=True)


def _reasons(made: Partition) -> str:
    found = reasons(made.graph, made.refused)
    if not found:
        return f"<p>{escape(made.target)} takes every node.</p>"
    rows = [[escape(origin(node)), escape(why)] for node, why in found[:MOST_REASONS]]
    more = len(found) - len(rows)
    rest = f"<p>{counted(more, 'node')} more.</p>" if more > 0 else ""
    return table(["node", "why"], rows, caption="Nodes on the fallback") + rest


def _written(made: Partition) -> str:
    """The nodes that are on the target in simpler ops."""
    if not made.written:
        return ""
    whole = {node.name: node for node in made.model.ir.graph}
    names = [name for name in made.written if name in whole][:MOST_REASONS]
    ops = {node.name: node.op_type for node in made.graph.nodes}
    rows = []
    for name in names:
        become = Counter(ops[piece] for piece in made.written[name] if piece in ops)
        rows.append([escape(origin(whole[name])), escape(", ".join(f"{n} {op}" for op, n in become.most_common(6)))])
    more = len(made.written) - len(rows)
    rest = f"<p>{counted(more, 'node')} more.</p>" if more > 0 else ""
    listed = table(["node", "most of what it has become"], rows, caption="Nodes in simpler ops")
    return f"<section><h2>Nodes that are on {escape(made.target)} in simpler ops</h2>{listed}{rest}</section>\n"


def listed(made: Partition) -> Sequence[tuple[str, str, int]]:
    """Ops on the fallback, each with its first reason and how many nodes it is."""
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    for node, why in reasons(made.graph, made.refused):
        first.setdefault(node.op_type, why)
        count[node.op_type] += 1
    return [(op, first[op], number) for op, number in count.most_common()]


def _size(nbytes: int) -> str:
    """Bytes as people read them."""
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:.1f} kB" if nbytes >= 100 else f"{nbytes} B"
