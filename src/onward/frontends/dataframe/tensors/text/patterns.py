"""Regular expressions of Python and Rust, read into trees of exact sets of characters, and written for RE2."""

from __future__ import annotations

import re
import warnings
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Literal

from onward.frontends.dataframe.tensors.text.case_tables import with_case
from onward.frontends.dataframe.tensors.text.pattern_sets import (
    EVERY,
    Dialect,
    Ranges,
    complement,
    matched,
    of_characters,
    overlap,
    refuse,
    union,
    within,
    written,
)


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Seq:
    """One after another."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """The first of several that matches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """So many times; without an upper bound where `most` is None."""

    item: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True)
class Group:
    """A group that is captured."""

    item: Node
    number: int


@dataclass(frozen=True)
class At:
    """A place: the start or end of the text or of a line, the end or a last line break, the edge of a word."""

    place: Literal["start", "end", "last", "line start", "line end", "word"]


Node = Chars | Seq | Alt | Repeat | Group | At

PLACES = {
    codes.AT_BEGINNING_STRING: "start",
    codes.AT_END_STRING: "end",
    codes.AT_BOUNDARY: "word",
}
CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
NEWLINE = Chars(of_characters("\n"))


@dataclass(frozen=True)
class Pattern:
    """What was written, the tree of it, how many groups it has, and their numbers by name."""

    text: str
    tree: Node
    groups: int
    names: dict[str, int]
    dialect: Dialect
    ascii: bool

    @property
    def word(self) -> Ranges:
        """The letters of words."""
        return matched(r"\w", re.ASCII if self.ascii else 0, self.dialect)


def literal(text: str) -> Seq:
    return Seq(tuple(Chars(((ord(c), ord(c)),)) for c in text))


def parse(text: str, flags: int = 0, dialect: Dialect = "python") -> Pattern:
    """Read a pattern. Refuse what has no exact counterpart."""
    return _Reader(text, dialect).read(flags)


