"""What `onward convert` can convert from."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.model import Model
    from onward.verification.runners import Run


@dataclass(frozen=True)
class Original:
    """A model as ONNX, and how the framework it comes from runs it; None for an ONNX file."""

    model: Model
    run: Run | None = None


def _saved_model(path: Path, args: argparse.Namespace) -> Model:
    from onward.frontends.tensorflow.convert import from_tensorflow

    return from_tensorflow(path, args.signature, **_options(args))


def _keras(path: Path, args: argparse.Namespace) -> Model:
    from onward.frontends.keras.convert import from_keras
    from onward.verification.artifacts.keras import TRUSTED, define_layers, sources_of

    if args.signature:
        raise OnwardError("--signature is for SavedModels")
    beside = sources_of(path)
    if beside and not args.trust:
        names = ", ".join(source.name for source in beside)
        raise OnwardError(f"{path}: layers of it are defined in {names} beside it; --trust runs that code")
    TRUSTED.set(args.trust)
    define_layers(path)
    return from_keras(path, **_options(args))


def _tflite(path: Path, args: argparse.Namespace) -> Model:
    from onward.frontends.tflite.convert import from_tflite

    if args.signature or args.allow_custom_ops:
        raise OnwardError("--signature and --allow-custom-ops are not for TensorFlow Lite")
    return from_tflite(path, **({} if args.opset is None else {"opset": args.opset}))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {"allow_custom_ops": args.allow_custom_ops}
    return given | ({} if args.opset is None else {"opset": args.opset})


FRONTENDS: dict[str, Callable[[Path, argparse.Namespace], Model]] = {
    "SavedModel": _saved_model,
    "Keras model": _keras,
    "TensorFlow Lite model": _tflite,
}
"""By the kind of file or folder, which is told by what is in it."""


def read(args: argparse.Namespace) -> Original:
    """The model of a file or folder, whatever framework it is of."""
    from onward.model import load
    from onward.verification.artifacts import kind_of, open_artifact

    path = Path(args.model)
    kind = kind_of(path)
    if kind is None:
        if args.opset is not None or args.signature or args.allow_custom_ops or args.to == "onnx":
            raise OnwardError(
                f"{path} is no {' or '.join(FRONTENDS)}: --to onnx, --opset, --signature and --allow-custom-ops are for"
                " those"
            )
        return Original(load(args.model))
    if kind.name not in FRONTENDS:
        raise OnwardError(f"{path}: a {kind.name} cannot be converted from; these can: ONNX, {', '.join(FRONTENDS)}")
    model = FRONTENDS[kind.name](path, args)
    return Original(model, None if args.no_verify or args.signature else open_artifact(path).run)
