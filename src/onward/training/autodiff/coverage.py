"""Which ops have a gradient: what the page of gradients and `onward train inspect` say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import onnx

from onward.canon.lower import LOWERINGS, load_lowerings
from onward.canon.upgrade.registry import ENTRIES
from onward.plugins.table import versions
from onward.registry import cached_by_schema
from onward.training.autodiff.limits import MISSING, PARTIAL
from onward.training.autodiff.vjp import NO_GRADIENT, RULES, load_rules

Word = Literal["rule", "definition", "partial", "none", "missing"]
WORDS: dict[Word, str] = {
    "rule": "a rule of its own",
    "definition": "differentiated through its definition in terms of other ops",
    "partial": "a rule or definition that refuses some of what ONNX allows, or follows a convention",
    "none": "there is no gradient: integers, strings, or constant between steps",
    "missing": "refused, by name, where a gradient has to pass",
}


@dataclass(frozen=True)
class GradientStatus:
    """What becomes of a gradient that reaches an op."""

    op: str
    status: Word
    why: str = ""

    def __str__(self) -> str:
        return f"{self.status} ({self.why})" if self.why else self.status


def gradient_status(op: str) -> GradientStatus:
    """Of an op by its key: `Gelu`, or `com.microsoft::Gelu` outside the default domain."""
    load_rules()
    if reason := NO_GRADIENT.get(op):
        return GradientStatus(op, "none", reason)
    if op in PARTIAL:
        return GradientStatus(op, "partial", PARTIAL[op])
    if op in RULES:
        return GradientStatus(op, "rule")
    if op in MISSING:
        return GradientStatus(op, "missing", MISSING[op])
    return GradientStatus(op, "definition") if is_defined(op) else GradientStatus(op, "missing", "no rule")


@cached_by_schema
def is_defined(op: str) -> bool:
    """Whether an op is written in terms of others before it is differentiated: by us, an upgrade, or its schema.

    A definition that depends on the types of the inputs is taken to be one; others have to lead to rules.
    """
    load_lowerings()
    domain, _, name = op.rpartition("::")
    if op in LOWERINGS or any(one.functions for one in versions(op)):
        return True
    try:
        schema = onnx.defs.get_schema(name, domain)
    except onnx.defs.SchemaError:
        return bool(ENTRIES.get((domain, name)))
    if schema.deprecated:
        return bool(ENTRIES.get((domain, name)))
    if not schema.has_function:
        return bool(schema.has_context_dependent_function)
    inner = {
        node.op_type if not node.domain else f"{node.domain}::{node.op_type}" for node in schema.function_body.node
    }
    return all(one == "Constant" or gradient_status(one).status != "missing" for one in inner)


def is_marked(op: str) -> bool:
    """Whether ONNX says that an input of the op is differentiable."""
    domain, _, name = op.rpartition("::")
    category = onnx.defs.OpSchema.DifferentiationCategory.Differentiable
    return any(given.differentiation_category == category for given in onnx.defs.get_schema(name, domain).inputs)
