"""What a function is traced with: shapes and dtypes, some sizes of which are symbolic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from onward.errors import OnwardError
from onward.frontends.jax.dimensions import is_known


def abstract(specs: Sequence[Any]) -> tuple[Any, ...]:
    """Trees of `jax.ShapeDtypeStruct` for arrays, for such structures, or for those with names as sizes."""
    import jax

    leaves, tree = jax.tree_util.tree_flatten(tuple(specs), is_leaf=_is_open)
    scope = next((dim.scope for leaf in leaves for dim in _shape(leaf) if not _is_plain(dim)), None)
    texts = [dim for leaf in leaves for dim in _shape(leaf) if isinstance(dim, str)]
    if texts and scope is None:
        scope = _scope()
    made = [_struct(leaf, scope) for leaf in leaves]
    return tuple(jax.tree_util.tree_unflatten(tree, made))


@cache
def _scope() -> Any:
    """That of all names: with the same sizes, JAX finds what it has traced for another conversion."""
    import jax

    return jax.export.SymbolicScope()


def _is_open(leaf: Any) -> bool:
    """Whether it is a structure with sizes: JAX takes it for a leaf anyway."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _shape(leaf: Any) -> tuple[Any, ...]:
    return tuple(getattr(leaf, "shape", ()))


def _is_plain(dim: Any) -> bool:
    return dim is None or isinstance(dim, str) or is_known(dim)


def _struct(leaf: Any, scope: Any) -> Any:
    import jax

    if not hasattr(leaf, "dtype"):
        try:
            array = np.asarray(leaf)
        except (TypeError, ValueError):
            array = np.asarray(None)
        if array.dtype.kind not in "biufc":
            raise OnwardError(
                f"{leaf!r} is no input: give an array or a jax.ShapeDtypeStruct; other values are for functools.partial"
            )
        return struct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
    dims = _shape(leaf)
    if any(dim is None for dim in dims):
        raise OnwardError(f"a size of {leaf} is None: give it a name, such as 'batch'")
    if any(isinstance(dim, str) for dim in dims):
        text = ", ".join(str(dim) for dim in dims)
        try:
            dims = tuple(jax.export.symbolic_shape(text, scope=scope))
        except ValueError as error:
            raise OnwardError(f"({text}) is no shape: {error}") from error
    dtype = leaf.dtype if str(leaf.dtype).startswith("key<") else jax.dtypes.canonicalize_dtype(leaf.dtype)
    return struct(dims, dtype)


def struct(shape: Sequence[Any], dtype: Any) -> Any:
    """An array without its numbers."""
    import jax

    return jax.ShapeDtypeStruct(shape, dtype)
