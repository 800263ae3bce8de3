"""Strings."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.ml import ML
from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import needed

ENCODING = 2
"""The version of `ai.onnx.ml` whose LabelEncoder gives numbers for strings by a list."""


@downgrade("Equal", since=19)
def equal_strings(node: ir.Node, op: Older) -> None:
    """Strings that are compared with known ones become their places among these, and -1."""
    values = [needed(node, 0), needed(node, 1)]
    if op.typed(values[0]) != ir.DataType.STRING:
        return
    known = [op.read(value) for value in values]
    texts = next((array for array in known if array is not None), None)
    if texts is None or not texts.size:
        refuse("it compares strings, and none of them are known before the model runs")
    if node.graph in op.functions:
        refuse("it compares strings, in a function")
    places = {text: place for place, text in enumerate(dict.fromkeys(map(_text, texts.reshape(-1))))}
    codes = [
        _encoded(op, value, places)
        if array is None
        else op.constant(np.array([places.get(_text(text), -1) for text in array.flat], np.int64).reshape(array.shape))
        for value, array in zip(values, known, strict=True)
    ]
    op.replace(op("Equal", *codes))


def _encoded(op: Older, value: ir.Value, places: dict[str, int]) -> ir.Value:
    op.imports.setdefault(ML, ENCODING)
    given = {"keys_strings": [*places], "values_int64s": [*places.values()], "default_int64": -1}
    return op.of_version(ENCODING, f"{ML}::LabelEncoder", value, **given)


def _text(item: bytes | str) -> str:
    return item if isinstance(item, str) else item.decode()
