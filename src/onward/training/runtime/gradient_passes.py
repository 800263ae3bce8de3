"""The two ways through a training graph: with all gradients kept, or with each used up as soon as it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onward.training.native import UnprintableError, chosen, wanted, with_updates
from onward.training.runtime.buffers import SharedBuffer
from onward.training.runtime.session import Saving, bind_input, bind_output, open_changing, open_session
from onward.training.speed.scattered import Rows, scatter_in_place
from onward.training.step_graphs import LEARNING_RATE, NUMBERS, ROWS, STEP
from onward.training.trainable import Trainable


class Kept:
    """Writes gradients into a buffer."""

    def __init__(
        self,
        trainable: Trainable,
        weights: SharedBuffer,
        threads: int | None,
        kernels: bool | None,
        saving: Saving,
    ) -> None:
        graph, scattered = scatter_in_place(trainable.gradients)
        self.session: Any = open_session(graph, threads, lean=True, kernels=chosen(kernels), saving=saving)
        self.own = {each.start for each in scattered}
        """The inputs that are bound here."""
        self.binding = self.session.io_binding()
        self.gradients = weights.like()
        self._one_by_one = [f"{name}.{part}" for name in trainable.rows for part in (ROWS, NUMBERS)]
        for name in self._one_by_one:
            self.binding.bind_output(name)
        outputs = {f"{name}.grad": view for name, view in self.gradients.views.items()}
        shapes = {value.name: value.shape for value in self.session.get_outputs()}
        for name, view in outputs.items():
            known = all(isinstance(size, int) for size in shapes[name])
            bind_output(self.binding, name, view.reshape(shapes[name]) if known else view)
        self.rows = Rows(scattered, outputs, self.binding)

    def prepare(self) -> None:
        """Clear what the last run has written; how many rows come is not known before."""
        self.rows.clear()
        for name in self._one_by_one:
            self.binding.bind_output(name)

    def one_by_one(self) -> dict[str, Any]:
        """The rows that the last run looked up, and their numbers, where the optimizer reads them."""
        found = self.binding.get_outputs()[: len(self._one_by_one)] if self._one_by_one else []
        return dict(zip(self._one_by_one, found, strict=True))


class Used:
    """Makes steps of the optimizer as well: a gradient is gone as soon as its weight has followed it."""

    def __init__(self, session: Any, weights: SharedBuffer, state: Mapping[str, SharedBuffer]) -> None:
        self.session = session
        self.binding = session.io_binding()
        self._rate, self._step = np.zeros((), np.float32), np.zeros((), np.int64)
        views = {f"{name}.{slot}": view for slot, flat in state.items() for name, view in flat.views.items()}
        self.own = {LEARNING_RATE, STEP, *views}
        """The inputs that are bound here."""
        bind_input(self.binding, LEARNING_RATE, self._rate)
        bind_input(self.binding, STEP, self._step)
        for name, view in views.items():
            bind_input(self.binding, name, view)
        for name, view in {**weights.views, **views}.items():
            bind_output(self.binding, f"{name}.next", view)

    def prepare(self, rate: float, step: int) -> None:
        """The learning rate and the number of the step that a run makes."""
        self._rate[...], self._step[...] = rate, step


def used(
    trainable: Trainable,
    weights: SharedBuffer,
    state: Mapping[str, SharedBuffer],
    threads: int | None,
    kernels: bool | None,
    saving: Saving,
) -> Used | None:
    """Such steps where they can be had: with a compiler, and an optimizer that takes gradients one by one."""
    if not wanted(kernels):
        return None
    try:
        session = open_changing(*with_updates(trainable), threads, saving)
    except UnprintableError:
        return None
    return None if session is None else Used(session, weights, state)