class _Reader:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text, self.dialect = text, dialect

    def read(self, flags: int) -> Pattern:
        if self.dialect == "rust":
            self._check_rust()
        source = re.sub(r"((?:^|[^\\])(?:\\\\)*)\\z", r"\1\\Z", self.text) if self.dialect == "rust" else self.text
        source = source.replace("(?<", "(?P<") if self.dialect == "rust" else source
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error" if self.dialect == "rust" else "ignore")
                tree = _parser.parse(source, flags)
        except (re.error, Warning, OverflowError) as error:
            raise refuse(self.text, f"cannot be read ({error})") from None
        flags = tree.state.flags
        if flags & (re.LOCALE | re.DEBUG):
            raise refuse(self.text, "depends on the locale")
        made = self._sequence(tree, flags)
        names = dict(tree.state.groupdict)
        return Pattern(self.text, made, tree.state.groups - 1, names, self.dialect, bool(flags & re.ASCII))

    def _check_rust(self) -> None:
        """What Rust reads otherwise than Python."""
        escapes, sets = r"\\[pPhHRKGXQExuUBZ<>0-9]|\\b\{", r"\[\[|\[:|&&|--|~~"
        groups = r"\(\?(?![ims]*[:)]|P<|<[^=!])"
        odd = re.search(rf"{escapes}|{sets}|{groups}|\{{,", self.text)
        if odd is not None:
            raise refuse(self.text, f"has {odd.group()!r}, which is read otherwise by Rust and by Python")

    def _sequence(self, items: Any, flags: int) -> Node:
        made = [self._node(code, argument, flags) for code, argument in items]
        return made[0] if len(made) == 1 else Seq(tuple(made))

    def _node(self, code: Any, argument: Any, flags: int) -> Node:
        match code:
            case codes.LITERAL:
                return Chars(self._letter(argument, flags))
            case codes.NOT_LITERAL:
                return Chars(complement(self._letter(argument, flags)))
            case codes.ANY:
                return Chars(EVERY if flags & re.DOTALL else complement(NEWLINE.ranges))
            case codes.IN:
                return Chars(self._class(argument, flags))
            case codes.BRANCH:
                return Alt(tuple(self._sequence(branch, flags) for branch in argument[1]))
            case codes.SUBPATTERN:
                number, added, removed, inner = argument
                node = self._sequence(inner, (flags | added) & ~removed)
                return node if number is None else Group(node, number)
            case codes.MAX_REPEAT | codes.MIN_REPEAT:
                least, most, inner = argument
                if (least > 1000) or (most is not codes.MAXREPEAT and most > 1000):
                    raise refuse(self.text, "repeats more than 1000 times")
                upper = None if most is codes.MAXREPEAT else int(most)
                return Repeat(self._sequence(inner, flags), int(least), upper, code is codes.MAX_REPEAT)
            case codes.AT:
                return self._place(argument, flags)
        what = {
            codes.ASSERT: "looks ahead or behind",
            codes.ASSERT_NOT: "looks ahead or behind",
            codes.GROUPREF: "refers back to a group",
            codes.GROUPREF_EXISTS: "depends on a group",
        }
        raise refuse(self.text, what.get(code, f"has {str(code).lower().replace('_', ' ')}"))

    def _place(self, code: Any, flags: int) -> Node:
        if code is codes.AT_BEGINNING:
            return At("line start" if flags & re.MULTILINE else "start")
        if code is codes.AT_END:
            if flags & re.MULTILINE:
                return At("line end")
            return At("end" if self.dialect == "rust" else "last")
        if code in PLACES:
            return At(PLACES[code])  # type: ignore[arg-type]
        raise refuse(self.text, "tells where no word begins or ends")

    def _letter(self, code: int, flags: int) -> Ranges:
        if 0xD800 <= code < 0xE000:
            raise refuse(self.text, "has half a character")
        if not flags & re.IGNORECASE:
            return ((code, code),)
        return self._ignoring_case(code, code, flags)

    def _class(self, items: list[tuple[Any, Any]], flags: int) -> Ranges:
        negated = items[0][0] is codes.NEGATE
        sets: list[Ranges] = []
        for code, argument in items[negated:]:
            if code is codes.CATEGORY:
                sets.append(matched(CATEGORIES[argument], flags & re.ASCII, self.dialect))
            elif code is codes.LITERAL:
                sets.append(self._letter(argument, flags))
            else:
                low, high = argument
                if flags & re.IGNORECASE:
                    sets.append(self._ignoring_case(low, high, flags))
                elif low < 0xD800 <= high:
                    sets.append(tuple(r for r in ((low, 0xD7FF), (0xE000, high)) if r[0] <= r[1]))
                else:
                    sets.append(((low, high),))
        ranges = union(sets)
        return complement(ranges) if negated else ranges

    def _ignoring_case(self, low: int, high: int, flags: int) -> Ranges:
        if low < 0xE000 and high > 0xD7FF:
            raise refuse(self.text, "has half a character")
        if self.dialect == "arrow":
            return folded(((low, high),))
        one = re.escape(chr(low)) if low == high else f"[\\U{low:08x}-\\U{high:08x}]"
        if self.dialect == "python":
            letters = "".join(re.findall(one, with_case("python"), flags & (re.IGNORECASE | re.ASCII)))
            return union([((low, high),), of_characters(letters)])
        return matched(one, flags & (re.IGNORECASE | re.ASCII), self.dialect)


@cache
def folded(ranges: Ranges) -> Ranges:
    """With what PyArrow takes for the same letter in the other case: only letters that have a case are asked about."""
    import pyarrow
    import pyarrow.compute

    texts = pyarrow.array(list(with_case("arrow")))
    found = pyarrow.compute.match_substring_regex(texts, written(ranges), ignore_case=True)
    return union([ranges, of_characters("".join(pyarrow.compute.filter(texts, found).to_pylist()))])


def nullable(node: Node) -> bool:
    """Whether it can match no character."""
    match node:
        case Chars():
            return False
        case Seq(items):
            return all(map(nullable, items))
        case Alt(branches):
            return any(map(nullable, branches))
        case Repeat(item, least, _, _):
            return least == 0 or nullable(item)
        case Group(item, _):
            return nullable(item)
    return True


def filled(node: Node) -> Node:
    """What matches the same texts but the empty one."""
    if not nullable(node):
        return node
    match node:
        case Seq(items):
            return Alt(tuple(Seq((filled(item), *items[i + 1 :])) for i, item in enumerate(items)))
        case Alt(branches):
            return Alt(tuple(map(filled, branches)))
        case Group(item, number):
            return Group(filled(item), number)
        case Repeat(item, _, most, greedy):
            return Repeat(filled(item), 1, most, greedy)
    return Chars(())


