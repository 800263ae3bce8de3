"""What is in a text, and of what it is made: truth values and numbers of texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from onward.frontends.dataframe.columns.column import Column, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import joined
from onward.frontends.dataframe.pandas.rules.text.common import (
    NOT_GIVEN,
    changed,
    dialect_of,
    is_arrow,
    numbered,
    parted,
    plain_text,
    told,
    whole_number,
)
from onward.frontends.dataframe.tensors.text import text_case, text_parts, text_search, text_split, text_tokens
from onward.frontends.dataframe.tensors.text.patterns import Alt, At, parse, search, walk
from onward.frontends.dataframe.tensors.text.text import any_true, full_match
from onward.graph.build import Tensor

How = Literal["contains", "match", "fullmatch"]
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*\Z")


def is_plain(pattern: str) -> bool:
    """Whether a pattern finds itself only."""
    return _PLAIN.match(pattern) is not None


def pattern_of(call: Call, pattern: Any, flags: int = 0) -> tuple[str, int]:
    """The text and the flags of a pattern that may be compiled."""
    if isinstance(pattern, re.Pattern):
        return pattern.pattern, flags | (pattern.flags & ~re.UNICODE)
    return plain_text(call, pattern, "the pattern"), int(flags)


def check_arrow(call: Call, pattern: str) -> None:
    """Refuse what the regular expressions of PyArrow read otherwise than those of Python."""
    odd = re.search(r"\[\^?\[?:|\{,", pattern)
    if odd is not None:
        raise call.refuse(f"{odd.group()!r} in a pattern is read otherwise by PyArrow and by Python: write it out")


def _escapes(pattern: str) -> set[str]:
    return set(re.findall(r"\\(.)", pattern, re.DOTALL))


def _has_end(pattern: str) -> bool:
    return "$" in re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL)


def _found(call: Call, x: Any, pat: Any, case: bool, flags: int, na: Any, how: How) -> Column:
    """Whether a regular expression is found. PyArrow's has letters of its own that are the same in both cases."""
    pattern, flags = pattern_of(call, pat, flags)
    if is_arrow(call, x):
        check_arrow(call, pattern)
        is_whole = how == "fullmatch" and pattern.startswith("^") and pattern.endswith("$")
        if is_whole and isinstance(parse(pattern, flags).tree, Alt):
            raise call.refuse("pandas does not match all of the text by '^…|…$': leave out '^' and '$'")
    ignored = re.IGNORECASE if not case else 0
    given = flags if how != "match" else flags & ~re.IGNORECASE
    by_python = not is_arrow(call, x) or (isinstance(pat, str) and given) or flags & ~re.IGNORECASE
    escapes = _escapes(pattern)
    if by_python or escapes & set("sSuUN"):
        return told(call, x, lambda p: full_match(p, search(parse(pattern, flags | ignored), how)), na)
    arrow = search(parse(pattern, flags | ignored, "arrow"), how)
    python = search(parse(pattern, flags | ignored), how)
    letters, ends = bool(escapes & set("wWdDbB")), _has_end(pattern)
    if arrow == python or not (letters or ends):
        return told(call, x, lambda p: full_match(p, arrow), na)
    return told(call, x, lambda p: _by_data(x.column, p, arrow, python, letters, ends), na)


def _by_data(column: Column, p: Tensor, arrow: str, python: str, letters: bool, ends: bool) -> Tensor:
    """Pandas has Python search the column if a text in it is not of ASCII, or has a line break."""
    op = p.op
    ways = ([r"(?s:.*)[^\x{0}-\x{7f}](?s:.*)"] if letters else []) + ([r"(?s:.*)\n(?s:.*)"] if ends else [])
    special = full_match(p, "|".join(ways))
    if column.null is not None:
        special = op.And(special, op.Not(column.null))
    return op.Where(any_true(special), full_match(p, python), full_match(p, arrow))


@rule("Series.str.contains")
def contains(
    call: Call, x: Any, pat: Any, case: bool = True, flags: int = 0, na: Any = NOT_GIVEN, regex: bool = True
) -> Column:
    if isinstance(pat, str) and case and (not regex or (is_plain(pat) and not flags)):
        return told(call, x, lambda p: text_search.contains_text(p, pat), na)
    if regex:
        return _found(call, x, pat, case, flags, na, "contains")
    value = plain_text(call, pat, "the pattern")
    if is_arrow(call, x):
        return told(call, x, lambda p: text_search.contains(p, re.escape(value), re.IGNORECASE, "arrow"), na)
    return told(call, x, lambda p: text_search.contains_text(text_case.upper(p), value.upper()), na)


@rule("Series.str.match")
def match(call: Call, x: Any, pat: Any, case: Any = NOT_GIVEN, flags: Any = NOT_GIVEN, na: Any = NOT_GIVEN) -> Column:
    case, flags = case is NOT_GIVEN or bool(case), 0 if flags is NOT_GIVEN else int(flags)
    return _found(call, x, pat, case and not flags & re.IGNORECASE, flags, na, "match")


@rule("Series.str.fullmatch")
def fullmatch(call: Call, x: Any, pat: Any, case: bool = True, flags: int = 0, na: Any = NOT_GIVEN) -> Column:
    return _found(call, x, pat, case, flags, na, "fullmatch")


