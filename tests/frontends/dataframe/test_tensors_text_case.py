"""Upper and lower case of every character is what Python, PyArrow and Polars make of it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from text_columns import TEXTS, TextModel

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text import case_tables, text_case
from onward.frontends.dataframe.tensors.text.pattern_sets import all_characters

DIALECTS: dict[str, Callable[[list[str], str], list[str]]] = {
    "python": lambda values, name: [getattr(value, name)() for value in values],
    "arrow": lambda values, name: getattr(pd.Series(values, dtype="str").str, name)().tolist(),
    "rust": lambda values, name: getattr(pl.Series(values, dtype=pl.String).str, f"to_{name}case")().to_list(),
}
EVERY = [
    (d, name) for d in DIALECTS for name in ("upper", "lower", "title", "capitalize") if d + name != "rustcapitalize"
]
BLOCKS = [
    (0x1E900, 0x1E944),
    (0xA640, 0xABFF),
    (0xFB00, 0xFB20),
    (0xFF20, 0xFF60),
    (0x10400, 0x10FFF),
    (0x118A0, 0x118E0),
    (0x16E40, 0x16E80),
]
"""Where there are letters with a case, besides the first."""
odd = st.text(st.sampled_from("aB1 'ΣσςΑαİßﬁŉǅıſKé\u0301-.ʰǰ\nჰ"), max_size=7)


@cache
def model(dialect: Any, name: str) -> TextModel:
    return TextModel(lambda x: getattr(text_case, name)(x, dialect))


@pytest.mark.parametrize(("dialect", "name"), EVERY)
def test_every_character(dialect: str, name: str) -> None:
    values = [*all_characters()[:0x3100], *(c for a, b in BLOCKS for c in map(chr, range(a, b)))]
    found = [value for (value,) in model(dialect, name)(values)]
    assert found == DIALECTS[dialect](values, name)


def test_every_character_folded() -> None:
    values = [*all_characters()[:0x3100], *(c for a, b in BLOCKS for c in map(chr, range(a, b))), *TEXTS]
    found = TextModel(text_case.casefold)(values)
    assert found == [(value.casefold(),) for value in values]


@settings(max_examples=60, deadline=None)
@given(st.lists(odd | st.text(max_size=5), max_size=20))
def test_odd_texts(column: list[str]) -> None:
    for dialect, name in EVERY:
        for values in (column, TEXTS, [], ["Hello"], [""], ["Σ"]):
            found = [value for (value,) in model(dialect, name)(values)]
            assert found == DIALECTS[dialect](values, name), (dialect, name)


@pytest.mark.parametrize("case", ["upper", "lower"])
def test_common_letters_need_no_second_way(case: Any) -> None:
    """What StringNormalizer alone is trusted with, it changes as every library does."""
    node = helper.make_node(
        "StringNormalizer", ["x"], ["y"], case_change_action=case.upper(), is_case_sensitive=1, locale="C.UTF-8"
    )
    ends = [helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in "xy"]
    graph = helper.make_graph([node], "case", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for dialect, change in DIALECTS.items():
        values = [chr(c) for low, high in case_tables.steady(case, dialect) for c in range(low, high + 1)]
        assert session.run(None, {"x": np.array(values, object)})[0].tolist() == change(values, case)
        assert len(values) > 45000


@pytest.mark.parametrize("dialect", ["python", "arrow"])
def test_swapped_cases(dialect: Any) -> None:
    letters = [*all_characters()[:0x3100], *(c for a, b in BLOCKS for c in map(chr, range(a, b)))]
    values = [*letters, *TEXTS, "ΑΣ ΣΑΣ σΣ", "aΣ."]
    assert [v for (v,) in model(dialect, "swapcase")(values)] == DIALECTS[dialect](values, "swapcase")


def test_polars_does_not_swap() -> None:
    with pytest.raises(UnsupportedError, match="swap"):
        model("rust", "swapcase")
