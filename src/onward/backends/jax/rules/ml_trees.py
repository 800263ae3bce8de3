"""Tree ensembles: JAX's words for them."""

from __future__ import annotations

from onward.backends.emit.expr import Expr, Name
from onward.backends.jax.target import TARGET, jax, jnp
from onward.backends.shared.ml_trees import Words, rules

_TOTALS = {"SUM": "sum", "AVERAGE": "mean", "MIN": "min", "MAX": "max"}


def _total(leaves: Expr, weights: Expr, aggregate: str) -> Expr:
    return getattr(weights[leaves], _TOTALS[aggregate])(1)  # type: ignore[no-any-return]


def _columns(first: Expr | None, second: Expr) -> Expr:
    return jnp.stack([jnp.zeros_like(second) if first is None else first, second], axis=1)


WORDS = Words(
    as_rows=jnp.atleast_2d,
    single=lambda x: x.astype(jnp.float32),
    as_index=lambda truth: truth.astype(Name("int")),
    where=jnp.where,
    total=_total,
    by_turns=lambda values, rounds, targets: values.reshape(-1, rounds, targets).sum(1),
    is_finite=jnp.isfinite,
    best=lambda scores: scores.argmax(1),
    columns=_columns,
    column=lambda scores, k: scores[:, k],
    is_scored=lambda leaves, given: given[leaves].any(1),
    softmax=jax.nn.softmax,
    sigmoid=jax.nn.sigmoid,
)
TARGET.rules.take(rules(WORDS))
