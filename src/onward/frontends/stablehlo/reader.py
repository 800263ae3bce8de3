"""Walks the functions of a module and lets rules say each op in JAX."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from onward.errors import InvalidModelError, UnsupportedError
from onward.frontends.stablehlo.registry import RULES
from onward.frontends.stablehlo.values import SMALL, Sizes, Value, as_array, constant, shape_of
from onward.gate.bounds import NODES

CALLS = ("func.call", "call")
RETURNS = ("stablehlo.return", "func.return", "return")


class Reader:
    """The functions of a parsed module, to be called while JAX traces."""

    def __init__(self, module: Any) -> None:
        functions = [op for op in module.body.operations if op.operation.name == "func.func"]
        self.functions = {op.name.value: op for op in functions}
        self.places: list[str] = []
        """Where each operation that was said comes from; name stacks have its number."""
        self._inside: list[str] = []

    def call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """What a function of the module gives."""
        if name in self._inside:
            raise InvalidModelError(f"the function {name} calls itself, which StableHLO does not allow")
        function = self.functions.get(name)
        if function is None:
            raise InvalidModelError(f"the module calls {name}, which it does not have")
        if not len(function.regions[0].blocks):
            raise InvalidModelError(f"the function {name} has no body")
        self._inside.append(name)
        try:
            return self.block(function.regions[0].blocks[0], arguments, {})
        finally:
            self._inside.pop()

    def block(self, block: Any, arguments: Sequence[Value], outer: dict[Any, Value]) -> list[Value]:
        """What the block of a function or region gives; `outer` are the values around it."""
        values = dict(outer)
        values.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            operation = op.operation
            given = [values[operand] for operand in operation.operands]
            if operation.name in RETURNS:
                return given
            for result, value in zip(operation.results, self._results(operation, given, values), strict=True):
                values[result] = value
        raise InvalidModelError("a block of the module does not end with a return")

    def region(self, op: Any, index: int, values: dict[Any, Value]) -> Callable[..., list[Any]]:
        """A region of an op as a function of arrays."""
        block = op.regions[index].blocks[0]
        return lambda *arguments: [as_array(value) for value in self.block(block, arguments, values)]

    def _results(self, op: Any, given: list[Value], values: dict[Any, Value]) -> list[Value]:
        if len(self.places) >= NODES.value:
            raise InvalidModelError(
                f"the module has more than {NODES.value:,} operations, with its calls; {NODES.hint}"
            )
        self.places.append(_place(op))
        if op.name in CALLS:
            return self.call(op.attributes["callee"].value, given)
        with jax.named_scope(str(len(self.places) - 1)):
            try:
                return self._by_rule(op, given, values)
            except UnsupportedError as error:
                if hasattr(error, "place"):
                    raise
                place = _place(op)
                located = UnsupportedError(f"{op.name}{f' at {place}' if place else ''}: {error}")
                located.place = place  # type: ignore[attr-defined]
                raise located from error

    def _by_rule(self, op: Any, given: list[Value], values: dict[Any, Value]) -> list[Value]:
        if op.name == "stablehlo.constant":
            return [_counted_out(constant(op))]
        rule = RULES.get(op.name)
        if rule is None:
            raise UnsupportedError(f"it has no form in ONNX here; {INSTEAD}")
        self.values = values
        if not len(op.regions) and given and all(map(_is_small, given)) and all(map(_is_little, op.results)):
            with jax.ensure_compile_time_eval():
                return [np.asarray(value) for value in _listed(rule(self, op, *given))]
        return _listed(rule(self, op, *given))


def _place(op: Any) -> str:
    """What JAX called an operation, or else its line in the text of the module."""
    found = re.search(r'loc\(.*?"([^"]*)"(?::(\d+))?', str(op.location))
    if found is None:
        return ""
    return f"line {found[2]}" if found[1] == "-" else found[1] if found[2] is None else ""


def _counted_out(array: np.ndarray[Any, Any]) -> Value:
    """A constant; what is one number many times over is traced as such, whatever memory it would take."""
    is_one = array.size > SMALL and not any(array.strides)
    return lax.full(array.shape, array[(0,) * array.ndim], array.dtype) if is_one else array


def _is_small(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.size <= SMALL


def _is_little(result: Any) -> bool:
    """Whether a result is of a known, small size."""
    shape = shape_of(result.type)
    return None not in shape and math.prod(n or 0 for n in shape) <= SMALL


def _listed(found: Any) -> list[Value]:
    return list(found) if isinstance(found, list | tuple) else [found]


INSTEAD = "write what it computes with other ops"


def is_sizes(value: Value) -> bool:
    """Whether numbers may stand for sizes: symbolic ones, or few constant integers."""
    if isinstance(value, Sizes):
        return True
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size <= SMALL
