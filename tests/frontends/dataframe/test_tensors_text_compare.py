"""Texts are compared, ordered and looked up as Python does it."""

import operator
from functools import cache

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_columns import TEXTS, TextModel, agrees, maybe, texts

from onward.frontends.dataframe.tensors.text import text, text_compare, text_parts

few = settings(max_examples=40, deadline=None)
TABLE = {"a": "1", "": "empty", "héß": "", "ΑΣ": "x", "日本語": "日"}


@few
@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=12))
def test_order(pairs: list[tuple[str, str]]) -> None:
    pairs = [*pairs, ("a", "b"), ("é", "z"), ("😀", "\uffff"), ("a", "a")]
    model = TextModel(
        lambda a, b: [text_compare.equal(a, b), text_compare.less(a, b), text_compare.less_or_equal(a, b)],
        *("O", "O"),
    )
    found = model([a for a, _ in pairs], [b for _, b in pairs])
    assert found == [(a == b, a < b, a <= b) for a, b in pairs]
    assert model([], []) == []


def test_order_against_one_text() -> None:
    agrees(TextModel(lambda x: text_compare.less(x, "aa")), lambda value: value < "aa")
    agrees(TextModel(lambda x: text_compare.less_or_equal(x, "abc")), lambda value: value <= "abc")
    agrees(TextModel(lambda x: text_compare.equal(x, "abc")), lambda value: value == "abc")


@pytest.mark.parametrize("value", ["", "a", "abc", "\x00", "é", "日本", "😀", "\ue000", "\ud7ff"])
@pytest.mark.parametrize("how", ["lt", "le", "gt", "ge"])
def test_order_beside_a_text_that_is_known(value: str, how: str) -> None:
    column = [*TEXTS, value, value + "a", value[:-1], "\ue000", "\ud7ff", "\U0010ffff"]
    model = TextModel(lambda x: text_compare.beside_text(x, value, how))
    agrees(model, lambda text: getattr(operator, how)(text, value), [column, [], [value]])


@cache
def ends() -> TextModel:
    """The first and the last text, in each row."""
    return TextModel(
        lambda x: [
            x.op.Expand(t, x.shape) for pair in (text_compare.smallest(x), text_compare.largest(x)) for t in pair
        ]
    )


@few
@given(texts)
def test_first_and_last(column: list[str]) -> None:
    for values in (column, TEXTS):
        wanted = [(min(values), True, max(values), True)] if values else []
        assert ends()(values) == wanted * len(values)


def test_no_rows_have_no_first() -> None:
    model = TextModel(lambda x: [x.op.Not(found) for _, found in (text_compare.smallest(x), text_compare.largest(x))])
    [first, last] = model.session.run(None, {"x0": np.zeros((0, 1), object)})
    assert first.tolist() == last.tolist() == [[True]]


def test_lists_and_tables() -> None:
    agrees(TextModel(lambda x: text_compare.is_in(x, ["a", "abc", "a", "İß"])), lambda v: v in ("a", "abc", "İß"))
    agrees(TextModel(lambda x: text_compare.is_in(x, ["a"])), lambda v: v == "a")
    agrees(TextModel(lambda x: text_compare.look_up(x, TABLE)), lambda v: maybe(TABLE.get(v)))
    agrees(TextModel(lambda x: text_compare.look_up(x, {})), lambda v: maybe(None))
    for values, dtype in [([0.1, -2.5], "float64"), ([2**62 + 1, -1], "int64"), ([True, False], "bool")]:
        table = dict(zip(["a", ""], values, strict=True))
        kind = ir.DataType.from_numpy(np.dtype(dtype))
        model = TextModel(lambda x, table=table, kind=kind: text_compare.look_up_numbers(x, table, kind))
        agrees(model, lambda v, table=table: (table.get(v, 0), v in table))


def test_an_empty_list_holds_nothing() -> None:
    agrees(TextModel(lambda x: text_compare.is_in(x, [])), lambda _: False)


@few
@given(texts)
def test_distinct_texts(column: list[str]) -> None:
    model = TextModel(lambda x: text.distinct(x, lambda value: [text_parts.length(value), text_parts.strip(value)]))
    agrees(model, lambda value: (len(value), value.strip()), [column * 3, []])
