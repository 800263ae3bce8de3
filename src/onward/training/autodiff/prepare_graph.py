"""A model in the form that is differentiated: no functions, one opset that ONNX Runtime runs, types known."""

from __future__ import annotations

import onnx_ir as ir

from onward.canon.custom import add_bodies
from onward.canon.defaults import fill_defaults
from onward.canon.inline import inline
from onward.canon.lower import LOWERINGS, key_of, load_lowerings, lower
from onward.canon.lower.registry import DIALECT
from onward.canon.signature import check_signatures
from onward.canon.upgrade import upgrade
from onward.graph.build import Builder
from onward.graph.constants import plain_constants
from onward.graph.held_weights import lift_from_bodies
from onward.graph.infer import infer
from onward.graph.origin import origin
from onward.graph.trained import mark_weights
from onward.graph.walk import all_nodes, inner_graphs
from onward.model import Model
from onward.passes.fuse_activation import name_sigmoids
from onward.training.autodiff.limits import lost_by
from onward.training.autodiff.reverse import MissingGradient, Values, on_the_way
from onward.training.autodiff.sequences import unpack_sequences
from onward.training.autodiff.vjp import has_rule

OLDEST = 21
"""The opset of trainable models, unless their ops ask for a newer one."""


def differentiable(model: Model) -> ir.Model:
    """A copy of the graph; weights are shared, not copied."""
    graph = model.ir.clone()
    add_bodies(graph, has_rule)
    lift_from_bodies(graph)
    inline(graph)
    plain_constants(graph)
    mark_weights(graph)
    check_signatures(graph)
    infer(graph)
    upgrade(graph, max(DIALECT if _is_written_out(graph) else OLDEST, graph.opset_imports.get("", OLDEST)))
    fill_defaults(graph)
    infer(graph)
    return graph


def _is_written_out(model: ir.Model) -> bool:
    """Whether an op has no gradient rule, but a definition of ours, which is in the words of a newer opset."""
    load_lowerings()
    keys = {key_of(node) for node in all_nodes(model.graph)}
    return any(key in LOWERINGS and not has_rule(key) for key in keys)


def constant_weights(graph: ir.Graph) -> None:
    """Weights that are inputs as well, which a caller may give, as files of old have them, are no inputs any more."""
    for value in list(graph.inputs):
        if value.name in graph.initializers:
            graph.inputs.remove(value)


def lower_for_gradients(model: ir.Model, y: ir.Value, wrt: Values) -> tuple[ir.Value, list[ir.Value]]:
    """Replace ops between `wrt` and `y` that have no gradient rule by their definitions, as long as they have one.

    Gives `y` and `wrt` as they are afterwards: one that such an op made is another value of the same name.
    """
    holder = ir.Node("onward", "Held", [y, *wrt], num_outputs=0)
    model.graph.append(holder)
    unpack_sequences(model)
    name_sigmoids(model)
    for node in on_the_way(model.graph, [y], wrt):
        if why := lost_by(node):
            raise MissingGradient(f"{origin(node)}: no gradient rule applies: {why}")
    while missing := _missing(model.graph, *_held(holder)):
        if not lower(model, lambda key, missing=missing: key not in missing):  # type: ignore[misc]
            break
    _widen_masks(model)
    held = _held(holder)
    model.graph.remove(holder, safe=True)
    return held


def _widen_masks(model: ir.Model) -> None:
    """Masks of attention have a row for each query: ONNX Runtime's op takes no other, though the standard does."""
    op = Builder(model)
    for node in [node for node in model.graph if key_of(node) == "Attention" and len(node.inputs) > 3]:
        if node.inputs[0] is None or node.inputs[3] is None:
            continue
        q, mask = op.tensor(node.inputs[0]), op.tensor(node.inputs[3])
        if q.dims is None or mask.dims is None or len(mask.dims) < 2:
            continue
        axis = 2 if q.rank == 4 else 1
        if mask.dims[-2] is None or mask.dims[-2] != q.dims[axis]:
            wide = op.Expand(mask, op.Concat(op.Shape(q, start=axis, end=axis + 1), op.ints([1]), axis=0))
            node.replace_input_with(3, wide.value)
    model.graph.sort()


def _held(holder: ir.Node) -> tuple[ir.Value, list[ir.Value]]:
    y, *wrt = (value for value in holder.inputs if value is not None)
    return y, wrt


def _missing(graph: ir.Graph, y: ir.Value, wrt: Values) -> set[str]:
    """The ops between `wrt` and `y` that have no rule, and those in bodies there.

    And those whose results are of no known type, which a rule that reads them would have to know.
    """
    way = on_the_way(graph, [y], wrt)
    inside = [node for outer in way for body in inner_graphs(outer) for node in all_nodes(body)]
    written = [node for node in graph if key_of(node) in LOWERINGS]
    untyped = [node for node in written if any(output.name and output.type is None for output in node.outputs)]
    return {key for key in map(key_of, [*way, *inside, *untyped]) if not has_rule(key)}
