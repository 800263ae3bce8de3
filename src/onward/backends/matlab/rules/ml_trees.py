"""Tree ensembles: MATLAB's words for them. A row of the file is a column."""

from __future__ import annotations

from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.target import ALL, TARGET, ops
from onward.backends.shared.ml_trees import Words, rules


def _column(scores: Expr, k: int) -> Expr:
    return scores[k + 1, ALL].T


def _columns(first: Expr | None, second: Expr) -> Expr:
    if first is None:
        first = 0 * second
    return Display((first, second), "[]").T


def _by_turns(values: Expr, rounds: int, targets: int) -> Expr:
    return ops.total_by_turns(values, targets)


WORDS = Words(
    as_rows=lambda x: x,
    single=Name("single"),
    as_index=Name("int64"),
    where=ops.where,
    total=lambda leaves, weights, aggregate: ops.leaf_total(leaves, weights, aggregate.lower()),
    by_turns=_by_turns,
    is_finite=Name("isfinite"),
    best=lambda scores: ops.place_of(scores, 1, "max", False).T,
    columns=_columns,
    column=_column,
    is_scored=ops.is_scored,
    softmax=lambda scores: ops.softmax(scores, 1),
    sigmoid=ops.sigmoid,
)
TARGET.rules.take(rules(WORDS))
