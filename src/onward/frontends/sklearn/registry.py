"""Rules of the frontend: what an estimator that was fitted computes, as ONNX ops.

A rule is called with the estimator and what it is given, and says what each of its methods returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from onward.graph.build import Tensor
from onward.registry import Registry

if TYPE_CHECKING:
    from onward.frontends.sklearn.writer import Writer

Outputs = dict[str, Tensor]
"""By the name of the method: predict, predict_proba, decision_function, transform."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    function: Callable[[Writer, Any, Any], Outputs]
    as_given: bool
    """Whether it takes columns of any types, and not a matrix of numbers."""


RULES: Registry[Rule] = Registry("estimator")


def rule(*names: str, as_given: bool = False, package: str = "sklearn") -> Callable[[F], F]:
    """File a function as the rule for classes of estimators."""

    def file(function: F) -> F:
        RULES.register(*(f"{package}.{name}" for name in names))(Rule(function, as_given))
        return function

    return file


def key_of(estimator: Any) -> str:
    """Under what its rule is filed: its package and its class. A class derived from it may compute something else."""
    return f"{type(estimator).__module__.partition('.')[0]}.{type(estimator).__name__}"
