"""Decision trees, all trees and all rows one level at a time."""

from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import size


def as_rows(x: tf.Tensor) -> tf.Tensor:
    """A vector as a matrix of one row."""
    return x[tf.newaxis] if x.shape.rank == 1 else x


def tree_leaves(
    x: tf.Tensor,
    feature: tf.Tensor,
    threshold: tf.Tensor,
    branches: tf.Tensor,
    roots: tf.Tensor,
    first_leaf: int,
    depth: int,
    test: Any = "<=",
    missing: tf.Tensor | None = None,
    sets: tf.Tensor | None = None,
) -> tf.Tensor:
    """The number of the leaf that each row of `x` reaches in each tree: (rows, trees).

    Row `n` of the tables is node `n` of all trees together: it compares `feature` with `threshold` and goes on along
    one of its two `branches`, the second one if the test is passed. Leaves are the nodes from `first_leaf` on and lead
    to themselves. `missing` tells which nodes a NaN passes; see `passes_tests` for `test` and `sets`.
    """
    at = tf.broadcast_to(roots, [size(x, 0), size(roots, 0)])
    for _ in range(depth):
        value = tf.gather(x, tf.gather(feature, at), axis=1, batch_dims=1)
        limit = tf.gather(threshold, at)
        if isinstance(test, str):
            passed = passes_test(value, limit, test)
        else:
            passed = passes_tests(value, limit, tf.gather(test, at), sets)
        if missing is not None:
            passed = passed | (tf.gather(missing, at) & tf.math.is_nan(value))
        at = tf.gather(branches, at)
        at = tf.where(passed, at[..., 1], at[..., 0])
    return at - first_leaf


def passes_test(value: tf.Tensor, threshold: tf.Tensor, test: str) -> tf.Tensor:
    """Whether `value <= threshold`, or as `test` says."""
    compare = {
        "<=": tf.less_equal,
        "<": tf.less,
        ">=": tf.greater_equal,
        ">": tf.greater,
        "==": tf.equal,
        "!=": tf.not_equal,
    }
    return compare[test](value, threshold)


def passes_tests(value: tf.Tensor, threshold: tf.Tensor, test: tf.Tensor, sets: tf.Tensor | None) -> tf.Tensor:
    """Whether values pass tests that differ from node to node, by number: <=, <, >=, >, ==, !=, in a set.

    For the last, the threshold is the row of `sets` that lists the members.
    """
    passed = tf.zeros_like(test, tf.bool)
    for number, symbol in enumerate(("<=", "<", ">=", ">", "==", "!=")):
        passed = passed | ((test == number) & passes_test(value, threshold, symbol))
    if sets is not None:
        row = tf.cast(tf.where(test == 6, threshold, tf.zeros_like(threshold)), tf.int64)
        is_member = tf.reduce_any(tf.gather(sets, row) == value[..., tf.newaxis], -1)
        passed = passed | ((test == 6) & is_member)
    return passed
