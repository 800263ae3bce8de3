"""Nodes that ONNX Runtime computes wrongly as they are, and rightly once they are written around."""

import numpy as np
import pytest
from written import near, run, same

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("columns", [1, 16])
def test_rows_that_meet_are_all_added(columns):
    at = RNG.integers(0, 50, (20000, 1))
    rows = np.ones((20000, columns), np.float32)
    if columns == 1:
        rows = rows[:, 0]
    wanted = np.zeros((50, *rows.shape[1:]), np.float32)
    np.add.at(wanted, at[:, 0], rows)
    for _ in range(3):
        found = run(
            lambda op, x, i, u: op.ScatterND(x, i, u, reduction="add"), np.zeros_like(wanted), at, rows, threads=2
        )
        same(found[0], wanted)


@pytest.mark.parametrize("outer", [(), (2,)])
def test_a_transposed_matrix_by_a_vector(outer):
    a, b = RNG.normal(size=(*outer, 8, 3)).astype(np.float32), RNG.normal(size=8).astype(np.float32)
    rank = len(outer)
    perm = [*range(rank), rank + 1, rank]
    found = run(lambda op, a, b: op.MatMul(op.Transpose(a, perm=perm), b), a, b)
    near(found[0], a.swapaxes(-1, -2) @ b)


def test_what_is_padded_before_it_is_pooled():
    """With numbers that are not the lowest, and more than a window has; transposed in between."""
    x = -np.abs(RNG.normal(size=(1, 5, 5, 2))).astype(np.float32) - 1

    def pooled(op, x):
        wide = op.Transpose(op.Pad(x, op.ints([0, 3, 3, 0] * 2), op.like(0, x)), perm=[0, 3, 1, 2])
        kernel = [2, 2]
        return [op.MaxPool(wide, kernel_shape=kernel), op.AveragePool(wide, kernel_shape=kernel)]

    wide = np.pad(x, [(0, 0), (3, 3), (3, 3), (0, 0)]).transpose(0, 3, 1, 2)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (2, 2), (2, 3))
    largest, mean = run(pooled, x)
    same(largest, windows.max((-1, -2)))
    near(mean, windows.mean((-1, -2)))
