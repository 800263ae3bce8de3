"""Values for a model's inputs: plausible random ones, zeros, and the edges of what a number can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.slots import MAP, OPTIONAL, SEQUENCE, Slot
from onward.verification.data.clues import LENGTH_NAME, MASK_NAME, POSITION_NAME, Clues
from onward.verification.data.linked_sizes import Array

RANDOM = "random"
ZEROS = "zeros"
EMPTY = "empty batch"
WORDS = ("a", "b", "onward", "", "two words")
LENGTH_OF_SEQUENCE = 2
RARE = 0.05
"""The share of elements that are NaN or infinite: with all of them, nothing would be left to compare."""
UNCLUED = (None, 1, 0)
"""What integers are that no node says anything about: small and random, or all the same."""


@dataclass(frozen=True)
class Field:
    """An input whose shape is chosen."""

    slot: Slot
    shape: tuple[int, ...]
    clues: Clues
    longest: int
    """The longest axis of the inputs, which lengths do not exceed."""
    is_alone: bool = False
    """Whether it is the only input."""

    @property
    def is_float(self) -> bool:
        return self.slot.dtype.is_floating_point()

    @property
    def is_mask(self) -> bool:
        clued = self.clues.is_mask and self.slot.dtype.is_integer()
        return clued or bool(MASK_NAME.search(self.slot.name))

    def wrapped(self, make: Callable[[], Any]) -> Any:
        """What `make` makes, in the containers of the input's type."""
        return _wrapped(self.slot, self.slot.containers, make)


def _wrapped(slot: Slot, containers: tuple[str, ...], make: Callable[[], Any]) -> Any:
    if not containers:
        return make()
    outer, *inner = containers
    if outer == SEQUENCE:
        return [_wrapped(slot, tuple(inner), make) for _ in range(LENGTH_OF_SEQUENCE)]
    return _wrapped(slot, tuple(inner), make) if outer == OPTIONAL else make()


def random(field: Field, rng: np.random.Generator, unclued: int | None = None) -> Any:
    """Values that the consumers can take; `unclued` is what integers are that nothing is known of."""
    if MAP in field.slot.containers:
        return field.wrapped(lambda: _map(field, rng))
    return field.wrapped(lambda: _tensor(field, rng, unclued))


def _tensor(field: Field, rng: np.random.Generator, unclued: int | None) -> Array:
    slot, shape, clues = field.slot, field.shape, field.clues
    if slot.dtype == ir.DataType.STRING:
        return _strings(clues, shape, rng)
    dtype = slot.dtype.numpy()
    if clues.exact is not None:
        return np.asarray(clues.exact(shape)).astype(dtype).reshape(shape)
    if field.is_mask:
        return _prefix_mask(shape, rng).astype(dtype)
    if slot.dtype == ir.DataType.BOOL:
        return _booleans(shape, rng)
    if slot.dtype.is_integer():
        return _emptied(_integers(field, rng, unclued).astype(dtype), clues)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return _emptied(np.asarray(_floats(field, rng)).astype(dtype), clues)


def _emptied(cache: Array, clues: Clues) -> Array:
    """A cache whose places after those that are filled are zeros."""
    if clues.filled is not None and cache.ndim == 4:
        cache[:, :, clues.filled :] = 0
    return cache


def _map(field: Field, rng: np.random.Generator) -> dict[Any, Any]:
    """Some of the keys that the consumer knows, with values."""
    is_text = field.slot.key == ir.DataType.STRING
    known = [key for key in field.clues.choices if isinstance(key, str) == is_text]
    keys = known or (list(WORDS[:3]) if is_text else [0, 1, 2])
    made = _tensor(Field(field.slot, (len(keys),), Clues(), field.longest), rng, None)
    return {key if is_text else int(key): value.item() for key, value in zip(keys, made, strict=True)}


