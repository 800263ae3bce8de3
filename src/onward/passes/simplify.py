"""Say plainly what exporters say in roundabout ways: each rewrite is the same computation in fewer words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from onward.graph.origin import copy_origin
from onward.graph.walk import all_nodes
from onward.passes.neutral import unchanged

MOST_PARTS = 4096
"""Parts that a value is split into at most: an input of a few bytes may declare any length."""

Rewrite = Callable[[ir.Node], list[ir.Node] | None]


def simplify(model: ir.Model, rewrites: Mapping[str, Rewrite] | None = None) -> int:
    """Apply the rewrites, all unless given, to every node of every graph, in place; returns how many were rewritten."""
    count = 0
    known = REWRITES if rewrites is None else rewrites
    for node in list(all_nodes(model.graph)):
        rewrite = known.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if rewrite is None or node.graph is None:
            continue
        created = rewrite(node)
        if created is not None:
            count += 1
    return count


def _replace(node: ir.Node, created: list[ir.Node], replaced: list[tuple[ir.Value, ir.Value]]) -> list[ir.Node]:
    """Put `created` in the place of `node` and let the readers of the old values read the new ones."""
    graph = node.graph
    assert graph is not None
    for new in created:
        copy_origin(new, node)
        for key, text in node.metadata_props.items():
            new.metadata_props.setdefault(key, text)
    graph.insert_before(node, created)
    for old, new_value in replaced:
        is_output = old.is_graph_output()
        old.replace_all_uses_with(new_value, replace_graph_outputs=True)
        if is_output:
            old.name, new_value.name = None, old.name
    graph.remove(node, safe=True)
    return created


def cast_like(node: ir.Node) -> list[ir.Node] | None:
    """`CastLike(x, y)` is a `Cast` where the type of y is known."""
    like = node.inputs[1]
    if like is None or like.dtype is None:
        return None
    kept = [a for name, a in node.attributes.items() if name in ("saturate", "round_mode")]
    cast = ir.Node("", "Cast", [node.inputs[0]], [ir.AttrInt64("to", int(like.dtype)), *kept], version=node.version)
    _take_output(cast.outputs[0], node.outputs[0])
    cast.outputs[0].type = ir.TensorType(like.dtype)
    return _replace(node, [cast], [(node.outputs[0], cast.outputs[0])])


def split_to_sequence(node: ir.Node) -> list[ir.Node] | None:
    """`SplitToSequence` whose items are all taken out by constant indices is a `Split`."""
    x, sizes = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    sequence = node.outputs[0]
    readers = [use.node for use in sequence.uses()]
    if x is None or x.shape is None or sizes is None or sequence.is_graph_output():
        return None
    if any(r.op_type != "SequenceAt" or r.domain not in ("", "ai.onnx") or r.graph is not node.graph for r in readers):
        return None
    axis = node.attributes.get_int("axis", 0)
    length, given = x.shape[axis], ir.convenience.get_const_tensor(sizes)
    if not isinstance(length, int) or given is None:
        return None
    parts = _part_sizes(given.numpy(), length)
    indices = [ir.convenience.get_const_tensor(r.inputs[1]) if r.inputs[1] is not None else None for r in readers]
    if parts is None or any(i is None for i in indices):
        return None
    chosen = [int(i.numpy().reshape(-1)[0]) for i in indices if i is not None]
    if any(not -len(parts) <= i < len(parts) for i in chosen):
        return None
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    name = f"folded_{sequence.name}_sizes"
    tensor = ir.tensor(np.array(parts, dtype=np.int64), name=name)
    split_sizes = ir.Value(
        name=name, shape=ir.Shape([len(parts)]), type=ir.TensorType(tensor.dtype), const_value=tensor
    )
    graph.register_initializer(split_sizes)
    split = ir.Node(
        "", "Split", [x, split_sizes], [ir.AttrInt64("axis", axis)], num_outputs=len(parts), version=node.version
    )
    for i, output in enumerate(split.outputs):
        output.name = f"{sequence.name}_part_{i}"
        output.type = x.type
        output.shape = ir.Shape([parts[i] if d == axis % len(x.shape) else n for d, n in enumerate(x.shape)])
    graph.insert_before(node, split)
    copy_origin(split, node)
    split.metadata_props.update({k: v for k, v in node.metadata_props.items() if k not in split.metadata_props})
    for reader, index in zip(readers, chosen, strict=True):
        reader.outputs[0].replace_all_uses_with(split.outputs[index], replace_graph_outputs=True)
        graph.remove(reader, safe=True)
    graph.remove(node, safe=True)
    return [split]


def _part_sizes(given: np.ndarray, length: int) -> list[int] | None:
    """The sizes of the parts: a list, or equal parts of which the last may be smaller."""
    if given.ndim == 1:
        return [int(n) for n in given] if int(given.sum()) == length else None
    size = int(given)
    if size <= 0 or length <= 0 or length / size > MOST_PARTS:
        return None
    return [min(size, length - start) for start in range(0, length, size)]


def _take_output(new: ir.Value, old: ir.Value) -> None:
    new.name, new.shape, new.type = f"{old.name}_plain", old.shape, old.type


def neutral(node: ir.Node) -> list[ir.Node] | None:
    """`x · 1` and `x + 0` are x."""
    operand = unchanged(node)
    if operand is None:
        return None
    if not node.outputs[0].is_graph_output():
        return _replace(node, [], [(node.outputs[0], operand)])
    same = ir.Node("", "Identity", [operand], version=node.version)
    _take_output(same.outputs[0], node.outputs[0])
    return _replace(node, [same], [(node.outputs[0], same.outputs[0])])


def same_type(node: ir.Node) -> list[ir.Node] | None:
    """A cast to the type that something has already is nothing."""
    x, result = node.inputs[0], node.outputs[0]
    if x is None or x.dtype is None or x.dtype != node.attributes.get_int("to", 0) or result.is_graph_output():
        return None
    return None if x.is_graph_output() or x.is_initializer() else _replace(node, [], [(result, x)])


def identity(node: ir.Node) -> list[ir.Node] | None:
    """What is handed on as it is, as exporters write a dropout, is itself."""
    x, result = node.inputs[0], node.outputs[0]
    if x is None or result.is_graph_output() or x.is_graph_output() or x.is_initializer():
        return None
    return _replace(node, [], [(result, x)])


REWRITES: dict[str, Rewrite] = {
    "Cast": same_type,
    "Identity": identity,
    "CastLike": cast_like,
    "SplitToSequence": split_to_sequence,
    **dict.fromkeys(("Mul", "Div", "Add", "Sub"), neutral),
}
PLAIN = {op: rewrite for op, rewrite in REWRITES.items() if rewrite in (same_type, identity, neutral)}
"""Those that write no node of another version than the model's."""
