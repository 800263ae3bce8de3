"""Names: of weights by their paths in a tree, of inputs by the parameters of a function, of outputs by their keys."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

DEPTH = 6
"""How far functions inside functions are looked through for what they close over."""


def step_of(key: Any) -> str:
    """One step of a path: a key, the name of an attribute, a number."""
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def path_of(keys: Sequence[Any], between: str = ".") -> str:
    return between.join(step_of(key) for key in keys)


def input_names(function: Callable[..., Any], count: int) -> list[str]:
    """What the first `count` parameters are called; `x` where a function does not say it."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for i in range(count):
        positional = parameters[i] if i < len(parameters) else None
        if positional is not None and positional.kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(positional.name)
            continue
        names.append("x" if count == 1 else f"x_{i}")
    return names


def leaf_names(starts: Sequence[str], trees: Sequence[Any]) -> list[str]:
    """A name for every array in trees: `state_h` for `{"h": …}` in the parameter `state`."""
    import jax

    names = []
    for start, tree in zip(starts, trees, strict=True):
        for keys, _ in jax.tree_util.tree_flatten_with_path(tree)[0]:
            steps = [start, *(step_of(key) for key in keys)]
            names.append("_".join(step for step in steps if step))
    return names


def output_names(tree: Any) -> list[str]:
    """`output` for a single one, the keys of a dict, numbers otherwise."""
    import jax

    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    if len(leaves) == 1 and not leaves[0][0]:
        return ["output"]
    found = []
    for keys, _ in leaves:
        path = path_of(keys, "_")
        found.append(path if path[:1].isalpha() else f"output_{path}")
    return found


def closed_over(function: Any) -> dict[int, str]:
    """The names of arrays that a function reads without being given them, by their ids."""
    import jax

    found: dict[int, str] = {}
    for name, tree in _around(function, DEPTH):
        try:
            leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
        except (TypeError, ValueError):
            continue
        for keys, leaf in leaves:
            if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
                found.setdefault(id(leaf), ".".join(part for part in (name, path_of(keys)) if part))
    return found


def _around(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """What a function can see: its closure, the globals that it names, what it is bound to or wraps."""
    if depth == 0 or function is None:
        return
    if isinstance(function, functools.partial):
        yield from ((f"arg_{i}", value) for i, value in enumerate(function.args))
        yield from function.keywords.items()
        yield from _around(function.func, depth - 1)
        return
    if inspect.ismethod(function):
        yield "", function.__self__
        yield from _around(function.__func__, depth - 1)
        return
    inner = getattr(function, "__wrapped__", None)
    if inner is not None:
        if not isinstance(inner, FunctionType):
            yield "", inner
        yield from _around(inner, depth - 1)
        return
    if not isinstance(function, FunctionType):
        return
    seen = list(_seen(function))
    yield from seen
    for _, value in seen:
        if callable(value) and (isinstance(value, FunctionType | functools.partial) or hasattr(value, "__wrapped__")):
            yield from _around(value, depth - 1)


def _seen(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__ and not inspect.ismodule(function.__globals__[name]):
            yield name, function.__globals__[name]
