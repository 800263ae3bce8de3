"""Upper and lower case, exactly as Python ("python"), PyArrow ("arrow", what pandas uses) or Polars ("rust") do it.

StringNormalizer changes a character into one character by the tables of the machine that it runs on, in the locale
`C.UTF-8`. Where all characters of a column are such that it surely does the same as the library, it is used alone.
Otherwise an If takes the other way: texts are cut at the other characters (`com.microsoft::Tokenizer`), those are
looked up in the library's own table, and the pieces are joined.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.case_tables import changed, sigma_sets, steady, word_inside
from onward.frontends.dataframe.tensors.text.pattern_sets import Dialect, complement, written
from onward.frontends.dataframe.tensors.text.text import (
    STRING,
    any_true,
    characters,
    distinct,
    either,
    full_match,
    join,
    label,
    of_type,
    places,
    text,
    tokens,
    with_row,
)
from onward.frontends.dataframe.tensors.text.text_parts import slice_text
from onward.graph.build import Tensor

Case = Literal["upper", "lower", "casefold"]
LOCALE = "C.UTF-8"


def upper(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """Ten nodes run for common letters."""
    return _changed(x, "upper", dialect)


def lower(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """Ten nodes run for common letters; a Σ that ends a word becomes a ς where the library says so."""
    return _changed(x, "lower", dialect)


def casefold(x: Tensor) -> Tensor:
    """As Python does it: lower case, and more letters made the same. Ten nodes run for common letters."""
    return _plain(x, "casefold", "python")


def capitalize(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """The first character as in a title, the others in lower case."""
    fixed = _sigma_fixed(x, dialect) if sigma_sets(dialect) else x
    return _capitalized(fixed, dialect)


def title(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """Each word with its first character as in a title, the others in lower case.

    It is slow, so that it is worked out for distinct texts only.
    """
    return distinct(x, lambda values: [_title(values, dialect)])[0]


def _title(x: Tensor, dialect: Dialect) -> Tensor:
    op = x.op
    fixed = _sigma_fixed(x, dialect) if sigma_sets(dialect) else x
    inside = word_inside(dialect)
    words = tokens(fixed, "a", tokenexp=f"{written(inside)}+|{written(complement(inside))}+")
    made = _capitalized(op.Reshape(words, op.ints([-1, 1])), dialect)
    return join(op.Reshape(made, op.Shape(words), allowzero=1))


def swapcase(x: Tensor, dialect: Dialect = "python") -> Tensor:
    """Upper case for lower, and lower for upper: character by character, for distinct texts only."""
    return distinct(x, lambda values: [_swapped(values, dialect)])[0]


def _swapped(x: Tensor, dialect: Dialect) -> Tensor:
    op = x.op
    if dialect == "rust":
        raise UnsupportedError("Polars does not swap cases: use upper or lower case")
    parts, table = characters(x), changed("swapcase", dialect)
    special = label(parts, list(table), list(table.values()), "")
    made = op.Where(op.Equal(special, text(op, "")), parts, special)
    if sigma_sets(dialect) is not None:
        made = op.Where(op.Equal(parts, text(op, "Σ")), characters(_sigma_fixed(x, dialect)), made)
    return join(made)


def _capitalized(x: Tensor, dialect: Dialect) -> Tensor:
    """Of texts without a Σ that has to be looked at."""
    op = x.op
    first = slice_text(x, 0, 1)
    raised = _changed(first, "upper", dialect)
    ups, titles = changed("upper", dialect), changed("title", dialect)
    odd = {c: titles.get(c, c) for c in {*ups, *titles} if titles.get(c, c) != ups.get(c, c)}
    if odd:
        special = label(first, list(odd), list(odd.values()), "")
        raised = op.Where(op.Equal(special, text(op, "")), raised, special)
    return of_type(op.StringConcat(raised, _plain(slice_text(x, 1), "lower", dialect)), STRING, [None, 1])


def _changed(x: Tensor, case: Case, dialect: Dialect) -> Tensor:
    if case == "lower" and sigma_sets(dialect) is not None:
        common = f"{written(steady(case, dialect))}*"

        def rare() -> list[Tensor]:
            return [_looked_up(_sigma_fixed(x, dialect), case, dialect)]

        test = any_true(x.op.Not(full_match(x, common)))
        return either(x.op, test, rare, lambda: [_normalized(x, case)])[0]
    return _plain(x, case, dialect)


def _plain(x: Tensor, case: Case, dialect: Dialect) -> Tensor:
    common = f"{written(steady(case, dialect))}*"
    test = any_true(x.op.Not(full_match(x, common)))
    return either(x.op, test, lambda: [_looked_up(x, case, dialect)], lambda: [_normalized(x, case)])[0]


def _normalized(x: Tensor, case: Case) -> Tensor:
    """Of common characters. It takes one row of texts, and at least one text."""
    op = x.op
    row = op.Reshape(with_row(x, ""), op.ints([-1]))
    action = "UPPER" if case == "upper" else "LOWER"
    made = op.StringNormalizer(row, case_change_action=action, is_case_sensitive=1, locale=LOCALE)
    made = of_type(made, STRING, [None])
    return op.Unsqueeze(op.Slice(made, op.ints([0]), op.ints([-1]), op.ints([0])), op.ints([1]))


def _looked_up(x: Tensor, case: Case, dialect: Dialect) -> Tensor:
    """Of any characters."""
    op = x.op
    common = written(steady(case, dialect))
    parts = tokens(x, "a", tokenexp=f"{common}+|(?s:.)")
    table = _rare(case, dialect)
    special = label(parts, list(table), list(table.values()), "")
    ordinary = full_match(parts, f"{common}*")
    flat = op.Reshape(op.Where(ordinary, parts, text(op, "")), op.ints([-1, 1]))
    made = op.Reshape(_normalized(flat, case), op.Shape(parts), allowzero=1)
    others = op.Where(op.Equal(special, text(op, "")), parts, special)
    return join(op.Where(ordinary, made, others))


@cache
def _rare(case: Case, dialect: Dialect) -> dict[str, str]:
    """What the characters become that are not left to StringNormalizer."""
    common = steady(case, dialect)
    return {a: b for a, b in changed(case, dialect).items() if not any(low <= ord(a) <= high for low, high in common)}


def _sigma_fixed(x: Tensor, dialect: Dialect) -> Tensor:
    """With σ or ς for every Σ: ς where a letter with a case comes before and none after, marks between not counted."""
    op = x.op
    found = sigma_sets(dialect)
    assert found is not None
    cased, passed = (written(ranges) for ranges in found)
    parts, counts = op.many("StringSplit", 2, with_row(x, "a"), delimiter="Σ")
    start, end, axis, one = op.ints([0]), op.ints([-1]), op.ints([0]), op.ints([1])
    parts = op.Squeeze(op.Slice(of_type(parts, STRING, [None, 1, None]), start, end, axis), one)
    counts = op.Max(op.Slice(of_type(counts, ir.DataType.INT64, [None, 1]), start, end, axis), one)
    before = op.Slice(parts, start, end, one)
    after = op.Slice(parts, one, op.ints([2**62]), one)
    number = op.Slice(places(parts), start, end, axis)
    led = op.Or(
        full_match(before, f"(?s:.*){cased}{passed}*"),
        op.And(full_match(before, f"{passed}*"), op.Greater(number, op.ints([0]))),
    )
    followed = op.Or(
        full_match(after, f"{passed}*{cased}(?s:.*)"),
        op.And(full_match(after, f"{passed}*"), op.Less(number + 2, counts)),
    )
    letter = op.Where(op.And(led, op.Not(followed)), text(op, "ς"), text(op, "σ"))
    letter = op.Where(op.Less(number + 1, counts), letter, text(op, ""))
    first = op.Slice(parts, start, one, one)
    return join(op.Concat(first, op.StringConcat(letter, after), axis=1))
