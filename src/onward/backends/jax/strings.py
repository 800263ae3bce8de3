"""Strings of a whole model: `jax.jit` takes them as static arguments, and gives none."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onward.backends.emit.expr import Name, Ref, Var
from onward.backends.emit.statements import Assign
from onward.backends.emit.tree import Function
from onward.backends.jax.functions import TEXT
from onward.backends.jax.target import np_, ops
from onward.graph.origin import origin


def hand_over_strings(function: Function, values: Mapping[Var, ir.Value], outputs: list[ir.Value]) -> None:
    """Let arguments be tuples of strings, which `jax.jit` takes, and say which node gives strings, which it refuses."""
    body = function.block.body
    for place, var in enumerate(function.arguments):
        if var in values and _is_text(values[var]):
            given = function.arguments[place] = Var(var.hint, TEXT)
            body.insert(0, Assign([var], np_.asarray(Ref(given), dtype=Name("object"))))
    for place, value in enumerate(outputs):
        if _is_text(value):
            producer, text = value.producer(), Var(value.name or "text", "object")
            node = f"the output {value.name!r}" if producer is None else str(origin(producer))
            body.append(Assign([text], ops.strings_given(function.results[place], node)))
            function.results[place] = Ref(text)


def _is_text(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType) and value.dtype == ir.DataType.STRING
