"""What encoders of classical models mean: tables from keys to values, one-hot, maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.spec.meaning import Spec, attributes, means

Array = np.ndarray[Any, Any]

_KINDS: dict[str, tuple[Any, Any]] = {
    "floats": (np.float32, -0.0),
    "int64s": (np.int64, -1),
    "strings": (object, "_Unused"),
}
"""The dtype of each kind of list, and what stands for a value that is not in a table."""


@means("ai.onnx.ml::LabelEncoder", "ai.onnx.ml::CategoryMapper")
@dataclass(frozen=True)
class Table(Spec):
    """The value of each key, of equal keys that of the first one; `default` for whatever is no key."""

    keys: Array
    values: Array
    default: Any

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        found = cls._of_categories(node, given) if node.op_type == "CategoryMapper" else cls._of_labels(given)
        if len(found.keys) != len(found.values) or not len(found.keys):
            raise InvalidModelError(f"it has {len(found.keys)} keys for {len(found.values)} values")
        return found

    @classmethod
    def _of_categories(cls, node: ir.Node, given: dict[str, Any]) -> Self:
        numbers = np.array(given.get("cats_int64s", ()), np.int64)
        names = np.array(list(given.get("cats_strings", ())), object)
        if node.inputs[0] is not None and node.inputs[0].dtype == ir.DataType.STRING:
            return cls(names, numbers, given.get("default_int64", -1))
        return cls(numbers, names, given.get("default_string", "_Unused"))

    @classmethod
    def _of_labels(cls, given: dict[str, Any]) -> Self:
        kinds = {}
        for side in ("keys", "values"):
            kind = next((k for k in (*_KINDS, "tensor") if given.get(f"{side}_{k}") is not None), None)
            if kind is None:
                raise InvalidModelError(f"it has no {side}")
            kinds[side] = kind
        keys, values = (_array(kind, given[f"{side}_{kind}"]) for side, kind in kinds.items())
        return cls(keys, values, _default(given, kinds["values"], values))


def _array(kind: str, given: Any) -> Array:
    return given.numpy().reshape(-1) if kind == "tensor" else np.array(list(given), _KINDS[kind][0])


def _default(given: dict[str, Any], kind: str, values: Array) -> Any:
    tensor = given.get("default_tensor")
    if tensor is not None:
        return tensor.numpy().reshape(-1)[0]
    if kind == "tensor":
        kind = "strings" if is_text(values) else "floats" if values.dtype.kind == "f" else "int64s"
    found = given.get(f"default_{kind.removesuffix('s')}")
    return _KINDS[kind][1] if found is None else found


def is_text(values: Array) -> bool:
    return values.dtype.kind in "OUS"


def either(numbers: Sequence[int], strings: Sequence[str]) -> Array:
    """Of two lists the one that there is, as an array."""
    return np.array(numbers, np.int64) if numbers else np.array(list(strings), object)


@means("ai.onnx.ml::OneHotEncoder")
@dataclass(frozen=True)
class OneHotEncoder(Spec):
    cats_int64s: Sequence[int] = ()
    cats_strings: Sequence[str] = ()
    zeros: int = 1
    """0: what is no category is an error, not zeros."""


@means("ai.onnx.ml::DictVectorizer")
@dataclass(frozen=True)
class DictVectorizer(Spec):
    int64_vocabulary: Sequence[int] = ()
    string_vocabulary: Sequence[str] = ()


@means("ai.onnx.ml::CastMap")
@dataclass(frozen=True)
class CastMap(Spec):
    """`size`: the length of the result, where it is not that of the map."""

    to: ir.DataType
    size: int | None

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        kinds = {"TO_STRING": ir.DataType.STRING, "TO_FLOAT": ir.DataType.FLOAT}
        is_dense = given.get("map_form", "DENSE") == "DENSE"
        to = kinds.get(given.get("cast_to", "TO_FLOAT"), ir.DataType.INT64)
        return cls(to, None if is_dense else given.get("max_map", 1))


@means("ai.onnx.ml::ZipMap")
@dataclass(frozen=True)
class ZipMap(Spec):
    classlabels_int64s: Sequence[int] = ()
    classlabels_strings: Sequence[str] = ()
