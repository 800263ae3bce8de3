"""Where values stand among keys that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.build import Tensor

ML = "ai.onnx.ml"
FEW = 3
"""Up to so many keys of floats, comparing with each is faster than with all."""


def text_positions(x: Tensor, keys: Sequence[str | None]) -> tuple[Tensor, Tensor]:
    """The position of each text among the keys, 0 for others, and whether it is one. A key of None is never met."""
    known = _first_places(keys)
    if len(known) <= 1:
        return _by_comparison(x, {key: x.op.strings(np.asarray([[key]], object)) for key in known}, known)
    encoded = x.op.many(
        "LabelEncoder",
        1,
        x,
        domain=ML,
        keys_strings=list(known),
        values_int64s=list(known.values()),
        default_int64=-1,
    )[0]
    return _found(encoded)


def number_positions(x: Tensor, keys: Sequence[int | None]) -> tuple[Tensor, Tensor]:
    """As `text_positions`, of int64."""
    known = _first_places(keys)
    if len(known) <= 1:
        return _by_comparison(x, {key: x.op.constant(np.asarray([[key]], np.int64)) for key in known}, known)
    encoded = x.op.many(
        "LabelEncoder",
        1,
        x,
        domain=ML,
        keys_int64s=list(known),
        values_int64s=list(known.values()),
        default_int64=-1,
    )[0]
    return _found(encoded)


def float_positions(x: Tensor, keys: Sequence[float | None]) -> tuple[Tensor, Tensor]:
    """As `text_positions`, of float64: by comparison with all keys, or by a search where they are many."""
    op = x.op
    known = _first_places([None if key is None or key != key else key + 0.0 for key in keys])
    if len(known) <= FEW:
        return _by_comparison(x, {key: op.constant(np.asarray([[key]], np.float64)) for key in known}, known)
    table = op.constant(np.asarray(list(known), np.float64).reshape(1, -1))
    equal = op.Equal(x, table)
    places = op.constant(np.asarray(list(known.values()), np.int64).reshape(1, -1))
    place = op.ReduceSum(op.Where(equal, places, op.index(0)), op.ints([1]), keepdims=1)
    found = op.ReduceMax(equal.cast(ir.DataType.INT32), op.ints([1]), keepdims=1).cast(ir.DataType.BOOL)
    return place, found


def numbers(x: Tensor, table: Mapping[Any, float]) -> Tensor:
    """The float64 that stands for each text or int64; NaN for what is not in the table."""
    if not table:
        return x.op.Expand(x.op.constant(np.asarray([[np.nan]])), x.shape)
    keys = [str(key).encode() if x.dtype == ir.DataType.STRING else key for key in table]
    return encoded(x, keys, np.asarray(list(table.values()), np.float64), np.nan)


def encoded(x: Tensor, keys: Sequence[Any], values: npt.NDArray[Any], default: Any) -> Tensor:
    """The value that stands for each text, int64 or float64: 1 node. Texts are bytes; values are float64 or int64 too.

    NaN finds the key NaN, and -0.0 the key 0.0.
    """

    def tensor(name: str, cells: Sequence[Any]) -> Any:
        if isinstance(cells[0], bytes):
            return ir.StringTensor(list(cells), shape=ir.Shape([len(cells)]), name=name)
        return ir.tensor(np.asarray(cells), name=name)

    other = default if values.dtype == object else values.dtype.type(default)
    parts = {"keys_tensor": list(keys), "values_tensor": list(values), "default_tensor": [other]}
    made = {name: tensor(name, cells) for name, cells in parts.items()}
    return x.op.many("LabelEncoder", 1, x, domain=ML, **made)[0]


@dataclass(frozen=True)
class Encoded:
    """What a node that `encoded` wrote looks up."""

    keys: list[Any]
    values: npt.NDArray[Any]
    default: Any

    @classmethod
    def of(cls, node: ir.Node) -> Encoded | None:
        names = ("keys_tensor", "values_tensor", "default_tensor")
        if node.op_type != "LabelEncoder" or not all(name in node.attributes for name in names):
            return None
        keys, values, default = (node.attributes[name].as_tensor().numpy() for name in names)
        return cls(list(keys), values, default[0])

    def at(self, key: Any) -> Any:
        """What stands for a number; NaN is a key like others."""
        places = [place for place, own in enumerate(self.keys) if own == key or (own != own and key != key)]
        return self.values[places[0]] if places else self.default

    def has_gaps_of(self, other: Encoded) -> bool:
        """Whether both have NaN for the same keys."""
        if other.values.dtype != np.float64 or not np.array_equal(np.asarray(self.keys), np.asarray(other.keys)):
            return False
        own, others = (np.isnan([*table.values, table.default]) for table in (self, other))
        return bool((own == others).all())


def _first_places(keys: Sequence[object]) -> dict[object, int]:
    found: dict[object, int] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, place)
    return found


def _found(place: Tensor) -> tuple[Tensor, Tensor]:
    op = place.op
    return op.Max(place, op.index(0)), op.GreaterOrEqual(place, op.index(0))


def _by_comparison(x: Tensor, constants: dict[object, Tensor], known: dict[object, int]) -> tuple[Tensor, Tensor]:
    op = x.op
    place: Tensor | None = None
    found: Tensor | None = None
    for key, constant in constants.items():
        equal = op.Equal(x, constant)
        found = equal if found is None else op.Or(found, equal)
        if place is None:
            place = op.Where(equal, op.index(known[key]), op.index(0)) if known[key] else None
        else:
            place = op.Where(equal, op.index(known[key]), place)
    if found is None:
        found = op.Expand(op.constant(np.asarray(False)), x.shape)
    return place if place is not None else op.Expand(op.index(0), x.shape), found
