"""Computes at once what is computed from constants alone: by numpy, or by JAX itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onward.frontends.jax.dimensions import is_known
from onward.frontends.jax.values import Keys, Value
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor

if TYPE_CHECKING:
    from onward.frontends.jax.writer import Writer

Array = npt.NDArray[Any]
LIMIT = 4096
"""Elements that a result may have, unless it is made of as many: files should not grow by folding."""
NEVER = {
    "broadcast_in_dim", "dim_as_value", "pure_callback", "io_callback", "debug_callback", "debug_print", "random_seed",
    "random_wrap", "random_unwrap", "rng_bit_generator", "rng_uniform", "iota",
}  # fmt: skip
"""Primitives that are left to their rules: they write constants themselves, put work off, or are refused."""


STEPS = 100_000
"""Equations that are computed at once, in all rounds of loops; a loop that ends by a condition is the model's."""
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "add": np.add, "add_any": np.add, "and": np.bitwise_and, "ceil": np.ceil, "cos": np.cos,
    "eq": np.equal, "exp": np.exp, "floor": np.floor, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal,
    "log": np.log, "lt": np.less, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "ne": np.not_equal,
    "neg": np.negative, "not": np.invert, "or": np.bitwise_or, "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt,
    "square": np.square, "sub": np.subtract, "tanh": np.tanh, "xor": np.bitwise_xor,
}  # fmt: skip
"""What numpy has for a primitive, and computes as JAX does, element by element."""


def _convert(x: Array, new_dtype: Any, **_: Any) -> Array | None:
    """Where both say the same: not for floats that no integer holds."""
    if x.dtype.kind not in "biu" and np.dtype(new_dtype).kind in "iu" and x.dtype.kind != "b":
        return None
    return x.astype(new_dtype)


def _select(which: Array, *cases: Array) -> Array | None:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool and len(cases) == 2 else None


def _power(x: Array, y: int, **_: Any) -> Array | None:
    return x**y if y >= 0 else None


BROADCASTING: dict[str, Callable[..., Array | None]] = {
    "convert_element_type": _convert,
    "select_n": _select,
    "integer_pow": _power,
    "stop_gradient": lambda x: x,
    "copy": lambda x: x,
    "div": lambda a, b: a / b if a.dtype.kind == "f" else None,
}
MOVING: dict[str, Callable[..., Array | None]] = {
    "reshape": lambda x, new_sizes, dimensions=None, **_: x.reshape(new_sizes) if dimensions is None else None,
    "squeeze": lambda x, dimensions: x.squeeze(tuple(dimensions)),
    "expand_dims": lambda x, dimensions: np.expand_dims(x, tuple(dimensions)),
    "transpose": lambda x, permutation: x.transpose(permutation),
    "concatenate": lambda *xs, dimension: np.concatenate(xs, dimension),
    "rev": lambda x, dimensions: np.flip(x, dimensions),
    "slice": lambda x, start_indices, limit_indices, strides: x[
        tuple(slice(*s) for s in zip(start_indices, limit_indices, strides or [1] * x.ndim, strict=True))
    ],
}
"""What is computed from arrays in the shape that JAX says they have."""


def folded(op: Writer, eqn: Any, inputs: Sequence[Value]) -> list[Value] | None:
    """The results as constants, or None where they are for the model to compute."""
    name = eqn.primitive.name
    if name in NEVER or not inputs or eqn.effects or not all(_is_known(op, value) for value in inputs):
        return None
    if any(not is_known(dim) for atom in (*eqn.invars, *eqn.outvars) for dim in getattr(atom.aval, "shape", ())):
        return None if name not in ELEMENTWISE and name not in BROADCASTING else _elementwise(op, eqn, inputs)
    done = _elementwise(op, eqn, inputs)
    if done is not None:
        return done
    given = [_known(op, value) for value in inputs]
    if any(array is None for array in given) or _steps(eqn) > STEPS:
        return None
    sizes = [math.prod(variable.aval.shape) for variable in eqn.outvars]
    read = [math.prod(atom.aval.shape) for atom in eqn.invars]
    if max([*sizes, *read], default=0) > max(LIMIT, *(array.size for array in given if array is not None)):
        return None
    full = [_full(array, atom.aval) for array, atom in zip(given, eqn.invars, strict=True)]
    if name in MOVING and not any(isinstance(value, Keys) for value in inputs):
        moved = MOVING[name](*full, **eqn.params)
        if moved is not None:
            return [op.array(np.ascontiguousarray(moved).reshape(moved.shape))]
    return [_value(op, result) for result in _by_jax(eqn, full)]


def _steps(eqn: Any) -> float:
    """How many equations are computed inside of one, in all rounds of its loops."""
    from jax.extend.core import jaxprs_in_params

    length = eqn.params["length"] if eqn.primitive.name == "scan" else 1
    if eqn.primitive.name == "while" or not is_known(length):
        return math.inf
    return float(length * sum(1 + _steps(one) for jaxpr in jaxprs_in_params(eqn.params) for one in jaxpr.eqns))


def _elementwise(op: Writer, eqn: Any, inputs: Sequence[Value]) -> list[Value] | None:
    """Broadcasts stay put off."""
    name = eqn.primitive.name
    if name not in ELEMENTWISE and name not in BROADCASTING:
        return None
    if not all(isinstance(value, Tensor) for value in inputs):
        return None
    given = [_known(op, value) for value in inputs]
    if any(array is None for array in given):
        return None
    dtype = eqn.outvars[0].aval.dtype
    with np.errstate(all="ignore"):
        if name in ELEMENTWISE:
            if any(array.dtype.kind not in "biuf" for array in given if array is not None):
                return None
            result = ELEMENTWISE[name](*given)
        else:
            result = BROADCASTING[name](*given, **eqn.params)
    if result is None or result.size > max(LIMIT, *(array.size for array in given if array is not None)):
        return None
    if np.dtype(dtype).kind == "c":
        return None
    return [op.array(np.asarray(result).astype(dtype))]


def _is_known(op: Writer, value: Value) -> bool:
    """Whether it can be a constant that is no weight."""
    return not isinstance(value, Tensor) or (value.value.const_value is not None and value.value not in op.weights)


def _known(op: Writer, value: Value) -> Any:
    """The array of a constant that is no weight, with keys and complex numbers as JAX and numpy have them."""
    match value:
        case Complex():
            real, imaginary = _known(op, value.real), _known(op, value.imaginary)
            return None if real is None or imaginary is None else real + 1j * imaginary
        case Keys():
            words = [_known(op, part) for part in (value.first, value.second)]
            if any(word is None for word in words):
                return None
            import jax

            return jax.random.wrap_key_data(jax.numpy.asarray(np.stack(words, axis=-1)))
    return None if value.value in op.weights else op.known(value)


def _full(array: Any, aval: Any) -> Any:
    """In the shape that JAX says it has."""
    if tuple(array.shape) == tuple(aval.shape):
        return array
    return np.broadcast_to(array, aval.shape)


def _by_jax(eqn: Any, arrays: Sequence[Any]) -> list[Any]:
    import jax.numpy as jnp

    given = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, parameters = bound if isinstance(bound, tuple) else ((), bound)  # older versions give functions apart
    results = eqn.primitive.bind(*functions, *given, **parameters)
    return list(results) if eqn.primitive.multiple_results else [results]


def _value(op: Writer, result: Any) -> Value:
    return op.translator.constant(result) if str(result.dtype).startswith("key<") else op.array(np.asarray(result))
