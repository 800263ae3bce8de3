"""Models of frameworks as ONNX models, each run beside the original before it is handed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

import numpy as np
import numpy.typing as npt

from onward.advice.extras import missing_packages, require
from onward.errors import OnwardError, VerificationError
from onward.frontends.opset import OPSET
from onward.frontends.states import without_states
from onward.model import Model
from onward.passes.unsigned_bytes import unsigned_bytes
from onward.runners.calls import Inputs, Run
from onward.verification.check import prove_source

if TYPE_CHECKING:
    import torch

    from onward.formats.graph_def import Names
    from onward.frontends.torch.names import Dynamic
    from onward.training.trainable import Options, Trainable

    Program: TypeAlias = torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str]


@overload
def from_torch(
    module: Program,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    cache: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model: ...


@overload
def from_torch(
    module: torch.nn.Module,
    args: Any,
    loss: Any,
    optimizer: Any = None,
    *,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Trainable: ...


@overload
def from_torch(
    module: torch.nn.Module,
    args: Any,
    *,
    optimizer: Any,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Trainable: ...


def from_torch(
    module: Program,
    args: Any = (),
    loss: Any = None,
    optimizer: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    cache: bool = False,
    trust: bool = False,
    check: bool = True,
    **options: Unpack[Options],
) -> Model | Trainable:
    """A PyTorch module as a model for inference; given a loss or an optimizer, as a trainable one.

    `args` and `kwargs` are inputs such as the module is called with. `dynamic` names the dimensions that are open, by
    input: `{"x": {0: "batch"}}`; parts of a nested input are called as in the ONNX file (`pair_0`, `state_h`). Without
    it the first axis of every tensor is the batch, unless `dynamic_batch` is off. An `ExportedProgram`, or a `.pt2`
    file of one, has its inputs and open dimensions already; `dynamic` then gives these names. `trust` lets such a file
    hold code; without it, one that does is refused.

    `translations` says how ops are written that neither PyTorch's exporter nor Onward knows: by overload
    (`torch.ops.mylib.op.default`), an onnxscript function, or one that calls `onnxscript` opsets.

    With `cache`, a language model of transformers becomes one step of decoding, without args: of `input_ids`,
    `attention_mask`, `past_key_values.0.key` and so on it makes `logits`, `present.0.key` and so on. How many tokens
    there are is open, and how many the cache holds, which may be none. A model with a recurrent state, such as Mamba,
    takes one token a call. One with an encoder, such as T5, takes `encoder_hidden_states`, what its encoder made; the
    encoder is a module of its own, `model.get_encoder()`.

    Unless `check` is false, the model is run beside the module, on the inputs given and where dimensions are open on
    others, and `VerificationError` is raised if they differ.

    Of training, with its `options`, `onward.training.from_torch` says more; the loss is `cross_entropy` and the
    optimizer `adamw` where only one of them is given. The module stays as it is.

    >>> import onward, torch
    >>> model = onward.from_torch(torch.nn.Linear(3, 2), torch.zeros(1, 3), input_names=["x"])
    >>> model.save("linear.onnx")
    """
    if loss is not None or optimizer is not None:
        from onward.training.capture.torch import from_torch as captured

        if kwargs or dynamic is not None or opset is not None or translations or cache:
            raise OnwardError("kwargs, dynamic, opset, translations and cache are for inference, not for training")
        return captured(
            module,  # type: ignore[arg-type]
            args,
            loss or "cross_entropy",
            optimizer or "adamw",
            input_names=input_names,
            output_names=output_names,
            dynamic_batch=dynamic_batch,
            **options,
        )
    if options:
        raise OnwardError(f"{sorted(options)[0]} is an option of training: give a loss or an optimizer as well")
    require("torch")
    if cache:
        if len(args) or any(given is not None for given in (kwargs, dynamic, input_names, output_names)):
            raise OnwardError("with cache=True inputs, names and open dimensions follow from the model: leave them out")
        from onward.frontends.torch.decoder import decoder_of

        decoder = decoder_of(module)
        step = decoder.exported(opset, translations)
        if check:
            for data in decoder.data():
                prove_source(step, lambda: decoder.run, "PyTorch", data)
        return step
    from onward.frontends.torch.export import exported, opened, positional
    from onward.frontends.torch.original import Original

    program = opened(module, trust)
    given, named = positional(args), dict(kwargs or {})
    model = exported(
        program,
        given,
        named,
        inputs=input_names,
        outputs=output_names,
        dynamic=dynamic,
        dynamic_batch=dynamic_batch,
        opset=opset,
        translations=translations,
    )
    unsigned_bytes(model.ir)
    if check:
        original = Original(program, given, named, input_names)
        for data in original.data(model):
            prove_source(model, original.opened, "PyTorch", data)
    return model


@overload
def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: Literal[False] = False,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model: ...


@overload
def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: Literal[True],
    trust: bool = False,
    labels: Sequence[Any] | None = None,
    dense_gradients: bool = False,
) -> Trainable: ...


def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    training: bool = False,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
    labels: Sequence[Any] | None = None,
    dense_gradients: bool = False,
) -> Model | Trainable:
    """A Keras model, or the file of one, as an ONNX model for inference; a compiled one as a trainable model.

    `signature` is the `tf.TensorSpec` of each input, which only a subclassed model that was never called needs. With
    `trust` code in a file, and in modules beside it, is executed; without it such files are refused. Of `training`,
    with `labels` and `dense_gradients`, `onward.training.from_keras` says more. Unless `check` is false, the ONNX model
    is run beside the Keras model, and `VerificationError` is raised if they differ.

    >>> import keras, onward
    >>> net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    >>> onward.from_keras(net).save("dense.onnx")
    """
    from onward.frontends.keras.convert import converted, opened

    if training:
        from onward.training.capture.keras import from_keras as captured

        if opset != OPSET or allow_custom_ops:
            raise OnwardError(
                "training chooses its own opset and has no custom ops: leave out opset and allow_custom_ops"
            )
        with missing_packages():
            compiled = opened(model, trust, compiled=True)
        return captured(compiled, signature, labels=labels, dense_gradients=dense_gradients)
    if labels is not None or dense_gradients:
        option = "dense_gradients" if dense_gradients else "labels"
        raise OnwardError(f"{option} is an option of training: give training=True as well")
    with missing_packages():
        made, original = converted(model, signature, opset, allow_custom_ops, trust)
    if check:
        prove_source(made, original, "Keras")
    return made


def from_tensorflow(
    source: Any,
    signature: str | Sequence[Any] | None = None,
    *,
    inputs: Names | None = None,
    outputs: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    opset: int = OPSET,
    allow_custom_ops: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model:
    """A TensorFlow function, a SavedModel, or a frozen graph, as an ONNX model.

    `source` is a `tf.function`, a concrete function, any callable of tensors, the folder of a SavedModel, or the file
    of a graph. `signature` is the name of one of a SavedModel's signatures, or for a function the `tf.TensorSpec` of
    each argument. `inputs` and `outputs` are names of tensors of a graph: its placeholders unless given, and what
    nothing reads; as a dict, `inputs` says their shapes too. Variables of a function, which stays as it is, or of a
    graph have the values of a `checkpoint`, where one is given. `trust` lets a file have ops that do more than compute,
    such as to write files; without it, such files are refused. Unless `check` is false, the model is run beside
    TensorFlow, and `VerificationError` is raised if they differ.

    >>> import onward, tensorflow as tf
    >>> model = onward.from_tensorflow(lambda x: tf.nn.relu(x) + 1, [tf.TensorSpec([None, 3], name="x")])
    >>> model.save("function.onnx")
    """
    from onward.frontends.tensorflow.convert import converted

    with missing_packages():
        model, original = converted(source, signature, inputs, outputs, checkpoint, opset, allow_custom_ops, trust)
    if check:
        prove_source(model, original, "TensorFlow")
    return model


def from_tflite(
    source: str | os.PathLike[str] | bytes,
    *,
    signature: str | None = None,
    opset: int | None = None,
    check: bool = True,
) -> Model:
    """A model of TensorFlow Lite, by its path or as bytes, as an ONNX model; quantised ones have QDQ pairs.

    `signature` chooses one of several functions. The opset is one that ONNX Runtime runs all of the model in, unless it
    is given. Unless `check` is false, the model is run beside the interpreter, and `VerificationError` is raised if
    they differ.

    >>> import onward
    >>> onward.to_tflite("examples/digits/digits.onnx", "lite.tflite").name
    'lite.tflite'
    >>> onward.from_tflite("lite.tflite").save("from_lite.onnx")
    """
    from onward.frontends.tflite.convert import converted

    with missing_packages():
        model, original = converted(source, opset, signature)
    unsigned_bytes(model.ir)
    if check:
        prove_source(without_states(model), original, "TensorFlow Lite")
    return model


def from_sklearn(
    estimator: Any,
    sample: Any = None,
    *,
    methods: Sequence[str] | None = None,
    opset: int = OPSET,
    check: bool = True,
    trust: bool = False,
) -> Model:
    """A fitted estimator or pipeline, or the file of one, as an ONNX model.

    `sample` is an array or a data frame of some rows such as the estimator is to be given: the model takes an array as
    one input X, and of a data frame every column as an input, in the dtypes that they have in it. Missing strings are
    given to the model as empty ones. It may be left out where all features are numbers. A FunctionTransformer with a
    function on data frames is followed as by `onward.from_dataframe`, and the inputs are then columns as that has them:
    those that are read, each with a mask for what is missing.

    The outputs are called as the `methods` whose results they are: `predict`, and `predict_proba` or
    `decision_function`, or else `transform`, unless others are asked for. They are computed in float64, as by
    scikit-learn, and given in float32 where the sample is in float32. Unless `check` is false, the model is run on the
    sample, beside the estimator, and not handed over if it differs. `trust` lets the file of an estimator hold whatever
    it likes; without it, types that could do more than compute are refused.

    >>> import numpy as np, onward
    >>> from sklearn.linear_model import LogisticRegression
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], np.float32)
    >>> onward.from_sklearn(LogisticRegression().fit(rows, [0, 1, 1, 0]), rows).save("classifier.onnx")
    """
    from onward.frontends.sklearn.convert import converted
    from onward.verification.estimators import differing

    with missing_packages():
        made = converted(estimator, sample, methods, opset, trust)
    if check and (wrong := differing(*made)):
        raise VerificationError(f"{type(made.estimator).__name__}: the model differs on the sample: {wrong[0]}")
    return made.model


def from_dataframe(
    function: Callable[..., Any],
    sample: Any,
    *,
    freeze: Sequence[str] = (),
    opset: int = OPSET,
    check: bool = True,
) -> Model:
    """A function on a data frame, as you wrote it for pandas, Polars or narwhals, as an ONNX model.

    `sample` is a frame with the columns and dtypes that the function is made for, or a mapping of names to dtypes of
    pandas. Each column that the function reads is an input of shape (rows, 1), and each column of its result an output.

    The function runs once, on stand-ins for the frame and its columns, so what depends on data, such as a branch on a
    mean, is refused. An aggregate, such as `df.age.median()`, is computed from whatever rows the model is given, as the
    library would; `onward.fitted(df.age.median())`, or `freeze=["age.median"]`, keeps that of the sample.

    Unless `check` is false, the function and the model run on the sample, on one row and on none, and
    `VerificationError` names the column and row in which they differ.

    >>> import onward, pandas
    >>> def features(df):
    ...     return df.assign(debt=df.loan / df.income.clip(lower=1))
    >>> sample = pandas.DataFrame({"loan": [10.0, 20.0], "income": [5, 0]})
    >>> onward.from_dataframe(features, sample).save("features.onnx")
    """
    from onward.dataframes import run
    from onward.frontends.dataframe.capture import captured, full_sample
    from onward.verification.frames import differing

    with missing_packages():
        sample = full_sample(sample)
        model = captured(function, sample, opset, freeze)
    if check and (wrong := differing(function, lambda part: run(model, part), sample)):
        raise VerificationError(f"{getattr(function, '__name__', 'the function')}: {wrong}")
    return model


def from_xgboost(
    model: Any, *, raw: bool = False, dtype: npt.DTypeLike = np.float32, opset: int = OPSET, check: bool = True
) -> Model:
    """An XGBoost model as an ONNX model: a `Booster`, an estimator such as `XGBClassifier`, or the file of one.

    The input is `x`, rows of features as XGBoost takes them in a numpy array: NaN is missing, categories are their
    codes. The output is `prediction`, that of `predict`; of a classifier there are `label` and `probabilities`. With
    `raw`, `prediction` are the margins. XGBoost computes in float32, to which rows of `dtype` float64 are rounded.
    Unless `check` is false, the model is run beside XGBoost, and `VerificationError` is raised if they differ.

    >>> import numpy as np, onward, xgboost
    >>> rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    >>> trees = xgboost.XGBRegressor(n_estimators=3).fit(rows, rows[:, 0])
    >>> onward.from_xgboost(trees).save("xgboost.onnx")
    """
    from onward.frontends.boosting.xgboost import converted

    with missing_packages():
        made, original = converted(model, raw, dtype, opset)
    if check:
        prove_source(made, *_trees(made, original, raw, "XGBoost"))
    return made


def from_lightgbm(
    model: Any, *, raw: bool = False, dtype: npt.DTypeLike = np.float64, opset: int = OPSET, check: bool = True
) -> Model:
    """A LightGBM model as an ONNX model: a `Booster`, an estimator such as `LGBMClassifier`, or the file of one.

    The input is `x`, rows of features as LightGBM takes them in a numpy array: categories are their codes. The output
    is `prediction`, that of `predict`; of a classifier there are `label` and `probabilities`. With `raw`, `prediction`
    are the scores. LightGBM computes in float64; with `dtype` float32 the model computes in float32, and every row
    still takes the same way through the trees.
    Unless `check` is false, the model is run beside LightGBM, and `VerificationError` is raised if they differ.

    >>> import lightgbm, numpy as np, onward
    >>> rows = np.arange(200, dtype=np.float64).reshape(100, 2)
    >>> trees = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(rows, rows[:, 0])
    >>> onward.from_lightgbm(trees).save("lightgbm.onnx")
    """
    from onward.frontends.boosting.lightgbm import converted

    with missing_packages():
        made, original = converted(model, raw, dtype, opset)
    if check:
        prove_source(made, *_trees(made, original, raw, "LightGBM"))
    return made


def _trees(model: Model, original: Any, raw: bool, name: str) -> tuple[Callable[[], Run], str, Inputs]:
    """What `prove_source` takes for a model of trees: what opens the original, its name, and rows."""
    from onward.formats.boosting import opened_trees
    from onward.verification.data.tree_rows import tree_rows

    return lambda: opened_trees(original, raw).run, name, tree_rows(model, 0)
