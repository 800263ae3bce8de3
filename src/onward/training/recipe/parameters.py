"""Which weights of a model are trained."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Container, Iterable

import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.replace import is_op
from onward.graph.trained import is_trained
from onward.graph.walk import all_nodes
from onward.training.autodiff.reverse import on_the_way, reads

Choice = Iterable[str] | Callable[[str], bool] | None
"""Patterns of names such as `head.*`, or a predicate; None: all that training usually changes."""


LEARNED = frozenset(
    {f"TreeEnsemble{kind}" for kind in ("", "Classifier", "Regressor")} | {"SVMClassifier", "SVMRegressor"}
)
"""Ops that hold what was learned as attributes, which no gradient reaches."""


class NothingToTrain(OnwardError):
    """No float weight is, or could be, trained; there may be integers that stand for some."""


def choose(
    graph: ir.Graph, loss: ir.Value, choice: Choice = None, among: Container[str] | None = None
) -> list[ir.Value]:
    """The chosen float initializers that the loss depends on, in the order of the graph; only those `among` given ones.

    Unless they are asked for by name, they are those that `canon.trained` takes for trained: no running statistics,
    quantisation scales, bounds, initial states or numbers of a formula.
    """
    floats = [
        value
        for name, value in graph.initializers.items()
        if (among is None or name in among) and value.dtype is not None and value.dtype.is_floating_point()
    ]
    reached = reached_from(graph, loss, floats)
    if choice is None:
        usual = [value for value in floats if value in reached and is_trained(value) and not _is_setting(value)]
        if not usual:
            raise NothingToTrain(_nothing(graph, reached))
        return usual
    if callable(choice):
        chosen = [value for value in floats if choice(value.name or "")]
    else:
        patterns = [choice] if isinstance(choice, str) else list(choice)
        chosen = [value for value in floats if any(fnmatch.fnmatchcase(value.name or "", p) for p in patterns)]
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(value.name or "", pattern) for value in floats):
                raise NothingToTrain(f"no float weight is called {pattern!r}; there are {_some(floats)}")
    found = [value for value in chosen if value in reached]
    if not found:
        raise OnwardError(f"the loss depends on none of the weights chosen; it depends on {_some(reached)}")
    return found


def _is_setting(value: ir.Value) -> bool:
    """Whether a value is the scale of integers alone, which no gradient reaches."""
    return all(is_op(node, "QuantizeLinear", "DequantizeLinear") and index > 0 for node, index in value.uses())


def _nothing(graph: ir.Graph, reached: Iterable[ir.Value]) -> str:
    """Why nothing is trained unless it is chosen by name."""
    if names := _some(reached, ""):
        return (
            f"the loss depends on no weight that is usually trained; it depends on {names}: choose by name, by "
            '--trainable "PATTERN" or trainable=[…]'
        )
    words = "the loss depends on no float weight, so there is nothing to train"
    if found := ", ".join(sorted({node.op_type for node in all_nodes(graph) if node.op_type in LEARNED})):
        words += f": what {found} has learned has no gradient. Train it anew with the library that made it"
    return words


def reached_from(graph: ir.Graph, loss: ir.Value, values: list[ir.Value]) -> dict[ir.Value, None]:
    """Those of the values that the loss depends on by a way that has a derivative."""
    way = on_the_way(graph, [loss], values)
    read = {value for node in way for value in reads(node)}
    return {value: None for value in values if value in read}


def _some(values: Iterable[ir.Value], none: str = "none") -> str:
    names = [value.name or "" for value in values]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else none
