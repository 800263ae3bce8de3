"""The `ai.onnx.ml` domain: trees and LabelEncoder."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import needed, put, take

ML = "ai.onnx.ml"
T = ir.DataType
_SUFFIX = "_as_tensor"


@downgrade("TreeEnsembleClassifier", "TreeEnsembleRegressor", since=3, domain=ML)
def thresholds_of_floats(node: ir.Node, op: Older) -> None:
    """Thresholds and weights were floats: doubles that are floats are the same."""
    x = needed(node, 0)
    for name in [name for name in node.attributes if name.endswith(_SUFFIX)]:
        numbers = take(node, name).numpy().reshape(-1)
        narrow = numbers.astype(np.float32)
        if (narrow.astype(numbers.dtype) != numbers).any():
            refuse(f"'{name.removesuffix(_SUFFIX)}' has doubles that no float holds")
        put(node, **{name.removesuffix(_SUFFIX): [float(n) for n in narrow]})
    if x.dtype == T.DOUBLE and node.op_type == "TreeEnsembleRegressor":
        refuse("it adds up doubles")


@downgrade("LabelEncoder", since=4, domain=ML)
def keys_and_values(node: ir.Node, op: Older) -> None:
    """Version 2 has lists of strings, floats and integers of 64 bits."""
    for name in ("keys", "values"):
        tensor = take(node, f"{name}_tensor")
        if tensor is None:
            continue
        array = tensor.numpy().reshape(-1)
        if tensor.dtype == T.STRING:
            texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array]
            node.attributes[f"{name}_strings"] = ir.AttrStrings(f"{name}_strings", texts)
        elif tensor.dtype == T.FLOAT:
            node.attributes[f"{name}_floats"] = ir.AttrFloat32s(f"{name}_floats", [float(n) for n in array])
        elif tensor.dtype == T.INT64:
            node.attributes[f"{name}_int64s"] = ir.AttrInt64s(f"{name}_int64s", [int(n) for n in array])
        else:
            refuse(f"its {name} are of type {tensor.dtype.name.lower()}")
    default = take(node, "default_tensor")
    if default is not None:
        item = default.numpy().reshape(-1)[0]
        if default.dtype == T.STRING:
            put(node, default_string=item.decode() if isinstance(item, bytes) else str(item))
        elif default.dtype == T.FLOAT:
            put(node, default_float=float(item))
        elif default.dtype == T.INT64:
            put(node, default_int64=int(item))
        else:
            refuse(f"its default is of type {default.dtype.name.lower()}")
    _first_of_equals(node)


def _first_of_equals(node: ir.Node) -> None:
    """Of equal keys the last counts, and the first did: the others are left out; NaN was no key."""
    kinds = ("strings", "int64s", "floats")
    keys = next((f"keys_{k}" for k in kinds if f"keys_{k}" in node.attributes), None)
    values = next((f"values_{k}" for k in kinds if f"values_{k}" in node.attributes), None)
    if keys is None or values is None:
        return
    old, meant = list(node.attributes[keys].value), list(node.attributes[values].value)
    if any(key != key for key in old):
        refuse("NaN is one of its keys")
    pairs = dict(zip(old, meant, strict=True))
    if len(pairs) < len(old):
        put(node, **{keys: list(pairs), values: list(pairs.values())})


@downgrade("LabelEncoder", since=2, domain=ML)
def list_of_classes(node: ir.Node, op: Older) -> None:
    """Version 1 had the names of 0, 1, 2, … alone, for strings to integers or back."""
    given = {name: list(node.attributes[name].value) for name in node.attributes if name.startswith(("keys", "values"))}
    names = given.get("keys_strings") or given.get("values_strings")
    places = given.get("keys_int64s") or given.get("values_int64s")
    if names is None or places is None or places != list(range(len(names))):
        refuse("its keys and values are not names and their places")
    for name in given:
        take(node, name)
    take(node, "default_float")
    node.attributes["classes_strings"] = ir.AttrStrings("classes_strings", names)


@downgrade("TreeEnsemble", since=5, domain=ML)
def one_output_each(node: ir.Node, op: Older) -> None:
    """The regressor of version 3 has the same trees, each node with its place in its tree."""
    from onward.canon.downgrade.trees import as_regressor

    as_regressor(node, op)
