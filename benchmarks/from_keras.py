"""Keras to ONNX, beside tf2onnx: time to convert, and speed of the file in ONNX Runtime.

python benchmarks/from_keras.py --tf2onnx ENV/bin/python    all networks; writes docs/measured/speed-from-keras.md
python benchmarks/from_keras.py --only GRU …                those whose names have the pattern; writes nothing

tf2onnx runs in an environment of its own that has TensorFlow and Keras too. Each conversion is a process, the two sides
take turns. Speeds are medians of ratios of calls in turn, in one process, with one thread and a batch of one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import machine
import numpy as np
import onnx
import onnxruntime
from from_keras_worker import NETWORKS, OPSET
from tf_models import Call, Row, compare, section

PAGE = Path(__file__).parent.parent / "docs/measured/speed-from-keras.md"
WORKER = Path(__file__).parent / "from_keras_worker.py"
WHO = ("onward", "tf2onnx")
TIMED = ("ResNet50", "NASNetMobile")
"""Networks that are converted several times."""


@dataclass
class Network:
    name: str
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    ratio: float | None = None
    ratio_wall: float | None = None
    difference: float | None = None


def convert(network: Network, pythons: dict[str, str], folder: Path, rounds: int) -> None:
    """The least of several rounds, in which the sides take turns."""
    found: dict[str, list[dict[str, Any]]] = {who: [] for who in pythons}
    for _ in range(rounds):
        for who in [who for who in pythons if who not in network.failures]:
            command = [pythons[who], str(WORKER), who, network.name, str(folder / f"{who}.onnx")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                network.failures[who] = done.stderr.strip().splitlines()[-1][:120]
            else:
                found[who].append(json.loads(done.stdout.strip().splitlines()[-1]))
    for who, times in found.items():
        if times:
            network.seconds[who] = {key: min(one[key] for one in times) for key in ("wall", "cpu")}
            network.versions[who] = times[0]["version"]


def caller(path: Path, given: Any) -> Call:
    """With ones for constants that tf2onnx makes inputs of."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(path, options)
    first, *more = session.get_inputs()
    feed = {first.name: given} | {slot.name: np.ones(slot.shape, np.float32) for slot in more}
    return lambda: session.run(None, feed)


def measure(name: str, pythons: dict[str, str], rounds: int, seconds: float) -> Network:
    network = Network(name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        convert(network, pythons, folder, rounds if name in TIMED else 1)
        graphs = {who: onnx.load(folder / f"{who}.onnx", load_external_data=False).graph for who in network.seconds}
        for who, graph in graphs.items():
            kinds = [node.op_type for node in graph.node]
            network.nodes[who], network.loops[who] = len(kinds), kinds.count("Loop") + kinds.count("Scan")
        dims = next(iter(graphs.values())).input[0].type.tensor_type.shape.dim
        shape = [dim.dim_value or 1 for dim in dims]
        given = np.random.default_rng(0).random(shape, dtype=np.float32)
        if "masked" in name:
            given[:, 60:] = 0
        calls = {who: caller(folder / f"{who}.onnx", given) for who in graphs}
        if len(calls) == len(WHO):
            one, other = (calls[who]()[0] for who in WHO)
            if len(graphs["tf2onnx"].input) == len(graphs["onward"].input):
                network.difference = float(np.abs(one - other).max() / np.abs(other).max())
            row = Row(name, 0)
            compare(calls, "tf2onnx", seconds, row)
            network.ratio, network.ratio_wall = row.speed["onward"], row.wall["onward"]
    return network


def tables(networks: list[Network]) -> str:
    converted = [n for n in networks if n.name in TIMED]
    return "\n\n".join(
        (
            section(
                "Time to convert, the file written",
                "Seconds of the processor, and by the clock in brackets; imports are not in it.",
                ["network", *WHO, "times faster"],
                [[n.name, *(_seconds(n, who) for who in WHO), _faster(n)] for n in converted],
            ),
            section(
                "The file in ONNX Runtime",
                "Time of Onward's file ÷ that of tf2onnx's: of the processor, and by the clock in brackets. The\n"
                "difference is the largest between the results of the two, as a share of the largest number; it is\n"
                "not asked for where tf2onnx made inputs of constants.",
                ["network", *(f"nodes, {who}" for who in WHO), *(f"loops, {who}" for who in WHO), "time", "difference"],
                [
                    [
                        n.name,
                        *(str(n.nodes.get(who, "fails")) for who in WHO),
                        *(str(n.loops.get(who, "fails")) for who in WHO),
                        "–" if n.ratio is None else f"{n.ratio:.2f} ({n.ratio_wall:.2f})",
                        "not asked for" if n.difference is None else f"{n.difference:.0e}",
                    ]
                    for n in networks
                ],
            ),
        )
    )


def _seconds(network: Network, who: str) -> str:
    times = network.seconds.get(who)
    return network.failures.get(who, "–") if times is None else f"{times['cpu']:.1f} ({times['wall']:.1f})"


def _faster(network: Network) -> str:
    if len(network.seconds) < len(WHO):
        return "–"
    ours, theirs = (network.seconds[who] for who in WHO)
    return f"{theirs['cpu'] / ours['cpu']:.1f} ({theirs['wall'] / ours['wall']:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf2onnx", metavar="PYTHON", help="of the environment that has tf2onnx")
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for names; writes nothing")
    parser.add_argument("--rounds", type=int, default=3, help="conversions of which the fastest counts")
    parser.add_argument("--seconds", type=float, default=10, help="to measure each speed for")
    args = parser.parse_args()
    pythons = {"onward": sys.executable} | ({"tf2onnx": args.tf2onnx} if args.tf2onnx else {})
    networks = []
    for name in [name for name in NETWORKS if re.search(args.only or "", name)]:
        networks.append(measure(name, pythons, args.rounds, args.seconds))
        print(networks[-1], flush=True)
    words = f"Made by `benchmarks/from_keras.py`; opset {OPSET}, one thread, a batch of one."
    versions = {f"{who} {version}" for network in networks for who, version in network.versions.items()}
    where = machine.describe("tensorflow-cpu", "keras", "onnxruntime")
    text = f"# From Keras: speed beside tf2onnx\n\n{words}\n\n{tables(networks)}\n\n" + " · ".join(
        [where, *sorted(versions)]
    )
    print(text)
    if not args.only and args.tf2onnx:
        PAGE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
