"""What can be converted: files, folders and objects of any framework, as ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.advice.extras import missing_packages
from onward.advice.options import option, option_list
from onward.conversion.bits import wanted
from onward.conversion.request import Request
from onward.errors import InvalidModelError, OnwardError

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Inputs, Run
    from onward.verification.check import Verdict


EXAMPLE = "x:float32[batch,3,224,224]"
LONGEST = 300
"""Characters of what a framework says about a damaged file."""


@dataclass(frozen=True)
class Original:
    """A model as ONNX, and how the framework it comes from runs it; None for an ONNX file, or where it is not run."""

    model: Model
    run: Run | None = None
    kind: str = "ONNX"
    inputs: Inputs | Sequence[Inputs] | None = None
    """Inputs to compare on, where made-up ones would not do."""
    remarks: tuple[str, ...] = ()
    """What a user should know of how it was read, a line each."""
    check: Callable[[], Verdict] | None = None
    """What compares the two, where that is not done by running both on feeds."""
    ran: Model | None = None
    """The ONNX model that `run` runs: what it says of sizes, the one that is written may not say any more."""


def _saved_model(function: Any, request: Request) -> Model:
    from onward.exporters import from_tensorflow

    return from_tensorflow(function, **_options(request))


def _function(path: Path, request: Request) -> Any:
    """A SavedModel or a graph as the function that is asked for."""
    from onward.frontends.tensorflow.sources import concrete

    taken = [_named(text) for text in request.input]
    checkpoint = None if request.checkpoint is None else Path(request.checkpoint)
    return concrete(path, request.signature, dict(taken) if taken else None, request.outputs, checkpoint)


def _named(text: str) -> tuple[str, Sequence[int | str | None] | None]:
    """`--input` of a graph: the name of a tensor, or with the shape as for other models."""
    from onward.conversion.inputs import parsed

    if "[" not in text:
        return text, None
    (declared,) = parsed([text])
    return declared.name, declared.dims


def _keras(model: Any, request: Request) -> Model:
    from onward.exporters import from_keras

    if request.signature:
        raise OnwardError(f"{option('signature')} is for SavedModels")
    return from_keras(model, training=False, **_options(request))


def _tflite(path: Any, request: Request) -> Model:
    from onward.exporters import from_tflite

    if request.allow_custom_ops:
        raise OnwardError(f"{option('allow_custom_ops')} does not apply to TensorFlow Lite: leave it out")
    return from_tflite(path, opset=request.opset, signature=request.signature, check=False)


def _stablehlo(path: Any, request: Request) -> Model:
    from onward.conversion.inputs import parsed
    from onward.exporters import from_stablehlo

    dims = {one.name: tuple(dim or "n" for dim in one.dims or ()) for one in parsed(request.input)}
    options: dict[str, Any] = {} if request.opset is None else {"opset": request.opset}
    return from_stablehlo(path, dims=dims, check=False, **options)


def _xgboost(model: Any, request: Request) -> Model:
    from onward.exporters import from_xgboost

    return _of_trees(from_xgboost, model, request)


def _lightgbm(model: Any, request: Request) -> Model:
    from onward.exporters import from_lightgbm

    return _of_trees(from_lightgbm, model, request)


def _of_trees(convert: Callable[..., Model], model: Any, request: Request) -> Model:
    """A model that takes one matrix of features, of which `--input` may say the dtype."""
    from onward.conversion.inputs import parsed

    if request.signature or request.allow_custom_ops or request.outputs:
        words = option_list("signature", "allow_custom_ops", "outputs")
        raise OnwardError(f"{words} do not apply to boosted trees: leave them out")
    options: dict[str, Any] = {"check": False} | ({} if request.opset is None else {"opset": request.opset})
    given = parsed(request.input)
    if given and given[0].dtype is not None:
        options["dtype"] = given[0].dtype.numpy()
    made = convert(model, **options)
    x = made.ir.graph.inputs[0]
    width = None if x.shape is None else x.shape[1]
    if [(one.name, (one.dims or [None])[-1]) for one in given] not in ([], [("x", width)]):
        dtype = "float32" if x.dtype is None else str(x.dtype.numpy())
        raise OnwardError(f'{option("input")}: this model takes "x:{dtype}[batch,{width}]"')
    return made


def _sklearn(model: Any, request: Request) -> Model:
    from onward.exporters import from_sklearn
    from onward.formats.sklearn import SAMPLE, loaded

    estimator = loaded(model) if isinstance(model, Path) else model
    SAMPLE.set(_table(estimator, request.sample))
    options: dict[str, Any] = {} if request.opset is None else {"opset": request.opset}
    return from_sklearn(estimator, SAMPLE.get(), check=request.verify, **options)


def _table(estimator: Any, sample: Any) -> Any:
    """Rows such as an estimator is given: of a file, or as they are."""
    from onward.formats.sklearn_parts import has_function
    from onward.formats.tables import given_to, read_table

    if not isinstance(sample, str | Path):
        return sample
    return given_to(estimator, read_table(Path(sample)), as_frame=has_function(estimator))


def _with_functions(subject: Any, request: Request) -> Original | None:
    """A pipeline with functions on data frames in it: its feeds are columns with their nulls. None for any other."""
    from onward.conversion.functions import column_lines, estimator_check
    from onward.exporters import from_sklearn
    from onward.formats.sklearn import loaded
    from onward.formats.sklearn_parts import has_function
    from onward.formats.tables import is_frame, shortened
    from onward.verification.functions import feeds_of

    estimator = loaded(subject) if isinstance(subject, Path) else subject
    if not has_function(estimator):
        return None
    sample = _table(estimator, request.sample)
    if not is_frame(sample):
        raise OnwardError(
            f"{request.name}: it has a function on data frames in it: give {option('sample', 'rows.parquet')}, some"
            " rows with the columns that it takes"
        )
    options: dict[str, Any] = {} if request.opset is None else {"opset": request.opset}
    model = from_sklearn(estimator, sample, check=False, **options)
    lines, check = tuple(column_lines(model)), estimator_check(model, estimator, sample)
    return Original(model, None, "scikit-learn estimator", feeds_of(model, shortened(sample)), lines, check)


def _of_function(function: Any, request: Request) -> Original:
    from onward.conversion.functions import KIND, column_lines, converted_function

    model, inputs, check = converted_function(function, request)
    return Original(model, None, KIND, inputs, tuple(column_lines(model)), check)


def _of_jax(given: Any, request: Request) -> Original:
    from onward.conversion.jax_functions import KIND, converted_function
    from onward.conversion.objects import built, is_name
    from onward.formats.dataframe.functions import is_function_name, read_named

    if isinstance(given, str | Path):
        if not is_function_name(str(given)) and not is_name(str(given)):
            raise OnwardError(
                f"{given}: {option('spec')} is for functions of JAX, as net.py:apply or package.net:apply"
            )
        given = read_named(str(given)) if is_function_name(str(given)) else built(str(given), whatever=True)
    model, run = converted_function(given, request)
    return Original(model, run if request.verify else None, KIND)


def _program(model: Any, request: Request) -> Model:
    from onward.exporters import from_torch

    if request.input:
        word = option("input")
        raise OnwardError(f"{word} is for modules: an exported program says what it takes")
    return from_torch(model, opset=request.opset, check=False)


def _module(module: Any, request: Request) -> Model:
    """A module, exported with made-up inputs of the shapes that the user gives."""
    from onward.conversion.inputs import examples, parsed
    from onward.exporters import from_torch
    from onward.formats.torch_module import arguments

    declared = parsed(request.input)
    if not declared:
        raise OnwardError(f"a module does not say what it takes: for each input give {option('input', [EXAMPLE])}")
    args_, kwargs = arguments(module, examples(declared))
    return from_torch(
        module,
        args_,
        kwargs=kwargs,
        dynamic={
            one.name: {axis: dim for axis, dim in enumerate(one.dims or ()) if isinstance(dim, str)} for one in declared
        },
        input_names=None if kwargs else [one.name for one in declared],
        opset=request.opset,
        check=False,
    )


def _decoder(module: Any, kind: str, request: Request) -> Original:
    """A step of decoding, with inputs whose masks and caches fit one another."""
    from onward.frontends.torch.decoder import decoder_of

    word = option("cache", True)
    if FRONTENDS[kind] is not _module:
        raise OnwardError(f"{word} is for modules of PyTorch, and {request.name} is a {kind}")
    if request.input:
        raise OnwardError(f"with {word} the inputs follow from the model: leave out {option('input')}")
    decoder = decoder_of(module)
    model = decoder.exported(opset=request.opset)
    return Original(model, decoder.run if request.verify else None, kind, list(decoder.data()))


def _options(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {"allow_custom_ops": request.allow_custom_ops, "check": False}
    return given | ({} if request.opset is None else {"opset": request.opset})


FRONTENDS: dict[str, Callable[[Any, Request], Model]] = {
    "SavedModel": _saved_model,
    "TensorFlow graph": _saved_model,
    "Keras model": _keras,
    "StableHLO module": _stablehlo,
    "TensorFlow Lite model": _tflite,
    "exported PyTorch program": _program,
    "PyTorch module": _module,
    "scikit-learn estimator": _sklearn,
    "XGBoost model": _xgboost,
    "LightGBM model": _lightgbm,
}
"""By the kind, as `formats` has it: a path, or an object in memory, to ONNX."""


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


def read(request: Request) -> Original:
    """The model of a file, a folder or an object, whatever framework it is of."""
    from onward.conversion.objects import is_name
    from onward.formats.dataframe.functions import is_function_name

    given = request.source
    if not isinstance(given, str | Path) or is_name(str(given)) or is_function_name(str(given)):
        return _read(request)
    try:
        with missing_packages():
            return _read(request)
    except OnwardError:
        raise
    except Exception as error:  # frameworks and our own readers of their files raise anything at all
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InvalidModelError(
            f"{given}: it is damaged, or holds what Onward does not expect: {problem[:LONGEST]}"
            " (`onward --traceback …` shows where)"
        ) from error


def _read(request: Request) -> Original:
    from onward.conversion.inputs import parsed
    from onward.conversion.objects import built, is_name
    from onward.formats import kind_of, kind_of_object, open_artifact, open_object
    from onward.formats.dataframe.functions import is_function_name, read_function, takes_frame
    from onward.formats.tflite import open_signature

    given = request.source
    if request.spec:
        return _of_jax(given, request)
    if request.params is not None:
        raise OnwardError(f"{option('params')} is for functions of JAX: give {option('spec', ['f32[b,3]'])} as well")
    if isinstance(given, str | Path) and is_function_name(str(given)):
        return _of_function(read_function(str(given)), request)
    is_path = isinstance(given, Path) or (isinstance(given, str) and not is_name(given))
    subject: Any = Path(given) if is_path else built(given) if isinstance(given, str) else given
    path: Path | None = subject if is_path else None
    kind = None if path is None else kind_of(path)
    if path is not None and kind is not None:
        kind.check_installed(path)
    if path is not None and kind is not None and kind.name in OPENED:
        subject = OPENED[kind.name](path)
    elif path is not None and kind is not None and kind.name in ("SavedModel", "TensorFlow graph"):
        subject = _function(path, request)
        request = replace(request, input=())
    if subject is not path and (kind is None or kind.name in OPENED):
        kind = kind_of_object(subject) or kind
    if kind is None and path is None and takes_frame(subject):
        return _of_function(subject, request)
    for name in ("freeze", "never_null", "extensions", "library"):
        if request.is_given(name):
            raise OnwardError(f"{option(name)} is for functions on data frames, and {request.name} is none")
    if kind is None:
        return _onnx(subject, request)
    if request.sample is not None and kind.name != "scikit-learn estimator":
        word = option("sample")
        raise OnwardError(
            f"{word} is for functions on data frames and estimators of scikit-learn, and {request.name} is a"
            f" {kind.name}"
        )
    if kind.name == "scikit-learn estimator" and (found := _with_functions(subject, request)):
        return found
    if kind.name not in FRONTENDS:
        raise OnwardError(f"{request.name}: a {kind.name} cannot be converted from; {recognised()}")
    if request.cache:
        return _decoder(subject, kind.name, request)
    model = FRONTENDS[kind.name](subject, request)
    remarks = tuple(_records_read(subject)) if FRONTENDS[kind.name] is _saved_model else ()
    if not request.verify:
        return Original(model, None, kind.name, remarks=remarks)
    if path is not None and subject is path:
        chosen = request.signature if FRONTENDS[kind.name] is _tflite else None
        opened = open_artifact(path) if chosen is None else open_signature(path, chosen)
    else:
        opened = open_object(subject, parsed(request.input))
    return Original(model, opened.run, kind.name, _inputs(kind.name, model, request), remarks)


def _records_read(function: Any) -> Iterator[str]:
    from onward.formats.saved_model import records_of

    for name, records in records_of(function).items():
        listed = ", ".join(one.name for one in records.declared)
        yield f"input {name}: its records are read by features, which are inputs now: {listed}"


def _inputs(kind: str, model: Model, request: Request) -> Inputs | None:
    """What to compare on: the user's sample, or for trees enough rows to reach many of their leaves."""
    if request.sample is not None:
        return _sample()
    if FRONTENDS[kind] not in (_xgboost, _lightgbm):
        return None
    from onward.verification.data.tree_rows import tree_rows

    return tree_rows(model, request.seed)


