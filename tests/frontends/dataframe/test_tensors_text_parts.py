"""Pieces of texts are what Python, pandas and Polars take."""

from functools import cache
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from text_columns import TEXTS, TextModel, agrees, maybe, texts

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text import pattern_sets, text_pad, text_parts, text_split

few = settings(max_examples=30, deadline=None)
SLICES = [(0, 3), (1, None), (-3, None), (None, -2), (1, 3), (2, -1), (-3, -1), (3, 3), (-1, -3), (0, 0), (None, None)]


@cache
def sliced(start: int | None, stop: int | None) -> TextModel:
    return TextModel(lambda x: text_parts.slice_text(x, start, stop))


@cache
def replaced(old: str, new: str, most: int) -> TextModel:
    return TextModel(lambda x: text_split.replace_text(x, old, new, most))


@cache
def simple(name: str) -> TextModel:
    return TextModel(getattr(text_split if name == "word_count" else text_parts, name))


def at(values: Any, place: int) -> tuple[str, bool]:
    return maybe(values[place] if -len(values) <= place < len(values) else None)


@few
@given(texts)
def test_lengths(column: list[str]) -> None:
    agrees(simple("length"), len, [column, TEXTS, []])
    agrees(simple("byte_length"), lambda value: len(value.encode()), [column, TEXTS, []])


@pytest.mark.parametrize(("start", "stop"), SLICES)
def test_slices(start: int | None, stop: int | None) -> None:
    model = sliced(start, stop)
    agrees(model, lambda value: value[start:stop])
    assert [v for (v,) in model(TEXTS)] == pd.Series(TEXTS).str.slice(start, stop).tolist()
    assert model.nodes <= 7


@few
@given(texts)
def test_slices_of_any_text(column: list[str]) -> None:
    for start, stop in SLICES:
        agrees(sliced(start, stop), lambda v, a=start, b=stop: v[a:b], [column])
    agrees(simple("reverse"), lambda value: value[::-1], [column, []])


def test_slices_that_are_refused() -> None:
    for arguments in [(-3, 2), (0, 1001), (None, None, 2)]:
        with pytest.raises(UnsupportedError, match="slice of texts"):
            TextModel(lambda x, arguments=arguments: text_parts.slice_text(x, *arguments))


@pytest.mark.parametrize("place", [0, 1, 4, -1, -2, -5])
def test_single_characters(place: int) -> None:
    agrees(TextModel(lambda x: text_parts.character(x, place)), lambda value: at(value, place))


@pytest.mark.parametrize("sides", ["both", "left", "right"])
@pytest.mark.parametrize("chars", [None, "", "a", "aH ]^-\\", "é😀\n"])
def test_stripped_texts(sides: Any, chars: str | None) -> None:
    name = {"both": "strip", "left": "lstrip", "right": "rstrip"}[sides]
    model = TextModel(lambda x: text_parts.strip(x, chars, sides))
    agrees(model, lambda value: getattr(value, name)(chars))
    assert [v for (v,) in model(TEXTS)] == getattr(pd.Series(TEXTS).str, name)(chars).tolist()


def test_polars_strips_what_unicode_calls_space() -> None:
    model = TextModel(lambda x: text_parts.strip(x, pattern_sets.UNICODE_SPACE))
    assert [v for (v,) in model(TEXTS)] == pl.Series(TEXTS).str.strip_chars().to_list()
    every = [*pattern_sets.PYTHON_SPACE, "a", "\u200b", "\ufeff", "\u180e"]
    assert set(pattern_sets.UNICODE_SPACE) == {c for c in every if pl.Series([c]).str.strip_chars()[0] == ""}


@pytest.mark.parametrize("part", ["", "a", "foo", ".0", "ab", "c"])
def test_prefixes_and_suffixes(part: str) -> None:
    agrees(TextModel(lambda x: text_parts.remove_prefix(x, part)), lambda value: value.removeprefix(part))
    agrees(TextModel(lambda x: text_parts.remove_suffix(x, part)), lambda value: value.removesuffix(part))


