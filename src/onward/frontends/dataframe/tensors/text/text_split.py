"""Texts split at a text or at white space, found in one another, and with one text in place of another."""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_sets import PYTHON_SPACE, complement, of_characters, written
from onward.frontends.dataframe.tensors.text.text import (
    MOST_REPEATS,
    STRING,
    count_present,
    first_token,
    full_match,
    join,
    of_type,
    places,
    text,
    tokens,
    with_row,
)
from onward.frontends.dataframe.tensors.text.text_parts import length
from onward.graph.build import Tensor

Part = tuple[Tensor, Tensor]
"""A text, and whether there is one."""


def _parts(x: Tensor, separator: str, most: int | None, columns: int = 1) -> tuple[Tensor, Tensor]:
    """The parts (N, W) with W at least `columns`, and how many each text has, int64 (N, 1). Five to seven nodes."""
    op = x.op
    if not separator:
        raise UnsupportedError("a split at an empty text cannot be said in ONNX: take slices of the text instead")
    filling = next(letter for letter in "abcdefghij" if letter != separator[0] and letter != separator[-1])
    row = with_row(x, separator.join([filling] * columns))
    parts, counts = op.many("StringSplit", 2, row, delimiter=separator, maxsplit=most)
    parts = of_type(parts, STRING, [None, 1, None])
    counts = of_type(counts, ir.DataType.INT64, [None, 1])
    start, end, axis = op.ints([0]), op.ints([-1]), op.ints([0])
    parts = op.Squeeze(op.Slice(parts, start, end, axis), op.ints([1]))
    return parts, op.Max(op.Slice(counts, start, end, axis), op.ints([1]))


def split(x: Tensor, separator: str, columns: int, most: int | None = None) -> list[Part]:
    """`text.split(separator, most)` as so many columns, each with a mask of where it is there.

    What a text has beyond the columns is left out: `part_count` tells how many there are.
    """
    op = x.op
    parts, counts = _parts(x, separator, most or None, min(columns, most + 1) if most else columns)
    return [_column(parts, counts, place) for place in range(columns if not most else min(columns, most + 1))] + [
        (op.Expand(text(op, ""), x.shape), op.Less(counts, op.ints([0])))
        for _ in range(columns - (most + 1) if most else 0)
    ]


def _column(parts: Tensor, counts: Tensor, place: int) -> Part:
    op = parts.op
    return op.Slice(parts, op.ints([place]), op.ints([place + 1]), op.ints([1])), counts > place


def split_space(x: Tensor, columns: int, space: str = PYTHON_SPACE, most: int | None = None) -> list[Part]:
    """`text.split(None, most)` at runs of white space, as `split`. Uses `com.microsoft::Tokenizer`."""
    op = x.op
    words = columns if most is None else min(columns, most)
    found = tokens(x, " ".join(["a"] * max(words, 1)), separators=[f"{written(of_characters(space))}+"])
    columns_found = [op.Slice(found, op.ints([i]), op.ints([i + 1]), op.ints([1])) for i in range(words)]
    parts = [(part, op.Not(op.Equal(part, text(op, "")))) for part in columns_found]
    if most is not None and columns > most:
        parts.append(_rest(x, most, space))
        nothing = op.And(parts[0][1], op.Not(parts[0][1]))
        parts += [(op.Expand(text(op, ""), x.shape), nothing)] * (columns - most - 1)
    return parts


def _rest(x: Tensor, words: int, space: str) -> Part:
    """What follows so many words and the white space after them."""
    op = x.op
    if words > MOST_REPEATS:
        raise UnsupportedError(f"a split {words} times cannot be said in ONNX: split {MOST_REPEATS} times at most")
    gap, letter = written(of_characters(space)), written(complement(of_characters(space)))
    there = full_match(x, f"{gap}*(?:{letter}+{gap}+){{{words}}}{letter}(?s:.*)")
    before = {"separators": [rf"\A{gap}*(?:{letter}+{gap}+){{{words}}}"]}
    return first_token(op.Where(there, x, text(op, "")), " ".join(["a"] * (words + 1)), before), there


def space_part(x: Tensor, place: int, space: str = PYTHON_SPACE) -> Part:
    """One part of `text.split()`, counted from the end if negative, and whether there is one."""
    if place >= 0:
        return split_space(x, place + 1, space)[place]
    op = x.op
    found = tokens(x, "a", separators=[f"{written(of_characters(space))}+"])
    wanted = op.Add(count_present(found), op.ints([place]))
    return op.GatherElements(found, op.Max(wanted, op.ints([0])), axis=1), wanted >= 0


