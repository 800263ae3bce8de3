"""Regular expressions by `StringRegexReplace` of onnxruntime-extensions, for what ONNX Runtime itself cannot find.

It is opt-in, as whoever runs the file needs that library. RE2 searches as Python and Rust do: the first match that
their order of trying gives. What is left that differs is refused here: repeats of what can be empty, empty matches
beside others, groups in repeats, edges of words that are not of ASCII, look-ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from onward.advice.extras import require
from onward.advice.options import option
from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_sets import Dialect, contains, refuse
from onward.frontends.dataframe.tensors.text.patterns import (
    Alt,
    At,
    Chars,
    Group,
    Node,
    Pattern,
    Repeat,
    Seq,
    edge,
    flat,
    nullable,
    parse,
    re2,
    walk,
)
from onward.frontends.dataframe.tensors.text.text import STRING, full_match, of_type, text
from onward.graph.build import Builder, Tensor
from onward.graph.names import EXTENSIONS
from onward.model import Model

MOST_GROUPS = 9
"""RE2 refers to a group by one digit."""
_ALLOWED: ContextVar[bool] = ContextVar("extensions", default=False)
Plan = TypeVar("Plan")
Made = TypeVar("Made")


@contextmanager
def extensions(are_allowed: bool) -> Iterator[None]:
    """Inside, a graph may have ops of onnxruntime-extensions, or may not."""
    if are_allowed:
        require("onnxruntime_extensions", what=option("extensions"))
    before = _ALLOWED.set(are_allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def otherwise(plain: Callable[[], Made], plan: Callable[[], Plan], write: Callable[[Plan], Made]) -> Made:
    """What the ops of ONNX Runtime make; where they cannot, what those of the extensions make, if they may."""
    try:
        return plain()
    except UnsupportedError as refusal:
        try:
            planned = plan()
        except UnsupportedError:
            raise refusal from None
        if not _ALLOWED.get():
            told = f"{refusal}; or take onnxruntime-extensions for it, with {option('extensions', True)}"
            raise UnsupportedError(told) from None
        return write(planned)


@dataclass(frozen=True)
class Rewriting:
    """What is found, and what is put in for it, as RE2 writes both."""

    pattern: str
    new: str
    everywhere: bool


@dataclass(frozen=True)
class Taking:
    """A group of a pattern: how a text becomes what the group takes."""

    rewriting: Rewriting
    is_optional: bool
    """Whether the pattern can be found without the group, which takes no empty text then."""


def replacing(
    pattern_text: str, new: Sequence[str | int], flags: int = 0, dialect: Dialect = "python", most: int = -1
) -> Rewriting:
    """How a pattern is replaced by texts and groups, all of what it finds or the first."""
    if most not in (-1, 1):
        raise refuse(pattern_text, "is replaced a number of times")
    pattern = parse(pattern_text, flags, dialect)
    used = {piece for piece in new if isinstance(piece, int) and piece}
    start, body, end = _ends(pattern)
    if nullable(body) and (not start or _prefers_nothing(body)):
        raise refuse(pattern_text, "can find nothing, at every place")
    if end == _LAST and not start and contains(edge(body, last=False), ord("\n")):
        raise refuse(pattern_text, "has '$' after what can be a line break")
    numbers = _numbers(pattern, used)
    last_break = len(numbers) + 1
    if end == _LAST and last_break > MOST_GROUPS:
        raise refuse(pattern_text, f"refers to more than {MOST_GROUPS} groups")
    pieces = [_escaped(p) if isinstance(p, str) else f"\\{numbers[p] if p else 0}" for p in new]
    if end == _LAST:
        if 0 in new:
            raise refuse(pattern_text, "has '$', and all that it finds is put in")
        pieces.append(f"\\{last_break}")
    written = f"{start}(?:{re2(body, pattern, numbers)}){end}"
    return Rewriting(written, "".join(pieces), most == -1)


def taking(pattern_text: str, flags: int = 0, dialect: Dialect = "python") -> list[Taking]:
    """How a text becomes what each group of a pattern takes where it is first found."""
    pattern = parse(pattern_text, flags, dialect)
    start, body, end = _ends(pattern)
    made = []
    for number in range(1, pattern.groups + 1):
        numbers = _numbers(pattern, {number})
        found = re2(body, pattern, numbers)
        whole = rf"\A(?s:.*?){start}(?:{found}){end}(?s:.*)\z"
        is_optional = not _always_there(body, number)
        if is_optional and any(isinstance(n, Group) and n.number == number and nullable(n.item) for n in walk(body)):
            raise refuse(pattern_text, "has a group that may be left out or empty")
        made.append(Taking(Rewriting(whole, "\\1", False), is_optional))
    return made


_LAST = r"(\n?)\z"


def _ends(pattern: Pattern) -> tuple[str, Seq, str]:
    """What RE2 finds at the start, where it is that of the text, what comes then, and what it finds at the end."""
    items = flat(pattern.tree)
    at_start = bool(items) and items[0] == At("start")
    items = items[at_start:]
    end = ""
    if items and items[-1] == At("last"):
        items, end = items[:-1], _LAST
    body = Seq(tuple(map(_unfolded, items)))
    if any(isinstance(node, Repeat) and nullable(node.item) for node in walk(body)):
        raise refuse(pattern.text, "repeats what can be empty")
    return r"\A" if at_start else "", body, end


def _unfolded(node: Node) -> Node:
    """The same, where no set is a letter in both cases: RE2 of the extensions loses one of them in `a|[Aa]`.

    The character 0, which no text has that gets there, is added to such a set.
    """
    match node:
        case Chars(((upper, first), (lower, last))) if upper == first == lower - 32 and lower == last:
            return Chars(((0, 0), (upper, upper), (lower, lower)))
        case Seq(items):
            return Seq(tuple(map(_unfolded, items)))
        case Alt(branches):
            return Alt(tuple(map(_unfolded, branches)))
        case Repeat(item, least, most, greedy):
            return Repeat(_unfolded(item), least, most, greedy)
        case Group(item, number):
            return Group(_unfolded(item), number)
    return node


def _prefers_nothing(node: Node) -> bool:
    """Whether it tries to find nothing before it tries more."""
    return any(
        (isinstance(part, Repeat) and not part.greedy)
        or (isinstance(part, Alt) and any(map(nullable, part.branches[:-1])))
        for part in walk(node)
    )


def _numbers(pattern: Pattern, used: set[int]) -> dict[int, int]:
    """By number in the pattern, that of each group which is read, in what RE2 is given."""
    if len(used) > MOST_GROUPS:
        raise refuse(pattern.text, f"refers to more than {MOST_GROUPS} groups")
    for node in walk(pattern.tree):
        is_repeated = isinstance(node, Repeat) and (node.least, node.most, node.greedy) != (0, 1, True)
        if is_repeated and any(isinstance(part, Group) and part.number in used for part in walk(node)):
            raise refuse(pattern.text, "has a group in a repeat")
    return {number: place + 1 for place, number in enumerate(sorted(used))}


def _always_there(node: Node, number: int) -> bool:
    match node:
        case Seq(items):
            return any(_always_there(item, number) for item in items)
        case Group(item, own):
            return own == number or _always_there(item, number)
    return False


def _escaped(piece: str) -> str:
    if "\0" in piece:
        raise UnsupportedError("a text with the character 0 cannot be put in")
    return piece.replace("\\", "\\\\")


def rewritten(x: Tensor, how: Rewriting) -> Tensor:
    """The texts, rewritten. They are refused when the model runs if one has the character 0: the op would end there."""
    if not _is_taken(how.pattern):
        raise UnsupportedError("the pattern is too large for RE2: write a simpler pattern")
    op = x.op
    count = op.ReduceSum(full_match(x, r"(?s:.*)\x{0}(?s:.*)").cast(ir.DataType.INT32), keepdims=1)
    scope, op.scope = op.scope, f"{op.scope}a text with the character 0: "
    pattern = op.Gather(op.strings(np.array([how.pattern], object)), count)
    op.scope = scope
    return _replace(x, of_type(pattern, STRING, [1, 1]), how)


def _replace(x: Tensor, pattern: Tensor, how: Rewriting) -> Tensor:
    x.op.model.opset_imports.setdefault(EXTENSIONS, 1)
    new = x.op.strings(np.array([how.new], object))
    [made] = x.op.many("StringRegexReplace", 1, x, pattern, new, domain=EXTENSIONS, global_replace=int(how.everywhere))
    return of_type(made, STRING, [None, 1])


def taken(x: Tensor, groups: Sequence[Taking]) -> list[tuple[Tensor, Tensor]]:
    """What each group takes, "" elsewhere, and where it is found."""
    op = x.op
    made = []
    for group in groups:
        found = full_match(x, group.rewriting.pattern)
        value = op.Where(found, rewritten(x, group.rewriting), text(op, ""))
        if group.is_optional:
            found = op.Not(op.Equal(value, text(op, "")))
        made.append((value, found))
    return made


@cache
def _is_taken(pattern: str) -> bool:
    """Whether RE2 reads a pattern: one that it does not read changes no text, without a word."""
    from onward.runners.onnxruntime import prepare

    graph = ir.Graph([], [], nodes=[], opset_imports={"": 21}, name="probe")
    op = Builder(ir.Model(graph, ir_version=10))
    value = ir.Value(name="x", type=ir.TensorType(STRING), shape=ir.Shape([1, 1]))
    graph.inputs.append(value)
    whole = f"(?:{pattern})|\\z"
    made = _replace(op.tensor(value), text(op, whole), Rewriting(whole, "found", False)).value
    made.name = "y"
    graph.outputs.append(made)
    [found] = prepare(Model(op.model), "")({"x": np.array([[""]], object)}).values()
    return bool(found[0, 0] == "found")
