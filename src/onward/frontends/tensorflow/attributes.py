"""The attributes of a TensorFlow node as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onward.frontends.tensorflow.dtypes import DTYPES


def attributes(node: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those that are named and there: types as ONNX has them, shapes as lists with None, functions as their names."""
    return {name: _plain(node.attr[name]) for name in names if name in node.attr}


def _plain(attr: Any) -> Any:
    kind = attr.WhichOneof("value")
    if kind == "list":
        values = attr.list
        for field, read in _ITEMS.items():
            if items := getattr(values, field):
                return [read(item) for item in items]
        return []
    return _ITEMS[kind](getattr(attr, kind)) if kind in _ITEMS else getattr(attr, kind)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _shape(shape: Any) -> list[int | None] | None:
    return None if shape.unknown_rank else [None if dim.size < 0 else int(dim.size) for dim in shape.dim]


def _array(tensor: Any) -> Any:
    import tensorflow as tf

    return tf.make_ndarray(tensor)


_ITEMS: dict[str, Callable[[Any], Any]] = {
    "s": _text,
    "i": int,
    "f": float,
    "b": bool,
    "type": lambda number: DTYPES.get(number % 100, number),
    "shape": _shape,
    "tensor": _array,
    "func": lambda function: function.name,
}
