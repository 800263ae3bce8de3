"""Builtin ops of TensorFlow Lite, each beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from battery_built import CASES
from battery_converted import FUNCTIONS
from lite import converted, interpreted, on_runtime, op_types, steps


def agree(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if b.dtype.kind in "fc":
            finite = b[np.isfinite(b)]
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6 * np.abs(finite).max(initial=1))
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_floats(name: str) -> None:
    function, *arrays = FUNCTIONS[name]
    lite = converted(function, arrays)
    assert name.split()[0] in op_types(lite)
    agree(on_runtime(lite, *arrays), interpreted(lite, *arrays))


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("name", [name for name, (_, *arrays) in FUNCTIONS.items() if arrays[0].dtype == np.float32])
def test_quantised(name: str, kind: str) -> None:
    """Ends are floats; within one step of the scale that the result had as integers."""
    function, *arrays = FUNCTIONS[name]
    lite = converted(function, arrays, kind)
    wanted, found = interpreted(lite, *arrays), on_runtime(lite, *arrays)
    assert len(found) == len(wanted)
    for a, b, step in zip(found, wanted, steps(lite), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if step is None:
            agree([a], [b])
        else:
            assert np.abs(a.astype(float) - b.astype(float)).max(initial=0) <= 1.001 * step


@pytest.mark.parametrize("name", CASES)
def test_built(name: str) -> None:
    lite, arrays = CASES[name]()
    assert name.split()[0] in op_types(lite)
    wanted = interpreted(lite, *arrays)
    agree(on_runtime(lite, *arrays)[: len(wanted)], wanted)
