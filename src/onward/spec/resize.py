"""What Resize means: where the elements of the result lie in the input, and by which rule the nearest one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onward.gate.bounds import check_room
from onward.spec.meaning import Spec, attributes, means

Array = np.ndarray[Any, Any]

MANY = 1 << 14
"""Lengths and places up to which a claim about every length is checked."""


@means("Resize")
@dataclass(frozen=True)
class Resize(Spec):
    """Parameters that do not matter in the mode of a node have their defaults."""

    axes: tuple[int, ...] | None = None
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    policy: str = "stretch"
    """Whether the ratio of the sizes is kept ("not_larger", "not_smaller")."""
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0
    """What is read beyond the image, where a part of it is resized."""

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        mode = given.get("mode", cls.mode)
        smooth, crops = mode != "nearest", given.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        return cls(
            given.get("axes"),
            mode,
            given.get("coordinate_transformation_mode", cls.coordinates),
            cls.rounding if smooth else given.get("nearest_mode", cls.rounding),
            given.get("keep_aspect_ratio_policy", cls.policy),
            given.get("cubic_coeff_a", cls.cubic) if mode == "cubic" else cls.cubic,
            smooth and bool(given.get("exclude_outside")),
            smooth and bool(given.get("antialias")),
            given.get("extrapolation_value", cls.outside) if crops else cls.outside,
        )

    @property
    def crops(self) -> bool:
        """Whether a part of the image is resized."""
        return self.coordinates == "tf_crop_and_resize"


def target_length(length: int | Array, scale: float) -> Any:
    """The length of an axis after scaling, computed in single precision as ONNX Runtime does."""
    product = np.asarray(length, np.float32) * np.float32(scale)
    return np.floor(product).astype(np.int64)


def places(steps: Array, length: int, target: int, scale: float, coordinates: str) -> Array:
    """Where the elements numbered `steps` of a resized axis lie in the axis before, in single precision."""
    one = np.float32
    x, factor = steps.astype(one), one(scale)
    if coordinates == "asymmetric":
        return x / factor
    if coordinates == "align_corners":
        resized = target if abs(length * scale - target) < 1e-6 * target else length * scale
        return x * one(length - 1) / one(resized - 1) if resized != 1 else x * 0
    if coordinates == "pytorch_half_pixel" and target <= 1:
        return x * 0
    if coordinates == "half_pixel_symmetric":
        adjustment = float(one(target) / (one(length) * factor))
        return (length / 2 * (1 - adjustment) + (steps + 0.5) / float(factor) - 0.5).astype(one)
    return (x + one(0.5)) / factor - one(0.5)


def nearest(at: Array, rounding: str) -> Array:
    """The whole numbers nearest to `at`, not below 0; what is a millionth from the middle counts as the middle."""
    exact = at.astype(np.float64)
    found = {
        "floor": lambda: np.floor(exact),
        "ceil": lambda: np.ceil(exact),
        "round_prefer_ceil": lambda: np.floor(exact + 0.500001),
        "round_prefer_floor": lambda: np.ceil(exact - 0.500001),
    }[rounding]()
    return np.maximum(found, 0).astype(np.int64)


def nearest_index(length: int | None, target: int | None, scale: float, coordinates: str, rounding: str) -> Array:
    """Which element each element of a resized axis is a copy of; for a very long axis where no length is known."""
    check_room("Resize: the place of each element of an axis", [target or MANY], 64)
    steps = np.arange(MANY if target is None else target)
    free = length is None or target is None
    if free and coordinates not in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
        raise ValueError(f"{coordinates} depends on the length")
    found = nearest(places(steps, length or MANY, target or MANY, scale, coordinates), rounding)
    return found if length is None else np.minimum(found, length - 1)


def lengths_agree(length: int | None, scale: float) -> bool:
    """Whether scaling in double precision leads to the same length, for every length where it is not known."""
    known = np.arange(1, MANY) if length is None else np.array([length])
    return bool((np.floor(known * scale) == target_length(known, scale)).all())


def stays(length: int | None, scale: float) -> bool:
    """Whether an axis that is scaled may keep its length all the same."""
    return 1 < scale < 2 and (length is None or int(target_length(length, scale)) == length)


def is_whole(length: int | None, scale: float) -> bool:
    """Whether the scaled length needs no rounding."""
    return float(scale).is_integer() or (length is not None and float(np.float32(scale) * length).is_integer())


def spread(rank: int, axes: Sequence[int] | None, given: Sequence[Any], otherwise: Sequence[Any]) -> list[Any]:
    """One entry for each axis of a tensor: the given one for each of `axes` (all, if None), or the other."""
    full = list(otherwise)
    for axis, value in zip(range(rank) if axes is None else axes, given, strict=True):
        full[axis % rank] = value
    return full
