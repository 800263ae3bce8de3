"""Functions of single numbers that primitives carry, applied to whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.jax.values import Value, parts
from onward.frontends.jax.writer import Writer
from onward.graph.build import Tensor


def mapped(op: Writer, jaxpr: Any, consts: Sequence[Any] = ()) -> Callable[..., list[Value]]:
    """What a jaxpr makes of numbers, for tensors of one shape: JAX itself maps it over their axes."""
    import jax
    from jax.extend import core

    closed = jaxpr if hasattr(jaxpr, "consts") else core.ClosedJaxpr(jaxpr, list(consts))

    def function(*values: Value) -> list[Value]:
        sizes = [part.sizes for value in values for part in parts(value)]
        if any(size is None for size in sizes):
            raise UnsupportedError("a function of numbers of its own needs sizes that are known; give numbers for them")
        shape = np.broadcast_shapes(*(tuple(size or ()) for size in sizes))
        applied = core.jaxpr_as_fun(closed)
        for _ in shape:
            applied = jax.vmap(applied)
        given = [jax.ShapeDtypeStruct(shape, variable.aval.dtype) for variable in closed.jaxpr.invars]
        made = jax.make_jaxpr(applied)(*given)
        results = op.translator.run(made, values)
        return [op.translator.full(value, atom.aval) for value, atom in zip(results, made.jaxpr.outvars, strict=True)]

    return function


def elementwise(op: Writer, jaxpr: Any, consts: Sequence[Any] = ()) -> Callable[..., Tensor]:
    """As `mapped`, for a function that gives one real number."""
    function = mapped(op, jaxpr, consts)

    def single(*values: Tensor) -> Tensor:
        (result,) = function(*values)
        if not isinstance(result, Tensor):
            raise UnsupportedError("a function of other than real numbers is not supported here")
        return result

    return single
