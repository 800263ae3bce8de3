"""MAT files are told to hold numbers and texts only before Octave reads them."""

import struct
from pathlib import Path

import numpy as np
import pytest

from onward.advice.extras import is_installed
from onward.backends.matlab import matfile as writer
from onward.backends.matlab.octave.process import Process
from onward.formats.matlab.matfile import dangers

octave = pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
VALUE = {"a": np.ones((3, 2), np.float32), "more": [{"b": np.zeros(2, np.int64)}, "text", np.array(["x"], object)]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with (tmp_path / "params.mat").open("wb") as file:
        writer.write(file, {"params": VALUE})
    return tmp_path / "params.mat"


def is_foreign(path: Path) -> bool:
    return bool(list(dangers(path)))


def test_what_onward_writes_is_numbers_and_texts(path: Path) -> None:
    assert not is_foreign(path)


@pytest.mark.parametrize("code", [3, 5, 16, 17, 18])
def test_other_classes_are_found_at_every_depth(path: Path, code: int) -> None:
    """Objects, sparse matrices, functions and what newer versions have."""
    data = bytearray(path.read_bytes())
    cell = next(i for i in range(128, len(data), 8) if data[i : i + 12] == struct.pack("<III", 6, 8, 4))  # the text
    data[cell + 8] = code
    path.write_bytes(data)
    assert is_foreign(path)


def test_files_of_other_kinds_are_foreign(path: Path) -> None:
    good = path.read_bytes()
    texts = b"# Created by Octave\n# name: params\n# type: function handle\n@<fnhandle>\n@() 1\n"
    compressed = good[:128] + struct.pack("<II", 15, 8) + bytes(8)
    cut = good[:-8]
    hidden = bytearray(good + struct.pack("<II", 14, 2000) + bytes(2000))
    hidden[1024:1032] = b"\x89HDF\r\n\x1a\n"
    for bad in (b"", texts, b"Octave-1-L" + good, compressed, cut, bytes(hidden), good + texts):
        path.write_bytes(bad)
        assert is_foreign(path)


@octave
def test_what_octave_saves(tmp_path: Path) -> None:
    process = Process()
    for name, code in {
        "plain": "params = struct('a', {{single(1:3), 'text', true, int8(4)}}); save('-v6', '{}', 'params')",
        "packed": "params = ones(50); save('-v7', '{}', 'params')",
        "sparse": "params = sparse(eye(3)); save('-v6', '{}', 'params')",
        "text": "params = 1; save('-text', '{}', 'params')",
    }.items():
        path = tmp_path / f"{name}.mat"
        process.do("eval", code.replace("'{}'", f"'{path}'"))
        assert is_foreign(path) == (name != "plain"), name
    process.end()
