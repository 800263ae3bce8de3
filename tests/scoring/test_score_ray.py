"""Scoring on Ray: what one process gives, also if a worker is killed; bad rows are named."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import onward
from onward import cluster
from onward.errors import RunFailure

ROWS = 8_000
WORK = (
    '<ir_version: 10, opset_import: ["": 20]> g (int64[N] k) => (int64[N] y, float[N,2] z)'
    "{ t = Constant<value_ints=[5, 6, 7]>() y = Gather(t, k) f = Cast<to=1>(k) one = Constant<value_ints=[1]>()"
    "  c = Unsqueeze(f, one) wide = Constant<value_ints=[1, 20000]>() e = Expand(c, wide) w = Sin(e)"
    "  m = ReduceMax(w, one) two = Constant<value_ints=[1, 2]>() z = Expand(m, two) }"
)
"""Enough work that a worker is in the middle of it when it is killed."""


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    pytest.importorskip("ray.data")
    with cluster.connected("ray://local", 2):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(parse_model(WORK), tmp_path / "model.onnx")
    np.savez(tmp_path / "rows.npz", k=np.arange(ROWS) % 3, id=np.arange(ROWS))
    return tmp_path


def killed(name: bytes, inside: int) -> list[int]:
    """End the newest process below this one with such a title, if there is one."""
    found = []
    for path in Path(f"/proc/{inside}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            try:
                is_one = name in Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            found += [child] if is_one else killed(name, child)
    return sorted(found)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_worker_is_killed_and_no_row_is_lost(ray: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    done_then: list[int] = []

    def told(done: int, total: int | None) -> None:
        if not ended and (workers := killed(b"MapWorker", os.getpid())):
            ended.append(workers[-1])
            done_then.append(done)
            os.kill(workers[-1], signal.SIGKILL)

    out = folder / "out.npz"
    assert (
        onward.score(
            folder / "model.onnx", folder / "rows.npz", out, batch=50, keep="id", on="ray", workers=2, told=told
        )
        == ROWS
    )
    found = np.load(out)
    assert ended and done_then[0] < ROWS // 2
    assert np.array_equal(found["id"], np.arange(ROWS)) and np.array_equal(found["y"], 5 + np.arange(ROWS) % 3)
    assert found["z"].shape == (ROWS, 2)


def test_a_row_that_fails_is_named_and_nothing_is_written(ray: None, folder: Path) -> None:
    keys = np.zeros(ROWS, np.int64)
    keys[4_321] = 3
    np.savez(folder / "rows.npz", k=keys)
    with pytest.raises(RunFailure, match=r"^row 4,322: ONNX Runtime could not run the model"):
        onward.score(folder / "model.onnx", folder / "rows.npz", folder / "out.npz", batch=500, on="ray", workers=1)
    assert not (folder / "out.npz").exists()
