"""Rules of the frontend: a TensorFlow op as ONNX ops.

A rule is called with what the op takes, in its order, and with those of its attributes that the rule names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from onward.plugins.table import ops
from onward.registry import Registry

if TYPE_CHECKING:
    from onward.frontends.tensorflow.values import Value

    Function = Callable[..., Value | Sequence[Value]]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    function: Function
    attributes: frozenset[str]


class Filing(Protocol):
    def __call__(self, *op_types: str) -> Callable[[F], F]: ...


def filing(rules: Registry[Rule]) -> Filing:
    """What files a function as the rule for ops, in a table of them."""

    def rule(*op_types: str) -> Callable[[F], F]:
        def file(function: F) -> F:
            parameters = inspect.signature(function).parameters.values()
            named = frozenset(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
            rules.register(*op_types)(Rule(function, named))
            return function

        return file

    return rule


def _plugged(name: str) -> Rule | None:
    """The rule of a plugin for an op of TensorFlow: it gets the attributes that it names, or those of the custom op."""
    for op in ops():
        if (function := op.called_in_tensorflow(name)) is not None:
            parameters = inspect.signature(function).parameters.values()
            named = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
            takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
            return Rule(function, frozenset({a.name for a in op.attributes} if takes_all else named))
    return None


RULES: Registry[Rule] = Registry("TensorFlow op", _plugged)
rule = filing(RULES)
