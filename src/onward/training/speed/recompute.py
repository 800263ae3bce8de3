"""What is cheap is computed again for the way back, so that it need not be held: activations, norms, gathered columns.

Only where all that it is computed from is held anyway until about then.
"""

from __future__ import annotations

from itertools import pairwise

import onnx

from onward.training.native import DOMAIN
from onward.training.speed.families import Families
from onward.training.speed.lifetimes import order_nodes

CHEAP = (
    *("Relu", "Gelu", "Sigmoid", "Tanh", "Mul", "Add", "Cast"),
    *("LayerNormalization", "SimplifiedLayerNormalization", "DequantizeLinear"),
)
KERNELS = ("k", "gather")
"""How the names of our own kernels begin that are cheap: loops over elements, and gathers by a table."""
AGAIN = ".again"
"""How names end of what is computed again."""
FAR, NEAR = 32, 8
"""Nodes in between that make it worthwhile, and for which an input may be held a little longer."""


def recompute(graph: onnx.GraphProto) -> None:
    """Change a graph whose nodes are in order; they are in order again then."""
    families = Families(graph, AGAIN)
    for place, node in enumerate(graph.node):
        if _is_cheap(node):
            _consider(families, place, node)
    if families.insert(graph):
        order_nodes(graph)


def _is_cheap(node: onnx.NodeProto) -> bool:
    if node.domain == DOMAIN:
        return node.op_type.startswith(KERNELS) and len(node.output) == 1
    return node.domain in ("", "com.microsoft") and node.op_type in CHEAP


def _consider(families: Families, place: int, node: onnx.NodeProto) -> None:
    """Compute what a node gives once more where it is read long after it was last."""
    first, *others = node.output
    family = families.of(first)
    if family is None:
        return
    uses = families.uses(family)
    times = [place, *(at for at, _, _ in uses)]
    gap, split = max(((b - a, b) for a, b in pairwise(times)), default=(0, 0))
    if gap < FAR or not all(families.is_held(name, split - NEAR) for name in node.input if name):
        return
    again = onnx.NodeProto()
    again.CopyFrom(node)
    again.name = families.copy(node.name) if node.name else ""
    again.output[:] = [families.copy(first), *("" for _ in others)]
    families.add(split, again)
    families.redirect(family, [use for use in uses if use[0] >= split])
