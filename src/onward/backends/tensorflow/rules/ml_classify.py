"""What classifiers need beside standard ops."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import ops, rule


@rule("onward::CouplePairs")
def couple_pairs(e: Emitter, pairs: Expr) -> Expr:
    return ops.couple_pairs(pairs)