def _sample() -> Inputs:
    from onward.formats.sklearn import SAMPLE
    from onward.formats.tables import feeds, shortened

    return feeds(shortened(SAMPLE.get()))


def _onnx(source: Any, request: Request) -> Original:
    from onward.model import load

    if request.opset is not None and request.to != "onnx":
        raise OnwardError(
            f"{request.name}: {option('opset')} is for {option('to')} onnx, and for other frameworks' models"
        )
    for name in ("signature", "allow_custom_ops", "input", "outputs", "checkpoint", "sample", "cache"):
        if request.is_given(name):
            raise OnwardError(f"{request.name}: {option(name)} is for models of other frameworks, and this is ONNX")
    try:
        model = load(source)
    except InvalidModelError as error:
        if not isinstance(source, Path) or source.suffix == ".onnx" or not source.exists():
            raise
        raise InvalidModelError(f"{source}: this is not recognised as a model; {recognised()}") from error
    changes = request.opset is not None or request.ir_version is not None or request.simplify or wanted(request)
    if request.to == "onnx" and request.part in (None, "all") and not changes:
        raise OnwardError(
            f"{request.name}: it is an ONNX model already; {option('opset', 13)} writes it at that opset,"
            f" {option('simplify', True)} with fewer nodes, and {option('float16', True)} in fewer bits"
        )
    return Original(model)


def recognised() -> str:
    """What can be converted, and how it is told."""
    from onward.formats import kinds

    known = [f"{kind.name} ({kind.sign})" for kind in kinds() if kind.name in {*FRONTENDS, *OPENED}]
    names = ", ".join(["ONNX (its protobuf)", *known, "package.module:callable"])
    return f"Onward recognises {names}, functions on data frames as features.py:features, and of JAX as net.py:apply"
