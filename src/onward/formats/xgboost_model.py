"""The two formats that XGBoost saves a model in, checked: on damaged trees XGBoost itself may read memory at random."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.errors import InvalidModelError

Array = npt.NDArray[Any]
NODES = ("left_children", "right_children", "parents", "split_indices", "split_conditions", "default_left")
NOT_IN_ALL = ("loss_changes", "split_type", "sum_hessian")
"""What not every version writes, or not for every tree."""
CATEGORIES = ("categories_nodes", "categories_segments", "categories_sizes")
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
"""What a number is, by its mark in universal binary JSON."""
MOST = 2**24
"""Categories are below this."""
WORDS = {"T": True, "F": False, "Z": None}
DAMAGED = (
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    UnicodeDecodeError,
    ValueError,
    struct.error,
)


def parsed(data: bytes) -> Any:
    """A model as JSON has it, from either format; arrays of numbers may be numpy's.

    Raises `InvalidModelError` where it is not whole, or trees do not hold together.
    """
    try:
        model = json.loads(data) if data.lstrip()[1:].lstrip()[:1] in (b'"', b"}") else Reader(data).value()
        features = int(model["learner"]["learner_model_param"]["num_feature"])
        for tree in trees_of(model):
            check(tree, features)
    except InvalidModelError:
        raise
    except DAMAGED as error:
        raise InvalidModelError("it is cut off, or damaged") from error
    return model


def trees_of(model: Any) -> list[Any]:
    """The trees; a linear model has none."""
    booster = model["learner"]["gradient_booster"]
    inner = booster["gbtree"] if booster["name"] == "dart" else booster
    return list(inner["model"].get("trees", []))


class Reader:
    """Universal binary JSON, as far as XGBoost writes it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise ValueError("the end is missing")
        self._at += size
        return part

    def _mark(self) -> str:
        return self._take(1).decode("latin1")

    def _next_is(self, mark: bytes) -> bool:
        if self._data[self._at : self._at + 1] != mark:
            return False
        self._at += 1
        return True

    def _number(self, mark: str) -> Any:
        dtype = np.dtype(NUMBERS[mark])
        return np.frombuffer(self._take(dtype.itemsize), dtype)[0].item()

    def _text(self) -> str:
        return self._take(int(self._number(self._mark()))).decode()

    def value(self) -> Any:
        match mark := self._mark():
            case "{":
                found = {}
                while not self._next_is(b"}"):
                    name = self._text()
                    found[name] = self.value()
                return found
            case "[":
                return self._array()
            case "S":
                return self._text()
        return WORDS[mark] if mark in WORDS else self._number(mark)

    def _array(self) -> Any:
        dtype = np.dtype(NUMBERS[self._mark()]) if self._next_is(b"$") else None
        if self._next_is(b"#"):
            count = int(self._number(self._mark()))
            if dtype is not None:
                return np.frombuffer(self._take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
            return [self.value() for _ in range(count)]
        found = []
        while not self._next_is(b"]"):
            found.append(self.value())
        return found


def check(tree: Mapping[str, Any], features: int) -> None:
    """Refuse a tree whose nodes are not whole, ask for features there are not, or lead where there is nothing."""
    count = int(tree["tree_param"]["num_nodes"])
    per_node = [*NODES, *(name for name in NOT_IN_ALL if name in tree)]
    is_whole = all(len(tree[name]) == count for name in per_node) and len(tree["base_weights"]) % count == 0
    left, right, parents = (np.asarray(tree[name], np.int64) for name in NODES[:3])
    inner = np.flatnonzero(reached(left, right) & (left >= 0))
    agree = (parents[left[inner]] == inner) & (parents[right[inner]] == inner)
    ends = left if int(tree["tree_param"]["size_leaf_vector"]) > 1 else np.stack([left, right], 1)
    if not is_whole or not agree.all() or (ends[left < 0] != -1).any() or (right >= count).any():
        raise InvalidModelError("a tree of the XGBoost model is damaged")
    if not _within(tree["split_indices"], features, inner):
        raise InvalidModelError("the features of a tree of the XGBoost model are damaged")
    if "split_type" in tree and not _are_categories_sound(tree, count):
        raise InvalidModelError("the categories of the XGBoost model are damaged")


def _are_categories_sound(tree: Mapping[str, Any], count: int) -> bool:
    starts, sizes = (np.asarray(tree[name], np.int64) for name in CATEGORIES[1:])
    inside = _within(starts, MOST) and _within(sizes, MOST) and _within(starts + sizes, len(tree["categories"]) + 1)
    return inside and _within(tree["categories_nodes"], count) and _within(tree["categories"], MOST)


def _within(numbers: Any, limit: int, chosen: Any = slice(None)) -> bool:
    array = np.asarray(numbers, np.int64)[chosen]
    return bool(((array >= 0) & (array < limit)).all())


def reached(left: Array, right: Array) -> Array:
    """Which nodes a tree still has: those that were pruned remain, but nothing leads to them."""
    kept = np.zeros(len(left), bool)
    level = np.zeros(1, np.int64)
    while len(level):
        if kept[level].any() or len(np.unique(level)) < len(level):
            raise InvalidModelError("a tree of the XGBoost model leads to one node in two ways")
        kept[level] = True
        inner = level[left[level] >= 0]
        level = np.concatenate([left[inner], right[inner]])
        if (level < 0).any():
            raise InvalidModelError("a node of the XGBoost model leads nowhere")
    return kept
