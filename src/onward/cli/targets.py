"""What `onward convert` can convert to."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.model import Model
    from onward.runners.calls import Run


@dataclass(frozen=True)
class Target:
    """A framework, or a format of one."""

    package: str
    """What has to be installed, as it is imported."""
    generate: Callable[[Model, argparse.Namespace], Source]
    """The source code of a model."""
    write: Callable[[Model, Source, Path, argparse.Namespace], Path]
    runner: Callable[[Model, Source], Run] | None = None
    """A function that runs the result on arrays by name, before it is written; None where what is written is run."""
    is_file: bool = False
    names: Callable[[Path], Sequence[str]] = lambda path: [path.name]
    """Where what is written is run: the files or, in a folder, its parts, that it consists of."""
    check: Callable[[Path], None] | None = None
    """Refuses a place that is taken by something else."""


def _torch(model: Model, args: argparse.Namespace) -> Source:
    from onward.backends.torch.convert import generate

    return generate(model, args.trainable or True)


def _run_torch(model: Model, source: Source) -> Run:
    from onward.backends.torch.load import run as execute
    from onward.runners.torch import runner_of

    return runner_of(execute(source), model.ir.graph)


def _tensorflow(model: Model, args: argparse.Namespace) -> Source:
    from onward.backends.tensorflow.convert import generate

    return generate(model, args.trainable or True, args.inputs_nhwc or (), args.outputs_nhwc or (), cast=args.cast)


def _for_tflite(model: Model, args: argparse.Namespace) -> Source:
    from onward.backends.tensorflow.tflite import generate_for_tflite

    inputs, outputs = args.inputs_nhwc or (), args.outputs_nhwc or ()
    return generate_for_tflite(model, args.trainable or True, inputs, outputs, args.quantize, args.cast)


def _run_tensorflow(model: Model, source: Source) -> Run:
    from onward.backends.tensorflow.load import run as execute
    from onward.runners.tensorflow import runner_of

    return runner_of(execute(source), model.ir.graph)


def _package(model: Model, source: Source, folder: Path, args: argparse.Namespace) -> Path:
    from onward.backends.emit.package import write_package

    return write_package(source, folder)


def _saved_model(model: Model, source: Source, folder: Path, args: argparse.Namespace) -> Path:
    from onward.backends.tensorflow.saved_model import write_saved_model

    return write_saved_model(source, model.ir.graph, folder)


def _tflite(model: Model, source: Source, path: Path, args: argparse.Namespace) -> Path:
    from onward.backends.tensorflow.tflite import write_tflite
    from onward.verification.data.sets import data_sets

    samples = None if args.calibrate is None else [data.inputs for data in data_sets(model, inputs=args.calibrate)]
    return write_tflite(source, model.ir.graph, path, args.quantize, samples, args.select_tf_ops)


def _keras(model: Model, args: argparse.Namespace) -> Source:
    from onward.backends.keras.convert import built
    from onward.backends.keras.save import source_path

    module = source_path(Path(args.out)).stem
    return built(model, args.trainable or True, args.inputs_nhwc or (), args.outputs_nhwc or (), module)


def _keras_file(model: Model, source: Source, path: Path, args: argparse.Namespace) -> Path:
    from onward.backends.keras.convert import KerasSource
    from onward.backends.keras.save import write_keras

    assert isinstance(source, KerasSource)
    return write_keras(source, path)


def _keras_names(path: Path) -> Sequence[str]:
    from onward.backends.keras.save import file_names

    return file_names(path)


def _check_keras(path: Path) -> None:
    from onward.backends.keras.save import check_path

    check_path(path)


def _saved_model_parts(folder: Path) -> Sequence[str]:
    from onward.backends.tensorflow.saved_model import PARTS

    return PARTS


def _check_saved_model(folder: Path) -> None:
    from onward.backends.tensorflow.saved_model import check_folder

    check_folder(folder)


TARGETS = {
    "torch": Target("torch", _torch, _package, _run_torch),
    "tensorflow": Target("tensorflow", _tensorflow, _package, _run_tensorflow),
    "savedmodel": Target("tensorflow", _tensorflow, _saved_model, names=_saved_model_parts, check=_check_saved_model),
    "keras": Target("keras", _keras, _keras_file, is_file=True, names=_keras_names, check=_check_keras),
    "tflite": Target("tensorflow", _for_tflite, _tflite, is_file=True),
}
