"""Encoders of classical models: tables from keys to values, and one-hot.

The helpers that they call are named alike in every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.origin import origin
from onward.hub.types import ForeignType

Array = np.ndarray[Any, Any]
Pick = Callable[[Expr, Expr], Expr]
"""How a backend takes strings out of an array by their numbers."""


def _table(e: Emitter, x: Expr, pick: Pick, keys: Array, values: Array, default: Any) -> Expr:
    """The value of each element of `x`; of equal keys the first one counts."""
    if len(keys) != len(values) or not len(keys):
        raise InvalidModelError(f"{origin(e.node)}: {len(keys)} keys for {len(values)} values")
    if _is_text(keys):
        first = list({key: i for i, key in reversed(list(enumerate(keys)))}.values())
        return ops.look_up_strings(x, e.constant(keys[first], "keys"), e.constant(values[first], "values"), default)
    ordered, places = np.unique(keys, return_index=True)
    known, found = e.constant(ordered, "keys"), values[places]
    if not _is_text(values):
        return ops.look_up(x, known, e.constant(found, "values"), default)
    index = ops.look_up(x, known, e.constant(np.arange(len(ordered)), "values"), len(ordered))
    return pick(e.constant(np.array([*found, default], object), "names"), index)


def _is_text(values: Array) -> bool:
    return values.dtype.kind in "OUS"


_KINDS: dict[str, tuple[Any, Any]] = {
    "floats": (np.float32, -0.0),
    "int64s": (np.int64, -1),
    "strings": (object, "_Unused"),
}


def label_encoder(e: Emitter, x: Expr, pick: Pick, **given: Any) -> Expr:
    sides = {}
    for side in ("keys", "values"):
        kind = next((k for k in (*_KINDS, "tensor") if given.get(f"{side}_{k}") is not None), None)
        if kind is None:
            raise InvalidModelError(f"{origin(e.node)}: it has no {side}")
        sides[side] = (kind, given[f"{side}_{kind}"])
    keys, values = (_array(*sides[side]) for side in ("keys", "values"))
    return _table(e, x, pick, keys, values, _default(given, sides["values"][0], values))


def _array(kind: str, given: Any) -> Array:
    return given.numpy().reshape(-1) if kind == "tensor" else np.array(list(given), _KINDS[kind][0])


def _default(given: dict[str, Any], kind: str, values: Array) -> Any:
    tensor = given.get("default_tensor")
    if tensor is not None:
        return tensor.numpy().reshape(-1)[0]
    if kind == "tensor":
        kind = "strings" if _is_text(values) else "floats" if values.dtype.kind == "f" else "int64s"
    found = given.get(f"default_{kind.removesuffix('s')}")
    return _KINDS[kind][1] if found is None else found


def category_mapper(
    e: Emitter,
    x: Expr,
    pick: Pick,
    *,
    cats_int64s: Sequence[int] = (),
    cats_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Expr:
    numbers, names = np.array(cats_int64s, np.int64), np.array(list(cats_strings), object)
    if e.dtype(x) == ir.DataType.STRING:
        return _table(e, x, pick, names, numbers, default_int64)
    return _table(e, x, pick, numbers, names, default_string)


def one_hot_encoder(
    e: Emitter, x: Expr, *, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), zeros: int = 1
) -> Expr:
    """Of equal categories the last one counts."""
    categories: Array = np.array(cats_int64s, np.int64) if cats_int64s else np.array(list(cats_strings), object)
    last = {category: i for i, category in enumerate(categories.tolist())}
    keep = np.isin(np.arange(len(categories)), list(last.values()))
    options = {} if zeros else {"strict": True}
    return ops.one_hot_of(x, e.constant(categories, "categories"), e.constant(keep, "keep"), **options)


def element_of_map(e: Emitter, x: Expr) -> ir.DataType:
    """The type of the values of a map."""
    found = e.type(x)
    if not isinstance(found, ForeignType) or not found.proto.HasField("map_type"):
        raise UnsupportedError(f"{origin(e.node)}: the type of its input is not known to be a map")
    return ir.DataType(found.proto.map_type.value_type.tensor_type.elem_type)
