"""Trains on plain ONNX Runtime: one session for gradients, one for the optimizer, weights and state in place."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError, RunFailure
from onward.model import Model
from onward.training.flat import Flat
from onward.training.trainable import LEARNING_RATE, LOSS, STEP, Trainable, updates
from onward.verify.runners import failures

if TYPE_CHECKING:
    import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
Batch = Mapping[str, Any]
CHUNK = 1 << 16
"""Elements of an optimizer's step at a time: what it reads and writes stays in the cache."""
CPU = ("cpu", 0)


class DivergedError(OnwardError):
    """The loss is no longer a number."""


class Trainer:
    """Makes training steps. Parameters, gradients and state stay where they are from step to step."""

    def __init__(self, trainable: Trainable, *, lr: float | None = None, threads: int | None = None) -> None:
        self.trainable = trainable
        self.lr = trainable.optimizer.lr if lr is None else lr
        self.steps = trainable.step
        dtypes = {array.dtype for array in trainable.parameters.values()}
        if len(dtypes) != 1:
            raise OnwardError(f"parameters of several dtypes are not trained together: {sorted(map(str, dtypes))}")
        self._dtype = dtypes.pop()
        self._weights = Flat.of(trainable.parameters, self._dtype)
        self._gradients = self._weights.like()
        self._state = {slot: self._slot(slot) for slot in trainable.optimizer.states}
        self._buffers = {name: array.copy() for name, array in trainable.buffers.items()}
        self._session = _session(trainable.gradients, threads)
        self._update = _Update(trainable, self._weights, self._gradients, self._state, threads)
        self._loss = np.zeros((), self._dtype)
        self._inputs = {value.name: value for value in self._session.get_inputs()}

    def _slot(self, slot: str) -> Flat:
        given = {name: self.trainable.state[f"{name}.{slot}"] for name in self.trainable.parameters}
        return Flat.of(given, self._dtype)

    @property
    def parameters(self) -> dict[str, Array]:
        """The weights as they are now: views, not copies."""
        return self._weights.views

    @property
    def state(self) -> dict[str, Array]:
        """Of the optimizer, `<parameter>.<slot>`: views, not copies."""
        return {f"{name}.{slot}": view for slot, flat in self._state.items() for name, view in flat.views.items()}

    @property
    def buffers(self) -> dict[str, Array]:
        """Running statistics as they are now."""
        return self._buffers

    def step(self, batch: Batch) -> float:
        """One step on a batch, arrays by input name; gives the loss before it."""
        loss = self.gradients(batch)
        if not math.isfinite(loss):
            raise DivergedError(self._diagnosis(loss))
        self.steps += 1
        self._update(self.lr, self.steps)
        return loss

    def gradients(self, batch: Batch) -> float:
        """The loss of a batch; its gradients are then in place."""
        binding = self._session.io_binding()
        feeds = self._checked(batch)
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        for name, view in self._weights.views.items():
            binding.bind_input(name, *CPU, view.dtype.type, view.shape, view.ctypes.data)
        copies = {name: array.copy() for name, array in self._buffers.items()}  # the kernel overwrites what it reads
        for name, array in copies.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output(LOSS, *CPU, self._dtype.type, (), self._loss.ctypes.data)
        for name, view in self._gradients.views.items():
            binding.bind_output(f"{name}.grad", *CPU, view.dtype.type, view.shape, view.ctypes.data)
        for name, array in self._buffers.items():
            binding.bind_output(f"{name}.next", *CPU, array.dtype.type, array.shape, array.ctypes.data)
        with failures("onnxruntime"):
            self._session.run_with_iobinding(binding)
        return float(self._loss)

    def _checked(self, batch: Batch) -> dict[str, Array]:
        """The batch as arrays that the session takes; an error says what is wrong with it."""
        own = self._weights.views.keys() | self._buffers.keys()
        wanted = [name for name in self._inputs if name not in own]
        if missing := [name for name in wanted if name not in batch]:
            raise RunFailure(f"the batch has no {missing[0]!r}; the step takes {', '.join(wanted)}")
        if unknown := [name for name in batch if name not in wanted]:
            raise RunFailure(f"the step takes no {unknown[0]!r}; it takes {', '.join(wanted)}")
        return {name: self._array(name, batch[name]) for name in wanted}

    def _array(self, name: str, value: Any) -> Array:
        declared = self._inputs[name]
        dtype = _NUMPY.get(declared.type)
        array = np.ascontiguousarray(value.numpy() if hasattr(value, "numpy") else value, dtype)
        dims = declared.shape
        fits = len(dims) == array.ndim and all(
            not isinstance(d, int) or d == n for d, n in zip(dims, array.shape, strict=True)
        )
        if dims and not fits:
            raise RunFailure(f"{name!r} is of shape {list(array.shape)}, but the step takes {dims}")
        return array

    def _diagnosis(self, loss: float) -> str:
        """What is known about a loss that is no number."""
        bad = [name for name, view in self.parameters.items() if not np.isfinite(view).all()]
        where = f"the first bad weight is {bad[0]}" if bad else "all weights are finite"
        return (
            f"the loss is {loss} at step {self.steps + 1}; {where}. "
            f"Try a smaller learning rate than {self.lr:g}, clipped gradients, or other data"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as it was given, with the weights as they are now."""
        self.tuned().save(path)

    def tuned(self) -> Model:
        """The model as it was given, with the weights as they are now."""
        return with_weights(self.trainable.original, self.parameters | self._buffers)


class _Update:
    """An optimizer's step in place: chunk by chunk where elements do not depend on each other, else by parameter."""

    def __init__(
        self, trainable: Trainable, weights: Flat, gradients: Flat, state: Mapping[str, Flat], threads: int | None
    ) -> None:
        self._rate, self._step = np.zeros((), np.float32), np.zeros((), np.int64)
        flats = {"w": weights, "w.grad": gradients, **{f"w.{slot}": flat for slot, flat in state.items()}}
        dtype = weights.buffer.dtype
        self._bindings: list[tuple[Any, Any]] = []
        sessions: dict[tuple[int, ...], Any] = {}
        if getattr(trainable.optimizer, "by_element", True):
            pieces = [{key: flat.buffer[part] for key, flat in flats.items()} for part in weights.chunks(CHUNK)]
        else:
            pieces = [{key: flat.views[name] for key, flat in flats.items()} for name in weights.views]
        for piece in pieces:
            shape = piece["w"].shape
            if shape not in sessions:
                graph, _ = updates({"w": np.zeros(shape, dtype)}, trainable.optimizer)
                sessions[shape] = _session(graph, threads)
            self._bindings.append((sessions[shape], self._bound(sessions[shape], piece)))

    def _bound(self, session: Any, piece: Mapping[str, Array]) -> Any:
        binding = session.io_binding()
        binding.bind_input(LEARNING_RATE, *CPU, np.float32, (), self._rate.ctypes.data)
        binding.bind_input(STEP, *CPU, np.int64, (), self._step.ctypes.data)
        for key, array in piece.items():
            binding.bind_input(key, *CPU, array.dtype.type, array.shape, array.ctypes.data)
            if key != "w.grad":
                binding.bind_output(f"{key}.next", *CPU, array.dtype.type, array.shape, array.ctypes.data)
        return binding

    def __call__(self, lr: float, step: int) -> None:
        self._rate[...], self._step[...] = lr, step
        for session, binding in self._bindings:
            session.run_with_iobinding(binding)


def with_weights(model: Model, arrays: Mapping[str, Array]) -> Model:
    """A copy of a model with other elements in its weights."""
    copy = model.ir.clone()
    weights = copy.graph.initializers
    for name, array in arrays.items():
        if name not in weights:
            raise OnwardError(f"the model has no weight {name!r} to put the trained one in")
        weights[name].const_value = ir.Tensor(array.copy(), name=name)
    return Model(copy, list(model.training_info), None, model.ir_version)


def _session(graph: ir.Model, threads: int | None) -> onnxruntime.InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if threads:
        options.intra_op_num_threads = threads
    with failures("onnxruntime"):
        proto = Model(graph).to_proto().SerializeToString()
        return onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])


_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def batches(data: Mapping[str, Array], size: int, seed: int = 0, shuffle: bool = True) -> Iterable[dict[str, Array]]:
    """Arrays by name cut into batches, in an order that follows from the seed."""
    count = len(next(iter(data.values())))
    order = np.random.default_rng(seed).permutation(count) if shuffle else np.arange(count)
    for start in range(0, count, size):
        part = order[start : start + size]
        yield {name: array[part] for name, array in data.items()}


def npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of an .npz file; no pickle is opened."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise OnwardError(f"{path}: no .npz file of arrays: {error}") from error
