"""Where the links of pages in a folder lead, and what else the pages would load."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Links(HTMLParser):
    """The links and the anchors of a page, and whatever else it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {found["id"]} if found.get("id") else set()
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        self.fetched += [str(found[name]) for name in ("src", "data", "srcset") if found.get(name)]
        self.fetched += [tag] if tag in ("link", "iframe") else []


def lost(folder: Path) -> list[tuple[str, str]]:
    """Links to files or anchors that are not there: page and link."""
    read = {path: Links(path.read_text()) for path in folder.rglob("*.html")}
    found = []
    for path, page in read.items():
        for link in page.links:
            if link.startswith(("https:", "mailto:")):
                continue
            file, _, place = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            is_there = target.is_file() and (not place or "=" in place or place in read[target].anchors)
            if not is_there:
                found.append((str(path.relative_to(folder)), link))
    return found