@pytest.mark.parametrize("separator", [",", "a", "aa", ", ", "😀"])
def test_parts(separator: str) -> None:
    for most in (None, 1, 2):
        agrees(
            TextModel(lambda x, most=most: text_split.split(x, separator, 4, most)),
            lambda v, most=most: sum((at(v.split(separator, most or -1), i) for i in range(4)), ()),
        )
    for place in (0, 1, 3, -1, -2):
        agrees(
            TextModel(lambda x, place=place: text_split.split_part(x, separator, place)[1]),
            lambda v, place=place: at(v.split(separator), place)[1],
        )
        agrees(
            TextModel(lambda x, place=place: x.op.Where(*reversed_part(x, separator, place))),
            lambda v, place=place: at(v.split(separator), place)[0],
        )
    agrees(TextModel(lambda x: text_split.partition(x, separator)), lambda v: v.partition(separator))
    if separator == "aa":
        with pytest.raises(UnsupportedError, match="overlap"):
            TextModel(lambda x: text_split.partition_last(x, separator))
        return
    agrees(TextModel(lambda x: text_split.partition_last(x, separator)), lambda v: v.rpartition(separator))
    agrees(
        TextModel(lambda x: text_split.split_last_once(x, separator)),
        lambda v: at(v.rsplit(separator, 1), 0) + at(v.rsplit(separator, 1), 1),
    )


def reversed_part(x: Any, separator: str, place: int) -> tuple[Any, Any, Any]:
    """What `Where` takes to leave out the texts of parts that are not there."""
    value, there = text_split.split_part(x, separator, place)
    return there, value, text_pad.text(x.op, "")


@few
@given(texts)
def test_parts_at_white_space(column: list[str]) -> None:
    model = TextModel(lambda x: text_split.split_space(x, 3))
    agrees(model, lambda v: sum((at(v.split(), i) for i in range(3)), ()), [column, TEXTS, []])
    agrees(simple("word_count"), lambda v: len(v.split()), [column, TEXTS, []])


@few
@given(texts)
def test_parts_at_white_space_counted(column: list[str]) -> None:
    for place in (0, 2, -1, -2):
        model = TextModel(lambda x, place=place: there(text_split.space_part(x, place)))
        agrees(model, lambda v, place=place: at(v.split(), place), [column, TEXTS, []])
    for most, columns in ((1, 2), (2, 3), (2, 2), (1, 3)):
        model = TextModel(lambda x, m=most, c=columns: [there(part) for part in text_split.split_space(x, c, most=m)])
        agrees(
            model,
            lambda v, m=most, c=columns: sum((at(v.split(None, m), i) for i in range(c)), ()),
            [column, TEXTS, []],
        )


def there(part: Any) -> list[Any]:
    """A part, "" where there is none, and whether there is one."""
    value, is_there = part
    return [value.op.Where(is_there, value, text_pad.text(value.op, "")), is_there]


@pytest.mark.parametrize("part", [",", "a", "aa", "b", "é", "\n", "😀 "])
def test_counts_and_places(part: str) -> None:
    agrees(TextModel(lambda x: text_split.count_text(x, part)), lambda v: v.count(part))
    agrees(TextModel(lambda x: text_split.find(x, part)), lambda v: v.find(part))
    agrees(TextModel(lambda x: text_split.find(x, "")), lambda v: v.find(""))
    if part != "aa":
        agrees(TextModel(lambda x: text_split.find_last(x, part)), lambda v: v.rfind(part))


@few
@given(texts)
def test_replaced_texts(column: list[str]) -> None:
    for old, new, most in [
        ("a", "XY", -1),
        ("a", "", -1),
        (",", ";", 1),
        ("b", "bb", 2),
        ("aa", "a", -1),
        ("c", "d", 0),
    ]:
        agrees(replaced(old, new, most), lambda v, a=(old, new, most): v.replace(*a), [column, TEXTS, []])


def test_empty_texts_to_look_for_are_refused() -> None:
    for wrong in (
        lambda x: text_split.replace_text(x, "", "a"),
        lambda x: text_split.count_text(x, ""),
        lambda x: text_split.split(x, "", 2)[0][0],
    ):
        with pytest.raises(UnsupportedError, match="empty text"):
            TextModel(wrong)


@pytest.mark.parametrize("width", [-1, 0, 1, 4, 5, 12])
def test_texts_filled_up(width: int) -> None:
    series = pd.Series(TEXTS)
    for side, name in [("left", "rjust"), ("right", "ljust"), ("both", "center")]:
        model = TextModel(lambda x, side=side: text_pad.pad(x, width, side, "*"))
        agrees(model, lambda value, name=name: getattr(value, name)(width, "*"))
        assert [v for (v,) in model(TEXTS)] == getattr(series.str, name)(width, "*").tolist()
    model = TextModel(lambda x: text_pad.zfill(x, width))
    agrees(model, lambda value: value.zfill(width))
    assert [v for (v,) in model(TEXTS)] == series.str.zfill(width).tolist()


def test_texts_put_together() -> None:
    agrees(TextModel(lambda x: text_pad.concat(["<", x, "", x, ">"], "-")), lambda v: f"<-{v}--{v}->")
    for times in (-1, 0, 1, 2, 5, 8):
        agrees(TextModel(lambda x, times=times: text_pad.repeat(x, times)), lambda v, times=times: v * times)
