"""The data of a verification: given by the user, or made up from the graph: sizes that fit, values that fit.

Made-up sets are tried on the source, so that sizes and values that it does not take are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from onward import runners
from onward.advice.nearest import meant
from onward.advice.options import option
from onward.canon.inline import inline
from onward.errors import InvalidDataError, OnwardError, UnsupportedError
from onward.graph.slots import Slot, slots
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification.data import given as sources
from onward.verification.data import regimes as kinds
from onward.verification.data.clue_rules import CLUES
from onward.verification.data.clues import clues_of
from onward.verification.data.given import DataSet
from onward.verification.data.linked_sizes import Fit
from onward.verification.data.measured_sizes import Measure
from onward.verification.data.regimes import EDGE_REGIMES, EMPTY, RANDOM, REGIMES, UNCLUED, Field
from onward.verification.data.sizes import BATCH, candidates, choices, fit
from onward.verification.data.windows import room_for_windows

__all__ = ["EDGE_REGIMES", "DataSet", "Inputs", "Outputs", "accepts", "data_sets", "input_sets", "make_inputs"]

Runs = Callable[[Inputs], bool]
MORE_TRIES = 8
"""How many further sizes are tried once the first are found."""
MEASURED = 8
"""On how many sizes it is measured which others fit them."""
OTHER_INTEGERS = 8
"""On how many sizes other integers are tried."""


def data_sets(
    model: Model | Sequence[Slot],
    *,
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    regimes: Sequence[str] = ("random", "zeros"),
    hard: bool = False,
    runs: Runs | None = None,
    sizes: int = 2,
) -> Iterator[DataSet]:
    """Sets of inputs, each with a label such as 'random, batch=2, seq=12'.

    `inputs` are given ones: arrays by name, a list of such, or a path (see `sources`). Otherwise inputs are generated:
    in the regime `random` with `sizes` sizes of each dynamic dimension, as far as it can have them, in the others with
    the smallest of those. `dims` fixes dynamic dimensions by name, and `hard` adds the regimes of NaN, infinities,
    denormals, very small and very large numbers, and an empty batch. Regimes that change nothing are left out; a sound
    model may refuse the sets of those in `EDGE_REGIMES`.

    `runs` says whether the source runs on given inputs (`accepts` makes one), by which sizes and random values are
    chosen; by default ONNX Runtime is asked. It is not asked where there is nothing to choose. The same seed gives the
    same sets.
    """
    if inputs is not None and not isinstance(model, Model) and not model:
        yield from sources.read_unchecked(inputs)
        return
    maker = Maker.of(model)
    maker.check(dims)
    if inputs is not None:
        yield from sources.read(inputs, maker.slots, model if isinstance(model, Model) else None, dims)
        return
    wanted = [*regimes, *(name for name in REGIMES[2:] if hard and name not in regimes)]
    if unknown := [name for name in wanted if name not in REGIMES]:
        near = meant(unknown[0], REGIMES)
        raise InvalidDataError(f"there is no regime {unknown[0]!r}; there are {', '.join(REGIMES)}{near}")
    referees: tuple[Runs, ...] = (runs or _always,)
    if maker.nothing_to_choose(dims):
        referees = (_always,)
    elif runs is None and isinstance(model, Model):
        run = runners.prepare("onnxruntime", model)
        referees = accepts(run), accepts(run, empty=True)
    room = room_for_windows(model) if isinstance(model, Model) and maker.is_open(dims) else None
    if room is not None:
        referees = (_both(referees[0], room), *referees)
    found: list[tuple[dict[str, int], Inputs]] = []
    feasible = maker.feasible(referees, seed, dims, sizes)
    for chosen, feeds in itertools.islice(feasible, None if RANDOM in wanted else 1):
        found.append((chosen, feeds))
        if RANDOM in wanted:
            yield DataSet(maker.label(RANDOM, chosen), feeds)
    chosen, feeds = min(found, key=lambda one: sum(value.size for value in one[1].values() if hasattr(value, "size")))
    for number, regime in enumerate(name for name in wanted if name != RANDOM):
        made = maker.edge(regime, chosen, feeds, np.random.default_rng([seed, 1 + number]))
        if made is not None:
            yield DataSet(maker.label(regime, made[0]), made[1])


def make_inputs(model: Model, seed: int = 0, dims: Mapping[str, int] | None = None) -> Inputs:
    """One set of inputs that the model runs on; the same seed gives the same inputs."""
    return next(data_sets(model, dims=dims, seed=seed, regimes=(RANDOM,))).inputs


def input_sets(model: Model, seed: int = 0, dims: Mapping[str, int] | None = None) -> Iterator[Inputs]:
    """Sets of inputs that the model runs on, each of other sizes; a single one where nothing is dynamic."""
    for made in data_sets(model, dims=dims, seed=seed, regimes=(RANDOM,), sizes=100):
        yield made.inputs


def accepts(run: Run, *, empty: bool = False) -> Runs:
    """Whether something runs on given inputs and answers: no output is `empty`, unless an input is."""

    def runs(feeds: Inputs) -> bool:
        try:
            outputs = run(feeds)
        except OnwardError:
            return False
        return empty or any(map(_is_empty, feeds.values())) or not any(map(_is_empty, outputs.values()))

    return runs


def _both(first: Runs, second: Runs) -> Runs:
    return lambda feeds: first(feeds) and second(feeds)


def _always(feeds: Inputs) -> bool:
    return True


def _is_empty(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_empty, value))
    return isinstance(value, np.ndarray) and value.size == 0


@dataclass(frozen=True)
class Option:
    """Sizes that may do, and the inputs to try them on."""

    sizes: dict[str, int]
    feeds: Callable[[], Inputs]
    unclued: int | None = None
    """What integers are of which nothing is known; None for what they are at first."""


@dataclass
class Maker:
    """Makes up inputs."""

    slots: list[Slot]
    graph: ir.Graph
    fit: Fit
    """What the graph says about sizes."""
    model: Model | None = None

    @classmethod
    def of(cls, model: Model | Sequence[Slot]) -> Maker:
        if not isinstance(model, Model):
            if not model:
                raise UnsupportedError(f"the model does not say which inputs it takes: give {option('inputs')}")
            return cls(list(model), ir.Graph([], [], nodes=[]), Fit())
        whole = model.ir
        if whole.functions:
            whole = whole.clone()
            inline(whole)
        inputs = slots(whole)
        return cls(inputs, whole.graph, fit(whole.graph, inputs), Model(whole))

    @property
    def dynamic(self) -> list[str]:
        """The names of dynamic dimensions, in order."""
        return list(dict.fromkeys(dim for slot in self.slots for dim in slot.dims if isinstance(dim, str)))

    def check(self, dims: Mapping[str, int] | None) -> None:
        for name, size in (dims or {}).items():
            if name not in self.dynamic:
                names = ", ".join(map(repr, self.dynamic)) or "none"
                raise InvalidDataError(
                    f"no input has a dynamic dimension {name!r}; there are {names}{meant(name, self.dynamic)}"
                )
            if not isinstance(size, int | np.integer) or size < 0:
                raise InvalidDataError(
                    f"the dimension {name!r} cannot be {size!r}: give a whole number that is not negative"
                )

    def nothing_to_choose(self, dims: Mapping[str, int] | None) -> bool:
        """Whether all sizes are known, and no input could be something like an index or a shape."""
        wide = [slot for slot in self.slots if slot.dtype.is_integer() and slot.dtype.bitwidth > 8]
        return not wide and not self._free(dims)

    def is_open(self, dims: Mapping[str, int] | None) -> bool:
        """Whether there are sizes to choose."""
        return bool(self._free(dims))

    def feasible(
        self, referees: Sequence[Runs], seed: int, dims: Mapping[str, int] | None, sizes: int
    ) -> Iterator[tuple[dict[str, int], Inputs]]:
        """Sizes and inputs that the first referee lets pass, or else the next one; the last resort is to measure."""
        found = False
        can_measure = self.model is not None and self.fit.meetings and self._free(dims)
        for options in (self._options, self._measured) if can_measure else (self._options,):
            for runs in referees:
                for made in self._feasible(runs, options(dims, seed), dims, sizes):
                    found = True
                    yield made
                if found:
                    return
        tried = list(self._options(dims, seed))
        if self._free(dims):
            raise self._none_found(dims, len(tried))
        yield tried[0].sizes, self.fill(tried[0].sizes, seed)

    def _feasible(
        self, runs: Runs, options: Iterator[Option], dims: Mapping[str, int] | None, sizes: int
    ) -> Iterator[tuple[dict[str, int], Inputs]]:
        """Goes on as long as a dimension gets a new one of `sizes` sizes, and it does not take too long."""
        seen: dict[str, list[int]] = {name: [] for name in self._free(dims)}
        left: int | None = None
        for one in options:
            chosen = one.sizes
            if left is not None:
                if left == 0 or one.unclued is not None:
                    return
                if not any(len(s) < sizes and chosen[n] not in s for n, s in seen.items()):
                    continue
            feeds = one.feeds()
            if runs(feeds):
                left = MORE_TRIES if left is None or sizes > 2 else left
                for name, known in seen.items():
                    known.append(chosen[name])
                yield chosen, feeds
                if all(len(set(known)) >= sizes for known in seen.values()):
                    return
            elif left is not None:
                left -= 1

    def _options(self, dims: Mapping[str, int] | None, seed: int) -> Iterator[Option]:
        """Sizes and inputs that may do.

        After all that the graph says about sizes comes a part of it: axes that seem to be equal may be broadcast.
        """
        tried: list[dict[str, int]] = []
        count = itertools.count()

        def made(chosen: dict[str, int], unclued: int | None = None) -> Option:
            return Option(chosen, partial(self.fill, chosen, seed + next(count), unclued), unclued)

        for loose in (False, True) if self._free(dims) else (False,):
            fitted = fit(self.graph, self.slots, loose=True) if loose else self.fit
            for chosen in candidates(self.slots, dims, fitted):
                if chosen not in tried:
                    tried.append(chosen)
                    yield made(chosen)
        for unclued in UNCLUED[1:]:
            for chosen in tried[:OTHER_INTEGERS]:
                yield made(chosen, unclued)

    def _measured(self, dims: Mapping[str, int] | None, seed: int) -> Iterator[Option]:
        """The same, where some sizes fit what the model makes of the others."""
        assert self.model is not None
        measure = Measure(self.model, self.fit)
        for one in itertools.islice(self._options(dims, seed), MEASURED):
            chosen, feeds = measure.fitted(one.sizes, dims or {}, partial(self.fill, seed=seed))
            yield Option(chosen, partial(dict, feeds))

    def _free(self, dims: Mapping[str, int] | None) -> list[str]:
        return sorted(set(self.dynamic) - set(dims or {}))

    def _none_found(self, dims: Mapping[str, int] | None, tries: int) -> UnsupportedError:
        names = self._free(dims)
        return UnsupportedError(
            f"no sizes found on which the model runs: {tries} tried for the dynamic dimensions {', '.join(names)}. "
            f"Give inputs, such as {option('inputs', 'data.npz')}, or sizes, such as {option('dims', {names[0]: 16})}."
        )

    def fields(self, sizes: Mapping[str, int]) -> list[Field]:
        longest = max((size for name, size in sizes.items() if name != "batch"), default=8)
        return [
            Field(
                slot,
                tuple(sizes[dim] if isinstance(dim, str) else dim for dim in slot.dims),
                clues_of(slot.value, self.fit, sizes, CLUES),
                longest,
                len(self.slots) == 1,
            )
            for slot in self.slots
        ]

    def fill(self, sizes: Mapping[str, int], seed: int, unclued: int | None = None) -> Inputs:
        """Values for the inputs, their dynamic dimensions having the given sizes."""
        rng = np.random.default_rng(seed)
        try:
            return {field.slot.name: kinds.random(field, rng, unclued) for field in self.fields(sizes)}
        except (MemoryError, ValueError, OverflowError) as error:  # numpy has no arrays so large
            said = ", ".join(f"{name}={size}" for name, size in sizes.items())
            raise InvalidDataError(f"inputs of the sizes {said or 'declared'} cannot be made: {error}") from error

    def edge(
        self, regime: str, sizes: dict[str, int], feeds: Inputs, rng: np.random.Generator
    ) -> tuple[dict[str, int], Inputs] | None:
        """Random inputs as another regime has them; None where that makes no difference."""
        if regime == EMPTY:
            return self._without_batch(sizes)
        made = {f.slot.name: kinds.changed(regime, f, feeds[f.slot.name], rng) for f in self.fields(sizes)}
        return None if all(made[name] is feeds[name] for name in feeds) else (sizes, made)

    def _without_batch(self, sizes: dict[str, int]) -> tuple[dict[str, int], Inputs] | None:
        batches = self.batches()
        if not batches:
            return None
        smaller = {name: 0 if name in batches else size for name, size in sizes.items()}
        return smaller, self.fill(smaller, 0)

    def batches(self) -> list[str]:
        """The dynamic dimensions that are the batch: the first axis of the first input that has one, and its equals."""
        names = [
            n for s in self.slots for axis, n in enumerate(s.dims) if isinstance(n, str) and choices(s, axis) == BATCH
        ]
        firsts = {self.fit.first(name) for name in names if self.fit.size(name) is None}
        return [name for name in self.dynamic if self.fit.first(name) in firsts]

    def label(self, regime: str, sizes: Mapping[str, int]) -> str:
        """'random, batch=2': dimensions that must be equal are named once."""
        said: dict[tuple[str, int], str] = {}
        for name in self.dynamic:
            if self.fit.size(name) is None or sizes[name] != self.fit.size(name):
                said.setdefault((self.fit.first(name), sizes[name]), name)
        return ", ".join([regime, *(f"{name}={size}" for (_, size), name in said.items())])
