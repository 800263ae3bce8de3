"""Functions inside functions: what they call is written in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.frontends.jax.idioms import named
from onward.frontends.jax.registry import rule
from onward.frontends.jax.values import Value
from onward.frontends.jax.writer import Writer


@rule("jit", "pjit", "closed_call", "core_call", "xla_call", whole=True, broadcasts=True)
def jit(op: Writer, *inputs: Value, jaxpr: Any = None, call_jaxpr: Any = None, name: str = "") -> Sequence[Value]:
    inner = jaxpr if jaxpr is not None else call_jaxpr
    return named(op, name, inner, inputs) or op.translator.run(inner, inputs)


@rule("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", whole=True, broadcasts=True)
def custom_derivative(op: Writer, *inputs: Value, call_jaxpr: Any = None, fun_jaxpr: Any = None) -> Sequence[Value]:
    return op.translator.run(call_jaxpr if call_jaxpr is not None else fun_jaxpr, inputs)


@rule("remat", "remat2", "checkpoint", whole=True, broadcasts=True)
def remat(op: Writer, *inputs: Value, jaxpr: Any) -> Sequence[Value]:
    return op.translator.run(jaxpr, inputs)
