"""Which weight of one graph is which of another, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onward.editing.differences import Change
from onward.editing.match import Pairs
from onward.editing.sides import Side, is_weak
from onward.hub.types import FLOATING

SMALL = 16
"""Elements of a constant that is a setting of its node, and told with it."""
PIECE = 1 << 20
"""Elements of a weight that are compared at once."""


def is_setting(value: ir.Value | None) -> bool:
    """Whether a constant says how its node computes, rather than being a weight."""
    tensor = Side.constant(value)
    if tensor is None or value is None:
        return False
    if tensor.size > SMALL:
        return False
    return not value.is_initializer() or tensor.dtype not in FLOATING or not tensor.shape


class Weights:
    """The weights of two graphs, in pairs."""

    def __init__(self, first: Side, second: Side, pairs: Pairs) -> None:
        self.first, self.second = first, second
        self._own = _initializers(first), _initializers(second)
        self.pairs: dict[ir.Value, list[ir.Value]] = {}
        """By weight of the first graph, those of the second that stand for it."""
        self._back: dict[ir.Value, list[ir.Value]] = {}
        self._by_name(weak=False)
        for node, twin in pairs.items():
            for value, other in zip(node.inputs, twin.inputs, strict=False):
                if value is not None and other is not None and value in self._own[0] and other in self._own[1]:
                    self._pair(value, other)
        self._by_content()
        self._by_name(weak=True)

    def _pair(self, value: ir.Value, other: ir.Value) -> None:
        if other in self.pairs.get(value, ()):
            return
        kept = (any(each.name == one.name for each in known.get(one, ())) for one, known in
                ((value, self.pairs), (other, self._back)))  # fmt: skip
        if value.name != other.name and all(kept):
            return  # the node reads another of the weights that both models have
        self.pairs.setdefault(value, []).append(other)
        self._back.setdefault(other, []).append(value)

    def _by_name(self, weak: bool) -> None:
        names = {value.name: value for value in self._own[1]}
        for value in self._own[0]:
            other = names.get(value.name)
            if other is None or is_weak(value.name) is not weak:
                continue
            if weak and (value in self.pairs or other in self._back):
                continue
            self._pair(value, other)

    def _by_content(self) -> None:
        prints: dict[bytes, list[ir.Value]] = {}
        for other in self._own[1]:
            if other not in self._back:
                prints.setdefault(_print(self.second, other), []).append(other)
        for value in self._own[0]:
            if value not in self.pairs and (others := prints.get(_print(self.first, value))):
                self._pair(value, others.pop(0))

    def changes(self, where: str) -> Iterator[Change]:
        for value in self._own[0]:
            others = self.pairs.get(value, [])
            if not others:
                yield Change("weight", "removed", value.name or "", (typed(value),), where=where)
            elif len(others) > 1:
                names = ", ".join(repr(other.name) for other in others)
                yield Change(
                    "weight", "tied", value.name or "", (f"was one, and is several now: {names}",), where=where
                )
            else:
                yield from self._pair_changes(value, others[0], where)
        for other in self._own[1]:
            back = self._back.get(other, [])
            if not back:
                yield Change("weight", "added", other.name or "", (typed(other),), where=where)
            elif len(back) > 1:
                names = ", ".join(repr(value.name) for value in back)
                yield Change("weight", "tied", other.name or "", (f"is one now for several: {names}",), where=where)

    def _pair_changes(self, value: ir.Value, other: ir.Value, where: str) -> Iterator[Change]:
        details = list(_apart(self.first, self.second, value, other))
        renamed = value.name != other.name
        if renamed and len(self._back.get(other, ())) == 1:
            details.insert(0, f"is called {other.name!r} now")
        if details:
            kind = "renamed" if renamed and len(details) == 1 and details[0].startswith("is called") else "changed"
            yield Change("weight", kind, value.name or "", tuple(details), where=where)  # type: ignore[arg-type]


def _initializers(side: Side) -> dict[ir.Value, None]:
    """All but settings, which are told with the node that reads them."""
    held = [value for value in side.graph.initializers.values() if value.const_value is not None]
    return {value: None for value in held if not (is_setting(value) and value.uses())}


def _print(side: Side, value: ir.Value) -> bytes:
    assert value.const_value is not None
    return side.numbers.of(value.const_value)


def _apart(first: Side, second: Side, value: ir.Value, other: ir.Value) -> Iterator[str]:
    if _print(first, value) == _print(second, other):
        return
    if typed(value) != typed(other):
        yield f"{typed(value)} → {typed(other)}"
        return
    yield how_far(value, other)


def how_far(value: ir.Value, other: ir.Value) -> str:
    """In words, how much two tensors of one type and shape differ."""
    assert value.const_value is not None and other.const_value is not None
    a, b = (np.ravel(each.numpy()) for each in (value.const_value, other.const_value))
    if a.dtype.kind not in "iufb" and value.dtype not in FLOATING:
        return f"{int(np.count_nonzero(a != b)):,} of {a.size:,} elements differ"
    count, squares, whole, most = 0, 0.0, 0.0, 0.0
    for start in range(0, a.size, PIECE):  # in doubles, a large weight would take several times its room
        one, two = (each[start : start + PIECE].astype(np.float64) for each in (a, b))
        unlike = (one != two) & ~(np.isnan(one) & np.isnan(two))
        with np.errstate(all="ignore"):
            apart = np.abs(one - two)[unlike]
            squares += float(np.sum(apart**2))
            whole += float(np.sum(one**2))
        most = float(np.max(apart, initial=most))
        count += int(unlike.sum())
    share = math.sqrt(squares / whole) if whole and np.isfinite(squares / whole) else 0.0
    relative = f", {share:.2g} of its norm" if share else ""
    return f"{count:,} of {a.size:,} numbers differ, by up to {most:.3g}{relative}"


def dtype_name(dtype: ir.DataType) -> str:
    """`float32`, `bfloat16`, `string`"""
    return "string" if dtype == ir.DataType.STRING else str(dtype.numpy())


def typed(value: ir.Value) -> str:
    """`float32 [64, 3, 7, 7]`"""
    tensor = ir.convenience.get_const_tensor(value)
    assert tensor is not None
    return f"{dtype_name(tensor.dtype)} {list(tensor.shape.numpy())}"


def contents(value: ir.Value | None) -> str:
    """A small constant in words."""
    tensor = Side.constant(value)
    if tensor is None:
        return "computed"
    return (
        str(tensor.numpy().tolist())
        if tensor.size <= SMALL
        else f"{dtype_name(tensor.dtype)} {list(tensor.shape.numpy())}"
    )
