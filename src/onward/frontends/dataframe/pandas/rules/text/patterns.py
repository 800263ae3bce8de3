"""What a pattern or text finds: taken out, or replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from onward.frontends.dataframe.columns.column import Column, elementwise
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Series
from onward.frontends.dataframe.pandas.rules.text.common import changed, is_arrow, plain_text, texts, whole_number
from onward.frontends.dataframe.pandas.rules.text.search import check_arrow, is_plain, pattern_of
from onward.frontends.dataframe.pandas.values import is_missing
from onward.frontends.dataframe.tensors.text import text_parts, text_search, text_split, text_tokens
from onward.frontends.dataframe.tensors.text.patterns import parse, search
from onward.frontends.dataframe.tensors.text.text import text
from onward.frontends.dataframe.tensors.text.text_pad import concat
from onward.graph.build import Tensor


@rule("Series.str.extract")
def extract(call: Call, x: Any, pat: Any, flags: int = 0, expand: bool = True) -> Any:
    """A column for each group; one group without `expand` is a single column."""
    column = texts(call, x)
    pattern, flags = pattern_of(call, pat, flags)
    groups = text_tokens.extract(column.value, pattern, flags)
    made = [
        elementwise(lambda p, value=value: value, column.type, column).with_null(column.op.Not(found))
        for value, found in groups
    ]
    if len(made) == 1 and not expand:
        return made[0]
    return dict(zip(call.real.columns, made, strict=True))


@rule("Series.str.findall", "Series.str.extractall")
def findall(call: Call, x: Any, pat: Any, flags: int = 0) -> Any:
    raise call.refuse("how many there are depends on the data: take the first with str.extract, or use str.count")


@rule("Series.str.get_dummies")
def get_dummies(call: Call, x: Any, sep: str = "|", dtype: Any = None) -> Any:
    raise call.refuse("which columns there are would depend on the data: make each column with str.contains")


@rule("Series.str.replace")
def replace_text(
    call: Call,
    x: Any,
    pat: Any,
    repl: Any = None,
    n: Any = -1,
    case: Any = None,
    flags: int = 0,
    regex: bool = False,
) -> Column:
    most = whole_number(call, n, "n")
    pairs = pat.items() if isinstance(pat, Mapping) else [(pat, repl)]
    column = texts(call, x)
    for key, value in pairs:
        if callable(value):
            raise call.refuse("a function makes what is put in: put in a text")
        new = plain_text(call, value, "what is put in")
        function = _replacement(call, x, key, new, most, case, flags, regex)
        column = elementwise(function, column.type, column)
    return column


def _replacement(call: Call, x: Any, pat: Any, new: str, most: int, case: Any, flags: int, regex: bool) -> Any:
    ignored = re.IGNORECASE if case is not None and not case else 0
    pattern, flags = pattern_of(call, pat, flags | ignored)
    if not regex and not isinstance(pat, re.Pattern):
        if not flags:
            return lambda p: text_split.replace_text(p, pattern, new, most)
        pattern = re.escape(pattern)
    template = _template(call, pattern, new, flags)
    most = -1 if most == 0 and (flags or not is_arrow(call, x)) else most
    if is_plain(pattern) and not flags and "\\" not in new:
        return lambda p: text_split.replace_text(p, pattern, new, most)
    if is_arrow(call, x) and not flags:
        check_arrow(call, pattern)
        if most > 1:
            raise call.refuse("a pattern is replaced a number of times: replace all, or a text")
        if "(?" in pattern:
            _check_case(call, pattern)
    if any(isinstance(piece, int) for piece in template):
        return lambda p: text_tokens.replace_by_groups(p, pattern, template, flags, most=most)
    new = "".join(map(str, template))
    return lambda p: text_tokens.replace_pattern(p, pattern, new, flags, most=most)


def _template(call: Call, pattern: str, new: str, flags: int) -> list[str | int]:
    """Texts and numbers of groups: what `\\1`, `\\g<name>` and `\\\\` stand for, in Python and PyArrow alike."""
    groups = re.compile(pattern, flags)
    pieces: list[str | int] = []
    for piece in re.split(r"(\\g<\w+>|\\[1-9](?!\d)|\\\\)", new):
        if piece == "\\\\":
            pieces.append("\\")
        elif re.fullmatch(r"\\g<\w+>|\\[1-9]", piece):
            name = piece[3:-1] if piece.startswith("\\g") else piece[1:]
            pieces.append(int(name) if name.isdigit() else groups.groupindex[name])
        elif "\\" in piece:
            raise call.refuse(f"what is put in, {new!r}, has an escape: put in the character itself")
        elif piece:
            pieces.append(piece)
    return pieces


def _check_case(call: Call, pattern: str) -> None:
    if search(parse(pattern, 0, "arrow"), "contains") != search(parse(pattern), "contains"):
        raise call.refuse("which letters are the same in both cases depends on the data: name both cases in a class")


@rule("Series.str.slice_replace")
def slice_replace(call: Call, x: Any, start: Any = None, stop: Any = None, repl: Any = None) -> Column:
    """What is before, what is put in, what is after."""
    first = 0 if start is None else whole_number(call, start, "start")
    last = None if stop is None else whole_number(call, stop, "stop")
    if first < 0 or (last is not None and last < first):
        raise call.refuse("start and stop are counted from the left, and stop is not before start")
    new = "" if repl is None else plain_text(call, repl, "what is put in")

    def put_in(p: Tensor) -> Tensor:
        parts: list[Tensor | str] = [text_parts.slice_text(p, 0, first)] if first else []
        parts += [new] if new else []
        parts += [] if last is None else [text_parts.slice_text(p, last)]
        return concat(parts) if last is not None or first else p.op.Expand(text(p.op, new), p.shape)

    return changed(call, x, put_in)


@rule("part: replace patterns")
def replace_patterns(call: Call, x: Series, to_replace: Any, value: Any, regex: Any) -> Column:
    """`Series.replace` with patterns: each is looked for in the texts as they were."""
    column = x.column
    if not column.type.is_text or column.type.categories is not None:
        return column
    if not isinstance(regex, bool):
        to_replace = regex
    if isinstance(to_replace, Mapping):
        pairs = list(to_replace.items())
    else:
        keys = list(to_replace) if isinstance(to_replace, list | tuple) else [to_replace]
        values = list(value) if isinstance(value, list | tuple) else [value] * len(keys)
        if len(keys) != len(values):
            raise call.refuse("there are as many values as patterns")
        pairs = list(zip(keys, values, strict=True))
    original = column
    for key, new in pairs:
        column = _replaced(call, original, column, key, new, only=len(pairs) == 1)
    return column


def _replaced(call: Call, original: Column, column: Column, key: Any, new: Any, only: bool) -> Column:
    pattern, flags = pattern_of(call, key)
    op = column.op
    if is_missing(new):
        return column.with_null(text_search.contains(original.value, pattern, flags))
    word = plain_text(call, new, "what is put in")
    if "\\" in word:
        raise call.refuse(f"what is put in, {word!r}, refers to groups or escapes: put in a plain text")

    def put_in(p: Tensor, q: Tensor) -> Tensor:
        if is_plain(pattern) and not flags:
            made = text_split.replace_text(p, pattern, word)
        else:
            made = text_tokens.replace_pattern(p, pattern, word, flags)
        return made if only else op.Where(text_search.contains(q, pattern, flags), made, p)

    return elementwise(put_in, column.type, column, original)
