"""Which weights of a model are trained."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Container, Iterable

import onnx_ir as ir

from onward.errors import OnwardError
from onward.training.autodiff import on_the_way, reads

Choice = Iterable[str] | Callable[[str], bool] | None
"""Patterns of names such as `head.*`, or a predicate; None: all that training usually changes."""

NO_PARAMETERS = {
    "BatchNormalization": (3, 4),
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),
    "Clip": (1, 2),
    "RNN": (5,),
    "GRU": (5,),
    "LSTM": (5, 6),
}
"""Inputs that are no parameters though they are floats: running statistics, scales, bounds, initial states."""
SIZES = {"Resize", "Range", "Expand", "Tile", "Pad", "OneHot", "Dropout", "ConstantOfShape"}
"""Ops whose float inputs besides the first say how, not what."""


def choose(
    graph: ir.Graph, loss: ir.Value, choice: Choice = None, among: Container[str] | None = None
) -> list[ir.Value]:
    """The chosen float initializers that the loss depends on, in the order of the graph; only those `among` given ones.

    Unless they are asked for by name, running statistics, quantisation scales, bounds, initial states and single
    numbers, which are constants of a formula, are left out.
    """
    floats = [
        value
        for name, value in graph.initializers.items()
        if (among is None or name in among) and value.dtype is not None and value.dtype.is_floating_point()
    ]
    reached = reached_from(graph, loss, floats)
    if choice is None:
        usual = [value for value in floats if value in reached and is_parameter(value)]
        if not usual:
            raise OnwardError(f"the loss depends on no weight that is usually trained; it depends on {_some(reached)}")
        return usual
    if callable(choice):
        chosen = [value for value in floats if choice(value.name or "")]
    else:
        patterns = [choice] if isinstance(choice, str) else list(choice)
        chosen = [value for value in floats if any(fnmatch.fnmatchcase(value.name or "", p) for p in patterns)]
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(value.name or "", pattern) for value in floats):
                raise OnwardError(f"no float weight is called {pattern!r}; there are {_some(floats)}")
    found = [value for value in chosen if value in reached]
    if not found:
        raise OnwardError(f"the loss depends on none of the weights chosen; it depends on {_some(reached)}")
    return found


def has_float_weights(graph: ir.Graph) -> bool:
    """Whether weights are initializers, as usual; constants in nodes are then those of formulas."""
    return any(value.dtype is not None and value.dtype.is_floating_point() for value in graph.initializers.values())


def reached_from(graph: ir.Graph, loss: ir.Value, values: list[ir.Value]) -> dict[ir.Value, None]:
    """Those of the values that the loss depends on by a way that has a derivative."""
    way = on_the_way(graph, [loss], values)
    read = {value for node in way for value in reads(node)}
    return {value: None for value in values if value in read}


def is_parameter(value: ir.Value) -> bool:
    """Whether a float initializer is what training usually changes."""
    single = value.shape is not None and all(d == 1 for d in value.shape)
    for node, index in value.uses():
        if node.domain in ("", "ai.onnx"):
            if index in NO_PARAMETERS.get(node.op_type, ()) or (node.op_type in SIZES and index > 0):
                return False
            if node.op_type == "Gather" and index == 0 and value.shape is not None and value.shape.rank() < 2:
                return False
        if single and not (value.name or "").endswith(("weight", "bias", "gamma", "beta", "alpha")):
            return False
    return True


def _some(values: Iterable[ir.Value]) -> str:
    names = [value.name or "" for value in values]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "none"
