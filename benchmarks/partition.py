"""Real models that OpenVINO does not take whole, divided among OpenVINO and ONNX Runtime.

    python benchmarks/partition.py                      writes docs/measured/partition.md
    python benchmarks/partition.py --largest 20         models up to 20 MB
    python benchmarks/partition.py --faults             writes the section on LSTMs alone anew

Every ONNX file of `zoo.csv` is offered to OpenVINO as it is. Those that it refuses, or computes wrong, are divided;
each part is compared, and the whole.
"""

import argparse
import time
from pathlib import Path

import machine
import numpy as np
import zoo_fetch
from onnx import helper, numpy_helper
from rich.console import Console
from rich.progress import track

import onward
from onward import runners
from onward.partitioning.divide import divide
from onward.partitioning.stages import TARGET

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "partition.md"
SECTION = "## Where less than 95 % of the nodes are on OpenVINO"
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
    return [
        SECTION,
        "",
        "- **LSTM with peepholes** (input `P`; downbeats_blstm_4): results near 1 are"
        f" {np.abs(found - right).max():.2f} off those of",
        f"  ONNX Runtime, and {np.abs(found - plain).max():.0e} off those of the same LSTM without `P`:"
        " OpenVINO leaves `P` out without a word.",
        f"- **LSTM with HardSigmoid** (rutranscript-resources, from Keras) {refused}.",
        "- **Squeeze without axes** (plcmos_v2) gives another rank for batches of 1, and OpenVINO takes none whose",
        "  rank is open. It goes to the fallback with the three nodes behind it.",
        "",
        machine.describe("onward", "openvino", "onnxruntime"),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=float, default=100, metavar="MB", help="leave out larger files")
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--faults", action="store_true", help="write the section on LSTMs alone anew")
    args = parser.parse_args()
    if args.faults:
        above = args.out.read_text(encoding="utf-8").partition(SECTION)[0]
        args.out.write_text(above.rstrip() + "\n\n" + "\n".join(faults()), encoding="utf-8")
        return
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
        *faults(),
    ]
    args.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
