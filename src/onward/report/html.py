"""One web page in one file: style, scripts and data inlined, nothing fetched, nothing from a model executed."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from onward.report.wording import printable


def document(title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """The page. `styles` and `scripts` name files of `report/assets`; `page.css`, which all pages share, comes first.

    The browser is told to run these scripts only and to fetch nothing, whatever else the body should contain.
    """
    sources = [asset(name) for name in scripts]
    allowed = " ".join(_digest(source) for source in sources) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}; base-uri 'none'; form-action 'none'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        *(f"<style>\n{asset(name)}</style>" for name in ("page.css", *styles)),
        "</head>",
        "<body>",
        body,
        *(f"<script>{source}</script>" for source in sources),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def asset(name: str) -> str:
    return files("onward.report").joinpath("assets", name).read_text(encoding="utf-8")


def escape(text: object, longest: int = 2000) -> str:
    """Text for an element or a quoted attribute; what cannot be printed is replaced, as in the terminal."""
    return html.escape(printable(str(text), longest), quote=True)


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    caption: str = "",
    stacked: bool = False,
) -> str:
    """A table of cells that are HTML already, the first of each row being its heading.

    `numbers` are the columns to align to the right; `caption` says what the table is to those who cannot see it.
    Where a screen is narrow, a table that is `stacked` becomes a block for each row.
    """
    align = [' class="number"' if column in numbers else "" for column in range(len(titles))]
    head = "".join(f'<th scope="col"{align[i]}>{escape(title)}</th>' for i, title in enumerate(titles))
    said = [f' data-title="{escape(title)}"' if stacked else "" for title in titles]
    lines = [
        '<div class="scroll" tabindex="0" role="region" aria-label="'
        + escape(caption or "table")
        + '"><table'
        + (' class="stacked">' if stacked else ">"),
        f'<caption class="hidden-text">{escape(caption)}</caption>' if caption else "",
        f"<thead><tr>{head}</tr></thead><tbody>",
    ]
    for first, *rest in rows:
        cells = "".join(f"<td{align[i]}{said[i]}>{cell}</td>" for i, cell in enumerate(rest, 1))
        lines.append(f'<tr><th scope="row"{align[0]}>{first}</th>{cells}</tr>')
    return "\n".join(filter(None, lines)) + "</tbody></table></div>"


def json_script(name: str, data: Any) -> str:
    """Data that a script reads by `JSON.parse(document.getElementById(name).textContent)`; inert, whatever it holds."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
