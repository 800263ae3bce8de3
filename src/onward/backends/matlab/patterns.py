"""Regular expressions in the syntax that MATLAB and Octave (PCRE) share, and in which both mean the same."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from onward.errors import UnsupportedError

PARSER: Any = import_module("re._parser")
CODES: Any = import_module("re._constants")
LAST = 0x10FFFF
Ranges = list[tuple[int, int]]
WORD: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
CATEGORIES: dict[str, Ranges] = {
    "CATEGORY_DIGIT": [(48, 57)],
    "CATEGORY_WORD": WORD,
    "CATEGORY_SPACE": [(9, 13), (32, 32)],
}
LETTER = "[0-9A-Z_a-z]"
START = "^"
END = r"(?![\s\S])"
EDGE = f"(?:(?<={LETTER})(?!{LETTER})|(?<!{LETTER})(?={LETTER}))"
INSIDE = f"(?:(?<={LETTER})(?={LETTER})|(?<!{LETTER})(?!{LETTER}))"
LINES = {"AT_BEGINNING": r"(?<![^\x{A}])", "AT_END": r"(?![^\x{A}])"}
PLACES = {
    "AT_BEGINNING": START,
    "AT_BEGINNING_STRING": START,
    "AT_END_STRING": END,
    "AT_BOUNDARY": EDGE,
    "AT_NON_BOUNDARY": INSIDE,
}


def matlab_pattern(pattern: str, where: str) -> str:
    """A pattern of Python, read with `re.ASCII`, that matches the same texts as a whole."""
    tree = PARSER.parse(pattern, re.ASCII)
    return f"^(?:{_Translation(pattern, where).items(tree, tree.state.flags)})(?![\\s\\S])"


class _Translation:
    def __init__(self, pattern: str, where: str) -> None:
        self.pattern = pattern
        self.where = where

    def refuse(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{self.where}: the pattern {self.pattern!r} has {what}, which MATLAB does not have")

    def items(self, tree: Any, flags: int) -> str:
        return "".join(self.item(str(code), given, flags) for code, given in tree)

    def item(self, code: str, given: Any, flags: int) -> str:
        if code == "LITERAL":
            return one_of(self.cased([(given, given)], flags))
        if code == "NOT_LITERAL":
            return one_of(others(self.cased([(given, given)], flags)))
        if code == "ANY":
            return one_of([(0, LAST)] if flags & re.DOTALL else others([(10, 10)]))
        if code == "IN":
            return one_of(self.members(given, flags))
        if code == "AT":
            return self.place(str(given), flags)
        if code == "BRANCH":
            return f"(?:{'|'.join(self.items(branch, flags) for branch in given[1])})"
        if code == "SUBPATTERN":
            _, more, less, inner = given
            return f"(?:{self.items(inner, (flags | more) & ~less)})"
        if code in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = given
            return f"(?:{self.items(inner, flags)}){times(low, None if high == CODES.MAXREPEAT else int(high))}"
        raise self.refuse(f"a part of the kind {code}")

    def place(self, code: str, flags: int) -> str:
        if flags & re.MULTILINE and code in LINES:
            return LINES[code]
        if code not in PLACES:
            raise self.refuse("ends of lines")
        return PLACES[code]

    def members(self, given: Any, flags: int) -> Ranges:
        """The characters of a class."""
        found: Ranges = []
        is_negative = False
        for code, item in given:
            match str(code):
                case "NEGATE":
                    is_negative = True
                case "LITERAL":
                    found.append((item, item))
                case "RANGE":
                    found.append(item)
                case "CATEGORY":
                    name = str(item).replace("NOT_", "")
                    found += CATEGORIES[name] if name == str(item) else others(CATEGORIES[name])
                case other:
                    raise self.refuse(f"a class with {other}")
        merged = self.cased(found, flags)
        return others(merged) if is_negative else merged

    def cased(self, ranges: Ranges, flags: int) -> Ranges:
        """With the other case of letters, where case does not count."""
        if not flags & re.IGNORECASE:
            return joined(ranges)
        if any(high > 127 and low < LAST and (low, high) != (128, LAST) for low, high in ranges if high < LAST):
            raise self.refuse("characters beyond ASCII of any case")
        more = [
            (max(low, first) + shift, min(high, last) + shift)
            for low, high in ranges
            for first, last, shift in ((65, 90, 32), (97, 122, -32))
            if low <= last and high >= first
        ]
        return joined([*ranges, *more])


def joined(ranges: Ranges) -> Ranges:
    """The same characters in order, in as few ranges as possible."""
    found: Ranges = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def others(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, start = list[tuple[int, int]](), 0
    for low, high in joined(ranges):
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    return [*found, (start, LAST)] if start <= LAST else found


def one_of(ranges: Ranges) -> str:
    """What matches one character of these."""
    if ranges == [(0, LAST)]:
        return r"[\s\S]"
    if not ranges:
        return r"(?![\s\S])[\s\S]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return character(ranges[0][0])
    negative = ranges[-1][1] == LAST
    chosen = others(ranges) if negative else ranges
    return f"[{'^' if negative else ''}{''.join(map(_range, chosen))}]"


def _range(pair: tuple[int, int]) -> str:
    low, high = pair
    if high - low < 2:
        return "".join(map(character, range(low, high + 1)))
    return f"{character(low)}-{character(high)}"


def character(code: int) -> str:
    """A character, inside of a class or not."""
    if chr(code).isascii() and chr(code).isalnum():
        return chr(code)
    return rf"\x{{{code:X}}}" if code < 32 or code >= 127 else f"\\{chr(code)}" if chr(code) != "_" else "_"


def times(low: int, high: int | None) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}
    if (low, high) in known:
        return known[low, high]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
