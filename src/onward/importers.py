"""ONNX models as models of frameworks, each run beside the original before it is handed over."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.backends.backend import Options, backend, require
from onward.conversion.convert import convert
from onward.conversion.fallback import with_parts
from onward.conversion.parts import with_masks
from onward.model import load
from onward.verification.check import prove, reordered

if TYPE_CHECKING:
    import keras
    import tensorflow as tf
    import torch

    from onward.backends.emit.package import Trainable

logger = logging.getLogger(__name__)


def to_torch(
    source: Any, *, trainable: Trainable = True, fallback: str | None = None, check: bool = True
) -> torch.nn.Module:
    """An `nn.Module` that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the parameters that a
    fine-tuning step changes, by patterns such as "head.*"; by default those that the original trains. With the
    `fallback` "onnxruntime", what PyTorch has no rule for stays ONNX inside the module, and is trained through. Unless
    `check` is false, both are run on the same data, and `VerificationError` is raised if they differ.

    >>> import onward, torch
    >>> net = onward.to_torch("examples/digits/digits.onnx")
    >>> net(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """
    net: torch.nn.Module = _made("torch", source, Options(trainable, fallback=fallback), check)
    return net


def to_tensorflow(
    source: Any,
    *,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    cast: str = "none",
    check: bool = True,
) -> tf.Module:
    """A `tf.Module` that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the variables that a
    fine-tuning step changes, by patterns such as "head.*"; by default those that the original trains. The module is
    called with the model's inputs, and `training=True` for batch normalisation and dropout as in training. Inputs and
    outputs named in `inputs_nhwc` and `outputs_nhwc` are handed over channels last, all others as in the file. Ops in
    dtypes that TensorFlow has no kernels for are refused; with `cast` they are computed in a wider dtype ("up"), in a
    narrower one ("down"), or in whichever there is ("both"), and each is logged. Unless `check` is false, both are run
    on the same data, and `VerificationError` is raised if they differ.

    >>> import onward, tensorflow as tf
    >>> net = onward.to_tensorflow("examples/digits/digits.onnx")
    >>> net(tf.zeros([2, 1, 8, 8])).shape
    TensorShape([2, 10])
    """
    options = Options(trainable, tuple(inputs_nhwc), tuple(outputs_nhwc), cast)
    net: tf.Module = _made("tensorflow", source, options, check)
    return net


def to_keras(
    source: Any,
    *,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    check: bool = True,
) -> keras.Model:
    """A functional Keras model that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the weights that `fit`
    changes, by patterns such as "head.*"; by default those that the original trains. Several inputs are a list, or a
    dict by name; several outputs a dict by name. Those named in `inputs_nhwc` and `outputs_nhwc` are handed over
    channels last, all others as in the file. Unless `check` is false, both are run on the same data, and
    `VerificationError` is raised if they differ.

    >>> import onward
    >>> net = onward.to_keras("examples/digits/digits.onnx")
    >>> net.output_shape
    (None, 10)
    """
    net: keras.Model = _made("keras", source, Options(trainable, tuple(inputs_nhwc), tuple(outputs_nhwc)), check)
    return net


def to_jax(
    source: Any, *, trainable: Trainable = True, bounds: Mapping[str, int] | None = None, check: bool = True
) -> tuple[Callable[..., Any], Any]:
    """A pure function of JAX and its parameters: `apply(params, x)` computes what the ONNX model computes.

    It is the generated source, run in memory. `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. The
    parameters are nested dictionaries and lists of all that is trained, for `jax.grad` and optax as they are;
    `trainable` chooses them by patterns such as "head.*", by default those that the original trains. Anything else,
    such as running statistics, is bound to the function. `bounds`, such as {"boxes": 300}, are how many results there
    are at most where only data decide: `jax.jit` takes no other. How many there are is then given after the outputs.
    Unless `check` is false, both are run on the same data, and `VerificationError` is raised if they differ.

    >>> import onward, jax, jax.numpy as jnp
    >>> apply, params = onward.to_jax("examples/digits/digits.onnx")
    >>> jax.jit(apply)(params, jnp.zeros((2, 1, 8, 8))).shape
    (2, 10)
    """
    net = _made("jax", source, Options(trainable, bounds=bounds or {}), check).as_configured()
    return net.bound, net.params


def to_savedmodel(
    source: Any,
    out: str | os.PathLike[str],
    *,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    cast: str = "none",
    check: bool = True,
) -> Path:
    """Write an ONNX model as a SavedModel of TensorFlow, into the folder `out`, which is given back.

    Options mean what they mean for `to_tensorflow`. Unless `check` is false, what is written is opened and run on the
    same data as the original; if they differ, `VerificationError` is raised and nothing is written.

    >>> import onward
    >>> onward.to_savedmodel("examples/digits/digits.onnx", "digits").name
    'digits'
    """
    moved: dict[str, Any] = {"inputs_nhwc": inputs_nhwc, "outputs_nhwc": outputs_nhwc}
    return convert(source, to="savedmodel", out=out, trainable=trainable, cast=cast, verify=check, **moved).out


def to_tflite(
    source: Any,
    out: str | os.PathLike[str],
    *,
    quantize: str | None = None,
    io: str = "float32",
    calibrate: Any = None,
    select_tf_ops: bool = False,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    cast: str = "none",
    check: bool = True,
) -> Path:
    """Write an ONNX model as a file of TensorFlow Lite, `out`, which is given back.

    `quantize` makes it smaller: "float16", "dynamic", or "int8", which needs inputs to `calibrate` by (arrays by name,
    a list of such, or a path); `io` is what a model in int8 takes and gives: "float32", "int8" or "uint8", in steps
    that the file tells. `select_tf_ops` allows ops that need the larger runtime. Other options mean what they
    mean for `to_tensorflow`. Unless `check` is false, what is written is opened and run on the same data as the
    original; if they differ, `VerificationError` is raised and nothing is written.

    >>> import onward
    >>> onward.to_tflite("examples/digits/digits.onnx", "digits.tflite").name
    'digits.tflite'
    """
    moved: dict[str, Any] = {"inputs_nhwc": inputs_nhwc, "outputs_nhwc": outputs_nhwc}
    smaller: dict[str, Any] = {"quantize": quantize, "io": io, "calibrate": calibrate, "select_tf_ops": select_tf_ops}
    return convert(source, to="tflite", out=out, cast=cast, verify=check, **smaller, **moved).out


def _made(name: str, source: Any, options: Options, check: bool) -> Any:
    """A model in memory, as a backend makes it; called by what users call."""
    one = backend(name)
    require(one)
    model = with_masks(load(source))
    written = model if options.fallback is None else with_parts(model, name, options.fallback)[0]
    made = one.generate(written, options)
    for phrase in made.casts:
        logger.warning("%s", phrase)
    net = one.load(made)
    if check:
        checked = net if made.checked is None else one.load(made.checked)
        run = reordered(one.proof(checked, model.ir.graph), made.input_orders, made.output_orders)
        prove(model, run, made.excuse, frames=1)
    return net
