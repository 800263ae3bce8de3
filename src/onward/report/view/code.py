"""Python source as HTML, line by line, its words coloured."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Container, Iterator

from onward.report.html import escape

MOST_LINES = 30_000
LONGEST = 400
"""Characters of a line that are shown."""


def listing(text: str, owned: Container[int], named: bool = True) -> str:
    """Each line as an element; those `owned` by a node can be clicked. With `named`, each has an id."""
    lines = text.splitlines()
    spans = _spans(text)
    shown = []
    for number, line in enumerate(lines[:MOST_LINES], 1):
        kind = "line from" if number in owned else "line"
        name = f' id="line-{number}"' if named else ""
        shown.append(f'<div class="{kind}" data-line="{number}"{name}>{_coloured(line, spans.get(number, []))}</div>')
    if len(lines) > MOST_LINES:
        shown.append(f'<div class="line" data-line="">… {len(lines) - MOST_LINES:,} lines more</div>')
    return "".join(shown)


def _coloured(line: str, spans: list[tuple[int, int, str]]) -> str:
    found, at = [], 0
    for start, end, kind in spans:
        if start >= LONGEST:
            break
        found += [_plain(line[at:start]), f'<span class="{kind}">{_plain(line[start:end])}</span>']
        at = end
    rest = line[at:]
    return "".join(found) + _plain(rest) or " "


def _plain(text: str) -> str:
    """Escaped; spaces stay, as `escape` would join them."""
    return "".join(escape(part, LONGEST) if part.strip() else part for part in _by_spaces(text))


def _by_spaces(text: str) -> Iterator[str]:
    part = ""
    for ch in text:
        if part and (ch == " ") != (part[-1] == " "):
            yield part
            part = ""
        part += ch
    if part:
        yield part


def _spans(text: str) -> dict[int, list[tuple[int, int, str]]]:
    """By line: from where to where there is a keyword, a string or a comment. Empty for what is not Python."""
    found: dict[int, list[tuple[int, int, str]]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token)
            if not kind:
                continue
            (first, start), (last, end) = token.start, token.end
            for number in range(first, last + 1):
                left = start if number == first else 0
                right = end if number == last else 10**9
                found.setdefault(number, []).append((left, right, kind))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return found


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
        return "s"
    return "k" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""
