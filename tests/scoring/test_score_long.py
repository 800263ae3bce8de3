"""Ten million rows: every one is scored once, in order, by a process whose memory does not grow with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx.parser import parse_model

ROWS, FEW = 10_000_000, 500_000
GROUP = 1 << 20
BOUND = 100
"""Megabytes that twenty times the rows may take more; their numbers alone are 120 in the data and as many again in the
results."""
MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) {y = Add(x, x)}'
SCRIPT = """
import re, sys
import onward
folder, name = sys.argv[1:]
rows = onward.score(f"{folder}/model.onnx", f"{folder}/{name}.parquet", f"{folder}/{name}.out.parquet", batch=65536,
                    keep="id", threads=1)
print(rows, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


def written(path: Path, rows: int) -> None:
    """Numbers that stay exact as floats, and count on."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.float32())])
    with pq.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as file:
        for start in range(0, rows, GROUP):
            numbers = np.arange(start, min(start + GROUP, rows))
            file.write_table(pa.table({"id": numbers, "x": numbers.astype(np.float32)}))


def scored(folder: Path, name: str) -> tuple[int, int]:
    """The rows and the most megabytes that the process had."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, folder, name], capture_output=True, text=True, check=True)
    rows, most = done.stdout.split()
    return int(rows), int(most)


@pytest.mark.skipif(sys.platform != "linux", reason="reads in /proc how much memory a process had")
def test_ten_million_rows(tmp_path: Path) -> None:
    onnx.save(parse_model(MODEL), tmp_path / "model.onnx")
    written(tmp_path / "few.parquet", FEW)
    written(tmp_path / "many.parquet", ROWS)
    few, many = scored(tmp_path, "few"), scored(tmp_path, "many")
    assert (few[0], many[0]) == (FEW, ROWS)
    assert many[1] - few[1] < BOUND
    found = pq.ParquetFile(tmp_path / "many.out.parquet")
    at, total = 0, 0.0
    for batch in found.iter_batches(GROUP):
        ids, sums = (batch.column(name).to_numpy() for name in ("id", "y"))
        assert np.array_equal(ids, np.arange(at, at + len(ids)))
        assert np.array_equal(sums, 2 * ids.astype(np.float32))
        at, total = at + len(ids), total + sums.sum(dtype=np.float64)
    assert at == ROWS and total == ROWS * (ROWS - 1)
