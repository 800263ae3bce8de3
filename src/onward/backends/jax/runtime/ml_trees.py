"""Decision trees, all trees and all rows one level at a time."""

import operator

import jax.numpy as jnp
from jax import Array


def tree_leaves(
    x: Array,
    feature: Array,
    threshold: Array,
    branches: Array,
    roots: Array,
    first_leaf: int,
    depth: int,
    test: str | Array = "<=",
    missing: Array | None = None,
    sets: Array | None = None,
) -> Array:
    """The number of the leaf that each row of `x` reaches in each tree: (rows, trees).

    Row `n` of the tables is node `n` of all trees together: it compares `feature` with `threshold` and goes on along
    one of its two `branches`, the second one if the test is passed. Leaves are the nodes from `first_leaf` on and lead
    to themselves. `missing` tells which nodes a NaN passes; see `passes_tests` for `test` and `sets`.
    """
    row = jnp.arange(x.shape[0])[:, None]
    at = jnp.broadcast_to(roots, (x.shape[0], roots.shape[0]))
    for _ in range(depth):
        value = x[row, feature[at]]
        if isinstance(test, str):
            passed = passes_test(value, threshold[at], test)
        else:
            passed = passes_tests(value, threshold[at], test[at], sets)
        if missing is not None:
            passed = passed | (missing[at] & jnp.isnan(value))
        at = branches[at, passed.astype(int)]
    return at - first_leaf


def passes_test(value: Array, threshold: Array, test: str) -> Array:
    """Whether `value <= threshold`, or as `test` says."""
    compare = {
        "<=": operator.le,
        "<": operator.lt,
        ">=": operator.ge,
        ">": operator.gt,
        "==": operator.eq,
        "!=": operator.ne,
    }
    return compare[test](value, threshold)


def passes_tests(value: Array, threshold: Array, test: Array, sets: Array | None) -> Array:
    """Whether values pass tests that differ from node to node, by number: <=, <, >=, >, ==, !=, in a set.

    For the last, the threshold is the row of `sets` that lists the members.
    """
    passed = jnp.zeros_like(test, bool)
    for number, symbol in enumerate(("<=", "<", ">=", ">", "==", "!=")):
        passed = passed | ((test == number) & passes_test(value, threshold, symbol))
    if sets is not None:
        row = jnp.where(test == 6, threshold, 0).astype(int)
        passed = passed | ((test == 6) & (sets[row] == value[..., None]).any(-1))
    return passed
