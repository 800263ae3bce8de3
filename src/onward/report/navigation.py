"""The bar that the pages of a site share: what parts there are, and which one a page belongs to."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from onward.report.html import escape


@dataclass(frozen=True)
class Part:
    """An entry of the bar."""

    title: str
    path: str
    """Of its first page, from the root of the site, or the whole address of a page elsewhere."""


@dataclass(frozen=True)
class Navigation:
    """The bar, as seen from the pages of one folder of the site."""

    parts: Sequence[Part]
    folder: str = ""
    """From the root of the site, where the pages lie that `bar` is asked for."""

    def bar(self, page: str, part: str) -> str:
        """For a page, named from `folder`, of the part with this title."""
        here = posixpath.dirname(posixpath.join(self.folder, page)) or "."
        links = []
        for one in self.parts:
            href = one.path if ":" in one.path else posixpath.relpath(one.path, here)
            current = ' aria-current="page"' if one.title == part else ""
            links.append(f'<a href="{escape(href)}"{current}>{escape(one.title)}</a>')
        first, *rest = links
        return (
            '<a class="skip" href="#content">Skip to the content</a>'
            f'<nav class="site screen-only" aria-label="Site"><div>{first.replace("<a ", "<a class=home ", 1)}'
            f"{''.join(rest)}</div></nav>"
        )


def up(page: str) -> str:
    """From a page to the folder that it is named from: `../` for `models/net.html`."""
    return "../" * page.count("/")
