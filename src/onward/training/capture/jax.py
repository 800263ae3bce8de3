"""Training comes from JAX: a loss, its parameters and an optimizer of optax become a trainable ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.advice.extras import missing_packages
from onward.errors import OnwardError
from onward.frontends.jax.convert import converted
from onward.frontends.jax.names import input_names, leaf_names, path_of
from onward.frontends.jax.specs import abstract
from onward.frontends.opset import OPSET
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.training.capture.step import whole_step
from onward.training.trainable import Trainable

LOSS = "loss"
Array = np.ndarray[Any, np.dtype[Any]]


@missing_packages()
def from_jax(
    loss: Callable[..., Any],
    *specs: Any,
    params: Any,
    optimizer: Any,
    state: Any = None,
    inference: Any = None,
    inference_specs: Sequence[Any] | None = None,
    opset: int = OPSET,
) -> Trainable:
    """The steps that an optimizer of optax makes of a loss, from where it is, as a trainable model.

    `loss` is called with `params`, a tree of arrays, and what `specs` stand for, and gives one number; `state` is that
    of the optimizer, by default a fresh one. All that a step changes, the state included, changes in the same way on
    ONNX Runtime; the learning rate is the optimizer's own. `inference` is a function of the parameters and of
    `inference_specs` (by default of the first of `specs`), or a module that they are of, and becomes the model that
    others use; without it, that model computes the loss.
    """
    return captured(loss, specs, params, optimizer, state, inference, inference_specs, opset)[0]


def captured(
    loss: Callable[..., Any],
    specs: Sequence[Any],
    params: Any,
    optimizer: Any,
    state: Any,
    inference: Any,
    inference_specs: Sequence[Any] | None,
    opset: int,
) -> tuple[Trainable, Model, Callable[[], Run]]:
    """The trainable model, one of a single step with the weights in it, and what makes that step in JAX."""
    import jax
    import optax

    if not hasattr(optimizer, "update") or not hasattr(optimizer, "init"):
        raise OnwardError(
            f"the optimizer is of {type(optimizer).__name__}: give one of optax, such as optax.adamw(1e-3)"
        )
    held = (params, optimizer.init(params) if state is None else state)
    leaves = jax.tree_util.tree_leaves_with_path(held)
    arrays = {_name(keys): np.asarray(leaf) for keys, leaf in leaves}

    def step(both: Any, *batch: Any) -> Any:
        params, state = both
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        moves, after = optimizer.update(gradients, state, params)
        return value, (optax.apply_updates(params, moves), after)

    inputs = leaf_names(input_names(loss, len(specs) + 1)[1:], abstract(specs))
    outputs = [LOSS, *(f"{name}.next" for name in arrays)]
    # They are inputs while it is written: nothing may be computed of a weight that changes.
    model, original = converted(step, [held, *specs], None, [*arrays, *inputs], outputs, opset)
    _hold(model, arrays)
    used, given = (loss, specs) if inference is None else (inference, inference_specs or specs[:1])
    plain, _ = converted(used, given, params, None, None, opset)
    made = whole_step(plain, model, LOSS, arrays)
    return made, model, lambda: partial(_beside, original(), arrays)


def _hold(model: Model, arrays: Mapping[str, Array]) -> None:
    """Let inputs be weights."""
    graph = model.ir.graph
    for value in [value for value in graph.inputs if value.name in arrays]:
        graph.inputs.remove(value)
        value.const_value = ir.Tensor(arrays[value.name or ""], name=value.name)
        graph.register_initializer(value)


def _beside(run: Run, arrays: Mapping[str, Array], inputs: Inputs) -> Outputs:
    return run({**arrays, **inputs})


def _name(keys: Sequence[Any]) -> str:
    """Parameters go by their own names, the optimizer's state by where it is."""
    is_state = path_of(keys[:1]) == "1"
    return f"state.{path_of(keys[1:])}" if is_state else path_of(keys[1:])
