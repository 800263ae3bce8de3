"""Tree ensembles: PyTorch's words for them."""

from __future__ import annotations

from onward.backends.emit.expr import Expr
from onward.backends.shared.ml_trees import Words, rules
from onward.backends.torch.target import TARGET, F, torch


def _total(leaves: Expr, weights: Expr, aggregate: str) -> Expr:
    if aggregate in ("MIN", "MAX"):
        found = weights[leaves]
        return found.amin(dim=1) if aggregate == "MIN" else found.amax(dim=1)
    return F.embedding_bag(leaves, weights, mode="sum" if aggregate == "SUM" else "mean")


def _columns(first: Expr | None, second: Expr) -> Expr:
    return torch.stack([torch.zeros_like(second) if first is None else first, second], dim=1)


WORDS = Words(
    as_rows=torch.atleast_2d,
    single=lambda x: x.float(),
    as_index=lambda truth: truth.long(),
    where=torch.where,
    total=_total,
    by_turns=lambda values, rounds, targets: values.unflatten(1, (rounds, targets)).sum(dim=1),
    is_finite=torch.isfinite,
    best=lambda scores: scores.argmax(dim=1),
    columns=_columns,
    column=lambda scores, k: scores[:, k],
    is_scored=lambda leaves, given: given[leaves].any(dim=1),
    softmax=lambda scores: torch.softmax(scores, dim=-1),
    sigmoid=torch.sigmoid,
)
TARGET.rules.take(rules(WORDS))
