"""A site of all parts: one bar, links that lead somewhere, nothing from elsewhere; what is not there is left out."""

import re
from pathlib import Path

import board_samples
import pytest
import zoo_samples
from browser import Browser
from links import Links, lost

from onward.cli import main
from onward.errors import OnwardError
from onward.report.navigation import Navigation, Part
from onward.report.site import documentation
from onward.report.site.write import Sources, write
from onward.zoo.results import read

PAGES = {
    "index.md": "# Mine\n\n[The guide](guide/first.md)\n",
    "guide/first.md": "# A first `guide` & more\n\n```python\nimport onward\n```\n",
    "measured/speed.md": "# Speed\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "measured/scoreboard.md": "# Scoreboard\n",
}
CONFIG = """site_name: Mine
use_directory_urls: false
theme: {name: material, palette: [{media: "(prefers-color-scheme: dark)", scheme: slate}]}
"""


def documented(folder: Path, **pages: str) -> Path:
    """An mkdocs.yml with a few pages."""
    for name, text in (PAGES | {f"{page}.md": text for page, text in pages.items()}).items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "mkdocs.yml").write_text(CONFIG)
    return folder / "mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    out = folder / "site"
    out.mkdir()
    sources = Sources(zoo_samples.small(), board_samples.board(), documented(folder))
    assert write(out, sources) == ["Onward", "Docs", "Models", "Ops", "Speed", "Scoreboard"]
    return out.resolve()


def pages(site: Path) -> list[Path]:
    """Without the page for addresses that do not exist, whose links begin at the root of a server."""
    return [path for path in site.rglob("*.html") if path.name != "404.html"]


def bar(page: Path) -> list[tuple[str, str, bool]]:
    """Links of the bar: where they lead, their titles, and whether they are of this part."""
    text = re.search(r'<nav class="site.*?</nav>', page.read_text(), re.DOTALL)
    assert text is not None, page
    found = re.findall(r'<a (?:class=home )?href="([^"]*)"( aria-current="page")?>([^<]*)</a>', text.group())
    return [(href, title, bool(current)) for href, current, title in found]


def test_every_page_has_the_same_bar(site: Path) -> None:
    for page in pages(site):
        found = bar(page)
        assert [title for _, title, _ in found] == ["Onward", "Docs", "Models", "Ops", "Speed", "Scoreboard"], page
        for href, title, current in found:
            target = (page.parent / href).resolve()
            assert target.is_file(), (page, href)
            assert current or target != page, f"{title} is not marked on {page}"
        assert sum(current for _, _, current in found) == 1


def test_every_link_leads_somewhere_and_nothing_is_from_elsewhere(site: Path) -> None:
    (site / "docs/404.html").unlink(missing_ok=True)
    assert lost(site) == []
    assert list(documentation.fetched(site)) == []
    for page in pages(site):
        outside = [one for one in Links(page.read_text()).fetched if one.startswith(("http", "//"))]
        assert outside == [], page


def test_the_first_page_and_that_of_speed_know_the_documentation(site: Path) -> None:
    home, speed = (site / "index.html").read_text(), (site / "zoo/speed.html").read_text()
    assert '<a href="docs/guide/first.html">A first guide &amp; more</a>' in home
    assert '<a href="../docs/measured/speed.html">Speed</a>' in speed
    assert "<dd>4</dd><dt>real models on 4 targets</dt>" in home
    assert "<dd>1</dd><dt>that differ</dt>" in home


@pytest.mark.parametrize("page", ["index.html", "docs/guide/first.html", "scoreboard/index.html", "zoo/index.html"])
def test_pages_open_on_screens_of_all_kinds(browser: Browser, site: Path, page: str) -> None:
    for width in (1280, 390):
        browser.open(site / page, width=width, dark=width == 390)
        assert browser.console == []
        assert not browser.run("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        shown = "document.querySelector('nav.site a[aria-current]').getBoundingClientRect().height"
        assert browser.run(shown) > 20
    grounds = "getComputedStyle(document.body).backgroundColor"
    browser.until(lambda: browser.run(grounds) == "rgb(20, 23, 27)"), "one look, dark as well"


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    assert write(tmp_path, Sources()) == ["Onward", "Ops"]
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", "zoo"}
    assert lost(tmp_path.resolve()) == []


def test_the_documentation_stands_in_for_results_of_the_scoreboard(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert write(out, Sources(docs=documented(tmp_path))) == ["Onward", "Docs", "Ops", "Scoreboard"]
    assert bar(out / "index.html")[-1][0] == "docs/measured/scoreboard.html"


OUTSIDE = "//cdn.example/x"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'<script src="https:{OUTSIDE}"></script>', ["https:" + OUTSIDE]),
        (f"<img alt='' src='{OUTSIDE}'>", [OUTSIDE]),
        (f'<link href="http:{OUTSIDE}" rel="stylesheet">', ["http:" + OUTSIDE]),
        (f'<a href="https:{OUTSIDE}">a link</a><link rel="canonical" href="https:{OUTSIDE}">', []),
        ('<script src="assets/x.js"></script>', []),
    ],
)
def test_what_a_page_would_fetch_is_found(text: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text)
    (tmp_path / "style.css").write_text("a { background: url(x.png) }")
    assert [address for _, address in documentation.fetched(tmp_path)] == found
    (tmp_path / "style.css").write_text(f"@import 'https:{OUTSIDE}';")
    assert ("style.css", "https:" + OUTSIDE) in list(documentation.fetched(tmp_path))


def test_documentation_that_would_fetch_something_is_refused(tmp_path: Path) -> None:
    config = documented(tmp_path, evil=f'# Evil\n\n<script src="https:{OUTSIDE}"></script>\n')
    with pytest.raises(OnwardError, match=r"evil\.html would fetch .*cdn\.example.*put a copy"):
        documentation.build(config, tmp_path / "out", Navigation([Part("Docs", "docs/index.html")]))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = write_zoo(tmp_path / "zoo-results.jsonl")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/mine.txt").write_text("stays")
    assert main(["site", "--out", "site", "--zoo", str(results), "--no-docs"]) == 0
    assert "left out: there are no results at the default place of --scoreboard" in capsys.readouterr().err
    before = (tmp_path / "site/zoo/history.json").read_text()
    assert main(["site", "--out", "site", "--zoo", str(results)]) == 0
    told = capsys.readouterr().err
    assert "parts: Onward, Models, Ops, Speed" in told and "no mkdocs.yml here" in told
    assert (tmp_path / "site/zoo/history.json").read_text() == before, "the runs so far are kept"
    assert (tmp_path / "site/mine.txt").read_text() == "stays"
    for option in ("--zoo", "--scoreboard", "--docs", "--history"):
        assert main(["site", "--out", "other", option, "nothing"]) == 2
        assert not (tmp_path / "other").exists()


def test_the_results_in_the_repository_become_a_site(tmp_path: Path) -> None:
    kept = read(Path("benchmarks/zoo-results.jsonl"))
    assert main(["site", "--out", str(tmp_path / "site"), "--no-docs"]) == 0
    index = (tmp_path / "site/zoo/index.html").read_text()
    assert len(kept.models) > 90 and all(model in index for model in kept.models)
    assert index.count('class="spark"') >= 7, "each target from run to run, as benchmarks/zoo-history.json has it"


def write_zoo(path: Path) -> Path:
    import json

    from onward.zoo.results import record

    kept = zoo_samples.small()
    lines = [json.dumps(record(each)) for each in (*kept.models.values(), *kept.cells.values())]
    path.write_text("\n".join(lines))
    return path
