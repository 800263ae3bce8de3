"""A training graph with its elementwise regions and pools as single nodes, and the compiled library behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from onward.graph.walk import all_graphs, all_nodes
from onward.training.native.compiler import library
from onward.training.native.driver import DOMAIN, DRIVER, MOST_AXES, MOST_TENSORS
from onward.training.native.expressions import PRELUDE, UnprintableError, ctype
from onward.training.native.gather import replace_gathers
from onward.training.native.loops import Loop, Slot, loop_of
from onward.training.native.pool import replace_pools
from onward.training.native.product import PRODUCT
from onward.training.native.regions import Region, regions
from onward.training.native.scans import replace_scans

MOST_NODES = 5000
"""Of a model: finding its regions takes longer than they save where most of its nodes are small."""
MOST_KERNELS = 300
"""More would take the compiler minutes."""


def fused(model: ir.Model, own: Mapping[str, str] | None = None) -> tuple[ir.Model, Path] | None:
    """A copy of a model with regions as nodes of our own, and the library to register; None where there are none.

    `own`: the C of kernels that the model has already, by name; it is changed itself then.
    """
    if sum(1 for _ in all_nodes(model.graph)) > MOST_NODES:
        return None
    copy = model.clone() if own is None else model
    sources = dict(own or {})
    scanned = [graph for graph in list(all_graphs(copy.graph)) if replace_scans(graph, sources)]
    for graph in list(all_graphs(copy.graph)):
        replaced = graph in scanned
        replaced |= replace_pools(graph, sources) | replace_gathers(graph, sources)
        order = {node: i for i, node in enumerate(graph)}
        for region in regions(graph):
            replaced |= _replace(graph, region, sorted(region.nodes, key=order.__getitem__), sources)
        if replaced:
            graph.sort()
            for name in [name for name, value in graph.initializers.items() if not value.uses()]:
                graph.initializers.pop(name)
    if not sources or len(sources) > MOST_KERNELS:
        return None
    copy.opset_imports[DOMAIN] = 1
    path = library(whole_source(sources))
    return None if path is None else (copy, path)


def _replace(graph: ir.Graph, region: Region, nodes: Sequence[ir.Node], sources: dict[str, str]) -> bool:
    """Put one node in the place of a region's; its kernel goes to `sources` by name."""
    try:
        loop = loop_of(region, nodes)
        text = _described(loop)
    except UnprintableError:
        return False
    results = [*loop.outputs, *loop.totals]
    if not results or len(loop.inputs) > MOST_TENSORS or len(results) > MOST_TENSORS or len(region.frame) > MOST_AXES:
        return False
    name = f"k{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    sources[name] = text.replace("NAME", name)
    node = ir.Node(DOMAIN, name, [slot.value for slot in loop.inputs], num_outputs=len(results), name=nodes[-1].name)
    graph.insert_after(nodes[-1], node)
    for slot, output in zip(results, node.outputs, strict=True):
        output.name, output.type, output.shape = slot.value.name, slot.value.type, slot.value.shape
        slot.value.replace_all_uses_with(output, replace_graph_outputs=True)
        slot.value.name = None
    graph.remove(nodes, safe=True)
    return True


def _described(loop: Loop) -> str:
    """The C of a kernel: its loop, and a table of what it reads and writes."""
    slots: list[Slot] = [*loop.inputs, *loop.outputs, *loop.totals]
    types = [int(slot.value.dtype or 0) for slot in slots]
    axes = [-1 if axis is None else axis for slot in slots for axis in slot.axes]
    whole = loop.region.whole()
    pairs: list[tuple[int, int]] = []
    for i, slot in enumerate(loop.outputs):
        for j, given in enumerate(loop.inputs):
            same = slot.axes == given.axes == whole and ctype(slot.value) == ctype(given.value)
            if same and j not in [pair[0] for pair in pairs]:
                pairs.append((j, i))
                break
    counts = [len(loop.inputs), len(loop.outputs), len(loop.totals), len(whole), loop.rows, len(loop.order), len(pairs)]
    tables = {
        "types": types,
        "ranks": [len(slot.axes) for slot in slots],
        "axes": axes,
        "merged": loop.merged,
        "order": loop.order,
        "read": [j for j, _ in pairs],
        "written": [i for _, i in pairs],
    }
    lines = [loop.source]
    lines += [f"static int NAME_{key}[] = {{{', '.join(map(str, [*numbers, 0]))}}};" for key, numbers in tables.items()]
    lines.append(
        f"static size_t NAME_pair(int **in, int **out) {{ *in = NAME_read; *out = NAME_written; return {len(pairs)}; }}"
    )
    names = "NAME_types, NAME_ranks, NAME_axes, NAME_merged, NAME_order, NAME, NAME_pair"
    lines.append(f'static const Kernel NAME_kernel = {{"NAME", {", ".join(map(str, counts))}, {names}}};')
    return "\n".join(lines)


def whole_source(sources: dict[str, str]) -> str:
    """A C library of kernels."""
    names = sorted(sources)
    head, _, tail = DRIVER.partition("static const Kernel *const kernels[];")
    listed = ", ".join(f"&{name}_kernel" for name in names)
    tables = f"static const Kernel *const kernels[] = {{{listed}}};"
    tail = tail.replace("static Op ops[];", f"static Op ops[{len(names)}];").replace("COUNT", str(len(names)))
    return "\n".join([PRELUDE, head, PRODUCT, *(sources[name] for name in names), tables, tail])
