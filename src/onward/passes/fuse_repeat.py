"""What decoders do to queries and keys, each as one node: heads that are repeated, and halves that change places.

`onward::Repeat(x; axis, repeats)` has each slice of an axis so many times in a row. `onward::RotateHalf(x)` has the
second half of the last axis, negated, before the first one.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.facts import Facts, Number, multiply
from onward.graph.replace import DOMAIN, graphs, is_op, made_by, new_node, take_over


def fuse_repeat(model: ir.Model) -> int:
    """Rewrites in place; returns how many were found."""
    facts, count = Facts(), 0
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "Reshape"):
                count += _repeat(node, facts)
            elif is_op(node, "Concat"):
                count += _rotate(node, facts)
    return count


def _repeat(reshape: ir.Node, facts: Facts) -> bool:
    """A new axis that is expanded, and then one with the axis before it."""
    expand = made_by(reshape.inputs[0], "Expand")
    unsqueeze = made_by(expand.inputs[0], "Unsqueeze") if expand is not None else None
    x = unsqueeze.inputs[0] if unsqueeze is not None else None
    if expand is None or unsqueeze is None or x is None or x.shape is None:
        return False
    axes, wanted, final = (facts.numbers(node.inputs[1]) for node in (unsqueeze, expand, reshape))
    rank = len(x.shape)
    if not axes or len(axes) != 1 or not isinstance(axes[0], int) or wanted is None or len(wanted) != rank + 1:
        return False
    new = axes[0] % (rank + 1)
    sizes: list[Number] = [facts.dim(x, axis) for axis in range(rank)]
    count = wanted[new]
    others = wanted[:new] + wanted[new + 1 :]
    is_plain = all(n in (1, size) for n, size in zip(others, sizes, strict=True))
    if not new or not is_plain or not isinstance(count, int) or count < 1 or final is None:
        return False
    merged = [*sizes[: new - 1], multiply(sizes[new - 1], count), *sizes[new:]]
    if len(final) != rank or final.count(-1) > 1 or any(n not in (-1, m) for n, m in zip(final, merged, strict=True)):
        return False
    made = new_node("Repeat", [x], {"axis": new - 1, "repeats": count}, reshape, reshape, domain=DOMAIN)
    take_over(reshape.outputs[0], made.outputs[0])
    return True


def _rotate(concat: ir.Node, facts: Facts) -> bool:
    negated, kept = (*concat.inputs, None)[:2]
    negate = made_by(negated, "Neg")
    second, first = made_by(negate.inputs[0] if negate is not None else None, "Slice"), made_by(kept, "Slice")
    if len(concat.inputs) != 2 or second is None or first is None:
        return False
    x = first.inputs[0]
    if x is None or x is not second.inputs[0] or x.shape is None:
        return False
    rank, width = len(x.shape), facts.dim(x, -1)
    if concat.attributes.get_int("axis", 0) not in (-1, rank - 1) or not isinstance(width, int) or width % 2:
        return False
    if _part(first, rank, width, facts) != (0, width // 2) or _part(second, rank, width, facts) != (width // 2, width):
        return False
    made = new_node("RotateHalf", [x], {}, concat, concat, domain=DOMAIN)
    take_over(concat.outputs[0], made.outputs[0])
    return True


def _part(cut: ir.Node, rank: int, width: int, facts: Facts) -> tuple[int, int] | None:
    """From where to where a slice takes the last axis, and nothing else."""
    start, end, axis, step = (facts.number(value) for value in (*cut.inputs, None, None)[1:5])
    is_last = axis in (-1, rank - 1) and (len(cut.inputs) < 5 or cut.inputs[4] is None or step == 1)
    if not is_last or not isinstance(start, int) or not isinstance(end, int):
        return None
    return slice(start, end).indices(width)[:2]
