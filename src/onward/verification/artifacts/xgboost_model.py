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
NODES = ("left_children", "right_children", "split_indices", "split_conditions", "default_left")
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
"""What a number is, by its mark in universal binary JSON."""
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
    count = len(tree["left_children"])
    kept = reached(np.asarray(tree["left_children"], np.int64), np.asarray(tree["right_children"], np.int64))
    inner = kept & (np.asarray(tree["left_children"]) >= 0)
    asked = np.asarray(tree["split_indices"], np.int64)[inner]
    whole = all(len(tree[name]) == count for name in NODES)
    if not whole or int(tree["tree_param"]["num_nodes"]) != count or (asked < 0).any() or (asked >= features).any():
        raise InvalidModelError("a tree of the XGBoost model is damaged")
    sizes, starts = np.asarray(tree.get("categories_sizes", [])), np.asarray(tree.get("categories_segments", []))
    if (sizes < 0).any() or (starts < 0).any() or (starts + sizes > len(tree.get("categories", []))).any():
        raise InvalidModelError("the categories of the XGBoost model are damaged")


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
