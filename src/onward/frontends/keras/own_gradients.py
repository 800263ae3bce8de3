"""Functions whose gradient is written by hand: a graph says what they compute, and not what their gradient is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onward.errors import UnsupportedError

KEY = "_gradient_op_type"
"""Of an op of TensorFlow: the name of the function that is its gradient."""
TRUSTED = ("tensorflow.", "keras.")
"""Whose own gradients are the derivatives of what they compute, written so that they are fast or exact."""
DEEP = 4
"""How far a function of the user's may be wrapped by TensorFlow's and Keras's."""


def refuse_own_gradients(graph: Any) -> None:
    """Refuse a graph in which a function of the user has a gradient of its own."""
    definition = graph.as_graph_def()
    functions = [list(function.node_def) for function in definition.library.function]
    for node in [*definition.node, *(node for nodes in functions for node in nodes)]:
        own = _of_user(node.attr[KEY].s.decode()) if KEY in node.attr else None
        if own is not None:
            raise UnsupportedError(
                f"{own} has a gradient of its own (custom_gradient), which cannot be read off {node.name!r}: give the "
                "whole step, gradients included, as a function of TensorFlow (onward.training.from_tensorflow)"
            )


def _of_user(name: str) -> str | None:
    """What the function is called that says such a gradient, if it is not TensorFlow's or Keras's."""
    from tensorflow.python.framework import ops

    for function in _wrapped(ops.gradient_registry.lookup(name), DEEP):
        if not f"{function.__module__}.".startswith(TRUSTED):
            return str(function.__qualname__).partition(".<locals>")[0]
    return None


def _wrapped(function: Any, deep: int) -> Iterator[Any]:
    """A function and those that it closes over."""
    if not callable(function) or not hasattr(function, "__qualname__") or not deep:
        return
    yield function
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield from _wrapped(cell.cell_contents, deep - 1)
        except ValueError:  # a cell that is empty
            continue
