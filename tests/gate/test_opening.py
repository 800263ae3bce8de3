"""The gate itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import InvalidModelError, UntrustedError
from onward.gate import is_trusted, opens, trusting


def test_a_danger_needs_trust(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    looked = []

    def dangers(path: Path) -> Iterator[str]:
        looked.append(path)
        yield "it holds code"

    @opens(dangers)
    def inner(path: Path) -> str:
        return "opened"

    @opens(dangers)
    def outer(path: Path) -> str:
        return inner(path)

    with pytest.raises(UntrustedError, match=r"file: it holds code, which .* --trust opens it"):
        outer(tmp_path / "file")
    with trusting(True):
        assert outer(tmp_path / "file") == "opened"
    with pytest.raises(UntrustedError):
        outer(tmp_path / "file")
    assert len(looked) == 2


def test_an_opener_inside_another_does_not_look_twice(tmp_path: Path) -> None:
    looked = []

    def dangers(path: Path) -> Iterator[str]:
        looked.append(path.name)
        yield from ()

    @opens(dangers)
    def inner(path: Path) -> None:
        pass

    @opens(dangers)
    def outer(path: Path) -> None:
        inner(path)
        inner(path.parent / "other")

    (tmp_path / "file").write_text("")
    (tmp_path / "other").write_text("")
    outer(tmp_path / "file")
    inner(tmp_path / "file")
    assert looked == ["file", "other", "file"]


def test_trust_ends_where_it_began() -> None:
    with trusting(True), trusting(False):
        assert is_trusted()
    assert not is_trusted()


def test_what_is_not_there(tmp_path: Path) -> None:
    @opens(lambda path: ())
    def read(path: Path) -> None:
        pass

    with pytest.raises(InvalidModelError, match="this file or folder does not exist"):
        read(tmp_path / "file")
    with pytest.raises(InvalidModelError, match="cannot be read"):
        read(Path("a\0b"))
