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
