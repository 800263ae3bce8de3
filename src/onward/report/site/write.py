"""Writes a site: each part to a folder of its own, under one bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onward.report import scoreboard_site
from onward.report.navigation import Navigation, Part
from onward.report.site import documentation, home
from onward.report.zoo import history, op_pages, speed_page
from onward.report.zoo import site as zoo_site
from onward.zoo.results import Results

SCOREBOARD, ZOO = "scoreboard", "zoo"
OWN = ("index.html", documentation.DOCS, SCOREBOARD, ZOO)
"""All that is written; whatever else is in the folder stays."""
DOCUMENTED = "measured/scoreboard"
"""The page of the documentation that is shown where there are no results of a scoreboard."""


@dataclass(frozen=True)
class Sources:
    """What there is to show; None for what is left out."""

    zoo: Results | None = None
    scoreboard: Mapping[str, Any] | None = None
    docs: Path | None = None
    """An mkdocs.yml."""


def write(folder: Path, sources: Sources, runs: Sequence[history.Run] = ()) -> list[str]:
    """Into an empty folder; `runs` are those of the zoo so far. Returns the titles of the parts."""
    built = folder / documentation.DOCS
    navigation = Navigation(_parts(sources))
    if sources.docs is not None:
        documentation.build(sources.docs, built, replace(navigation, folder=documentation.DOCS))
    if sources.scoreboard is not None:
        (folder / SCOREBOARD).mkdir()
        bar = replace(navigation, folder=SCOREBOARD).bar("index.html", "Scoreboard")
        scoreboard_site.write(folder / SCOREBOARD, sources.scoreboard, bar=bar)
    (folder / ZOO).mkdir()
    inside = replace(navigation, folder=ZOO)
    if sources.zoo is not None:
        up = f"../{documentation.DOCS}/"
        further = [(title, up + path) for title, path in documentation.about(built, "measured/speed")]
        zoo_site.write(
            folder / ZOO, sources.zoo, history.with_run(runs, sources.zoo), navigation=inside, further=further
        )
    else:
        (folder / ZOO / op_pages.INDEX).parent.mkdir()
        (folder / ZOO / op_pages.INDEX).write_text(op_pages.index(Results(), {}, inside), encoding="utf-8")
    page = home.page(sources.zoo, sources.scoreboard, documentation.about(built, "guide/"), navigation)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return [part.title for part in navigation.parts]


def _parts(sources: Sources) -> list[Part]:
    """What the bar shows, in its order."""
    parts = [Part("Onward", "index.html")]
    if sources.docs is not None:
        parts.append(Part("Docs", f"{documentation.DOCS}/index.html"))
    if sources.zoo is not None:
        parts.append(Part("Models", f"{ZOO}/index.html"))
    parts.append(Part("Ops", f"{ZOO}/{op_pages.INDEX}"))
    if sources.zoo is not None:
        parts.append(Part("Speed", f"{ZOO}/{speed_page.PAGE}"))
    if sources.scoreboard is not None:
        parts.append(Part("Scoreboard", f"{SCOREBOARD}/index.html"))
    elif sources.docs is not None and (sources.docs.parent / f"docs/{DOCUMENTED}.md").is_file():
        parts.append(Part("Scoreboard", f"{documentation.DOCS}/{DOCUMENTED}.html"))
    return parts
