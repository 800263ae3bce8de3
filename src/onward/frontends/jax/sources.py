"""What can be converted: functions, and modules of Flax, Equinox, Haiku and Keras, as functions of their weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onward.errors import OnwardError
from onward.frontends.jax.names import path_of


@dataclass(frozen=True)
class Weight:
    """An array that a function is given before its inputs."""

    name: str
    array: Any
    trained: bool


@dataclass(frozen=True)
class Source:
    """A function of weights and inputs."""

    call: Callable[..., Any]
    """Given the arrays of the weights as a list, and the inputs."""
    weights: Sequence[Weight]
    signature: Callable[..., Any]
    """What the names of inputs are taken from."""
    skip: int = 0
    """Parameters of that before the first input."""

    def renamed(self, names: Sequence[str]) -> Source:
        """With other names of weights."""
        pairs = zip(self.weights, names, strict=True)
        return replace(self, weights=[replace(weight, name=name) for weight, name in pairs])


def opened(source: Any, params: Any) -> Source:
    """A function, module, or a module with its variables."""
    kind = _kind(source)
    if kind is not None:
        return kind(source, params)
    if not callable(source):
        raise OnwardError(
            f"an object of {type(source).__name__} is no function: give one, or a module of Flax, Equinox or Haiku"
        )
    if params is None:
        return Source(lambda _, *inputs: source(*inputs), [], source)
    return with_tree(source, params, source, skip=1)


def is_module(source: Any) -> bool:
    """Whether it is of a library of modules, and no plain function."""
    return _kind(source) is not None


def _kind(source: Any) -> Callable[[Any, Any], Source] | None:
    if isinstance(source, tuple) and len(source) == 2 and _is_a(source[0], "flax.linen"):
        return lambda pair, params: _linen(pair[0], pair[1] if params is None else params)
    kinds: list[tuple[str, Callable[[Any, Any], Source]]] = [
        ("flax.linen", _linen),
        ("flax.nnx", _nnx),
        ("equinox", _equinox),
        ("keras", _keras),
    ]
    for package, kind in kinds:
        if _is_a(source, package):
            return kind
    if type(source).__name__ in ("Transformed", "TransformedWithState") and _is_a(source, "haiku"):
        return _haiku
    return None


def _is_a(found: Any, package: str) -> bool:
    """Whether it is an object of a class that a package defines, or one made of such; nothing is imported."""
    return any(
        f"{one.__module__}.".startswith(f"{package}.") and one.__name__ in CLASSES.get(package, (one.__name__,))
        for one in type(found).__mro__
    )


CLASSES = {
    "flax.linen": ("Module",),
    "flax.nnx": ("Module",),
    "equinox": ("Module",),
    "keras": ("Layer", "Model"),
    "haiku": ("Transformed", "TransformedWithState"),
}


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


def with_tree(
    call: Callable[..., Any],
    tree: Any,
    signature: Callable[..., Any],
    skip: int = 0,
    named: Callable[[Sequence[Any]], str] = path_of,
    trained: Callable[[Sequence[Any], Any], bool] | None = None,
) -> Source:
    """A function whose first argument is a tree: its arrays are weights, and the rest of it is as it is."""
    import jax

    leaves, form = jax.tree_util.tree_flatten_with_path(tree)
    places = [i for i, (_, leaf) in enumerate(leaves) if _is_array(leaf)]
    rest = [leaf for _, leaf in leaves]

    def called(arrays: Sequence[Any], *inputs: Any) -> Any:
        filled = list(rest)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        return call(jax.tree_util.tree_unflatten(form, filled), *inputs)

    weights = []
    for i in places:
        keys, leaf = leaves[i]
        is_float = jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)
        weights.append(Weight(named(keys), leaf, bool(is_float and (trained is None or trained(keys, leaf)))))
    return Source(called, weights, signature, skip)


def variable_path(keys: Sequence[Any]) -> str:
    """A path to an array, without the attribute by which a variable of nnx holds it."""
    held = len(keys) > 1 and getattr(keys[-1], "name", None) in ("value", "raw_value")
    return path_of(keys[:-1] if held else keys)


def _without_first(keys: Sequence[Any]) -> str:
    """A path inside a collection of Flax, such as `params`."""
    return path_of(keys[1:] if len(keys) > 1 else keys)


def _linen(module: Any, variables: Any) -> Source:
    if module.scope is not None and variables is None:
        module, variables = module.unbind()
    if variables is None:
        raise OnwardError(
            "a module of Flax has no weights by itself: give (module, variables), or module.bind(variables)"
        )
    from onward.frontends.jax import linen

    return with_tree(
        lambda tree, *inputs: linen.called(module, tree, inputs),
        variables,
        type(module).__call__,
        skip=1,
        named=_without_first,
        trained=lambda keys, _: path_of(keys[:1]) == "params",
    )


def _nnx(module: Any, params: Any) -> Source:
    from flax import nnx

    if params is not None:
        nnx.update(module, params)
    graph, state = nnx.split(module)
    kinds: dict[Any, Any] = dict(nnx.to_flat_state(state))

    def is_parameter(keys: Sequence[Any], _: Any) -> bool:
        path = tuple(key.key if hasattr(key, "key") else getattr(key, "name", None) for key in keys)
        found = kinds.get(path) or kinds.get(path[:-1])
        return found is None or issubclass(getattr(found, "type", type(found)), nnx.Param)

    return with_tree(
        lambda tree, *inputs: nnx.merge(graph, tree)(*inputs),
        state,
        type(module).__call__,
        skip=1,
        named=variable_path,
        trained=is_parameter,
    )


def _equinox(module: Any, params: Any) -> Source:
    tree = module if params is None else params
    return with_tree(lambda held, *inputs: held(*inputs), tree, type(module).__call__, skip=1)


def _haiku(transformed: Any, params: Any) -> Source:
    if params is None:
        raise OnwardError("a transformed function of Haiku has no weights by itself: give params=…")
    takes_rng = "rng" in inspect.signature(transformed.apply).parameters
    between = (None,) if takes_rng else ()
    if type(transformed).__name__ == "Transformed":

        def called(tree: Any, *inputs: Any) -> Any:
            return transformed.apply(tree, *between, *inputs)

        return with_tree(called, params, lambda x: x)
    if not isinstance(params, tuple) or len(params) != 2:
        raise OnwardError("a function of Haiku with state takes both: give params=(params, state)")

    def with_state(tree: Any, *inputs: Any) -> Any:
        return transformed.apply(tree[0], tree[1], *between, *inputs)[0]

    return with_tree(
        with_state, params, lambda x: x, named=_without_first, trained=lambda keys, _: path_of(keys[:1]) == "0"
    )


def _keras(model: Any, params: Any) -> Source:
    import keras

    if keras.backend.backend() != "jax":
        raise OnwardError("this model of Keras runs on another backend than JAX: use onward.from_keras")
    if params is not None:
        raise OnwardError("a model of Keras has its own weights: leave out params")
    groups = model.trainable_variables, model.non_trainable_variables
    count = len(groups[0])

    def called(arrays: Sequence[Any], *inputs: Any) -> Any:
        given = inputs[0] if len(inputs) == 1 else list(inputs)
        return model.stateless_call(list(arrays[:count]), list(arrays[count:]), given, training=False)[0]

    weights = [
        Weight(variable.path.replace("/", "."), np.asarray(variable.value), trained)
        for group, trained in zip(groups, (True, False), strict=True)
        for variable in group
    ]
    return Source(called, weights, lambda x: x)
