"""What tests in any folder may use."""

from collections.abc import Iterator

import pytest

from browser import Browser, find


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser for the pages, started once."""
    program = find()
    if program is None:
        pytest.skip("no Chromium to show the pages in: apt-get install chromium")
    started = Browser(program)
    yield started
    started.close()
