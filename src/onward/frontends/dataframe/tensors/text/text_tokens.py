"""What a regular expression finds: counted, taken out, or replaced. All use `com.microsoft::Tokenizer`.

Only patterns that can be followed in one way are taken (see `pattern_paths`); others are refused, or left to
`text_extensions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_paths import check_one_way, example
from onward.frontends.dataframe.tensors.text.pattern_sets import Dialect, complement, contains, refuse, written
from onward.frontends.dataframe.tensors.text.patterns import (
    At,
    Chars,
    Group,
    Node,
    Pattern,
    Repeat,
    Seq,
    edge,
    filled,
    flat,
    nullable,
    parse,
    re2,
    search,
    walk,
)
from onward.frontends.dataframe.tensors.text.text import (
    count_present,
    first_token,
    full_match,
    join,
    places,
    text,
    tokens,
)
from onward.frontends.dataframe.tensors.text.text_extensions import otherwise, replacing, rewritten, taken, taking
from onward.frontends.dataframe.tensors.text.text_pad import concat
from onward.graph.build import Tensor


@dataclass(frozen=True)
class _Found:
    """A pattern without the places at its ends, which are told beside it."""

    pattern: Pattern
    items: list[Node]
    at_start: bool
    end: str
    """What RE2 has to find after the items: nothing, the end, or the end after a line break."""

    @property
    def body(self) -> str:
        return f"(?:{re2(Seq(tuple(self.items)), self.pattern)})"

    @property
    def whole(self) -> str:
        return ("\\A" if self.at_start else "") + self.body + self.end

    @property
    def row(self) -> str:
        return example(Seq(tuple(self.items)))


def _read(text_of_it: str, flags: int, dialect: Dialect) -> _Found:
    pattern = parse(text_of_it, flags, dialect)
    items = flat(pattern.tree)
    at_start = bool(items) and items[0] == At("start")
    items = items[at_start:]
    end = ""
    if items and items[-1] in (At("end"), At("last")):
        end = r"\z" if items[-1] == At("end") else r"\n?\z"
        items = items[:-1]
    body = Seq(tuple(items))
    if any(isinstance(node, At) for node in walk(body)):
        raise refuse(text_of_it, "has a place in its middle")
    if nullable(body):
        raise refuse(text_of_it, "can find nothing, at every place")
    if end == r"\n?\z" and _takes_line_break(items):
        raise refuse(text_of_it, "has '$' after what can be a line break")
    check_one_way(pattern, body)
    return _Found(pattern, items, at_start, end)


def _takes_line_break(items: list[Node]) -> bool:
    """Whether a match can begin with a line break, so that one can follow another before the end."""
    if len(items) == 1 and isinstance(items[0], Repeat) and isinstance(items[0].item, Chars) and items[0].most is None:
        return False
    return contains(edge(Seq(tuple(items)), last=False), ord("\n"))


def count_pattern(x: Tensor, pattern: str, flags: int = 0, dialect: Dialect = "python") -> Tensor:
    """How often a regular expression is found in each, int64. Six nodes."""
    found = _read(pattern, flags, dialect)
    return count_present(tokens(x, found.row, tokenexp=found.whole))


def extract(x: Tensor, pattern: str, flags: int = 0, dialect: Dialect = "python") -> list[tuple[Tensor, Tensor]]:
    """What each group of a regular expression takes where it is first found, "" elsewhere, and where it is found.

    A group stands by itself in the pattern: one in another, in a choice or in a repeat is left to the extensions. One
    node for where, and four to ten for each group.
    """
    return otherwise(
        lambda: _extract(x, pattern, flags, dialect),
        lambda: taking(pattern, flags, dialect),
        lambda groups: taken(x, groups),
    )


def _extract(x: Tensor, pattern: str, flags: int, dialect: Dialect) -> list[tuple[Tensor, Tensor]]:
    found = _read(pattern, flags, dialect)
    numbers = [place for place, item in enumerate(found.items) if isinstance(item, Group)]
    if len(numbers) != found.pattern.groups or any(
        isinstance(node, Group) for place in numbers for node in list(walk(found.items[place]))[1:]
    ):
        raise refuse(pattern, "has a group in a group, a choice or a repeat")
    mask = full_match(x, search(found.pattern, "contains"))
    if any(not example(found.items[place]) for place in numbers):
        raise refuse(pattern, "has a group that is always empty")
    results = []
    for place in numbers:
        before, group, after = found.items[:place], found.items[place], found.items[place + 1 :]
        steps: list[dict[str, Any]] = [{"tokenexp": found.whole}]
        if before:
            steps.append({"separators": [rf"\A(?:{re2(filled(Seq(tuple(before))), found.pattern)})"]})
        if after or found.end:
            steps.append({"tokenexp": rf"\A(?:{re2(group, found.pattern)})"})
        results.append((first_token(x, found.row, *steps), mask))
    return results


def replace_by_groups(
    x: Tensor, pattern: str, new: Sequence[str | int], flags: int = 0, dialect: Dialect = "python", most: int = -1
) -> Tensor:
    """Texts and what groups of a regular expression take, in place of what it finds; group 0 is all of it.

    The groups are as `extract` takes them. `^`, `$` and `most` are left to the extensions. About 20 nodes, and as many
    as `extract`.
    """
    return otherwise(
        lambda: _replace_by_groups(x, pattern, new, flags, dialect, most),
        lambda: replacing(pattern, new, flags, dialect, most),
        lambda how: rewritten(x, how),
    )


def _replace_by_groups(
    x: Tensor, pattern: str, new: Sequence[str | int], flags: int, dialect: Dialect, most: int
) -> Tensor:
    op = x.op
    if most != -1:
        raise UnsupportedError("a pattern is replaced by its groups everywhere: leave out the number of times")
    found = _read(pattern, flags, dialect)
    if found.at_start or found.end:
        raise refuse(pattern, "has '^' or '$' beside groups that are put in")
    parts = _pieces(x, found)
    alone = op.Reshape(parts, op.ints([-1, 1]))
    taken = [alone, *(value for value, _ in _extract(alone, pattern, flags, dialect))]
    made = op.Reshape(concat([p if isinstance(p, str) else taken[p] for p in new]), op.Shape(parts))
    return join(op.Where(full_match(parts, found.body), made, parts))


def _pieces(x: Tensor, found: _Found) -> Tensor:
    """What the pattern finds, and what is between (N, W)."""
    others = complement(edge(Seq(tuple(found.items)), last=False))
    run = f"|{written(others)}+" if others else ""
    return tokens(x, "a", tokenexp=f"{found.whole}{run}|(?s:.)")


def replace_pattern(
    x: Tensor, pattern: str, new: str, flags: int = 0, dialect: Dialect = "python", most: int = -1
) -> Tensor:
    """A text in place of all that a regular expression finds. 17 nodes; 22 with `^`, 28 with `$`.

    `new` is a plain text: for references to groups there is `replace_by_groups`.
    """
    if most == 0:
        return x
    return otherwise(
        lambda: _replace_pattern(x, pattern, new, flags, dialect, most),
        lambda: replacing(pattern, [new], flags, dialect, most),
        lambda how: rewritten(x, how),
    )


def _replace_pattern(x: Tensor, pattern: str, new: str, flags: int, dialect: Dialect, most: int) -> Tensor:
    op = x.op
    found = _read(pattern, flags, dialect)
    if most > 0 and not found.at_start and not found.end:
        raise UnsupportedError("replacing a pattern a number of times cannot be said in ONNX: replace all, or a text")
    parts = _pieces(x, found)
    where = []
    if found.at_start:
        where.append(op.Equal(places(parts), op.index(0)))
    if found.end:
        where.append(op.Equal(places(parts), count_present(parts) - 1))

    def found_there(pattern_of_it: str) -> Tensor:
        hit = full_match(parts, pattern_of_it)
        for mask in where:
            hit = op.And(hit, mask)
        return hit

    kept = parts
    if found.end == r"\n?\z":
        kept = op.Where(found_there(rf"{found.body}\n"), text(op, new + "\n"), parts)
    return join(op.Where(found_there(found.body), text(op, new), kept))
