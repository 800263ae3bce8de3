"""Archives that are attacks, and what is read of them: little, before they are refused."""

from __future__ import annotations

import resource
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from onward.errors import InvalidDataError, InvalidModelError
from onward.formats import kind_of
from onward.gate.archive import archive, check_archive, is_archive, names_in
from onward.gate.arrays import read_npy, read_npz

MEGABYTE = 1 << 20


def bomb(path: Path, name: str, says: int = 2 << 30, **others: bytes) -> Path:
    """An archive with a member of two gigabytes of zeros, which says that it has another size."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b"".join(packing.compress(bytes(MEGABYTE)) for _ in range(64)) + packing.flush(zlib.Z_FULL_FLUSH)
    packed = 32 * block + b"\x03\x00"
    with zipfile.ZipFile(path, "w") as file:
        for other, content in others.items():
            file.writestr(other.replace("_json", ".json"), content)
        info = zipfile.ZipInfo(name)
        file.writestr(info, packed)
        info.compress_type, info.file_size, info.compress_size = zipfile.ZIP_DEFLATED, says, len(packed)
    return path


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("model.weights.h5", {"config_json": b"{}", "metadata_json": b'{"keras_version": "3.0"}'}),
        ("1.npy", {"schema_json": b"{}"}),
        ("config.json", {"metadata_json": b"{}"}),
    ],
)
def test_a_bomb_is_refused_before_it_is_read(name: str, others: dict[str, bytes], tmp_path: Path) -> None:
    path = bomb(tmp_path / "model", name, **others)
    assert path.stat().st_size < 9 * MEGABYTE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidModelError, match=r"would unpack to 2,147,48.*ONWARD_MAX_UNPACKED"):
        kind_of(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_what_says_less_than_it_holds(tmp_path: Path) -> None:
    path = bomb(tmp_path / "model", "model.weights.h5", says=100)
    with pytest.raises(InvalidModelError, match="unpacks to another size"):
        check_archive(path)


def test_the_bound_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bomb(tmp_path / "model", "x")
    monkeypatch.setenv("ONWARD_MAX_UNPACKED", str(3 << 30))
    assert names_in(path) == ("x",)


def test_arrays_that_unpack_to_much(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="would unpack to"):
        read_npz(bomb(tmp_path / "data.npz", "x.npy"))


def test_arrays_of_elements_without_a_size(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<U0", "fortran_order": False, "shape": (1 << 40,)})
    with pytest.raises(InvalidDataError, match="elements of size 0"):
        read_npy(path)


def test_zeros_that_were_packed_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((1 << 20, 8), np.float32))
    assert read_npz(tmp_path / "x.npz")["x"].shape == (1 << 20, 8)


def written(path: Path, *names: str, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name in names:
            file.writestr(zipfile.ZipInfo(name), b"content", method)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "b", "a"), "twice"),
        (("/etc/a",), "leads out"),
        (("a/../../b",), "leads out"),
        (("..\\b",), "leads out"),
        (("C:\\b",), "leads out"),
    ],
)
def test_names(names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=message):
        names_in(written(tmp_path / "x.zip", *names))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_python_unpacks_without_a_bound(method: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="no framework uses"):
        names_in(written(tmp_path / "x.zip", "a", method=method))


def test_members_that_overlap(tmp_path: Path) -> None:
    """Two entries of the directory for one member: what unpacks to much may be there a thousand times."""
    whole = written(tmp_path / "x.zip", "a", "b").read_bytes()
    start = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 1)
    path = tmp_path / "y.zip"
    path.write_bytes(whole[: start + 42] + struct.pack("<I", 0) + whole[start + 46 :])
    with pytest.raises(InvalidModelError, match="overlap"):
        names_in(path)


def test_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONWARD_MAX_MEMBERS", "2")
    with pytest.raises(InvalidModelError, match=r"3 members.*ONWARD_MAX_MEMBERS"):
        names_in(written(tmp_path / "x.zip", "a", "b", "c"))


def test_texts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONWARD_MAX_TEXT", "3")
    with archive(written(tmp_path / "x.zip", "a")) as found, pytest.raises(InvalidModelError, match="more than 3"):
        found.read("a")


def test_every_cut_of_an_archive_is_one_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "x.zip", "a", "b", method=zipfile.ZIP_DEFLATED).read_bytes()
    path = tmp_path / "cut.zip"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        if is_archive(path):
            with pytest.raises(InvalidModelError):
                names_in(path)
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            check_archive(path)
            for name in names_in(path):
                with archive(path) as found:
                    found.read(name)
        except InvalidModelError:
            continue
