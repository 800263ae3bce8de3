"""The page on real models, and what is said of it elsewhere, are those of the stored results."""

import pytest
from zoo_pages import CHANGES, KEPT, ROOT

from onward.zoo.results import Results, read


@pytest.fixture(scope="module")
def results() -> Results:
    return read(KEPT)


@pytest.mark.parametrize("name", CHANGES)
def test_it_says_what_was_found(name: str, results: Results) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert CHANGES[name](text, results) == text, "run `python benchmarks/zoo_pages.py`"


def test_what_is_wrong_was_looked_into(results: Results) -> None:
    """Too little time or memory says itself what it is."""
    wrong = [cell for cell in results.cells.values() if cell.verdict in ("different", "failed", "crash")]
    assert [cell.key for cell in wrong if not cell.target.startswith("peer:") and not cell.explained] == []