def _strings(clues: Clues, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    words = [choice for choice in clues.choices if isinstance(choice, str)] or list(WORDS)
    return np.asarray(rng.choice(np.asarray(words, dtype=object), shape), dtype=object).reshape(shape)


def _prefix_mask(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Ones, then zeros, along the last axis, as padding leaves them; at least half are ones."""
    if not shape:
        return np.asarray(True)
    lengths = rng.integers((shape[-1] + 1) // 2, shape[-1] + 1, shape[:-1])
    return np.asarray(np.arange(shape[-1]) < lengths[..., None])


def _booleans(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """At random; the first is true."""
    made = np.asarray(rng.random(shape) < 0.5)
    made.reshape(-1)[:1] = True
    return made


def _positions(field: Field) -> Array:
    """The last places of the longest input, one after the other, as far as they are known."""
    highest = field.longest - 1 if field.clues.high is None else int(field.clues.high)
    length = field.shape[-1]
    start = max(min(field.longest, highest + 1) - length, 0)
    return np.broadcast_to(np.minimum(np.arange(start, start + length), highest), field.shape)


def _integers(field: Field, rng: np.random.Generator, unclued: int | None) -> Array:
    shape, clues, dtype = field.shape, field.clues, field.slot.dtype
    if len(shape) > 1 and POSITION_NAME.search(field.slot.name) and unclued is None:
        return _positions(field)
    if clues.low is not None and clues.high is not None:
        lowest, highest = _integer_range(dtype)
        return np.asarray(
            rng.integers(max(int(clues.low), lowest), min(int(clues.high), highest), shape, endpoint=True)
        )
    if choices := [int(choice) for choice in clues.choices if isinstance(choice, int | np.integer)]:
        others = range(4) if len(choices) < 3 and np.prod(shape) > 1 else ()
        return np.asarray(rng.choice(np.asarray([*choices, *others]), shape))
    if clues.is_length or (len(shape) <= 1 and LENGTH_NAME.search(field.slot.name)):
        longest = clues.longest or field.longest
        lengths = np.sort(rng.integers((longest + 1) // 2, longest + 1, shape), axis=None)[::-1].reshape(shape)
        return np.where(np.arange(lengths.size).reshape(shape) == 0, longest, lengths)
    if unclued is not None:
        return np.full(shape, unclued)
    if clues.is_scale:
        return np.asarray(rng.integers(1, 3, shape))
    if clues.is_positive:
        return np.asarray(rng.integers(1, 4, shape))
    if dtype.bitwidth <= 8:
        return np.asarray(rng.integers(*_integer_range(dtype), shape, endpoint=True))
    return np.asarray(rng.integers(0, 4, shape))


def _integer_range(dtype: ir.DataType) -> tuple[int, int]:
    if dtype.is_signed():
        return -(2 ** (dtype.bitwidth - 1)), 2 ** (dtype.bitwidth - 1) - 1
    return 0, 2**dtype.bitwidth - 1


def _floats(field: Field, rng: np.random.Generator) -> Array:
    shape, clues = field.shape, field.clues
    if clues.low is not None and clues.high is not None:
        return np.asarray(rng.uniform(clues.low, clues.high, shape))
    if clues.is_pixels:
        return np.asarray(rng.uniform(0, 255, shape)).round()
    if clues.is_scale:
        return np.asarray(rng.uniform(0.4, 0.9, shape))
    if clues.is_positive:
        return np.asarray(rng.uniform(0.5, 1.5, shape))
    if keys := [choice for choice in clues.choices if isinstance(choice, float | np.floating)]:
        return np.asarray(rng.choice(np.asarray(keys), shape))
    single = field.slot.dtype == ir.DataType.FLOAT and clues.affine is None
    values = np.asarray(rng.standard_normal(shape, np.float32 if single else np.float64))
    if clues.affine is not None:
        mean, deviation = clues.affine
        return np.asarray(values * deviation + mean)
    for feature, thresholds in clues.thresholds.items():
        if len(shape) == 2 and feature < shape[1]:
            spread = float(np.std(thresholds)) or abs(thresholds[0]) or 1.0
            values[:, feature] = rng.choice(thresholds, shape[0]) + rng.normal(0, 0.1 * spread, shape[0])
    return values


Change = Callable[[Array, np.random.Generator], Array | None]
"""The random values of a float input, to those of a regime; None where the dtype has no such numbers."""


def changed(regime: str, field: Field, value: Any, rng: np.random.Generator) -> Any:
    """Random values as another regime has them: the same object where it leaves them alone.

    Masks stay as they are, and so do single numbers beside other inputs: they are parameters, such as a speed.
    """
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list):
        made = [changed(regime, field, item, rng) for item in value]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    if regime == ZEROS:
        return np.zeros_like(value) if _takes_zeros(field, value) else value
    if field.is_float and not field.clues.exact and _is_data(field, value):
        found = HARD[regime](value, rng)
        return value if found is None else found
    return value


def _is_data(field: Field, value: Array) -> bool:
    return value.size > (0 if field.is_alone else 1) and not field.is_mask


def _takes_zeros(field: Field, value: Array) -> bool:
    clues = field.clues
    within = clues.low is None or clues.low <= 0
    return within and value.dtype.kind != "O" and not clues.is_structural and _is_data(field, value)


def _rarely(special: tuple[float, ...]) -> Change:
    """Here and there a special value, at least one."""

    def change(value: Array, rng: np.random.Generator) -> Array | None:
        numbers = np.asarray(special).astype(value.dtype)
        if not np.array_equal(numbers.astype(np.float64), special, equal_nan=True):
            return None
        chosen = np.asarray(rng.random(value.shape) < RARE)
        chosen.reshape(-1)[rng.integers(0, value.size)] = True
        made = value.copy()
        made[chosen] = numbers[rng.integers(0, len(numbers), int(chosen.sum()))]
        return made

    return change


def _scaled(low: Callable[[Any], float], high: Callable[[Any], float]) -> Change:
    """Either sign, the exponents evenly spread between two limits of the dtype."""

    def change(value: Array, rng: np.random.Generator) -> Array:
        limits = ir.DataType.from_numpy(value.dtype)
        powers = rng.uniform(np.log2(low(limits)), np.log2(high(limits)), value.shape)
        signs = np.where(np.asarray(value, np.float64) < 0, -1.0, 1.0)
        return np.asarray(signs * np.exp2(powers)).astype(value.dtype)

    return change


HARD: dict[str, Change] = {
    "NaN": _rarely((np.nan,)),
    "infinity": _rarely((np.inf, -np.inf)),
    "denormal": _scaled(lambda d: float(d.tiny) / 2**d.mantissa_bitwidth * 2, lambda d: float(d.tiny) / 2),
    "very small": _scaled(lambda d: float(d.tiny), lambda d: float(d.tiny) ** 0.25),
    "very large": _scaled(lambda d: float(d.max) ** 0.25, lambda d: float(d.max) ** 0.5),
}
"""The edges: each a regime of its own."""
EDGE_REGIMES = (ZEROS, *HARD, EMPTY)
"""How the labels of sets begin that a sound model may refuse."""
REGIMES = (RANDOM, *EDGE_REGIMES)
