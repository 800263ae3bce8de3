"""Real models that OpenVINO does not take whole, divided among OpenVINO and ONNX Runtime.

    python benchmarks/partition.py                      writes docs/measured/partition.md
    python benchmarks/partition.py --largest 20         models up to 20 MB

Every ONNX file of `zoo.csv` is offered to OpenVINO as it is. Those that it refuses, or computes wrong, are divided;
each part is compared, and the whole.
"""

import argparse
import time
from pathlib import Path

import machine
import zoo_fetch
from rich.console import Console
from rich.progress import track

import onward
from onward.partitioning.divide import divide
from onward.partitioning.stages import TARGET

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "partition.md"
TITLES = ["model", "OpenVINO alone", "parts", "on OpenVINO", "nodes there", "verdict", "seconds"]


def alone(path: Path) -> str:
    """What OpenVINO makes of a whole model: '' where it is the same as on ONNX Runtime."""
    try:
        report = onward.verify(path, "openvino", quick=True, arbitrate=False)
    except onward.OnwardError as error:
        return f"not judged: {error}"[:80]
    result = report.sides[-1]
    return {"same": "", "different": "differs", "failed": "refused"}[result.status]


def row(name: str, path: Path, before: str) -> str:
    began = time.perf_counter()
    try:
        made = divide(path, "openvino")
    except onward.OnwardError as error:
        return f"| {name} | {before} | | | | {str(error)[:100]} | {time.perf_counter() - began:.0f} |"
    own = sum(part.side == TARGET for part in made.parts)
    verdict = "" if made.result is None else made.result.status
    seconds = time.perf_counter() - began
    return f"| {name} | {before} | {len(made.parts)} | {own} | {100 * made.taken:.1f} % | {verdict} | {seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=float, default=100, metavar="MB", help="leave out larger files")
    parser.add_argument("--out", type=Path, default=PAGE)
    args = parser.parse_args()
    entries = [e for e in zoo_fetch.entries() if e.path_inside.endswith(".onnx") and e.path.exists()]
    entries = [e for e in entries if e.size_bytes <= args.largest * 1e6]
    rows, same = [], 0
    for entry in track(entries, console=Console(stderr=True)):
        before = alone(entry.path)
        if before:
            rows.append(row(entry.name, entry.path, before))
            print(rows[-1], flush=True)
        else:
            same += 1
    about = machine.describe("onward", "openvino", "onnxruntime")
    lines = [
        "# Models divided among OpenVINO and ONNX Runtime",
        "",
        "Written by `python benchmarks/partition.py`. Each pretrained ONNX file of `benchmarks/zoo.csv` of at most",
        f"{args.largest:g} MB is offered to OpenVINO as it is: {same} of {len(entries)} are taken and the same as",
        "on ONNX Runtime. The others are divided. *Nodes there* counts neither constants nor sizes.",
        "",
        f"| {' | '.join(TITLES)} |",
        f"|{' --- |' * len(TITLES)}",
        *rows,
        "",
        about,
        "",
    ]
    args.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
