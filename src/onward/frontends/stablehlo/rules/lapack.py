"""Decompositions of matrices, which JAX has LAPACK compute: calls by the names of its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax import linalg

from onward.errors import UnsupportedError
from onward.frontends.stablehlo.values import Value, as_array, constant, shape_of
from onward.registry import Registry

Decompose = Callable[..., list[Any]]
FUNCTIONS: Registry[Decompose] = Registry("function of LAPACK")
"""By the name without 'lapack_', the letter of its type, and '_ffi'; each is called with the call and its operands."""


def lapack(op: Any, target: str, given: tuple[Value, ...]) -> list[Any]:
    """What a call of LAPACK gives."""
    function = FUNCTIONS.get(target.removeprefix("lapack_")[1:].removesuffix("_ffi"))
    if function is None or not target.endswith("_ffi"):
        raise UnsupportedError(f"the module calls {target}, a function of LAPACK that has no form in ONNX here")
    layouts = [list(axes) for axes in op.attributes["operand_layouts"]] if "operand_layouts" in op.attributes else []
    rank = max(map(len, layouts), default=0)
    if not layouts or any(layout != _by_column(rank) for layout in layouts if len(layout) == rank):
        raise UnsupportedError(f"the module calls {target} on matrices that are not stored by column")
    return function(op, *map(as_array, given))


def _by_column(rank: int) -> list[int]:
    """The axes of matrices, from the one whose elements are nearest in memory, as LAPACK has them."""
    return [rank - 2, rank - 1, *range(rank - 3, -1, -1)]


def _option(op: Any, name: str) -> str:
    """A letter of LAPACK."""
    return chr(op.attributes["mhlo.backend_config"][name].value)


def _unused(op: Any, *places: int) -> None:
    for place in places:
        if list(op.results[place].uses):
            raise UnsupportedError(f"result {place} of a call of LAPACK is used, which is left from its computation")


def _failed(op: Any, batch: tuple[Any, ...], failed: Any = None) -> Any:
    """How a call ended, the last result: 0, or another number, which may be asked for but not be used."""
    for use in op.results[len(op.results) - 1].uses:
        if use.owner.name != "stablehlo.compare" or not _is_zero(use.owner.operands[1].owner):
            raise UnsupportedError("the number by which LAPACK says what failed is used")
    return jnp.zeros(batch, np.int32) if failed is None else lax.convert_element_type(failed, np.int32)


def _is_zero(op: Any) -> bool:
    while op.name in ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"):
        op = op.operands[0].owner
    if op.name != "stablehlo.constant":
        return False
    found = constant(op)
    return not found.ndim and found == 0


@FUNCTIONS.register("potrf")
def cholesky(op: Any, a: Any) -> list[Any]:
    """The other triangle stays as it was."""
    is_lower = _option(op, "uplo") == "L"
    found = lax.linalg.cholesky(a if is_lower else a.mT, symmetrize_input=False)
    inside = jnp.tri(a.shape[-1], dtype=bool)
    packed = jnp.where(inside if is_lower else inside.T, found if is_lower else found.mT, a)
    return [packed, _failed(op, a.shape[:-2], jnp.isnan(found).any((-2, -1)))]


@FUNCTIONS.register("getrf")
def lu(op: Any, a: Any) -> list[Any]:
    """Places are counted from one; a matrix that has no inverse has factors, too."""
    found, pivots, _ = lax.linalg.lu(a)
    is_singular = (jnp.diagonal(found, axis1=-2, axis2=-1) == 0).any(-1)
    return [found, pivots + 1, _failed(op, a.shape[:-2], is_singular)]


@FUNCTIONS.register("geqrf")
def reflections(op: Any, a: Any) -> list[Any]:
    return list(linalg.geqrf(a))


@FUNCTIONS.register("orgqr")
def product_of_reflections(op: Any, a: Any, factors: Any) -> list[Any]:
    return [lax.linalg.householder_product(a, factors)]


@FUNCTIONS.register("gesdd", "gesvd")
def svd(op: Any, a: Any) -> list[Any]:
    _unused(op, 0)
    mode = _option(op, "mode")
    batch, rest = a.shape[:-2], jnp.zeros_like(a)
    if mode == "N":
        _unused(op, 2, 3)
        empty = [jnp.zeros([*batch, *(n or 0 for n in shape_of(op.results[i].type)[-2:])], a.dtype) for i in (2, 3)]
        return [rest, lax.linalg.svd(a, compute_uv=False), *empty, _failed(op, batch)]
    left, values, right = lax.linalg.svd(a, full_matrices=mode == "A", compute_uv=True)
    return [rest, values, left, right, _failed(op, batch)]


@FUNCTIONS.register("syevd")
def eigh(op: Any, a: Any) -> list[Any]:
    if _option(op, "mode") != "V":
        _unused(op, 0)
    vectors, values = lax.linalg.eigh(a, lower=_option(op, "uplo") == "L", symmetrize_input=False)
    return [vectors, values, _failed(op, a.shape[:-2])]


@FUNCTIONS.register("trsm")
def triangular_solve(op: Any, a: Any, b: Any) -> list[Any]:
    found = lax.linalg.triangular_solve(
        a,
        b,
        left_side=_option(op, "side") == "L",
        lower=_option(op, "uplo") == "L",
        transpose_a=_option(op, "trans_x") != "N",
        conjugate_a=_option(op, "trans_x") == "C",
        unit_diagonal=_option(op, "diag") == "U",
    )
    return [found]


@FUNCTIONS.register("gtsv")
def tridiagonal_solve(op: Any, below: Any, diagonal: Any, above: Any, b: Any) -> list[Any]:
    _unused(op, 0, 1, 2)
    found = lax.linalg.tridiagonal_solve(below, diagonal, above, b)
    return [below, diagonal, above, found, _failed(op, b.shape[:-2])]
