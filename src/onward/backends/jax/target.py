"""What generated JAX code is made of: the symbols rules write with, dtypes, and the registry of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import custom_rules
from onward.backends.emit.emitter import Arg
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.expr import ops as ops
from onward.backends.emit.target import PLAIN_DTYPES, Rule, Target
from onward.graph.origin import origin
from onward.registry import Registry

jax = Name("jax")
jnp = Name("jnp")
lax = Name("lax")
math = Name("math")
np_ = Name("np")
KEYS = "keys"
"""The flag of a model that is given a key to draw by: what goes through the keys of all that is drawn."""

_D = ir.DataType
DTYPES: dict[ir.DataType, str] = {
    **PLAIN_DTYPES,
    _D.FLOAT8E4M3FN: "float8_e4m3fn",
    _D.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    _D.FLOAT8E5M2: "float8_e5m2",
    _D.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    # JAX has little arithmetic on these: each value is kept in the smallest type that holds it exactly.
    _D.INT4: "int8",
    _D.INT2: "int8",
    _D.UINT4: "uint8",
    _D.UINT2: "uint8",
    _D.FLOAT8E8M0: "float32",
    _D.FLOAT4E2M1: "float32",
    _D.FLOAT6E2M3: "float32",
    _D.FLOAT6E3M2: "float32",
}
"""The JAX dtype that carries each ONNX dtype in generated code. Strings are numpy object arrays."""


BUILTIN = {"bool": "bool", "int64": "int", "float64": "float", "complex128": "complex"}
"""Python's own types, which JAX takes for those of 64 bits, or of 32 bits where it is not to have any of 64."""


def dtype(of: ir.DataType | int) -> Expr:
    """`jnp.float32` for FLOAT."""
    name = DTYPES[ir.DataType(of)]
    return Name(BUILTIN.get(name, f"jnp.{name}"))


class JaxTarget(Target):
    name = "jax"
    rules: Registry[Rule] = Registry("JAX rule", custom_rules("jax", f"{__package__}.runtime"))

    def tensor(self, items: np.ndarray[Any, Any], of: ir.DataType | None) -> Expr:
        typed = dtype(of or ir.DataType.INT64)
        if items.size == 0 and items.ndim > 1:
            return jnp.zeros(items.shape, typed)  # nested lists can't tell the shape
        first = items.reshape(-1)[0] if items.ndim > 1 else None
        if isinstance(first, bool | int | float) and len(set(map(repr, items.flat))) == 1:
            return jnp.full(items.shape, first, typed)
        return jnp.array(items.tolist() if items.ndim else items.item(), typed)

    def is_literal(self, number: Any) -> bool:
        """JAX takes a larger whole number for one of 32 bits that has overflown."""
        return not isinstance(number, int) or number < 2**31

    def dtype(self, of: ir.DataType | int) -> Expr:
        return dtype(of)

    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        return x.astype(dtype(of))

    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr:
        return jnp.concatenate(tuple(tensors), axis=axis)

    def pick_strings(self, strings: Expr, index: Expr, node: ir.Node) -> Expr:
        return strings[ops.known(index, str(origin(node)))]

    def listed(self, x: Expr) -> Expr:
        """Errors name the node that asks for them."""
        assert isinstance(x, Arg)
        return ops.listed(x, str(origin(x._node)))


TARGET = JaxTarget()
rule = TARGET.rules.register
