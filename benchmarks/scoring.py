"""Rows that are scored in a second by `onward.score`, by a plain loop over batches, and with the whole table in memory.

python benchmarks/scoring.py [--rows N] [--rounds N] [--write]

Each runs in a process of its own, all in turns, from a Parquet file to a Parquet file, and the best of the rounds
counts. The plain loop is what one writes by hand: pyarrow reads batches of 4,096 rows, onnxruntime runs them, pyarrow
writes them. --write makes docs/measured/scoring.md.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import numpy as np
import onnx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import numpy_helper
from onnx.parser import parse_model

PAGE = Path(__file__).parent.parent / "docs/measured/scoring.md"
WIDTH, BATCH = 16, 4096
NAMES = [f"c{i}" for i in range(WIDTH)]
HEAD = '<ir_version: 10, opset_import: ["": 20]>'
SUMS = f"g (float[N,{WIDTH}] x) => (float[N] s) {{one = Constant<value_ints=[1]>() s = ReduceSum<keepdims=0>(x, one)}}"
NETWORK = (
    f"g (float[N,{WIDTH}] x) => (float[N,1] s)"
    "{h = MatMul(x, a) r = Relu(h) k = MatMul(r, b) q = Relu(k) s = MatMul(q, c)}"
)
WEIGHTS = {"a": (WIDTH, 256), "b": (256, 256), "c": (256, 1)}
START = """
import re, sys, time
folder, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
columns = [f"c{i}" for i in range(16)]
data, out, model = f"{folder}/{name}.parquet", f"{folder}/out.parquet", f"{folder}/{name}.onnx"
"""
END = """
most = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(time.perf_counter() - began, time.process_time() - used, most)
"""
ONWARD = """
import onward, pyarrow.parquet, onnxruntime, onward.scoring.score, onward.scoring.scorer, onward.conversion.sources
began, used = time.perf_counter(), time.process_time()
onward.score(model, data, out, column={} if name == "frames" else {"x": columns}, batch=batch, force=True)
"""
LOOP = """
import numpy as np, onnxruntime, pyarrow as pa, pyarrow.parquet as pq
began, used = time.perf_counter(), time.process_time()
session = onnxruntime.InferenceSession(model)
writer = pq.ParquetWriter(out, pa.schema([("s", pa.float32())]))
for rows in pq.ParquetFile(data).iter_batches(batch, columns=columns):
    x = np.stack([rows.column(column).to_numpy() for column in columns], axis=1)
    (s,) = session.run(None, {"x": x})
    writer.write_table(pa.table({"s": s.reshape(-1)}))
writer.close()
"""
MEMORY = """
import onnxruntime, pandas as pd, pyarrow.parquet
began, used = time.perf_counter(), time.process_time()
session = onnxruntime.InferenceSession(model)
(s,) = session.run(None, {"x": pd.read_parquet(data)[columns].to_numpy()})
pd.DataFrame({"s": s.reshape(-1)}).to_parquet(out)
"""
FRAMES = """
import sys, pandas as pd, pyarrow.parquet
sys.path.insert(0, folder)
from features import features
began, used = time.perf_counter(), time.process_time()
features(pd.read_parquet(data)).to_parquet(out)
"""
FEATURES = """
import pandas as pd

def features(df):
    late = (df.paid - df.due).dt.days > 30
    debt = (df.loan / df.income.clip(lower=1)).fillna(0)
    south = df.region.fillna("") == "south"
    return pd.DataFrame({"debt": debt, "late": late, "month": df.due.dt.month, "south": south})
"""
CASES = {
    "sums": ("sums of 16 columns", {"`onward.score`": ONWARD, "a plain loop": LOOP, "pandas, all in memory": MEMORY}),
    "network": (
        "a network of three layers, 70,000 weights",
        {"`onward.score`": ONWARD, "a plain loop": LOOP, "pandas, all in memory": MEMORY},
    ),
    "frames": (
        "data processing: dates, text, nulls",
        {"`onward.score`": ONWARD, "the function itself, in pandas, all in memory": FRAMES},
    ),
}
TABLE = "| way | rows a second | time ÷ `onward.score` | processor time | memory |\n|---|---|---|---|---|\n"
TEXT = """\
# Batch scoring: rows a second

Made by `benchmarks/scoring.py`: a Parquet file of {rows:,} rows goes through a model into another Parquet file, in
batches of {batch:,} rows. Each way runs in a process of its own, whose imports are not counted; all run in turns, and
the best of {rounds} rounds counts. Memory is the most that the process had.

The plain loop is what one writes by hand with pyarrow and onnxruntime. It checks nothing: `onward.score` also proves on
the first batch that rows do not depend on one another, checks each type and null, and writes all or nothing.

"""


def prepare(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    onnx.save(parse_model(HEAD + SUMS), folder / "sums.onnx")
    network = parse_model(HEAD + NETWORK)
    for name, shape in WEIGHTS.items():
        drawn = rng.standard_normal(shape).astype(np.float32) / 16
        network.graph.initializer.append(numpy_helper.from_array(drawn, name))
    onnx.save(network, folder / "network.onnx")
    numbers = pa.table({name: rng.standard_normal(rows).astype(np.float32) for name in NAMES})
    for name in ("sums", "network"):
        pq.write_table(numbers, folder / f"{name}.parquet", row_group_size=1 << 17)
    due = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
    frame = pd.DataFrame(
        {
            "loan": rng.uniform(0, 9, rows),
            "income": rng.integers(0, 99, rows),
            "due": due,
            "paid": due + pd.to_timedelta(rng.integers(0, 90, rows), "D"),
            "region": rng.choice(["north", "south", None], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, ["loan", "paid"]] = None
    frame.to_parquet(folder / "frames.parquet", row_group_size=1 << 17)
    (folder / "features.py").write_text(FEATURES)
    sys.path.insert(0, str(folder))
    from features import features  # type: ignore[import-not-found]

    import onward

    onward.from_dataframe(features, frame.head(1000)).save(folder / "frames.onnx")


def measured(folder: Path, case: str, code: str) -> tuple[float, float, float]:
    """Seconds by the clock, of the processor, and megabytes."""
    words = [sys.executable, "-c", START + code + END, str(folder), case, str(BATCH)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds, used, most = map(float, done.stdout.split())
    return seconds, used, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    text = TEXT.format(rows=args.rows, batch=BATCH, rounds=args.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, args.rows)
        for case, (title, ways) in CASES.items():
            found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
            for _ in range(args.rounds):
                for way, code in ways.items():
                    found[way].append(measured(folder, case, code))
            text += f"## {title[0].upper() + title[1:]}\n\n{TABLE}"
            own = min(found["`onward.score`"])[0]
            for way, all_found in found.items():
                seconds, used, most = (min(numbers) for numbers in zip(*all_found, strict=True))
                text += (
                    f"| {way} | {args.rows / seconds:,.0f} | {seconds / own:.2f} | {used:.1f} s | {most:,.0f} MB |\n"
                )
            text += "\n"
    text += machine.describe("onward", "onnxruntime", "pyarrow", "pandas") + "\n"
    print(text)
    if args.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
