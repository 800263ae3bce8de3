"""What patterns find is counted, taken out and replaced as the libraries do it, or the pattern is refused."""

import re

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_columns import TEXTS, TextModel, agrees

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text import text_tokens

PATTERNS = [
    r"\d+", r"[a-c]+", r"\s+", r"[^a-z]", r"^a", r"\.0$", r"\s+$", r"^\s+", r"a,b|c", r"\d+(?:\.\d+)?", r"(?i)h",
    r"é|ß", r"^\s+\Z", r"\W", r"aa", r"a{2}", r"[A-Z][a-z]+\.", r"^a$", r"\d{2,4}", r"a?b", r"😀",
]  # fmt: skip
EXTRACTS = [
    r"(\d+)", r"([a-z]+)=(\d+)", r"^(\w)", r"(\w+)$", r"([+-]?\d+)([a-z]*)", r"(.)$", r"(\w+)\s+(\w+)",
    r" ([A-Za-z]+)\.", r"(\d{4})-(\d{2})-(\d{2})", r"^([^,]*),", r"@(\w+)\.(com|org)", r"(?P<a>[A-Z])\d",
]  # fmt: skip
AMBIGUOUS = [r"a|ab", r"a*ab", r".*(\d+)", r"a+?b", r"(?:|a)b?c", r"(?:a*)*b", r"\s$", r"a*", r"\d+\b", r"a^b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_replaced_and_counted(pattern: str) -> None:
    agrees(TextModel(lambda x: text_tokens.count_pattern(x, pattern)), lambda v: len(re.findall(pattern, v)))
    for new in ("", "R", "a1"):
        model = TextModel(lambda x, new=new: text_tokens.replace_pattern(x, pattern, new))
        agrees(model, lambda v, new=new: re.sub(pattern, new, v))
        assert [v for (v,) in model(TEXTS)] == pd.Series(TEXTS).str.replace(pattern, new, regex=True).tolist()


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if r"\Z" not in p])
def test_polars_replaces_and_counts_the_same(pattern: str) -> None:
    series = pl.Series(TEXTS)
    counted = TextModel(lambda x: text_tokens.count_pattern(x, pattern, dialect="rust"))
    assert [n for (n,) in counted(TEXTS)] == series.str.count_matches(pattern).to_list()
    replaced = TextModel(lambda x: text_tokens.replace_pattern(x, pattern, "R", dialect="rust"))
    assert [v for (v,) in replaced(TEXTS)] == series.str.replace_all(pattern, "R").to_list()


@pytest.mark.parametrize("pattern", EXTRACTS)
def test_extracted_groups(pattern: str) -> None:
    groups = re.compile(pattern).groups

    def expected(value: str) -> tuple[object, ...]:
        found = re.search(pattern, value)
        return tuple(part for i in range(groups) for part in ((found.group(i + 1), True) if found else ("", False)))

    agrees(TextModel(lambda x: text_tokens.extract(x, pattern)), expected)


@pytest.mark.parametrize("pattern", AMBIGUOUS)
def test_patterns_that_can_be_followed_in_two_ways_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="pattern"):
        TextModel(lambda x: text_tokens.replace_pattern(x, pattern, "R"))


@pytest.mark.parametrize("pattern", [r"((a)b)", r"(a)|b", r"(?:(a)b)+", r"(a)+", r"a()"])
def test_groups_that_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="group"):
        TextModel(lambda x: text_tokens.extract(x, pattern))


atoms = st.sampled_from(
    ["a", "b", ".", r"\d", r"\w", r"\s", "[ab]", "[^a]", r"\n", "é", "(?:a|b)", "(?:ab|a)", "(?:ba|1)"]
)
parts = st.lists(st.tuples(atoms, st.sampled_from(["", "*", "+", "?", "{1,2}"])), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    parts, st.sampled_from(["", "^"]), st.sampled_from(["", "$"]), st.lists(st.text("ab é\n1", max_size=6), max_size=20)
)
def test_made_up_patterns_mean_the_same_or_are_refused(
    made: list[tuple[str, str]], start: str, end: str, column: list[str]
) -> None:
    middle = [f"({a}{b})" if i == 1 else a + b for i, (a, b) in enumerate(made)]
    pattern = start + "".join(middle) + end
    try:
        model = TextModel(
            lambda x: [
                text_tokens.count_pattern(x, pattern),
                text_tokens.replace_pattern(x, pattern, "<>"),
                *(text_tokens.extract(x, pattern)[0] if len(made) > 1 else []),
            ]
        )
    except UnsupportedError:
        return

    def expected(value: str) -> tuple[object, ...]:
        found = re.search(pattern, value)
        taken = ((found.group(1), True) if found else ("", False)) if len(made) > 1 else ()
        return (len(re.findall(pattern, value)), re.sub(pattern, "<>", value), *taken)

    agrees(model, expected, [column])
