"""Real models that OpenVINO does not take whole, divided among OpenVINO and ONNX Runtime.

    python benchmarks/partition.py                      writes docs/measured/partition.md
    python benchmarks/partition.py --largest 20         models up to 20 MB
    python benchmarks/partition.py --faults             writes the section on LSTMs alone anew
    python benchmarks/partition.py --graphs 5000        divides random graphs, and writes their section anew

Every ONNX file of `zoo.csv` is offered to OpenVINO as it is. Those that it refuses, or computes wrong, are divided;
each part is compared, and the whole.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import machine
import numpy as np
import zoo_files
from onnx import helper, numpy_helper
from rich.console import Console
from rich.progress import track

import onward
from onward import runners
from onward.partitioning.divide import divide
from onward.partitioning.stages import TARGET

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "partition.md"
TESTS = Path(__file__).parent.parent / "tests" / "partitioning"
FAULTS = "## What OpenVINO lacks, and runs in simpler ops"
GRAPHS = "## Random graphs"
TITLES = [
    "model",
    "OpenVINO alone",
    "parts",
    "on OpenVINO",
    "nodes there",
    "in simpler ops",
    "as written",
    "verdict",
    "s",
]


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
        return f"| {name} | {before} | | | | | | {str(error)[:100]} | {time.perf_counter() - began:.0f} |"
    own = sum(part.side == TARGET for part in made.parts)
    verdict = "" if made.result is None else made.result.status
    there = f"{100 * made.taken:.1f} % | {len(made.written)} | {100 * made.taken_as_written:.1f} %"
    return (
        f"| {name} | {before} | {len(made.parts)} | {own} | {there} | {verdict} | {time.perf_counter() - began:.0f} |"
    )


def lstm(peepholes: bool, activations: list[str]) -> onward.Model:
    rng = np.random.default_rng(1)
    sizes = {"W": (1, 32, 5), "R": (1, 32, 8), "B": (1, 64), "P": (1, 24)}
    weights = {name: (0.5 * rng.normal(size=size)).astype(np.float32) for name, size in sizes.items()}
    names = ["x", "W", "R", "B", "", "", "", *(["P"] if peepholes else [])]
    node = helper.make_node("LSTM", names, ["y"], hidden_size=8, activations=activations)
    x, y = helper.make_tensor_value_info("x", 1, [7, 2, 5]), helper.make_tensor_value_info("y", 1, [7, 1, 2, 8])
    kept = [numpy_helper.from_array(weights[name], name) for name in sizes if name in names]
    graph = helper.make_graph([node], "lstm", [x], [y], kept)
    return onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def faults() -> list[str]:
    """What OpenVINO makes of LSTMs that models above have, each alone."""
    feeds = {"x": np.random.default_rng(0).normal(size=(7, 2, 5)).astype(np.float32)}
    usual, hard = ["Sigmoid", "Tanh", "Tanh"], ["HardSigmoid", "Tanh", "Tanh"]
    with_peepholes, without = lstm(True, usual), lstm(False, usual)
    found = runners.prepare("openvino", with_peepholes)(feeds)["y"]
    right, plain = (runners.prepare("onnxruntime", model)(feeds)["y"] for model in (with_peepholes, without))
    try:
        runners.prepare("openvino", lstm(False, hard))
        refused = "is taken"
    except onward.OnwardError as error:
        refused = f"is refused (`{str(error)[:40]}…`)"
    written = [divide(model, "openvino", inputs=feeds) for model in (with_peepholes, lstm(False, hard))]
    shares = " and ".join(f"{100 * made.taken:.0f} %" for made in written)
    return [
        FAULTS,
        "",
        "- **LSTM with peepholes** (input `P`; downbeats_blstm_4): results near 1 are"
        f" {np.abs(found - right).max():.2f} off those of",
        f"  ONNX Runtime, and {np.abs(found - plain).max():.0e} off those of the same LSTM without `P`:"
        " OpenVINO leaves `P` out without a word.",
        f"- **LSTM with HardSigmoid** (rutranscript-resources, from Keras) {refused}.",
        f"- Both become a `Scan` over the steps: {shares} of such a model is on OpenVINO, and the same.",
        "- **Squeeze without axes** (plcmos_v2 and the madmom models) gives another rank for batches of 1, and",
        "  OpenVINO takes none whose rank is open. It is put behind the ops on single elements that follow it, and is",
        "  alone on the fallback. So is an **If** whose branches differ in rank (silero_vad_half, segmentation-3.0).",
        "",
        machine.describe("onward", "openvino", "onnxruntime"),
        "",
    ]


def graphs(count: int) -> list[str]:
    """Random graphs, divided at random, by the tests that do so."""
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        str(TESTS / "test_split.py"),
        str(TESTS / "test_stages.py"),
    ]
    done = subprocess.run(command, env={**os.environ, "ONWARD_GRAPHS": str(count)}, capture_output=True, text=True)
    said = re.search(r"\d+ (passed|failed).*", done.stdout)
    verdict = "all pass" if done.returncode == 0 else f"failed: {said[0] if said else done.stdout[-200:]}"
    return [
        GRAPHS,
        "",
        f"`python benchmarks/partition.py --graphs {count}` divides {count:,} random graphs with branches, loops and",
        "sizes (`ONWARD_GRAPHS` of `tests/partitioning`): each node is in one part, parts run in order, the results",
        f"are those of the whole on ONNX Runtime, and small graphs have no fewer parts by brute force. **{verdict}**,",
        f"in {time.perf_counter() - began:.0f} s.",
        "",
        machine.describe("onward", "onnxruntime"),
        "",
    ]


def with_section(page: str, lines: list[str]) -> str:
    """A page with a section in place of that of the same title, or behind all others."""
    kept = [part for part in re.split(r"(?m)^(?=## )", page) if not part.startswith(lines[0] + "\n")]
    return "".join(part.rstrip() + "\n\n" for part in kept) + "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=float, default=100, metavar="MB", help="leave out larger files")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no model after this time (smallest first)")
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--faults", action="store_true", help="write the section on LSTMs alone anew")
    parser.add_argument("--graphs", type=int, metavar="N", help="divide N random graphs, and write their section anew")
    args = parser.parse_args()
    if args.faults or args.graphs:
        lines = faults() if args.faults else graphs(args.graphs)
        args.out.write_text(with_section(args.out.read_text(encoding="utf-8"), lines), encoding="utf-8")
        return
    entries = zoo_files.there(e for e in zoo_files.entries() if e.size_bytes <= args.largest * 1e6)
    rows, same, began = [], 0, time.perf_counter()
    for name, path in track(entries, console=Console(stderr=True)):
        if time.perf_counter() - began > args.seconds:
            break
        fault = alone(path)
        if fault:
            rows.append(row(name, path, fault))
            print(rows[-1], flush=True)
        else:
            same += 1
    judged = same + len(rows)
    left = "" if judged == len(entries) else f" ({len(entries) - judged} larger ones were left out for time)"
    about = machine.describe("onward", "openvino", "onnxruntime")
    lines = [
        "# Models divided among OpenVINO and ONNX Runtime",
        "",
        "Written by `python benchmarks/partition.py`. Each pretrained ONNX file of `benchmarks/zoo.csv` of at most",
        f"{args.largest:g} MB is offered to OpenVINO as it is: {same} of {judged}{left} are taken and the same as",
        "on ONNX Runtime. The others are divided. *Nodes there* counts nodes of the file, without constants and sizes:",
        "one *in simpler ops* is there if all of these are. *As written* counts each simpler op by itself.",
        "",
        f"| {' | '.join(TITLES)} |",
        f"|{' --- |' * len(TITLES)}",
        *rows,
        "",
        about,
        "",
        *faults(),
    ]
    before = args.out.read_text(encoding="utf-8") if args.out.exists() else ""
    others = "".join(re.findall(rf"(?ms)^{GRAPHS}$.*?(?=^## |\Z)", before))
    args.out.write_text("\n".join(lines) + ("\n" + others if others else ""), encoding="utf-8")


if __name__ == "__main__":
    main()
