"""Bounds are numbers that the page on security tells, and that the environment replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import OnwardError, UnsupportedError
from onward.gate import bounds, budget
from onward.gate.bounds import FOLDED, UNPACKED, Bound, check_room, unpacked

PAGE = (Path(__file__).parents[2] / "docs/guide/security.md").read_text()


def test_the_page_tells_all_of_them() -> None:
    found = [value for value in vars(bounds).values() if isinstance(value, Bound)]
    assert len(found) > 5
    for bound in found:
        line = next(line for line in PAGE.splitlines() if f"`{bound.variable}` |" in line)
        assert f"{bound.default:,}" in line or not bound.default
    assert f"each | {budget.SECONDS:g} | `convert --timeout SECONDS`" in PAGE


def test_the_environment_replaces_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unpacked(1000) == UNPACKED.default and unpacked(1 << 30) == bounds.GROWTH << 30
    monkeypatch.setenv(UNPACKED.variable, "5000")
    assert unpacked(10) == 5000
    monkeypatch.setenv(UNPACKED.variable, "much")
    with pytest.raises(OnwardError, match="ONWARD_MAX_UNPACKED has to be a whole number, not 'much'"):
        unpacked(10)


def test_room_is_counted_before_it_is_taken() -> None:
    check_room("it", (1 << 20, 2), 4)
    check_room("it", (FOLDED.default, 2), 1, held=FOLDED.default)
    with pytest.raises(UnsupportedError, match="it would take 1,099,511,627,776 bytes, more than 268,435,456"):
        check_room("it", (1 << 20, 1 << 18), 4)
