"""What classifiers need beside standard ops. The helper is named alike in every backend."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule


def couple_pairs(e: Emitter, pairs: Expr) -> Expr:
    return ops.couple_pairs(pairs)


RULES: dict[str, Rule] = {"onward::CouplePairs": couple_pairs}
