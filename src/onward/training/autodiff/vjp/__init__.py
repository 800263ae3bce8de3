"""Gradient rules, a file a family: how a change of an op's outputs comes from changes of its inputs, backwards.

A rule reads like the op: `@vjp("Mul", broadcasts=True) def mul(c, g, a, b): return g * b, g * a`. It gets the context,
the gradient of the first output, the inputs (None where one is absent) and `p`, what the node means, and gives a
gradient for each input, None where there is none. What it computes in vain is removed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onward.graph.build import Tensor
from onward.plugins.table import find, versions
from onward.registry import Registry, import_files

Gradients = Tensor | None | Sequence[Tensor | None]


@dataclass(frozen=True)
class Rule:
    """How to differentiate an op."""

    apply: Callable[..., Gradients]
    broadcasts: bool
    """Its inputs are broadcast: each gradient is summed to the shape of its input afterwards."""
    of_levels: bool = False
    """It takes quantised integers as they are; other rules see them as real numbers."""


def _of_plugin(key: str) -> Rule | None:
    """The rule of a custom op: each version of it has its own, or no gradient."""
    known = versions(key)
    if not any(op.gradient or op.without_gradient for op in known):
        return None

    def apply(c: Any, g: Tensor | None, *inputs: Tensor | None, **attributes: Any) -> Gradients:
        one = find(key, c.node.version or c.op.model.opset_imports.get(c.node.domain))
        if one is not None and one.without_gradient:
            return None
        if one is None or one.gradient is None:
            raise c.refuse("its plugin has no @op.vjp for this version")
        found: Gradients = one.gradient(c, g, *inputs, **one.keywords(attributes))
        return found

    return Rule(apply, any(op.broadcasts for op in known))


def _without(key: str) -> str | None:
    """Why no version of a custom op has a gradient."""
    reasons = [op.without_gradient for op in versions(key)]
    return reasons[-1] if reasons and all(reasons) else None


RULES: Registry[Rule] = Registry("gradient rule", _of_plugin)
NO_GRADIENT: Registry[str] = Registry("op without a gradient", _without)
"""Ops whose derivative is zero wherever it exists, or whose outputs are no real numbers, each with the reason."""


def vjp(
    *ops: str, broadcasts: bool = False, of_levels: bool = False
) -> Callable[[Callable[..., Gradients]], Callable[..., Gradients]]:
    """Files a rule for the ops named; outside the default domain as `domain::Op`."""

    def file(apply: Callable[..., Gradients]) -> Callable[..., Gradients]:
        RULES.register(*ops)(Rule(apply, broadcasts, of_levels))
        return apply

    return file


def no_gradient(reason: str, *ops: str) -> None:
    """Files ops through which no gradient flows."""
    NO_GRADIENT.register(*ops)(reason)


def load_rules() -> None:
    """Import every family, so that its rules are registered."""
    import_files(__name__)


def has_rule(op: str) -> bool:
    load_rules()
    return op in RULES or op in NO_GRADIENT
