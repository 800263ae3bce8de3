"""Integers divide, leave remainders and multiply exactly, and never stop ONNX Runtime."""

from functools import cache

import numpy as np
import pytest
from column_functions import Compiled
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors import integers

LOW, HIGH = -(2**63), 2**63 - 1
EDGES = [
    LOW,
    LOW + 1,
    LOW + 2,
    -(2**32),
    -(2**31) - 1,
    -8,
    -7,
    -2,
    -1,
    0,
    1,
    2,
    7,
    8,
    2**31,
    2**32 - 1,
    2**32,
    HIGH - 1,
    HIGH,
]
PAIRS = [(x, y) for x in EDGES for y in EDGES]
values = st.sampled_from(EDGES) | st.integers(LOW, HIGH)
columns = settings(max_examples=40, deadline=None)


def wrapped(number: int) -> int:
    return (number - LOW) % 2**64 + LOW


def floor(x: int, y: int) -> int:
    return wrapped(x // y) if y else 0


def truncate(x: int, y: int) -> int:
    return wrapped(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) if y else 0


def rest(x: int, y: int) -> int:
    return x - truncate(x, y) * y if y and (x, y) != (LOW, -1) else 0


TWO = {
    "floor_divide": floor,
    "truncate_divide": truncate,
    "floor_remainder": lambda x, y: x % y if y else 0,
    "truncate_remainder": rest,
}


@cache
def of_two(name: str, dtype: str = "int64") -> Compiled:
    return Compiled(getattr(integers, name), dtype, dtype)


@pytest.mark.parametrize("name", TWO)
def test_two_columns_divide_at_the_edges(name: str) -> None:
    found = of_two(name)(*zip(*PAIRS, strict=True))[0]
    assert found == [TWO[name](x, y) for x, y in PAIRS]
    assert of_two(name)([], []) == [[]]


@pytest.mark.parametrize("name", TWO)
@columns
@given(rows=st.lists(st.tuples(values, values), max_size=20))
def test_two_columns_divide(name: str, rows: list[tuple[int, int]]) -> None:
    found = of_two(name)([x for x, _ in rows], [y for _, y in rows])[0]
    assert found == [TWO[name](x, y) for x, y in rows]


@pytest.mark.parametrize("name", ["floor_divide", "floor_remainder"])
@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_other_integers_divide(name: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    edges = sorted({int(limits.min), int(limits.min) + 1, 0, 1, 2, 7, int(limits.max) - 1, int(limits.max)})
    if limits.min:
        edges += [-1, -2, -7]
    pairs = [(x, y) for x in edges for y in edges if (x, y) != (limits.min, -1) or limits.min == 0]
    found = of_two(name, dtype)(*zip(*pairs, strict=True))[0]
    assert found == [
        TWO[name](x, y) if dtype == "int32" else (0 if not y else x // y if "divide" in name else x % y)
        for x, y in pairs
    ]


@cache
def by(name: str, constant: int) -> Compiled:
    return Compiled(lambda x: getattr(integers, name)(x, constant), "int64")


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 86_400, 86_400_000_000_000, 2**62 + 1, HIGH])
def test_a_column_divides_by_a_constant(divisor: int) -> None:
    rows = [*EDGES, *(k * divisor + j for k in (-1, 0, 1) for j in (-1, 0, 1) if abs(k * divisor + j) <= HIGH)]
    assert by("floor_by", divisor)(rows) == [[x // divisor for x in rows]]
    assert by("truncate_by", divisor)(rows) == [[truncate(x, divisor) for x in rows]]
    assert by("remainder_by", divisor)(rows) == [[x % divisor for x in rows]]
    assert by("floor_by", divisor)([]) == [[]]


@columns
@given(rows=st.lists(values, max_size=20), divisor=st.sampled_from([3, 1000, 86_400_000]))
def test_any_column_divides_by_a_constant(rows: list[int], divisor: int) -> None:
    assert by("floor_by", divisor)(rows) == [[x // divisor for x in rows]]


@pytest.mark.parametrize("name", ["floor_by", "truncate_by", "remainder_by", "multiply_by"])
def test_a_constant_that_is_not_positive_is_refused(name: str) -> None:
    for constant in (0, -1):
        with pytest.raises(UnsupportedError, match="positive number"):
            by(name, constant)


@pytest.mark.parametrize("factor", [1, 2, 3, 10**9, HIGH])
def test_a_product_by_a_constant_says_where_it_fits(factor: int) -> None:
    rows = [*EDGES, LOW // factor, -(-LOW // factor), HIGH // factor, min(HIGH, HIGH // factor + 1)]
    product, fits = by("multiply_by", factor)(rows)
    assert fits == [LOW <= x * factor <= HIGH for x in rows]
    assert product == [wrapped(x * factor) for x in rows]


OVERFLOWING = {"multiply": int.__mul__, "add": int.__add__}


@pytest.mark.parametrize("name", OVERFLOWING)
@columns
@given(rows=st.lists(st.tuples(values, values), max_size=20))
def test_results_say_where_they_fit(name: str, rows: list[tuple[int, int]]) -> None:
    rows = rows + PAIRS
    exact = [OVERFLOWING[name](x, y) for x, y in rows]
    found, fits = of_two(name)([x for x, _ in rows], [y for _, y in rows])
    assert fits == [LOW <= number <= HIGH for number in exact]
    assert found == [wrapped(number) for number in exact]


def test_numbers_beside_a_column_have_its_rank() -> None:
    constants = by("floor_by", 7).results[0].op.graph.initializers.values()
    assert {tuple(value.shape or ()) for value in constants} == {(1, 1)}