def part_count(x: Tensor, separator: str) -> Tensor:
    """How many parts `text.split(separator)` has, int64. Two nodes."""
    op = x.op
    if not separator:
        raise UnsupportedError("a split at an empty text cannot be said in ONNX: take slices of the text instead")
    _, counts = op.many("StringSplit", 2, x, delimiter=separator)
    return op.Max(of_type(counts, ir.DataType.INT64, [None, 1]), op.ints([1]))


def word_count(x: Tensor, space: str = PYTHON_SPACE) -> Tensor:
    """How many parts `text.split()` has, int64. Six nodes, with `com.microsoft::Tokenizer`."""
    return count_present(tokens(x, "a", separators=[f"{written(of_characters(space))}+"]))


def split_part(x: Tensor, separator: str, place: int) -> Part:
    """One part of `text.split(separator)`, counted from the end if negative, and whether there is one."""
    op = x.op
    if place >= 0:
        parts, counts = _parts(x, separator, place + 1, place + 1)
        return _column(parts, counts, place)
    parts, counts = _parts(x, separator, None)
    wanted = op.Add(counts, place)
    return op.GatherElements(parts, op.Max(wanted, op.ints([0])), axis=1), wanted >= 0


def partition(x: Tensor, separator: str) -> list[Tensor]:
    """`text.partition(separator)`: what is before it, it or "", and what is after it."""
    op = x.op
    parts, counts = _parts(x, separator, 1, 2)
    (before, _), (after, found) = _column(parts, counts, 0), _column(parts, counts, 1)
    return [before, op.Where(found, text(op, separator), text(op, "")), after]


def partition_last(x: Tensor, separator: str) -> list[Tensor]:
    """`text.rpartition(separator)`: where it is not found, all of the text comes last. 31 nodes.

    A separator that can overlap another one is refused.
    """
    op = x.op
    if any(separator[:size] == separator[-size:] for size in range(1, len(separator))):
        raise UnsupportedError(
            f"the last {separator!r} cannot be found in ONNX, as it can overlap another: find the first"
        )
    parts, counts = _parts(x, separator, None)
    last = op.GatherElements(parts, op.Sub(counts, op.ints([1])), axis=1)
    found, empty = counts > 1, text(op, "")
    number = places(parts)
    kept = op.Where(op.Less(number, op.Sub(counts, op.ints([1]))), parts, empty)
    between = op.Where(op.Less(number, op.Sub(counts, op.ints([2]))), text(op, separator), empty)
    before = join(op.StringConcat(kept, between))
    return [before, op.Where(found, text(op, separator), empty), last]


def split_last_once(x: Tensor, separator: str) -> list[Part]:
    """`text.rsplit(separator, 1)` as two columns: where it is not found, all of the text comes first."""
    op = x.op
    before, middle, after = partition_last(x, separator)
    found = op.Equal(middle, text(op, separator))
    both = op.Or(found, op.Not(found))
    return [(op.Where(found, before, after), both), (op.Where(found, after, text(op, "")), found)]


def count_text(x: Tensor, value: str) -> Tensor:
    """How often a text is in each, without overlap, int64. Three nodes."""
    if not value:
        raise UnsupportedError("counting an empty text cannot be said in ONNX: use str.len() + 1")
    return part_count(x, value) - 1


def find(x: Tensor, value: str) -> Tensor:
    """The place of the first character of a text in each, -1 where it is not, int64."""
    op = x.op
    if not value:
        return op.Mul(part_count(x, "a"), op.ints([0]))
    before, middle, _ = partition(x, value)
    return op.Where(op.Equal(middle, text(op, value)), length(before), op.ints([-1]))


def find_last(x: Tensor, value: str) -> Tensor:
    """The place of the last that is found (`text.rfind`), int64. A text that can overlap itself is refused."""
    op = x.op
    before, middle, _ = partition_last(x, value)
    return op.Where(op.Equal(middle, text(op, value)), length(before), op.ints([-1]))


def replace_text(x: Tensor, old: str, new: str, most: int = -1) -> Tensor:
    """One text in place of another, everywhere or so often from the start. About 23 nodes and one for each doubling."""
    op = x.op
    if not old:
        raise UnsupportedError("replacing an empty text cannot be said in ONNX: replace a text of some length")
    if most == 0:
        return x
    parts, counts = _parts(x, old, most if most > 0 else None)
    if new:
        number = places(parts)
        inside = op.And(op.Greater(number, op.ints([0])), op.Less(number, counts))
        parts = op.StringConcat(op.Where(inside, text(op, new), text(op, "")), parts)
    return join(parts)
