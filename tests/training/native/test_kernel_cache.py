"""Compiled kernels are executed: they are taken only from where nobody but the user can have put them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.training.native import compiler

SOURCE = "int answer(void) { return 42; }\n"
pytestmark = pytest.mark.skipif(compiler.compiler() is None, reason="there is no C compiler")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where kernels are kept, once there are some."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler._folder.cache_clear()
    yield tmp_path / "onward/kernels"
    compiler._folder.cache_clear()


def answer() -> int:
    found = compiler.loaded(SOURCE)
    assert found is not None
    return int(found.answer())


def kept() -> Path:
    path = compiler.library(SOURCE)
    assert path is not None
    return path


def test_nobody_else_can_write_to_what_is_made(cache: Path) -> None:
    before = os.umask(0o000)
    try:
        path = kept()
    finally:
        os.umask(before)
    assert path.parent == cache
    for place in (path, cache, cache.parent):
        assert not stat.S_IMODE(place.stat().st_mode) & 0o022
    made = path.stat().st_mtime_ns
    assert answer() == 42 and kept().stat().st_mtime_ns == made


@pytest.mark.parametrize("place", ["onward/kernels", "onward"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_can_write_to(place: str, mode: int, cache: Path, tmp_path: Path) -> None:
    planted = kept()
    planted.write_bytes(b"not a library")
    compiler._folder.cache_clear()
    (tmp_path / place).chmod(mode)
    with pytest.warns(UserWarning, match=r"only you can write to.*chmod go-w"):
        assert answer() == 42
    assert kept().parent != cache and stat.S_IMODE(kept().parent.stat().st_mode) == 0o700
    assert planted.read_bytes() == b"not a library"


def test_a_folder_that_is_a_link(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.parent.mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="only you can write to"):
        assert answer() == 42
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("how", ["writable", "link"])
def test_a_library_that_others_may_have_put_there(how: str, cache: Path, tmp_path: Path) -> None:
    path = kept()
    other = tmp_path / "other.so"
    other.write_bytes(b"not a library")
    path.unlink()
    if how == "link":
        path.symlink_to(other)
    else:
        path.write_bytes(b"not a library")
        path.chmod(0o666)
    assert answer() == 42
    assert path.is_file() and not path.is_symlink() and other.read_bytes() == b"not a library"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("place", ["library", "folder"])
def test_what_belongs_to_another(place: str, cache: Path) -> None:
    path = kept()
    path.write_bytes(b"not a library")
    os.chown(path if place == "library" else cache, 12345, -1)
    compiler._folder.cache_clear()
    if place == "library":
        assert answer() == 42
    else:
        with pytest.warns(UserWarning, match="only you can write to"):
            assert answer() == 42
