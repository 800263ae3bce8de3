"""Rules of the frontend: a primitive of JAX as ONNX nodes.

A rule is a function that the name of a primitive is filed under:

    @rule("reduce_sum")
    def reduce_sum(op: Writer, x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
        return op.reduced("ReduceSum", x, axes, keepdims=False)

It is called with what the equation takes, in its order, and with those of its parameters that the rule names as
keywords; it gives one value, or a list of as many as the equation has results.

- `op` writes nodes (`op.Exp(x)`, `x * y`). `op.eqn` is the equation, `op.outs` what JAX says of its results (`shape`,
  `dtype`), `op.ins` of its inputs; `op.dtype` is the ONNX dtype of the first result.
- Literals and closed-over arrays are tensors too, constant ones: `op.known(x)` is the array of a constant, else None.
  What follows from constants alone is computed before any rule is asked (`fold.py`), unless it would be large.
- Sizes in parameters (`shape`, `start_indices`) and in avals are ints or symbolic dimensions. `op.sizes(shape)` is the
  shape as a vector of int64, `op.size(dim)` a scalar, `op.reshape(x, shape)` a Reshape, `op.expand(x, shape)` an
  Expand; all are constant where the sizes are known. `op.dims(shape)` gives ints and names, as tensors have them.
  Tensors have all dimensions: `x.sizes` if all are numbers, `x.dims` with the names of symbolic ones.
- A rule with `broadcasts=True` (elementwise ones) is given what a broadcast was made of: a tensor that is of fewer
  axes, or of size 1, where the aval is larger. All other rules are given tensors of the shape of the aval.
- Complex numbers are a `Complex` of two tensors, keys of random numbers a `Keys` of two: `values.py`. Primitives that
  only move elements (`BY_PART`) are applied to each part, and their rules know nothing of it. What a primitive does to
  complex numbers otherwise is a rule filed with `@complex_rule("mul")`, which is asked where an input is complex. A
  rule with `whole=True` is given values of all kinds as they are.
- `op.translator.run(closed_jaxpr, inputs)` is what a jaxpr makes of values: for control flow, and for bodies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from onward.frontends.jax.values import Value
from onward.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Value | Sequence[Value]]


@dataclass(frozen=True)
class Rule:
    function: Function
    parameters: frozenset[str]
    """Those of the equation that it takes as keywords."""
    broadcasts: bool
    whole: bool


RULES: Registry[Rule] = Registry("JAX primitive")
COMPLEX: Registry[Rule] = Registry("JAX primitive of complex numbers")
BY_PART = {
    "broadcast_in_dim", "concatenate", "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "expand_dims",
    "gather", "pad", "reshape", "rev", "scatter", "select_n", "slice", "split", "squeeze", "stack", "stop_gradient",
    "tile", "transpose", "add", "add_any", "sub", "neg", "reduce_sum", "cumsum", "scatter-add", "scatter_add",
    "reduce_window_sum",
}  # fmt: skip
"""Primitives that move elements and do not look at them, or add them."""


def _filing(rules: Registry[Rule], *names: str, broadcasts: bool, whole: bool) -> Callable[[F], F]:
    def file(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        named = frozenset(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        rules.register(*names)(Rule(function, named, broadcasts, whole))
        return function

    return file


def rule(*names: str, broadcasts: bool = False, whole: bool = False) -> Callable[[F], F]:
    """File a function as the rule for primitives."""
    return _filing(RULES, *names, broadcasts=broadcasts, whole=whole)


def complex_rule(*names: str, broadcasts: bool = False) -> Callable[[F], F]:
    """File what primitives do where one of their inputs is complex; the others may be real."""
    return _filing(COMPLEX, *names, broadcasts=broadcasts, whole=True)
