"""Patterns of Python and Rust find the same texts in ONNX Runtime, or are refused."""

import re

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_columns import TEXTS, TextModel, agrees, alphabet, texts

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text import pattern_sets, text_search
from onward.frontends.dataframe.tensors.text.patterns import parse, search

PATTERNS = [
    r"", r"a", r"a.c", r"a$", r"^a", r"^$", r"\.0$", r"^\s*$", r"\d+", r"\w+@\w+\.\w+", r"\bHello\b", r"\bb\b|^x",
    r"[^\W\d_]+", r"[A-Z][a-z]+", r"(?i)HELLO", r"(?s)a.b", r"a|b|", r"(a|b)+c?", r"\d{4}-\d{2}-\d{2}",
    r"x{2,3}", r"a*?b", r"\\d\[", r"\D\d", r"\S\s\S", r"[\s,]", r"[^a]", r"é|ß", r"Mr\.|Mrs\.", r"\AHe", r"(?:ab){3,}",
]  # fmt: skip
PYTHON_ONLY = [r"a\Z", r"(?m)^b$", r"(?x) a b  # c", r"(?a)\w+$", "[\u00e0-\u00ff]", r"(?P<n>a)(?i:B)"]
REFUSED = [r"a(?=b)", r"(?<!a)b", r"(a)\1", r"\Ba", r"a$b", r"\b.", r"(?>a)", r"a++", r"(?:\ba)*", r"x{2000}"]
few = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("pattern", PATTERNS + PYTHON_ONLY)
def test_python_patterns(pattern: str) -> None:
    for function, meaning in [
        (text_search.contains, re.search),
        (text_search.matches, re.match),
        (text_search.matches_all, re.fullmatch),
    ]:
        model = TextModel(lambda x, function=function: function(x, pattern))
        agrees(model, lambda value, meaning=meaning: meaning(pattern, value) is not None)
        assert model.nodes == 1


@pytest.mark.parametrize("pattern", [*PATTERNS, r"a\z", r"(?<n>a)b", r"(?i)straße|k|i|s"])
def test_rust_patterns(pattern: str) -> None:
    model = TextModel(lambda x: text_search.contains(x, pattern, dialect="rust"))
    assert [found for (found,) in model(TEXTS)] == pl.Series(TEXTS).str.contains(pattern).to_list()


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if "(?i)" not in p])
def test_pandas_finds_the_same(pattern: str) -> None:
    model = TextModel(lambda x: text_search.contains(x, pattern))
    assert [found for (found,) in model(TEXTS)] == pd.Series(TEXTS).str.contains(pattern).tolist()


@pytest.mark.parametrize("pattern", ["k", "i", "s", "straße", "[a-k]", "É"])
def test_case_is_ignored_as_each_library_does_it(pattern: str) -> None:
    values = [*TEXTS, *"KkKiIİısSſßẞéÉ", "STRASSE", "STRAẞE"]
    python = TextModel(lambda x: text_search.contains(x, pattern, re.IGNORECASE))
    assert [found for (found,) in python(values)] == [bool(re.search(pattern, v, re.I)) for v in values]
    arrow = TextModel(lambda x: text_search.contains(x, pattern, re.IGNORECASE, "arrow"))
    assert [found for (found,) in arrow(values)] == pd.Series(values).str.contains(pattern, case=False).tolist()


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_has_no_counterpart_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="pattern"):
        search(parse(pattern), "contains")


@pytest.mark.parametrize("pattern", [r"\pL", r"[a&&b]", r"\x{41}", r"[[:alpha:]]", r"(?u)a", r"(?=a)", r"a{,2}"])
def test_what_rust_reads_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="pattern"):
        parse(pattern, dialect="rust")


@few
@given(texts, st.text(alphabet, min_size=0, max_size=3))
def test_literal_texts(column: list[str], part: str) -> None:
    agrees(TextModel(lambda x: text_search.contains_text(x, part)), lambda v: part in v, [column, TEXTS])
    agrees(TextModel(lambda x: text_search.starts_with(x, part, "a")), lambda v: v.startswith((part, "a")), [column])
    agrees(TextModel(lambda x: text_search.ends_with(x, part, "a")), lambda v: v.endswith((part, "a")), [column])


atoms = st.sampled_from(
    ["a", "b", ".", r"\d", r"\w", r"\s", "[ab]", "[^a]", r"\n", "é", "^", "$", r"\b", "(a|b)", "(?:ab|a)", r"\W"]
)
patterns = st.lists(st.tuples(atoms, st.sampled_from(["", "*", "+", "?", "{1,2}", "+?"])), max_size=4)


@settings(max_examples=150, deadline=None)
@given(patterns, st.lists(st.text("ab é\n1_", max_size=5), max_size=20))
def test_made_up_patterns_mean_the_same_or_are_refused(parts: list[tuple[str, str]], column: list[str]) -> None:
    pattern = "".join(a if a in "^$" or a == r"\b" else a + b for a, b in parts)
    for how, meaning in [("contains", re.search), ("match", re.match), ("fullmatch", re.fullmatch)]:
        try:
            written = search(parse(pattern), how)
        except UnsupportedError:
            continue
        model = TextModel(lambda x, written=written: text_search.full_match(x, written))
        agrees(model, lambda v, meaning=meaning: meaning(pattern, v) is not None, [column])


@pytest.mark.parametrize("kind", ["alpha", "alnum", "decimal", "digit", "numeric", "space", "ascii", "upper", "lower"])
def test_kinds_of_characters(kind: str) -> None:
    values = [*pattern_sets.all_characters()[:0x3000], *TEXTS, "Aǅ", "aǅ", "A1", "½", "Ab"]
    for dialect, meaning in [
        ("python", lambda value: getattr(value, f"is{kind}")()),
        ("arrow", dict(zip(values, getattr(pd.Series(values).str, f"is{kind}")().tolist(), strict=True)).get),
    ]:
        if kind in ("upper", "lower"):
            model = TextModel(lambda x, d=dialect: getattr(text_search, f"is_{kind}")(x, d))
        else:
            model = TextModel(lambda x, d=dialect: text_search.is_class(x, kind, d))
        agrees(model, meaning, [values])


def test_titles_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="istitle"):
        TextModel(text_search.is_title)
