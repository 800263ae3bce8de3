"""Decision trees, all trees and all rows one level at a time."""

import torch
from torch import Tensor


def tree_leaves(
    x: Tensor,
    feature: Tensor,
    threshold: Tensor,
    branches: Tensor,
    roots: Tensor,
    first_leaf: int,
    depth: int,
    test: str | Tensor = "<=",
    missing: Tensor | None = None,
    sets: Tensor | None = None,
) -> Tensor:
    """The number of the leaf that each row of `x` reaches in each tree: (rows, trees).

    Row `n` of the tables is node `n` of all trees together: it compares `feature` with `threshold` and goes on along
    one of its two `branches`, the second one if the test is passed. Leaves are the nodes from `first_leaf` on and lead
    to themselves. `missing` tells which nodes a NaN passes; see `passes_tests` for `test` and `sets`.
    """
    at = roots.expand(x.shape[0], -1)
    for _ in range(depth):
        value = x.gather(1, feature[at])
        if isinstance(test, str):
            passed = passes_test(value, threshold[at], test)
        else:
            passed = passes_tests(value, threshold[at], test[at], sets)
        if missing is not None:
            passed = passed | (missing[at] & value.isnan())
        at = branches[at, passed.long()]
    return at - first_leaf


def passes_test(value: Tensor, threshold: Tensor, test: str) -> Tensor:
    """Whether `value <= threshold`, or as `test` says."""
    compare = {"<=": torch.le, "<": torch.lt, ">=": torch.ge, ">": torch.gt, "==": torch.eq, "!=": torch.ne}
    return compare[test](value, threshold)


def passes_tests(value: Tensor, threshold: Tensor, test: Tensor, sets: Tensor | None) -> Tensor:
    """Whether values pass tests that differ from node to node, by number: <=, <, >=, >, ==, !=, in a set.

    For the last, the threshold is the row of `sets` that lists the members.
    """
    passed = torch.zeros_like(test, dtype=torch.bool)
    for number, symbol in enumerate(("<=", "<", ">=", ">", "==", "!=")):
        passed = passed | ((test == number) & passes_test(value, threshold, symbol))
    if sets is not None:
        row = torch.where(test == 6, threshold, 0).long()
        passed = passed | ((test == 6) & (sets[row] == value[..., None]).any(-1))
    return passed
