"""The frameworks that a training is exported to: how each writes its package, and how that is run and read."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onward.backends.backend import backend, require
from onward.errors import RunFailure
from onward.runners.isolate import Isolated
from onward.training.export.plan import Plan, places_of
from onward.training.export.state import Place
from onward.training.trainable import Trainable
from onward.training.verification.package import Batches, is_whole_step, opened
from onward.training.verification.source import Array, Passed, Tensors


@dataclass(frozen=True)
class Target:
    """A framework. The file of its name in this folder says how its packages are run."""

    name: str
    """As it is called on the command line; a backend has the same name."""
    write: str
    """The function that writes a package, as module of `onward.training.export` and name."""
    script: str
    """Its text of `train.py`, as module and name."""


TARGETS = {
    target.name: target
    for target in (
        Target("torch", "torch.package:to_torch_package", "torch.script:Script"),
        Target("keras", "keras.package:to_keras_package", "keras.script:Script"),
        Target("tensorflow", "tensorflow.package:to_tensorflow_package", "tensorflow.script:Script"),
        Target("jax", "jax.package:to_jax_package", "jax.script:Script"),
    )
}


PREFIX = "onward-"


class Exported:
    """A training in a framework, in a process of its own; tensors have the names and forms of the ONNX file."""

    def __init__(self, target: Target, trainable: Trainable) -> None:
        self.target, self._trainable = target, trainable
        require(backend(target.name))
        self._write: Callable[..., Path] = _named(target.write)
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        self._opened = 0
        self._places: list[Place] | None = None
        self._statistics: dict[str, str] = {}
        self._run: Isolated | None = None

    def put(self, start: Trainable) -> None:
        """Go on from the weights, the state and the step of `start`, which is the same training: by a package of it."""
        self._opened += 1
        own = Path(self._folder.name)
        folder = self._write(start, own / f"net_{own.name.removeprefix(PREFIX)}_{self._opened}")
        if self._run is None:
            self._run = Isolated(partial(opened, self.target.name))
            self._find(folder)
        self._ask("open", folder=folder, statistics=list(self._statistics.values()))

    def _find(self, folder: Path) -> None:
        """Where the package has what is trained, and running statistics."""
        given = self._trainable
        if is_whole_step(folder):
            held = {**given.parameters, **given.buffers}
            self._places = [Place(n, n, held[n].shape, np.arange(held[n].size)) for n in given.parameters]
            self._statistics = {name: name for name in given.buffers}
        else:
            script: type[Plan] = _named(self.target.script)
            self._places, self._statistics = places_of(given, backend(self.target.name), script)

    def step(self, batches: Batches) -> float:
        return float(np.mean(self._ask("step", batches=[dict(batch) for batch in batches])))

    def passed(self, batch: Mapping[str, Array], outputs: Mapping[str, Array]) -> Passed:
        """What one batch gives; of outputs, those that are asked for."""
        found, loss, slopes = self._ask("passed", batch=dict(batch))
        names = [value.name or "" for value in self._trainable.original.ir.graph.outputs]
        given = dict(zip(names, found, strict=False))
        gradients = {
            place.onnx_name: place.moved_back(slopes[place.name], self._trainable.parameters[place.onnx_name])
            for place in self._places or ()
        }
        return Passed({name: given[name] for name in outputs if name in given}, loss, gradients)

    def state(self) -> Tensors:
        """Weights, running statistics and the optimizer's state."""
        found = self._ask("state")
        kinds = {name: array.dtype for name, array in self._trainable.buffers.items()}
        result = {n: found[own].astype(kinds[n]) for n, own in self._statistics.items() if own in found}
        for place in self._places or ():
            like = self._trainable.parameters[place.onnx_name]
            result[place.onnx_name] = place.moved_back(found[place.name], like)
            for slot in self._trainable.optimizer.states:
                if f"{place.name}.{slot}" in found:
                    result[f"{place.onnx_name}.{slot}"] = place.moved_back(found[f"{place.name}.{slot}"], like)
        return result

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
        self._folder.cleanup()

    def _ask(self, what: str, **given: Any) -> Any:
        assert self._run is not None
        try:
            return self._run({"do": what, **given}).get("answer")
        except RunFailure as error:
            name = self.target.name
            raise error if str(error).startswith(name) else RunFailure(f"{name}: {error}") from error


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"onward.training.export.{module}"), name)
