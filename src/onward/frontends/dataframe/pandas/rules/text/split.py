"""Texts split: the parts by number, as columns, or counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL, INT64
from onward.frontends.dataframe.columns.column import Column, elementwise, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, Trace, rule
from onward.frontends.dataframe.pandas.proxies import Traced, asked, joined, wrapped
from onward.frontends.dataframe.pandas.rules.text.common import plain_text, texts, whole_number
from onward.frontends.dataframe.pandas.rules.text.search import is_plain
from onward.frontends.dataframe.tensors.text import text_split, text_tokens
from onward.frontends.dataframe.tensors.text.text_split import Part
from onward.graph.build import Tensor

_SEPARATORS = ",;|/ \t\n-_.:&+=0aA"


@dataclass(frozen=True)
class Split:
    """How texts are split: at a text or at white space (None), so many times at most, from the right or the left."""

    separator: str | None
    most: int | None = None
    from_right: bool = False

    def part(self, p: Tensor, place: int) -> Part:
        """One part of each text, and where there is one."""
        if self.most is None:
            if self.separator is None:
                return text_split.space_part(p, place)
            return text_split.split_part(p, self.separator, place)
        if 0 <= place < self.most and not self.from_right:
            return replace(self, most=None).part(p, place)
        if self.from_right and self.separator is None and place == -1:
            return text_split.space_part(p, -1)
        return _picked(self.columns(p, self.most + 1), place)

    def columns(self, p: Tensor, count: int) -> list[Part]:
        """The first parts of each text."""
        if self.most is not None and self.from_right:
            if self.separator is None or self.most != 1:
                raise UnsupportedError("a split from the right is at a text, and n=1: use str.split otherwise")
            return text_split.split_last_once(p, self.separator)[:count]
        if self.separator is None:
            return text_split.split_space(p, count, most=self.most)
        return text_split.split(p, self.separator, count, self.most)

    def count(self, p: Tensor) -> Tensor:
        """How many parts each text has."""
        found = text_split.word_count(p) if self.separator is None else text_split.part_count(p, self.separator)
        return found if self.most is None else p.op.Min(found, p.op.ints([self.most + 1]))


def _picked(parts: list[Part], place: int) -> Part:
    """One of a few columns, counted from the last that is there if it is negative."""
    op = parts[0][0].op
    if place >= len(parts):
        return parts[0][0], op.And(parts[0][1], op.Not(parts[0][1]))
    if place >= 0:
        return parts[place]
    counts = op.sum(op.Concat(*(there.cast(ir.DataType.INT64) for _, there in parts), axis=1), [1])
    wanted = op.Add(counts, place)
    together = op.Concat(*(value for value, _ in parts), axis=1)
    return op.GatherElements(together, op.Max(wanted, op.ints([0])), axis=1), wanted >= 0


def _most(call: Call, n: Any) -> int | None:
    """Both 0 and -1 stand for all in pandas."""
    most = -1 if n is None else whole_number(call, n, "n")
    return most if most > 0 else None


class ListColumn(Traced):
    """What `str.split` gives: lists, of which ONNX has no columns. A part of each, or their lengths, are columns."""

    __slots__ = ("made_of", "split")
    kind = "Series.str.split"

    def __init__(self, trace: Trace, real: Any, made_of: Column, split: Split) -> None:
        super().__init__(trace, real)
        self.made_of, self.split = made_of, split

    @property
    def str(self) -> ListParts:
        return ListParts(self)

    def __getattr__(self, name: Any) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse("ONNX has no columns of lists: take a part of each with .str[0], or split with expand=True")


class ListParts(Traced):
    """`.str` of lists."""

    __slots__ = ("lists",)
    kind = "Series.str.split.str"

    def __init__(self, lists: ListColumn) -> None:
        super().__init__(lists.trace, lists.real.str)
        self.lists = lists

    def __getitem__(self, key: Any) -> Any:
        return self._ask(f"{self.kind}.__getitem__", lambda: self.real[key], key)

    def _ask(self, full: str, run: Callable[[], Any], /, *args: Any, **kwargs: Any) -> Any:
        call, result = asked(self.trace, full, run, self.lists, *args, **kwargs)
        return wrapped(call, result)


@rule("Series.str.split.str.__getitem__", "Series.str.split.str.get")
def part(call: Call, lists: ListColumn, i: Any) -> Any:
    """As objects: of parts that are all missing pandas makes floats."""
    if isinstance(i, slice):
        raise call.refuse("ONNX has no columns of lists: take one part, with .str[0]")
    place = whole_number(call, i, "the number of a part")
    found: list[Tensor] = []

    def piece(p: Tensor) -> Tensor:
        value, is_there = lists.split.part(p, place)
        found.append(is_there)
        return value

    made = elementwise(piece, replace(lists.made_of.type, masked=False), lists.made_of)
    return joined(call.trace, made.with_null(made.op.Not(found[0])), call.real.astype(object))


@rule("Series.str.split.str.len")
def part_count(call: Call, lists: ListColumn) -> Column:
    return elementwise(lists.split.count, INT64, lists.made_of)


def _made(call: Call, x: Any, split: Split, expand: bool, column: Column) -> Any:
    if not expand:
        return ListColumn(call.trace, call.real, column, split)
    width = call.real.shape[1]
    if split.most is None or split.most + 1 > width:
        bad = elementwise(lambda p: split.count(p) > width, BOOL, column)
        wide = bad.value if bad.null is None else bad.op.And(bad.value, bad.op.Not(bad.null))
        column = guarded(column, wide, f"a text has more parts than the {width} of the sample: give n")
    parts = split.columns(column.value, width)
    return {
        name: elementwise(lambda p, value=value: value, column.type, column).with_null(column.op.Not(there))
        for name, (value, there) in zip(call.real.columns, parts, strict=True)
    }


@rule("Series.str.split")
def split_texts(call: Call, x: Any, pat: Any = None, *, n: Any = -1, expand: bool = False, regex: Any = None) -> Any:
    column, most = texts(call, x), _most(call, n)
    if pat is None:
        return _made(call, x, Split(None, most), expand, column)
    is_pattern = isinstance(pat, re.Pattern) or regex is True or (regex is None and len(pat) != 1)
    if isinstance(pat, str) and (not is_pattern or is_plain(pat)):
        return _made(call, x, Split(pat, most), expand, column)
    text, flags = (pat.pattern, pat.flags & ~re.UNICODE) if isinstance(pat, re.Pattern) else (pat, 0)
    bare = re.sub(r"\\([^\w\s])", r"\1", plain_text(call, text, "the pattern"))
    if re.escape(bare) == text and not flags:
        return _made(call, x, Split(bare, most), expand, column)
    mark = _own_separator(call, text, flags)
    if most is not None:
        raise call.refuse("a split at a pattern a number of times cannot be said in ONNX: split at a text")
    column = elementwise(lambda p: text_tokens.replace_pattern(p, text, mark, flags), column.type, column)
    return _made(call, x, Split(mark), expand, column)


def _own_separator(call: Call, pattern: str, flags: int) -> str:
    """A character that the pattern finds wherever it stands: put in place of all matches, it only stands there."""
    compiled = re.compile(pattern, flags)
    if compiled.groups:
        raise call.refuse("the groups of a pattern become parts too: use (?:…) in place of (…)")
    found = next((c for c in _SEPARATORS + pattern if compiled.fullmatch(c)), None)
    if found is None or re.search(r"\(\?|[\^$]|\\[bBAZ]", pattern.replace("[^", "[")):
        raise call.refuse(f"a split at the pattern {pattern!r} cannot be said in ONNX: split at a text")
    return found


@rule("Series.str.rsplit")
def rsplit(call: Call, x: Any, pat: Any = None, *, n: Any = -1, expand: bool = False) -> Any:
    column, most = texts(call, x), _most(call, n)
    separator = None if pat is None else plain_text(call, pat, "the separator")
    if separator and most is None and any(separator[:k] == separator[-k:] for k in range(1, len(separator))):
        raise call.refuse(f"{separator!r} can overlap another one: use str.split")
    return _made(call, x, Split(separator, most, from_right=most is not None), expand, column)


def _declare_partitions() -> None:
    functions = {"partition": text_split.partition, "rpartition": text_split.partition_last}
    for name, function in functions.items():

        def parted(
            call: Call,
            x: Any,
            sep: Any = " ",
            expand: bool = True,
            function: Callable[[Tensor, str], list[Tensor]] = function,
        ) -> dict[Any, Column]:
            if not expand:
                raise call.refuse("ONNX has no columns of tuples: leave out expand=False")
            column = texts(call, x)
            parts = function(column.value, plain_text(call, sep, "the separator"))
            if call.real.shape[1] != len(parts):
                raise call.refuse("the sample has no texts: give one that has some")
            return {
                number: elementwise(lambda p, value=value: value, column.type, column)
                for number, value in enumerate(parts)
            }

        rule(f"Series.str.{name}")(parted)


_declare_partitions()