def _declare_ends() -> None:
    for name, function in {"startswith": text_search.starts_with, "endswith": text_search.ends_with}.items():

        def at_end(
            call: Call, x: Any, pat: Any, na: Any = NOT_GIVEN, function: Callable[..., Tensor] = function
        ) -> Column:
            values = [pat] if isinstance(pat, str) else list(pat) if isinstance(pat, tuple) else None
            if not values or not all(isinstance(value, str) for value in values):
                raise call.refuse("give a text, or a tuple of texts")
            return told(call, x, lambda p: function(p, *values), na)

        rule(f"Series.str.{name}")(at_end)


_declare_ends()


def _declare_kinds() -> None:
    for kind in ("alpha", "alnum", "decimal", "digit", "numeric", "space", "ascii"):

        def is_kind(call: Call, x: Any, kind: Any = kind) -> Column:
            return told(call, x, lambda p: text_search.is_class(p, kind, dialect_of(call, x)))

        rule(f"Series.str.is{kind}")(is_kind)
    for kind, function in {"upper": text_search.is_upper, "lower": text_search.is_lower}.items():

        def is_case(call: Call, x: Any, function: Callable[..., Tensor] = function) -> Column:
            return told(call, x, lambda p: function(p, dialect_of(call, x)))

        rule(f"Series.str.is{kind}")(is_case)


_declare_kinds()


@rule("Series.str.istitle")
def istitle(call: Call, x: Any) -> Column:
    raise call.refuse("ONNX cannot say it: compare with a pattern, by str.match")


@rule("Series.str.len")
def length(call: Call, x: Any) -> Column:
    return numbered(call, x, text_parts.length)


@rule("Series.str.count")
def count(call: Call, x: Any, pat: Any, flags: int = 0) -> Column:
    pattern, flags = pattern_of(call, pat, flags)
    if pattern == "":
        return numbered(call, x, lambda p: text_parts.length(p) + 1)
    if is_plain(pattern) and not flags:
        return numbered(call, x, lambda p: text_split.count_text(p, pattern))
    if not is_arrow(call, x):
        return numbered(call, x, lambda p: text_tokens.count_pattern(p, pattern, flags))
    check_arrow(call, pattern)
    places = [node.place for node in walk(parse(pattern, flags).tree) if isinstance(node, At)]
    if any(place not in ("end", "last") for place in places):
        raise call.refuse("pandas counts '^' and '\\b' anew after each match: use str.match or str.contains")
    return _counted(call, x, pattern, flags)


def _counted(call: Call, x: Any, pattern: str, flags: int) -> Column:
    """By PyArrow, which ignores the case in a way of its own: only patterns that do not are taken."""
    ignores = flags & re.IGNORECASE or "(?" in pattern
    if ignores and search(parse(pattern, flags, "arrow"), "contains") != search(parse(pattern, flags), "contains"):
        raise call.refuse("which letters are the same in both cases depends on the data: name both cases in a class")
    return numbered(call, x, lambda p: text_tokens.count_pattern(p, pattern, flags))


def _declare_places() -> None:
    for name, function in {"find": text_split.find, "rfind": text_split.find_last}.items():

        def place(
            call: Call,
            x: Any,
            sub: Any,
            start: Any = 0,
            end: Any = None,
            function: Callable[[Tensor, str], Tensor] = function,
        ) -> Column:
            if start not in (0, None) or end is not None:
                raise call.refuse("a part of the text is searched: take it with str.slice first")
            value = plain_text(call, sub, "what is looked for")
            made = numbered(call, x, lambda p: function(p, value))
            return made if "index" not in call.name else _found_everywhere(made)

        rule(f"Series.str.{name}", f"Series.str.{name.replace('find', 'index')}")(place)


def _found_everywhere(made: Column) -> Column:
    """Pandas raises an error where a text is not found."""
    op = made.op
    bad = op.Less(made.value, op.like(0, made.value))
    bad = bad if made.null is None else op.And(bad, op.Not(made.null))
    return guarded(made, bad, "str.index of a text that is not found")


_declare_places()


@rule("Series.str.get")
def get(call: Call, x: Any, i: Any) -> Any:
    return character(call, x, i)


def character(call: Call, x: Any, place: Any) -> Any:
    """Of objects that are all missing pandas makes floats: here they stay objects."""
    number = whole_number(call, place, "the place of a character")
    made = parted(call, x, lambda p: text_parts.character(p, number))
    is_lost = getattr(call.real.dtype, "kind", "") == "f"
    return joined(call.trace, made, call.real.astype(object)) if is_lost else made


@rule("Series.str.slice")
def sliced(call: Call, x: Any, start: Any = None, stop: Any = None, step: Any = None) -> Column:
    bounds = [None if bound is None else whole_number(call, bound, "a slice") for bound in (start, stop, step)]
    return changed(call, x, lambda p: text_parts.slice_text(p, *bounds))


@rule("Series.str.__getitem__")
def item(call: Call, x: Any, key: Any) -> Any:
    return sliced(call, x, key.start, key.stop, key.step) if isinstance(key, slice) else character(call, x, key)
