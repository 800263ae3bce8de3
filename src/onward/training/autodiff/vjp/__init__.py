"""Gradient rules, a file a family: how a change of an op's outputs comes from changes of its inputs, backwards.

A rule reads like the op: `@vjp("Mul", broadcasts=True) def mul(c, g, a, b): return g * b, g * a`. It gets the context,
the gradient of the first output, the inputs (None where one is absent) and `p`, what the node means, and gives a
gradient for each input, None where there is none. What it computes in vain is removed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onward.graph.build import Tensor
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


RULES: Registry[Rule] = Registry("gradient rule")
NO_GRADIENT: dict[str, str] = {}
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
    for op in ops:
        if op in NO_GRADIENT:
            raise ValueError(f"{op} is listed twice")
        NO_GRADIENT[op] = reason


def load_rules() -> None:
    """Import every family, so that its rules are registered."""
    import_files(__name__)


def has_rule(op: str) -> bool:
    load_rules()
    return op in RULES or op in NO_GRADIENT
