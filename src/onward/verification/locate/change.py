"""In what way a node of one file is not its counterpart in another, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

LONGEST = 60
_PLAIN = {
    *(ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING),
    *(ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS),
}


def change(node: ir.Node, other: ir.Node, names: dict[str, str]) -> str:
    """What differs in `other`, such as 'epsilon is 0.001, not 1e-05'; '' if nothing that can be seen.

    `names` are the source's values by their names in the other model.
    """
    return "; ".join(_changes(node, other, names))


def _changes(node: ir.Node, other: ir.Node, names: dict[str, str]) -> Iterator[str]:
    if node.op_type != other.op_type:
        yield f"it is {other.op_type}, not {node.op_type}"
        return
    for name in dict.fromkeys([*node.attributes, *other.attributes]):
        first, second = node.attributes.get(name), other.attributes.get(name)
        kinds = {attribute.type for attribute in (first, second) if attribute is not None}
        if first is not None and second is not None and kinds == {ir.AttributeType.GRAPH}:
            pairs = zip(first.as_graph(), second.as_graph(), strict=False)
            yield from (f"in its {name}, {words}" for pair in pairs for words in _changes(*pair, names))
        if not kinds <= _PLAIN:
            continue
        expected, found = (None if attribute is None else attribute.value for attribute in (first, second))
        if expected != found:
            yield f"{name} is {_spell(found)}, not {_spell(expected)}"
    yield from _inputs(node, other, names)


def _inputs(node: ir.Node, other: ir.Node, names: dict[str, str]) -> Iterator[str]:
    wanted = [None if value is None else value.name for value in node.inputs]
    given = [None if v is None else names.get(v.name or "", v.name) for v in other.inputs]
    if wanted != given and sorted(map(str, wanted)) == sorted(map(str, given)):
        yield "its inputs are in another order"
        return
    if len(wanted) > len(given):
        yield f"it has {len(given)} inputs, not {len(wanted)}"
    for position, (first, second) in enumerate(zip(node.inputs, other.inputs, strict=False)):
        expected, found = (None if v is None else ir.convenience.get_const_tensor(v) for v in (first, second))
        if expected is not None and found is not None and (words := _tensors(expected, found)):
            yield f"{_called(first, position)} {words}"


def _tensors(expected: ir.TensorProtocol, found: ir.TensorProtocol) -> str:
    if expected is found:
        return ""
    if tuple(expected.shape) != tuple(found.shape):
        return f"has the shape {list(found.shape.numpy())}, not {list(expected.shape.numpy())}"
    first, second = expected.numpy(), found.numpy()
    if np.array_equal(first, second):
        return ""
    if first.size <= 4:
        return f"is {_spell(second.tolist())}, not {_spell(first.tolist())}"
    count = int(np.count_nonzero(first != second))
    return f"differs in {count:,} of {first.size:,} numbers{_furthest(first, second)}"


def _called(value: ir.Value | None, position: int) -> str:
    """By its place, and a weight by its name as well; the names of other constants are a tool's."""
    is_weight = value is not None and value.producer() is None
    return f"its input {position}" + (f" ({value.name!r})" if value is not None and is_weight else "")


def _furthest(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> str:
    if first.dtype.kind in "OUSTb" or second.dtype.kind in "OUSTb":
        return ""
    with np.errstate(all="ignore"):
        return f", by up to {np.nanmax(np.abs(first.astype(np.float64) - second.astype(np.float64))):.2g}"


def _spell(value: Any) -> str:
    if value is None:
        return "left out"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(_spell, value))}]"
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
