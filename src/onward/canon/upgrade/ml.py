"""The `ai.onnx.ml` domain: LabelEncoder."""

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, needed, put, require, take

ML = "ai.onnx.ml"

KINDS = ("strings", "int64s", "floats")


@upgrade("LabelEncoder", since=2, domain=ML)
def label_encoder_maps(node: ir.Node, op: Rewriter) -> None:
    """A list of classes, which mapped a string to its (last) index or an index to its string."""
    classes = list(require(node, "classes_strings"))
    if _reads_strings(node):
        index = {name: i for i, name in enumerate(classes)}
        take(node, "default_string")
        put(node, keys_strings=list(index), values_int64s=list(index.values()))
    else:
        take(node, "default_int64")
        put(node, keys_int64s=list(range(len(classes))), values_strings=classes)


def _reads_strings(node: ir.Node) -> bool:
    x, y = needed(node, 0), node.outputs[0]
    if x.dtype is not None:
        return x.dtype == ir.DataType.STRING
    if y.dtype is not None:
        return y.dtype != ir.DataType.STRING
    to_string, to_int = "default_string" in node.attributes, "default_int64" in node.attributes
    if to_string == to_int:
        raise UnsupportedError(f"{describe(node)}: the element type of its input is not known")
    return to_int


@upgrade("LabelEncoder", since=4, domain=ML)
def label_encoder_repeats(node: ir.Node, op: Rewriter) -> None:
    """Of equal keys the first counted; version 4 says the last. Only the first is kept."""
    keys = next((k for kind in KINDS if (k := f"keys_{kind}") in node.attributes), None)
    values = next((v for kind in KINDS if (v := f"values_{kind}") in node.attributes), None)
    if keys is None or values is None:
        return
    old_keys, old_values = node.attributes[keys].value, node.attributes[values].value
    first = _first_of_each(old_keys)
    if len(first) < len(old_keys):
        put(node, **{keys: [old_keys[i] for i in first], values: [old_values[i] for i in first]})


def _first_of_each(keys: Sequence[Any]) -> list[int]:
    """The index of each key that did not occur before; NaN equals NaN."""
    seen: dict[Any, int] = {}
    for index, key in enumerate(keys):
        seen.setdefault("NaN" if key != key else (key,), index)
    return list(seen.values())
