"""Functions and modules of JAX, and modules of StableHLO, as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from onward.advice.extras import missing_packages, require
from onward.errors import OnwardError
from onward.frontends.opset import OPSET
from onward.model import Model
from onward.verification.check import prove_source

if TYPE_CHECKING:
    from onward.training.trainable import Trainable


@overload
def from_jax(
    function: Any,
    *specs: Any,
    params: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET,
    check: bool = True,
) -> Model: ...


@overload
def from_jax(
    function: Any,
    *specs: Any,
    params: Any,
    optimizer: Any,
    state: Any = None,
    model_state: Any = None,
    inference: Any = None,
    inference_specs: Sequence[Any] | None = None,
    opset: int = OPSET,
    check: bool = True,
) -> Trainable: ...


def from_jax(
    function: Any,
    *specs: Any,
    params: Any = None,
    optimizer: Any = None,
    state: Any = None,
    model_state: Any = None,
    inference: Any = None,
    inference_specs: Sequence[Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET,
    check: bool = True,
) -> Model | Trainable:
    """A function of JAX, or a module of Flax, Equinox, Haiku or Keras on JAX, as an ONNX model.

    `specs` say what it is called with: arrays, or `jax.ShapeDtypeStruct`s whose sizes may be names (`("b", 28, 28, 1)`)
    or expressions of `jax.export.symbolic_shape`, in whatever trees the function takes. With `params`, a tree of
    arrays, the function is called with that tree first, and its arrays are weights under the names of their paths
    (`dense.kernel`), to be trained.

    A module of Flax's linen is given as `(module, variables)` or bound to its variables; one of nnx or Equinox has its
    weights with it; a transformed function of Haiku takes them as `params`, and one with state `(params, state)`.
    Inputs are called as the parameters of the function are, parts of a tree as `state_h`.

    Given an `optimizer` of optax, the function is a loss of `params` and the result a trainable model, which makes the
    same steps; `onward.training.from_jax` says more of it, and of the other options.

    Unless `check` is false, the model is run beside JAX, and `VerificationError` is raised if they differ.

    >>> import jax, jax.numpy as jnp, onward
    >>> def apply(params, x):
    ...     return jax.nn.relu(x @ params["kernel"] + params["bias"])
    >>> params = {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}
    >>> onward.from_jax(apply, jax.ShapeDtypeStruct(("b", 3), jnp.float32), params=params).save("dense.onnx")
    """
    if optimizer is not None:
        from onward.training.capture.jax import captured

        if input_names is not None or output_names is not None:
            raise OnwardError("input_names and output_names are for inference, not for training")
        made, step, made_by_jax = captured(
            function, specs, params, optimizer, state, model_state, inference, inference_specs, opset
        )
        if check:
            prove_source(step, made_by_jax, "JAX")
        return made
    if any(option is not None for option in (state, model_state, inference, inference_specs)):
        raise OnwardError(
            "state, model_state, inference and inference_specs are options of training: give an optimizer as well"
        )
    from onward.frontends.jax.convert import converted

    with missing_packages():
        model, original = converted(function, specs, params, input_names, output_names, opset)
    if check:
        prove_source(model, original, "JAX")
    return model


def from_stablehlo(
    source: str | os.PathLike[str],
    *,
    dims: Mapping[str, Sequence[int | str]] | None = None,
    opset: int = OPSET,
    check: bool = True,
) -> Model:
    """A module of StableHLO, the text of one or a portable artifact, by its path, as an ONNX model.

    `dims` names the open dimensions of inputs: `{"x": ("b", 28, 28, 1)}`. Without it they have the names that JAX wrote
    down, or else the first axes of all inputs one name. Unless `check` is false, the model is run beside the module,
    and `VerificationError` is raised if they differ.

    >>> import onward
    >>> onward.convert("examples/digits/digits.onnx", to="stablehlo", out="digits.mlir").out.name
    'digits.mlir'
    >>> onward.from_stablehlo("digits.mlir").save("from_stablehlo.onnx")
    """
    require("jax")
    from onward.frontends.stablehlo.convert import converted

    model, original = converted(Path(source), dims, opset)
    if check:
        prove_source(model, original, "StableHLO")
    return model
