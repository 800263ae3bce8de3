"""An optimizer's step on ONNX Runtime, in place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.runners.calls import raised_failures
from onward.runners.custom import failing
from onward.training.native import Kernel, UnprintableError, wanted
from onward.training.runtime.buffers import SharedBuffer
from onward.training.runtime.session import bind_input, bind_output, open_session
from onward.training.step_graphs import LEARNING_RATE, STEP, updates
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
CHUNK = 1 << 16
"""Elements of an optimizer's step at a time: what it reads and writes stays in the cache."""
BY_ELEMENT = frozenset({"Add", "Sub", "Mul", "Div", "Sum", "Where", "Neg", "Max", "Min", "Clip", "Cast"})
"""Ops that may write an element where they have read it."""


def stepping(
    trainable: Trainable,
    weights: SharedBuffer,
    gradients: SharedBuffer,
    state: Mapping[str, SharedBuffer],
    threads: int | None,
    kernels: bool | None,
    rows: Callable[[], Mapping[str, Any]] = dict,
) -> Callable[[float, int], None]:
    """What makes a step of the optimizer, given the learning rate and the number of the step: compiled if possible.

    `rows` gives those gradients that are not in place, as values of ONNX Runtime by the names of inputs.
    """
    if wanted(kernels):
        with contextlib.suppress(UnprintableError):
            return Kernel(trainable, weights, gradients, state, threads)
    return Update(trainable, weights, gradients, state, threads, rows)


class Update:
    """Chunk by chunk where every element goes its own way by the same rule, else all parameters at once."""

    def __init__(
        self,
        trainable: Trainable,
        weights: SharedBuffer,
        gradients: SharedBuffer,
        state: Mapping[str, SharedBuffer],
        threads: int | None,
        rows: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._rows = rows
        self._rate, self._step = np.zeros((), np.float32), np.zeros((), np.int64)
        self._bindings: list[tuple[Any, Any]] = []
        self._copies: list[tuple[Array, Array]] = []
        if trainable.uniform:
            flats = {"w": weights, "w.grad": gradients, **{f"w.{slot}": flat for slot, flat in state.items()}}
            sessions: dict[int, tuple[ir.Model, Any]] = {}
            for part in weights.chunks(CHUNK):
                piece = {key: flat.buffer[part] for key, flat in flats.items()}
                size = piece["w"].size
                if size not in sessions:
                    graph, _ = updates({"w": np.zeros(size, weights.buffer.dtype)}, trainable.optimizer)
                    sessions[size] = graph, open_session(graph, threads)
                self._bind(*sessions[size], piece)
        else:
            arrays = {**weights.views, **{f"{name}.grad": view for name, view in gradients.views.items()}}
            for slot, flat in state.items():
                arrays |= {f"{name}.{slot}": view for name, view in flat.views.items()}
            self._bind(trainable.update, open_session(trainable.update, threads), arrays)

    def _bind(self, graph: ir.Model, session: Any, arrays: Mapping[str, Array]) -> None:
        binding = session.io_binding()
        names = {value.name for value in session.get_inputs()}
        results = [value.name for value in session.get_outputs()]
        given: dict[str, Array] = {LEARNING_RATE: self._rate, STEP: self._step, **arrays}
        for name, array in given.items():
            if name in names:
                bind_input(binding, name, array)
        safe = written_in_place(graph.graph)
        for result in results:
            target = arrays[result.removesuffix(".next")]
            if result not in safe:
                copy = np.empty_like(target)
                self._copies.append((target, copy))
                target = copy
            bind_output(binding, result, target)
        self._bindings.append((session, binding))

    def __call__(self, lr: float, step: int) -> None:
        self._rate[...], self._step[...] = lr, step
        given = self._rows()
        with raised_failures("onnxruntime"), failing():
            for session, binding in self._bindings:
                for name, value in given.items():
                    binding.bind_ortvalue_input(name, value)
                session.run_with_iobinding(binding)
        for target, copy in self._copies:
            target[...] = copy


def written_in_place(graph: ir.Graph) -> set[str]:
    """The outputs `<input>.next` that may be written over their inputs.

    That is, wherever nothing reads the input but what the output is computed from, and the last op element by element.
    """
    inputs = {value.name: value for value in graph.inputs}
    found = set()
    for output in graph.outputs:
        given = inputs.get((output.name or "").removesuffix(".next"))
        last = output.producer()
        while last is not None and last.op_type == "Identity" and last.inputs[0] is not None:
            last = last.inputs[0].producer()
        if given is None or last is None or last.op_type not in BY_ELEMENT:
            continue
        before: set[ir.Node] = {last}
        waiting = [last]
        while waiting:
            for value in waiting.pop().inputs:
                node = None if value is None else value.producer()
                if node is not None and node not in before:
                    before.add(node)
                    waiting.append(node)
        if all(node in before for node, _ in given.uses()):
            found.add(output.name or "")
    return found
