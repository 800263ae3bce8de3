"""Runs a program as JAX does without `jit`: each primitive is compiled and run by itself.

`jax.disable_jit` would do the same, but makes Python loops of scans, with Python's numbers as carries: an int is int64
then, and a scan of nothing has no type. Here functions that JAX compiles inside are opened, and scans, loops and
branches are one primitive each, as they are for whoever calls them without `jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

OPENED = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint")
"""Primitives that only call a function."""


def op_by_op(function: Callable[..., Any], given: Any) -> list[Any]:
    """What the function gives, as arrays of numpy."""
    closed = jax.make_jaxpr(function)(*given)
    leaves = [jax.numpy.asarray(leaf) for leaf in jax.tree.leaves(given)]
    return [np.asarray(result) for result in evaluated(closed.jaxpr, closed.consts, leaves)]


def evaluated(jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        results = applied(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def applied(equation: Any, given: list[Any]) -> list[Any]:
    primitive = equation.primitive
    if primitive.name in OPENED:
        inner = equation.params["jaxpr"] if "jaxpr" in equation.params else equation.params["call_jaxpr"]
        return evaluated(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given)
    results = primitive.bind(*given, **primitive.get_bind_params(equation.params))
    return list(results) if primitive.multiple_results else [results]
