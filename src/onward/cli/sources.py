"""What `onward convert` can convert from."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.errors import InvalidModelError, OnwardError

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Inputs, Run


LONGEST = 300
"""Characters of what a framework says about a damaged file."""


@dataclass(frozen=True)
class Original:
    """A model as ONNX, and how the framework it comes from runs it; None for an ONNX file, or where it is not run."""

    model: Model
    run: Run | None = None
    kind: str = "ONNX"
    inputs: Inputs | None = None
    """Inputs to compare on, where made-up ones would not do."""


def _saved_model(function: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_tensorflow

    return from_tensorflow(function, **_options(args))


def _function(path: Path, args: argparse.Namespace) -> Any:
    """A SavedModel or a graph as the function that is asked for."""
    from onward.frontends.tensorflow.sources import concrete

    taken = [_named(text) for text in args.input]
    checkpoint = None if args.checkpoint is None else Path(args.checkpoint)
    return concrete(path, args.signature, dict(taken) if taken else None, args.output, checkpoint)


def _named(text: str) -> tuple[str, Sequence[int | str | None] | None]:
    """`--input` of a graph: the name of a tensor, or with the shape as for other models."""
    from onward.cli.inputs import parsed

    if "[" not in text:
        return text, None
    (declared,) = parsed([text])
    return declared.name, declared.dims


def _keras(model: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_keras

    if args.signature:
        raise OnwardError("--signature is for SavedModels")
    return from_keras(model, training=False, **_options(args))


def _tflite(path: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_tflite

    if args.signature or args.allow_custom_ops:
        raise OnwardError("--signature and --allow-custom-ops are not for TensorFlow Lite")
    return from_tflite(path, check=False, **({} if args.opset is None else {"opset": args.opset}))


def _xgboost(model: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_xgboost

    return _of_trees(from_xgboost, model, args)


def _lightgbm(model: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_lightgbm

    return _of_trees(from_lightgbm, model, args)


def _of_trees(convert: Callable[..., Model], model: Any, args: argparse.Namespace) -> Model:
    """A model that takes one matrix of features, of which `--input` may say the dtype."""
    from onward.cli.inputs import parsed

    if args.signature or args.allow_custom_ops or args.output:
        raise OnwardError("--signature, --allow-custom-ops and --output are not for boosted trees")
    options: dict[str, Any] = {"check": False} | ({} if args.opset is None else {"opset": args.opset})
    given = parsed(args.input)
    if given and given[0].dtype is not None:
        options["dtype"] = given[0].dtype.numpy()
    made = convert(model, **options)
    x = made.ir.graph.inputs[0]
    width = None if x.shape is None else x.shape[1]
    if [(one.name, (one.dims or [None])[-1]) for one in given] not in ([], [("x", width)]):
        dtype = "float32" if x.dtype is None else str(x.dtype.numpy())
        raise OnwardError(f'--input: this model takes "x:{dtype}[batch,{width}]"')
    return made


def _sklearn(model: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_sklearn
    from onward.formats.sklearn import SAMPLE, loaded
    from onward.formats.tables import given_to, read_table

    estimator = loaded(model) if isinstance(model, Path) else model
    SAMPLE.set(given_to(estimator, read_table(Path(args.sample))) if args.sample else None)
    options: dict[str, Any] = {} if args.opset is None else {"opset": args.opset}
    return from_sklearn(estimator, SAMPLE.get(), check=not args.no_verify, **options)


def _program(model: Any, args: argparse.Namespace) -> Model:
    from onward.exporters import from_torch

    if args.input:
        raise OnwardError("--input is for modules: an exported program says what it takes")
    return from_torch(model, opset=args.opset, check=False)


def _module(module: Any, args: argparse.Namespace) -> Model:
    """A module, exported with made-up inputs of the shapes that the user gives."""
    from onward.cli.inputs import examples, parsed
    from onward.exporters import from_torch
    from onward.formats.torch_module import arguments

    declared = parsed(args.input)
    if not declared:
        raise OnwardError(
            'a module does not say what it takes: give --input "x:float32[batch,3,224,224]" for each input'
        )
    args_, kwargs = arguments(module, examples(declared))
    return from_torch(
        module,
        args_,
        kwargs=kwargs,
        dynamic={
            one.name: {axis: dim for axis, dim in enumerate(one.dims or ()) if isinstance(dim, str)} for one in declared
        },
        input_names=None if kwargs else [one.name for one in declared],
        opset=args.opset,
        check=False,
    )


def _options(args: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {"allow_custom_ops": args.allow_custom_ops, "check": False}
    return given | ({} if args.opset is None else {"opset": args.opset})


FRONTENDS: dict[str, Callable[[Any, argparse.Namespace], Model]] = {
    "SavedModel": _saved_model,
    "TensorFlow graph": _saved_model,
    "Keras model": _keras,
    "TensorFlow Lite model": _tflite,
    "exported PyTorch program": _program,
    "PyTorch module": _module,
    "scikit-learn estimator": _sklearn,
    "XGBoost model": _xgboost,
    "LightGBM model": _lightgbm,
}
"""By the kind, as `verification.artifacts` has it: a path, or an object in memory, to ONNX."""


def _unpickled(path: Path) -> Any:
    from onward.formats.pickled import unpickled

    return unpickled(path)


def _saved_module(path: Path) -> Any:
    from onward.formats.torch_module import read_module

    return read_module(path)


def _package(path: Path) -> Any:
    from onward.formats.package import load_package

    return load_package(path)


OPENED: dict[str, Callable[[Path], Any]] = {
    "pickle": _unpickled,
    "PyTorch module": _saved_module,
    "generated PyTorch package": _package,
}
"""Kinds of files that hold an object, whose class then says what it is."""


def read(args: argparse.Namespace) -> Original:
    """The model of a file, a folder or an object, whatever framework it is of."""
    from onward.cli.objects import is_name

    if is_name(args.model):
        return _read(args)
    try:
        return _read(args)
    except OnwardError:
        raise
    except Exception as error:  # frameworks and our own readers of their files raise anything at all
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InvalidModelError(
            f"{args.model}: it is damaged, or holds what Onward does not expect: {problem[:LONGEST]}"
            " (`onward --traceback …` shows where)"
        ) from error


def _read(args: argparse.Namespace) -> Original:
    from onward.cli.inputs import parsed
    from onward.cli.objects import built, is_name
    from onward.formats import kind_of, kind_of_object, open_artifact, open_object

    path = Path(args.model)
    subject: Any = path
    kind = None
    if is_name(args.model):
        subject = built(args.model)
    else:
        kind = kind_of(path)
        if kind is None:
            return _onnx(path, args)
        if kind.name in OPENED:
            subject = OPENED[kind.name](path)
        elif kind.name in ("SavedModel", "TensorFlow graph"):
            subject = _function(path, args)
            args.input = []
    if kind is None or kind.name in OPENED:
        kind = kind_of_object(subject) or kind
    assert kind is not None
    if args.sample and kind.name != "scikit-learn estimator":
        raise OnwardError(f"--sample is for estimators of scikit-learn, and {args.model} is a {kind.name}")
    if kind.name not in FRONTENDS:
        raise OnwardError(f"{args.model}: a {kind.name} cannot be converted from; {recognised()}")
    model = FRONTENDS[kind.name](subject, args)
    if args.no_verify:
        return Original(model, None, kind.name)
    opened = open_artifact(subject) if subject is path else open_object(subject, parsed(args.input))
    return Original(model, opened.run, kind.name, _inputs(kind.name, model, args))


def _inputs(kind: str, model: Model, args: argparse.Namespace) -> Inputs | None:
    """What to compare on: the user's sample, or for trees enough rows to reach many of their leaves."""
    if args.sample:
        return _sample()
    if FRONTENDS[kind] not in (_xgboost, _lightgbm):
        return None
    from onward.verification.data.tree_rows import tree_rows

    return tree_rows(model, args.seed)


def _sample() -> Inputs:
    from onward.formats.sklearn import SAMPLE
    from onward.formats.tables import feeds, shortened

    return feeds(shortened(SAMPLE.get()))


def _onnx(path: Path, args: argparse.Namespace) -> Original:
    from onward.model import load

    for option in ("opset", "signature", "allow_custom_ops", "input", "output", "checkpoint", "sample"):
        if getattr(args, option):
            raise OnwardError(f"{path}: --{option.replace('_', '-')} is for models of other frameworks; {recognised()}")
    try:
        model = load(path)
    except InvalidModelError as error:
        if path.suffix == ".onnx" or not path.exists():
            raise
        raise InvalidModelError(f"{path}: it is no model of a known kind; {recognised()}") from error
    if args.to == "onnx":
        raise OnwardError(f"{path}: it is an ONNX model already")
    return Original(model)


def recognised() -> str:
    """What can be converted, and how it is told."""
    from onward.formats import kinds

    known = [f"{kind.name} ({kind.sign})" for kind in kinds() if kind.name in {*FRONTENDS, *OPENED}]
    return f"recognised are: {', '.join(['ONNX (its protobuf)', *known])}, and package.module:callable"