def walk(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Seq(items) | Alt(items):
            for item in items:
                yield from walk(item)
        case Repeat(item, _, _, _) | Group(item, _):
            yield from walk(item)


def flat(node: Node) -> list[Node]:
    """The parts of a sequence, of sequences in it too."""
    return [part for item in node.items for part in flat(item)] if isinstance(node, Seq) else [node]


def re2(node: Node, pattern: Pattern, kept: Container[int] = ()) -> str:
    """The text of a tree. A last line break and most edges of words are for `search` to write.

    Groups are captured whose numbers are `kept`.
    """
    match node:
        case Chars(ranges):
            return written(ranges)
        case Seq(items):
            return "".join(
                f"(?:{re2(i, pattern, kept)})" if isinstance(i, Alt) else re2(i, pattern, kept) for i in items
            )
        case Alt(branches):
            return "|".join(re2(branch, pattern, kept) for branch in branches)
        case Group(item, number):
            return f"({'' if number in kept else '?:'}{re2(item, pattern, kept)})"
        case Repeat(item, least, most, greedy):
            count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
            count = count or (f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}")
            if any(isinstance(part, At) for part in walk(item)):
                raise refuse(pattern.text, "repeats a place")
            return f"(?:{re2(item, pattern, kept)}){count}{'' if greedy else '?'}"
        case At("start"):
            return r"\A"
        case At("end"):
            return r"\z"
        case At("line start"):
            return "(?m:^)"
        case At("line end"):
            return "(?m:$)"
        case At("word") if pattern.ascii:
            return r"\b"
    raise refuse(pattern.text, "has '$' or '\\b' where more follows")


def edge(node: Node, last: bool) -> Ranges:
    """The characters that a match can begin with, or end with."""
    match node:
        case Chars(ranges):
            return ranges
        case Seq(items):
            sets: list[Ranges] = []
            for item in reversed(items) if last else items:
                sets.append(edge(item, last))
                if not nullable(item):
                    break
            return union(sets)
        case Alt(branches):
            return union([edge(branch, last) for branch in branches])
        case Repeat(item, _, _, _) | Group(item, _):
            return edge(item, last)
    return ()


def search(pattern: Pattern, how: Literal["contains", "match", "fullmatch"]) -> str:
    """The RE2 that matches a whole text where the pattern is found in it, at its start, or in all of it."""
    return _whole(pattern.tree, pattern, how)


def _whole(node: Node, pattern: Pattern, how: Literal["contains", "match", "fullmatch"]) -> str:
    if isinstance(node, Alt):
        return "|".join(f"(?:{_whole(branch, pattern, how)})" for branch in node.branches)
    if isinstance(node, Group):
        return _whole(node.item, pattern, how)
    items = flat(node)
    before = "(?s:.*)" if how == "contains" else ""
    after = "" if how == "fullmatch" else "(?s:.*)"
    word = pattern.word if At("word") in items else ()
    other = written(complement(word))
    if items and items[0] == At("word"):
        _check_word(Seq(tuple(items[1:])), pattern, last=False)
        before = f"(?:|(?s:.*){other})" if how == "contains" else ""
        items = items[1:]
    if items and items[-1] == At("word"):
        _check_word(Seq(tuple(items[:-1])), pattern, last=True)
        after = f"(?:|{other}(?s:.*))" if how != "fullmatch" else ""
        items = items[:-1]
    elif items and items[-1] == At("last"):
        after = "" if how == "fullmatch" else "\\n?"
        items = items[:-1]
    kept = [
        item
        for place, item in enumerate(items)
        if item != At("word") or not _redundant(items[:place], items[place + 1 :], word)
    ]
    middle = re2(Seq(tuple(kept)), pattern)
    return f"{before}(?:{middle}){after}"


def _check_word(rest: Node, pattern: Pattern, last: bool) -> None:
    if nullable(rest) or not within(edge(rest, last), pattern.word):
        raise refuse(pattern.text, "has '\\b' beside what may be no letter of a word")


def _redundant(left: list[Node], right: list[Node], word: Ranges) -> bool:
    """Whether a word surely begins or ends there."""
    before, after = Seq(tuple(left)), Seq(tuple(right))
    if nullable(before) or nullable(after):
        return False
    ends, starts = edge(before, True), edge(after, False)
    return (within(ends, word) and not overlap(starts, word)) or (within(starts, word) and not overlap(ends, word))
