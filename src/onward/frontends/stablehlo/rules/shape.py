"""What moves elements, repeats them or counts, with sizes that are known or are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onward.frontends.stablehlo.reader import Reader, is_sizes
from onward.frontends.stablehlo.registry import rule
from onward.frontends.stablehlo.values import Sizes, Value, as_array, as_sizes, dtype_of, numbers_of, shape_of


def integers(op: Any, name: str) -> list[int]:
    """An attribute that is a list of integers; none where it is left out."""
    return [int(n) for n in op.attributes[name]] if name in op.attributes else []


def flag(op: Any, name: str) -> bool:
    """An attribute that is true or false; false where it is left out."""
    return name in op.attributes and bool(op.attributes[name].value)


def _sized(op: Any, given: Sequence[Value]) -> bool:
    return any(isinstance(x, Sizes) for x in given) and all(map(is_sizes, given))


def _moved(op: Any, numbers: np.ndarray[Any, Any]) -> Sizes:
    return Sizes(np.asarray(numbers, object), dtype_of(op.results[0].type))


@rule("stablehlo.reshape")
def reshape(reader: Reader, op: Any, x: Value) -> Value:
    shape = [n or 0 for n in shape_of(op.results[0].type)]
    if isinstance(x, Sizes):
        return _moved(op, x.numbers.reshape(shape))
    return x.reshape(shape) if isinstance(x, np.ndarray) else lax.reshape(x, shape)


@rule("stablehlo.concatenate")
def concatenate(reader: Reader, op: Any, *given: Value) -> Value:
    axis = op.attributes["dimension"].value
    if _sized(op, given):
        return _moved(op, np.concatenate(list(map(numbers_of, given)), axis))
    return lax.concatenate([jnp.asarray(as_array(x)) for x in given], axis)


@rule("stablehlo.slice")
def slice_(reader: Reader, op: Any, x: Value) -> Value:
    starts, ends, steps = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    if isinstance(x, Sizes | np.ndarray) and is_sizes(x):
        places = tuple(map(slice, starts, ends, steps))
        return _moved(op, x.numbers[places]) if isinstance(x, Sizes) else x[places]
    return lax.slice(as_array(x), starts, ends, steps)


@rule("stablehlo.broadcast_in_dim")
def broadcast_in_dim(reader: Reader, op: Any, x: Value) -> Value:
    shape, places = [n or 0 for n in shape_of(op.results[0].type)], integers(op, "broadcast_dimensions")
    if isinstance(x, Sizes):
        ones = [1] * len(shape)
        for place, n in zip(places, x.numbers.shape, strict=True):
            ones[place] = n
        return _moved(op, np.broadcast_to(x.numbers.reshape(ones), shape))
    return lax.broadcast_in_dim(x, shape, places)


@rule("stablehlo.dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(reader: Reader, op: Any, x: Value, shape: Value) -> Value:
    return lax.broadcast_in_dim(as_array(x), as_sizes(shape), integers(op, "broadcast_dimensions"))


@rule("stablehlo.dynamic_reshape")
def dynamic_reshape(reader: Reader, op: Any, x: Value, shape: Value) -> Value:
    return lax.reshape(as_array(x), as_sizes(shape))


@rule("stablehlo.transpose")
def transpose(reader: Reader, op: Any, x: Value) -> Value:
    return lax.transpose(as_array(x), integers(op, "permutation"))


@rule("stablehlo.reverse")
def reverse(reader: Reader, op: Any, x: Value) -> Value:
    return lax.rev(as_array(x), integers(op, "dimensions"))


@rule("stablehlo.iota")
def iota(reader: Reader, op: Any) -> Value:
    kind = op.results[0].type
    return lax.broadcasted_iota(dtype_of(kind), shape_of(kind), op.attributes["iota_dimension"].value)


@rule("stablehlo.dynamic_iota")
def dynamic_iota(reader: Reader, op: Any, shape: Value) -> Value:
    dtype = dtype_of(op.results[0].type)
    return lax.broadcasted_iota(dtype, as_sizes(shape), op.attributes["iota_dimension"].value)


@rule("stablehlo.get_dimension_size")
def get_dimension_size(reader: Reader, op: Any, x: Value) -> Value:
    size = np.shape(as_array(x))[op.attributes["dimension"].value]
    numbers = np.empty((), object)
    numbers[()] = size
    return Sizes(numbers, dtype_of(op.results[0].type))


@rule("stablehlo.pad")
def pad(reader: Reader, op: Any, x: Value, filler: Value) -> Value:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return lax.pad(as_array(x), as_array(filler), list(zip(*(integers(op, name) for name in names), strict=True)))


@rule("stablehlo.dynamic_pad")
def dynamic_pad(reader: Reader, op: Any, x: Value, filler: Value, *borders: Value) -> Value:
    return lax.pad(as_array(x), as_array(filler), list(zip(*map(as_sizes, borders), strict=True)))


@rule("stablehlo.dynamic_slice")
def dynamic_slice(reader: Reader, op: Any, x: Value, *starts: Value) -> Value:
    sizes = integers(op, "slice_sizes")
    return lax.dynamic_slice(as_array(x), list(map(as_array, starts)), sizes, allow_negative_indices=False)


@rule("stablehlo.real_dynamic_slice")
def real_dynamic_slice(reader: Reader, op: Any, x: Value, starts: Value, ends: Value, steps: Value) -> Value:
    if isinstance(starts, jax.core.Tracer) and (sizes := _window(reader, op, steps)) is not None:
        data = as_array(x)
        places = [lax.squeeze(lax.slice(starts, [i], [i + 1]), [0]) for i in range(data.ndim)]
        return lax.dynamic_slice(data, places, sizes, allow_negative_indices=False)
    return lax.slice(as_array(x), as_sizes(starts), as_sizes(ends), as_sizes(steps))


def _window(reader: Reader, op: Any, steps: Value) -> list[Any] | None:
    """The sizes of a slice whose ends are its starts and these; None where that is not how the ends are made."""
    added = op.operands[2].owner
    if getattr(added, "name", "") != "stablehlo.add" or added.operands[0] != op.operands[1]:
        return None
    sizes = reader.values[added.operands[1]]
    return as_sizes(sizes) if is_sizes(sizes) and set(as_sizes(steps)) == {1} else None


@rule("stablehlo.dynamic_update_slice")
def dynamic_update_slice(reader: Reader, op: Any, x: Value, update: Value, *starts: Value) -> Value:
    places = list(map(as_array, starts))
    return lax.dynamic_update_slice(as_array(x), as_array(update), places, allow_negative_indices=False)


@rule("stablehlo.tuple")
def tuple_(reader: Reader, op: Any, *given: Value) -> list[Any]:
    return [tuple(given)]


@rule("stablehlo.get_tuple_element")
def get_tuple_element(reader: Reader, op: Any, pair: Any) -> Value:
    return pair[op.attributes["index"].value]
