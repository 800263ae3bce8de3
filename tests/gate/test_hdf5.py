"""HDF5 files that hang or crash the library, or claim what no memory holds: refused before they are opened."""

from __future__ import annotations

import json
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from onward.errors import InvalidModelError
from onward.formats import open_artifact
from onward.gate import apart, hdf5
from onward.gate.hdf5 import check_hdf5

h5py = pytest.importorskip("h5py")


def written(path: Path, *, claimed: int = 0, links: int = 0) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": []}})
        for number in range(3):
            file.create_dataset(f"layer_{number}/kernel", data=np.ones((4, 4), np.float32))
        file.create_dataset("packed", data=np.zeros((64, 64)), chunks=(8, 8), compression="gzip")
        if claimed:
            file.create_dataset("claimed", (claimed,), np.float32, fillvalue=1.0, chunks=(1024,))
        for number in range(links):
            file[f"link_{number}"] = file["claimed"]
    return path


def archived(path: Path, weights: Path) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", "{}")
        file.writestr("metadata.json", "{}")
        file.write(weights, "model.weights.h5")
    return path


def test_one_that_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "model.h5")
    check_hdf5(path)
    check_hdf5(archived(tmp_path / "model.keras", path))
    with h5py.File(path) as file:
        assert hdf5.total(str(path)) == sum(file[f"layer_{i}/kernel"].nbytes for i in range(3)) + file["packed"].nbytes


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_tree_that_leads_to_itself(is_archived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node to the right of a node is that node."""
    path = written(tmp_path / "model.h5")
    content = bytearray(path.read_bytes())
    place = content.index(b"TREE")
    content[place + 16 : place + 24] = struct.pack("<Q", place)
    path.write_bytes(content)
    monkeypatch.setattr(apart, "SECONDS", 4.0)
    with pytest.raises(InvalidModelError, match="HDF5 file is damaged: HDF5 was still reading it after 4 s"):
        open_artifact(archived(tmp_path / "model.keras", path) if is_archived else path)


def test_a_text_of_another_type(tmp_path: Path) -> None:
    """The class of the type of an attribute is one that there is not: the library reads memory that is not its own."""
    path = written(tmp_path / "model.h5")
    content = bytearray(path.read_bytes())
    content[content.index(b"model_config\0") + 17] = 0xFF
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match="HDF5 file is damaged: "):
        open_artifact(path)


@pytest.mark.parametrize(("claimed", "links"), [(1 << 40, 0), (1 << 20, 400)])
@pytest.mark.parametrize("is_archived", [False, True])
def test_what_is_claimed_is_bounded(claimed: int, links: int, is_archived: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "model.h5", claimed=claimed, links=links)
    if is_archived:
        path = archived(tmp_path / "model.keras", path)
    assert path.stat().st_size < 1 << 17
    before = time.monotonic()
    with pytest.raises(InvalidModelError, match=r"claims arrays of [\d,]+, more than 1,073,741,824; .*MAX_UNPACKED"):
        open_artifact(path)
    assert time.monotonic() - before < apart.SECONDS


def test_every_cut_is_one_line(tmp_path: Path) -> None:
    content = written(tmp_path / "model.h5").read_bytes()
    for share in (3, 2):
        path = tmp_path / f"cut_{share}.h5"
        path.write_bytes(content[: len(content) // share])
        with pytest.raises(InvalidModelError, match="HDF5 file is damaged: "):
            check_hdf5(path)
