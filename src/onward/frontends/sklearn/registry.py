"""Rules of the frontend: what an estimator that was fitted computes, as ONNX ops.

A rule is called with the estimator and what it is given, and says what each of its methods returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    function: Callable[[Writer, Any, Any], Mapping[str, Any]]
    as_given: bool
    """Whether it takes columns of any types, and not a matrix of numbers."""


RULES: Registry[Rule] = Registry("estimator")


def rule(*names: str, as_given: bool = False, package: str = "sklearn") -> Callable[[F], F]:
    """File a function as the rule for classes of estimators."""

    def file(function: F) -> F:
        RULES.register(*(f"{package}.{name}" for name in names))(Rule(function, as_given))
        return function

    return file


FITTING = {"fit", "fit_predict", "fit_transform", "partial_fit", "score"}
"""Methods that have no part in what a fitted estimator computes."""


def rule_of(estimator: Any) -> Rule | None:
    """The rule of its class, or of the nearest one that it is derived from without changing what is computed."""
    own = type(estimator)
    found = RULES.get(key_of(estimator))
    if found is not None or own.__module__.partition(".")[0] in ("sklearn", "lightgbm", "xgboost"):
        return found
    for base in own.__mro__[1:]:
        if rule := RULES.get(f"{base.__module__.partition('.')[0]}.{base.__name__}"):
            return rule if _only_fits(own, base) else None
    return None


def _only_fits(own: type, base: type) -> bool:
    """Whether all that a class adds to one that it is derived from is how it is made and fitted."""
    between = own.__mro__[: own.__mro__.index(base)]
    added = {name for one in between for name in vars(one) if not (name.startswith("__") and name.endswith("__"))}
    known = {name for name in added if name in FITTING or name.startswith(("set_", "_sklearn_", "_abc_"))}
    return added == known and all("__call__" not in vars(one) for one in between)


def key_of(estimator: Any) -> str:
    """Under what its rule is filed: its package and its class. A class derived from it may compute something else."""
    return f"{type(estimator).__module__.partition('.')[0]}.{type(estimator).__name__}"
