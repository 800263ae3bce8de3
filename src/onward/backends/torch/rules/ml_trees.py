"""Tree ensembles: PyTorch's words for them."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.ml_trees import Words, classifier, ensemble, regressor
from onward.backends.torch.target import F, ops, rule, torch


class _TorchWords(Words):
    def as_rows(self, x: Expr) -> Expr:
        return torch.atleast_2d(x)

    def single(self, x: Expr) -> Expr:
        return x.float()

    def as_index(self, truth: Expr) -> Expr:
        return truth.long()

    def where(self, truth: Expr, yes: Any, no: Any) -> Expr:
        return torch.where(truth, yes, no)

    def pick(self, rows: Expr, index: Expr) -> Expr:
        return rows[index]

    def pick_strings(self, strings: Expr, index: Expr) -> Expr:
        return ops.pick_strings(strings, index)

    def total(self, leaves: Expr, weights: Expr, aggregate: str) -> Expr:
        if aggregate in ("MIN", "MAX"):
            found = weights[leaves]
            return found.amin(dim=1) if aggregate == "MIN" else found.amax(dim=1)
        return F.embedding_bag(leaves, weights, mode="sum" if aggregate == "SUM" else "mean")

    def by_turns(self, values: Expr, rounds: int, targets: int) -> Expr:
        return values.unflatten(1, (rounds, targets)).sum(dim=1)

    def any_of(self, given: Expr) -> Expr:
        return given.any(dim=1)

    def is_finite(self, x: Expr) -> Expr:
        return torch.isfinite(x)

    def best(self, scores: Expr) -> Expr:
        return scores.argmax(dim=1)

    def columns(self, first: Expr | None, second: Expr) -> Expr:
        return torch.stack([torch.zeros_like(second) if first is None else first, second], dim=1)

    def softmax(self, scores: Expr) -> Expr:
        return torch.softmax(scores, dim=-1)

    def sigmoid(self, scores: Expr) -> Expr:
        return torch.sigmoid(scores)


WORDS = _TorchWords()


@rule("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(e: Emitter, x: Expr, **attributes: Any) -> Expr:
    return regressor(e, WORDS, x, **attributes)


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(e: Emitter, x: Expr, **attributes: Any) -> Expr:
    return ensemble(e, WORDS, x, **attributes)


@rule("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(e: Emitter, x: Expr, **attributes: Any) -> tuple[Expr, Expr]:
    return classifier(e, WORDS, x, **attributes)
