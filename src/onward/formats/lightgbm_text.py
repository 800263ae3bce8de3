"""The text that LightGBM saves a model as, checked: on a damaged one LightGBM itself may end the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.errors import InvalidModelError

Array = npt.NDArray[Any]
NODES = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
MORE_NODES = ("internal_value", "internal_weight", "internal_count")
END = "\nend of trees"
"""What follows is not needed for predictions."""
CATEGORICAL = 1
"""The bit of what a node decides by that says that it asks for membership; its threshold is the number of the set."""


@dataclass(frozen=True)
class Text:
    """What a text says; of each tree the numbers by their names, as float64 where they are not whole."""

    header: dict[str, str]
    features: int
    trees: list[dict[str, Array]]


def parsed(text: str) -> Text:
    """Raises `InvalidModelError` where trees are not whole, or do not hold together."""
    body, end, _ = text.partition(END)
    if not end:
        raise InvalidModelError("the text is cut off: its trees have no end")
    head, *parts = body.split("\nTree=")
    header = {name: value for name, _, value in (line.partition("=") for line in head.splitlines())}
    sizes = [len(f"Tree={part}\n".encode()) for part in parts]
    try:
        features = int(header["max_feature_idx"]) + 1
        if [int(size) for size in header["tree_sizes"].split()] != sizes:
            raise InvalidModelError("the sizes of its trees are not those that it gives")
        if int(header["num_tree_per_iteration"]) < 1 or len(parts) % int(header["num_tree_per_iteration"]):
            raise InvalidModelError("its trees do not make up whole iterations")
    except (KeyError, ValueError) as error:
        raise InvalidModelError("its first lines are damaged") from error
    return Text(header, features, [_tree(number, part, features) for number, part in enumerate(parts)])


def _tree(number: int, part: str, features: int) -> dict[str, Array]:
    try:
        lines = (line.partition("=") for line in part.splitlines()[1:])
        fields = {name: _numbers(value) for name, _, value in lines if name}
        is_sound = _is_sound(fields, features)
    except (KeyError, IndexError, ValueError):
        is_sound = False
    if not is_sound:
        raise InvalidModelError(f"tree {number} of the LightGBM model is damaged")
    return fields


def _numbers(text: str) -> Array:
    items = text.split()
    try:
        return np.array(items, np.int64)
    except ValueError:
        return np.array(items, np.float64)


def _is_sound(fields: dict[str, Array], features: int) -> bool:
    """Whether there is everything for each node and leaf, and nodes lead on to others, or to leaves."""
    leaves = int(fields["num_leaves"][0])
    nodes = leaves - 1
    if leaves < 1 or len(fields["leaf_value"]) != leaves or not _is_linear_sound(fields, leaves, features):
        return False
    if nodes == 0:
        return True
    if not all(len(fields[name]) == nodes for name in NODES):
        return False
    sizes = [*((name, leaves) for name in LEAVES), *((name, nodes) for name in MORE_NODES)]
    if not all(len(fields[name]) == size for name, size in sizes if name in fields):
        return False
    sides = np.stack([fields["left_child"], fields["right_child"]])
    each_once = np.delete(np.arange(-leaves, nodes), leaves)
    if not np.array_equal(np.sort(sides, None), each_once) or not ((sides < 0) | (sides > np.arange(nodes))).all():
        return False
    return _within(fields["split_feature"], features) and _are_sets_sound(fields)


def _are_sets_sound(fields: dict[str, Array]) -> bool:
    asked = fields["threshold"][fields["decision_type"] & CATEGORICAL != 0]
    count = int(fields["num_cat"][0])
    if not count:
        return len(asked) == 0
    ends, words = fields["cat_boundaries"], fields["cat_threshold"]
    whole = len(ends) == count + 1 and ends[0] == 0 and ends[-1] == len(words) and (np.diff(ends) >= 0).all()
    return bool(whole) and _within(words, 2**32) and _within(asked, count)


def _is_linear_sound(fields: dict[str, Array], leaves: int, features: int) -> bool:
    if not fields.get("is_linear", np.zeros(1))[0]:
        return True
    counts, own, factors = fields["num_features"], fields["leaf_features"], fields["leaf_coeff"]
    return (
        len(fields["leaf_const"]) == len(counts) == leaves
        and bool((counts >= 0).all())
        and int(counts.sum()) == len(own) == len(factors)
        and _within(own, features)
    )


def _within(numbers: Array, limit: int) -> bool:
    """Whether all are whole numbers below the limit."""
    return bool(((numbers >= 0) & (numbers < limit) & (numbers == numbers.astype(np.int64))).all())
