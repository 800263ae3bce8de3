"""What `onward convert` can convert to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.model import Model
    from onward.verification.runners import Inputs, Outputs, Run


@dataclass(frozen=True)
class Target:
    """A framework, or a format of one."""

    package: str
    """What has to be installed, as it is imported."""
    generate: Callable[[Model, Any], Source]
    """The source code of a model, given which weights are trainable."""
    runner: Callable[[Model, Source], Run]
    """A function that runs the result on arrays by name."""
    write: Callable[[Model, Source, Path], Path]


def _torch(model: Model, trainable: Any) -> Source:
    from onward.backends.torch.convert import generate

    return generate(model, trainable)


def _run_torch(model: Model, source: Source) -> Run:
    from onward.backends.torch.load import run as execute
    from onward.verification.runners.torch import run_module

    net = execute(source)
    names = [value.name or "" for value in model.ir.graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        return run_module(net, inputs, names)

    return run


def _tensorflow(model: Model, trainable: Any) -> Source:
    from onward.backends.tensorflow.convert import generate

    return generate(model, trainable)


def _run_tensorflow(model: Model, source: Source) -> Run:
    from onward.backends.tensorflow.load import run as execute
    from onward.verification.runners.tensorflow import runner_of

    return runner_of(execute(source), model.ir.graph)


def _run_traced(model: Model, source: Source) -> Run:
    from onward.backends.tensorflow.load import run as execute
    from onward.verification.runners.tensorflow import runner_of

    return runner_of(execute(source), model.ir.graph, traced=True)


def _package(model: Model, source: Source, folder: Path) -> Path:
    from onward.backends.emit.package import write_package

    return write_package(source, folder)


def _saved_model(model: Model, source: Source, folder: Path) -> Path:
    from onward.backends.tensorflow.saved_model import write_saved_model

    return write_saved_model(source, model.ir.graph, folder)


TARGETS = {
    "torch": Target("torch", _torch, _run_torch, _package),
    "tensorflow": Target("tensorflow", _tensorflow, _run_tensorflow, _package),
    "savedmodel": Target("tensorflow", _tensorflow, _run_traced, _saved_model),
}
