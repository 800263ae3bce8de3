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
from onward.frontends.jax.sources import Source, is_module, opened, variable_path, with_tree
from onward.frontends.jax.specs import abstract
from onward.frontends.opset import OPSET
from onward.graph.trained import record
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
    model_state: Any = None,
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

    `model_state` is a tree of what changes without a gradient: running statistics (Flax's `batch_stats`, the state of
    Haiku and Equinox), keys of random numbers. `loss` and `inference` take it after `params`, and `loss` gives the
    number and that tree anew, as one writes it for `jax.value_and_grad(loss, has_aux=True)`.
    """
    return captured(loss, specs, params, optimizer, state, model_state, inference, inference_specs, opset)[0]


def captured(
    loss: Callable[..., Any],
    specs: Sequence[Any],
    params: Any,
    optimizer: Any,
    state: Any,
    model_state: Any,
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
    more = () if model_state is None else (model_state,)
    start = (params, optimizer.init(params) if state is None else state, *more)
    held = jax.tree.map(jax.numpy.array, _words(start))  # copies, so that each array is known by what it is
    arrays, first = _named(held), _keys(held, start)
    leaves, form = jax.tree_util.tree_flatten(held)

    def step(leaves: Sequence[Any], *batch: Any) -> Any:
        params, state, *before = _keys(jax.tree_util.tree_unflatten(form, leaves), start)
        value, gradients = jax.value_and_grad(loss, has_aux=bool(before))(params, *before, *batch)
        moves, state = optimizer.update(gradients, state, params)
        after = []
        if before:
            value, *after = value
            _check_form(first[2], after[0])
        return value, _words((optax.apply_updates(params, moves), state, *after))

    inputs = leaf_names(input_names(loss, len(specs) + 1 + len(more))[1 + len(more) :], abstract(specs))
    outputs = [LOSS, *(f"{name}.next" for name in arrays)]
    # They are inputs while it is written: nothing may be computed of a weight that changes.
    model, original = converted(step, [leaves, *specs], None, [*arrays, *inputs], outputs, opset)
    _hold(model, arrays)
    trees = [first[0], *first[2:]]
    if inference is None:
        used, given = _source(partial(_value, loss) if more else loss, trees, loss), specs
    else:
        used = _inference(inference, trees, {id(leaf): name for name, leaf in _leaves(held).items()})
        given = inference_specs or specs[:1]
    made = whole_step(_plain(used, given, opset), model, LOSS, arrays)
    return made, model, lambda: partial(_beside, original(), arrays)


def _value(loss: Callable[..., Any], *given: Any) -> Any:
    return loss(*given)[0]


def _source(function: Callable[..., Any], trees: Sequence[Any], signature: Any) -> Source:
    """A function of the trees that a step changes, the first of which is trained, and of inputs."""
    names = list(_named(_words((trees[0], None, *trees[1:]))))
    source = with_tree(
        lambda held, *inputs: function(*held, *inputs),
        tuple(trees),
        signature,
        skip=len(trees),
        trained=lambda keys, _: path_of(keys[:1]) == "0",
    )
    return source.renamed(names)


def _inference(inference: Any, trees: Sequence[Any], names: Mapping[int, str]) -> Source:
    """The model that others use; its weights have the names of what a step changes."""
    if not is_module(inference):
        return _source(inference, trees, inference)
    source = opened(inference, trees[0] if len(trees) == 1 else tuple(trees))
    for weight in source.weights:
        if weight.trained and id(weight.array) not in names:
            raise OnwardError(
                f"the module for inference has the weight {weight.name}, which is none of params: "
                "give a function of params instead"
            )
    return source.renamed([names.get(id(weight.array), weight.name) for weight in source.weights])


def _plain(source: Source, given: Sequence[Any], opset: int) -> Model:
    """The model that others use, with its weights as a step has them: none is transposed or computed with."""
    weights = {weight.name: weight for weight in source.weights}
    labels = leaf_names(input_names(source.signature, len(given) + source.skip)[source.skip :], abstract(given))
    held = [weight.array for weight in source.weights]
    model, _ = converted(
        lambda arrays, *inputs: source.call(_keys(arrays, held), *inputs),
        [_words(held), *given],
        None,
        [*weights, *labels],
        None,
        opset,
    )
    _hold(model, {name: np.asarray(_words(weight.array)) for name, weight in weights.items()})
    initializers = model.ir.graph.initializers
    for value in [value for value in initializers.values() if value.name in weights and not value.uses()]:
        if not value.is_graph_output():
            del initializers[value.name or ""]
    record(model.ir, {name: weight.trained for name, weight in weights.items() if name in initializers})
    return model


def _is_key(leaf: Any) -> bool:
    return str(getattr(leaf, "dtype", "")).startswith("key<")


def _words(tree: Any) -> Any:
    """With the words of keys in their places."""
    import jax

    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, tree)


def _keys(tree: Any, like: Any) -> Any:
    """With keys in the places of their words."""
    import jax

    def made(leaf: Any, was: Any) -> Any:
        return jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(was)) if _is_key(was) else leaf

    return jax.tree.map(made, tree, like)


def _check_form(before: Any, after: Any) -> None:
    """Refuse a state that is not the one that the next step takes."""
    import jax

    old, new = (jax.tree_util.tree_leaves_with_path(tree) for tree in (before, after))
    names = [[path_of(keys) for keys, _ in leaves] for leaves in (old, new)]
    if names[0] != names[1]:
        missing = ", ".join(sorted(set(names[0]) ^ set(names[1]))) or "another order"
        raise OnwardError(f"the loss gives another model_state than it takes: {missing}")
    for (keys, was), (_, now) in zip(old, new, strict=True):
        kinds = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in (was, now)]
        if kinds[0] != kinds[1]:
            raise OnwardError(f"the loss takes {path_of(keys)} of model_state as {kinds[0]}, and gives {kinds[1]}")


def _leaves(held: Any) -> dict[str, Any]:
    """What a step changes, by name: parameters go by their own, the optimizer's state by where it is.

    So does what belongs to a model's state, if a parameter has its name or it has only a number.
    """
    import jax

    found: dict[str, Any] = {}
    for keys, leaf in jax.tree_util.tree_leaves_with_path(held):
        kind, path = int(path_of(keys[:1])), variable_path(keys[1:])
        plain = kind == 0 or (kind == 2 and path[:1].isalpha() and path not in found)
        found[path if path and plain else f"{KINDS[kind]}.{path}".rstrip(".")] = leaf
    return found


KINDS = ("params", "state", "model_state")


def _named(held: Any) -> dict[str, Array]:
    return {name: np.asarray(leaf) for name, leaf in _leaves(held).items()}


def _hold(model: Model, arrays: Mapping[str, Array]) -> None:
    """Let inputs be weights."""
    graph = model.ir.graph
    for value in [value for value in graph.inputs if value.name in arrays]:
        graph.inputs.remove(value)
        value.const_value = ir.Tensor(arrays[value.name or ""], name=value.name)
        graph.register_initializer(value)


def _beside(run: Run, arrays: Mapping[str, Array], inputs: Inputs) -> Outputs:
    return run({**arrays, **inputs})
