"""Two recurrent nodes that read a series from both ends, and whose results are put side by side, as one node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onward.graph.replace import constant, graphs, ints, is_op, made_by, new_node, only_user, permutation, take_over
from onward.spec.rnn import GATES


@dataclass(frozen=True)
class _Side:
    """What one direction adds to the result."""

    node: ir.Node
    output: int
    """Which of the outputs: the whole series, or the state at the end."""
    turned: bool
    """Whether the series was turned round in the end."""


def merge_directions(model: ir.Model) -> int:
    """Rewrites in place; returns how many pairs there were."""
    return sum(_merged(node) for graph in graphs(model) for node in list(graph) if is_op(node, "Concat"))


def _merged(concat: ir.Node) -> bool:
    if len(concat.inputs) != 2:
        return False
    one, other = (_side(value) for value in concat.inputs)
    if one is None or other is None or one.output != other.output or not _alike(one.node, other.node):
        return False
    whole = one.output == 0
    rank = 3 if whole else 2
    if concat.attributes.get_int("axis", 0) not in (-1, rank - 1) or one.turned or other.turned != whole:
        return False
    if not _is_turned(one.node.inputs[0], other.node.inputs[0]):
        return False
    units = one.node.attributes.get_int("hidden_size", 0)
    name = concat.outputs[0].name
    weights = []
    for index in (1, 2, 3):
        pair = [side.node.inputs[index] if index < len(side.node.inputs) else None for side in (one, other)]
        if (None in pair and pair != [None, None]) or not units:
            return False
        weights.append(pair)
    joined = [
        None if pair[0] is None else _put(concat, f"{name}/{what}", "Concat", pair, {"axis": 0})[0]
        for pair, what in zip(weights, ("w", "r", "b"), strict=True)
    ]
    taken = [one.node.inputs[0], *joined]
    both = _put(concat, f"{name}/both", one.node.op_type, taken, _both(one.node), len(one.node.outputs))
    perm, sizes = ([2, 0, 1, 3], [0, 0, 2 * units]) if whole else ([1, 0, 2], [0, 2 * units])
    (turned,) = _put(concat, f"{name}/turned", "Transpose", [both[one.output]], {"perm": perm})
    (flat,) = _put(concat, f"{name}/flat", "Reshape", [turned, ints(sizes, f"{name}/sizes", concat)], {})
    take_over(concat.outputs[0], flat)
    return True


def _side(value: ir.Value | None) -> _Side | None:
    """The direction that a value comes from, if nothing else of it is read."""
    if value is None:
        return None
    squeeze = made_by(value, "Squeeze")
    if squeeze is not None:
        return _recurrent(squeeze, 1, [0], False)
    before = _forwards(value, 1)
    transpose = made_by(before, "Transpose")
    if before is None or transpose is None or permutation(transpose) != [1, 0, 2] or only_user(before) is None:
        return None
    if only_user(value) is None:
        return None
    inner = made_by(transpose.inputs[0], "Squeeze")
    return None if inner is None else _recurrent(inner, 0, [1], before is not value)


def _recurrent(squeeze: ir.Node, output: int, axes: list[int], turned: bool) -> _Side | None:
    node = made_by(squeeze.inputs[0], *GATES)
    given = constant(squeeze.inputs[1]) if len(squeeze.inputs) > 1 else None
    if node is None or given is None or given.numpy().tolist() != axes or only_user(squeeze.outputs[0]) is None:
        return None
    read = [i for i, value in enumerate(node.outputs) if value.uses() or value.is_graph_output()]
    alone = read == [output] and only_user(node.outputs[output]) is squeeze
    return _Side(node, output, turned) if alone else None


def _alike(one: ir.Node, other: ir.Node) -> bool:
    """Whether the nodes differ in their weights only, and take no lengths and no states."""
    said = [{key: a.value for key, a in node.attributes.items()} for node in (one, other)]
    plain = all(value is None for node in (one, other) for value in node.inputs[4:])
    forward = all(node.attributes.get_string("direction", "forward") == "forward" for node in (one, other))
    return one is not other and one.op_type == other.op_type and said[0] == said[1] and plain and forward


def _both(node: ir.Node) -> dict[str, object]:
    """The attributes of a node for both directions."""
    kept = {key: a.value for key, a in node.attributes.items()}
    doubled = {key: [*kept[key], *kept[key]] for key in kept if key.startswith("activation")}
    return kept | doubled | {"direction": "bidirectional"}


def _put(
    before: ir.Node,
    name: str,
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: dict[str, object],
    outputs: int = 1,
) -> Sequence[ir.Value]:
    """The outputs of a new node, all under names of their own."""
    node = new_node(op_type, inputs, attributes, before, before, outputs=outputs)
    node.name = name
    for i, output in enumerate(node.outputs):
        output.name = f"{name}{i or ''}"
    return node.outputs


def _forwards(value: ir.Value | None, axis: int) -> ir.Value | None:
    """What a value is turned round along an axis, or the value itself."""
    node = made_by(value, "Slice")
    if node is None or len(node.inputs) != 5:
        return value
    known = [constant(bound) for bound in node.inputs[1:]]
    starts, ends, axes, steps = (None if bound is None else bound.numpy().tolist() for bound in known)
    if starts != [-1] or steps != [-1] or axes != [axis] or ends is None or ends[0] > -(2**31):
        return value
    return node.inputs[0]


def _is_turned(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether a value is another turned round along its first axis, before or after both were transposed."""
    turned = _forwards(other, 0)
    a, b = made_by(one, "Transpose"), made_by(turned, "Transpose")
    if turned is not other and one is turned:
        return True
    if a is None or b is None or permutation(a) != permutation(b):
        return False
    if turned is not other:
        return a.inputs[0] is b.inputs[0]
    before = _forwards(b.inputs[0], 1)
    return permutation(b) == [1, 0, 2] and before is not b.inputs[0] and before is a.inputs[0]
