"""Every model of `zoo.csv` on every target and in training, as `onward zoo run` does it, with other converters beside.

python benchmarks/zoo.py                          all of it; what is done is kept in build/zoo, and goes on there
python benchmarks/zoo.py silero                   only models with `silero` in their names
python benchmarks/zoo.py --peers                  with onnx2torch and onnx2pytorch, which have to be installed here
python benchmarks/zoo.py --tf2onnx ENV/bin/python with tf2onnx, of an environment that has TensorFlow too
python benchmarks/zoo.py --keep                   write what is done to benchmarks/zoo-results.jsonl, and how it went
                                                  from run to run to benchmarks/zoo-history.json

`zoo_pages.py` makes pages of what is kept. A peer is a target `peer:NAME`, judged as Onward's results are.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import peers
from rich.console import Console

from onward.cli.zoo.run import progress, show
from onward.report.zoo import history
from onward.zoo.results import ASKED, TARGETS, TRAIN, read, record, without_source
from onward.zoo.run import WRONG, Options, run_all

LIST = Path(__file__).with_name("zoo.csv")
KEPT, HISTORY = Path(__file__).with_name("zoo-results.jsonl"), Path(__file__).with_name("zoo-history.json")
BUILD = Path(__file__).parent.parent / "build/zoo"
LARGEST = 5_000_000
"""Bytes of the file of results; the longest sources are left out until it is as small as that."""

EXPLAINED = {
    ("g2p-id/tiny-pron.onnx", "tflite"): """a text of nothing but padding, whose probabilities are NaN in the source.
TensorFlow Lite's REDUCE_MAX leaves NaN out, with each of its three sets of kernels, so numbers come back. For all
other inputs of the check the result is the same.""",
}
"""By model and target, what looking into a wrong result showed."""


def keep(folder: Path, file: Path) -> int:
    """Write the latest of each model and cell, and say how many bytes that takes."""
    import json

    found = read(folder)
    cells = [
        replace(cell, explained=" ".join(EXPLAINED.get(cell.key, "").split()) if cell.verdict in WRONG else "")
        for cell in sorted(found.cells.values(), key=lambda cell: cell.key)
    ]
    size_of = {cell.key: len(cell.source) for cell in cells}
    most = max(size_of.values(), default=0)
    while True:
        kept = [cell if size_of[cell.key] <= most else without_source(cell) for cell in cells]
        lines = [json.dumps(record(each), ensure_ascii=False) for each in (*found.models.values(), *kept)]
        text = "\n".join(lines) + "\n"
        if len(text.encode()) <= LARGEST or not most:
            break
        most = most * 3 // 4
    file.write_text(text, encoding="utf-8")
    HISTORY.write_text(history.text(history.with_run(history.read_history(HISTORY), found)), encoding="utf-8")
    return file.stat().st_size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of models; all by default")
    parser.add_argument("--peers", action="store_true", help="with onnx2torch and onnx2pytorch")
    parser.add_argument("--tf2onnx", metavar="PYTHON", help="of the environment that has tf2onnx")
    parser.add_argument("--to", default=",".join([*TARGETS, *ASKED]), help="targets, '' for none but peers")
    parser.add_argument("--on", default="local", help="where")
    parser.add_argument("--jobs", type=int, help="how many at a time")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each cell")
    parser.add_argument("--out", type=Path, default=BUILD, help="the folder of results")
    parser.add_argument("--keep", action="store_true", help="write what is done to zoo-results.jsonl, and run nothing")
    args = parser.parse_args()
    console = Console(stderr=True)
    if args.keep:
        console.print(f"{KEPT}: {keep(args.out, KEPT):,} bytes")
        return 0
    if args.tf2onnx:
        os.environ[peers.PYTHON] = args.tf2onnx
    to = tuple(filter(None, args.to.split(",")))
    options = Options(
        [LIST],
        args.out,
        to,
        (TRAIN,) if to else (),
        args.on,
        args.jobs,
        args.timeout,
        only="|".join(map(re.escape, args.names)),
        keep_versions=True,
        peers=peers.chosen(args.peers, bool(args.tf2onnx)),
    )
    with progress(console, quiet=False) as told:
        ran = run_all(options, told)
    show(Console(), ran)
    if args.peers:
        console.print(peers.remark())
    return 0 if ran.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
