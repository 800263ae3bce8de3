"""Conversion of JAX beside jax2onnx, and the files of both in ONNX Runtime; writes docs/measured/speed-from-jax.md.

    python benchmarks/speed_from_jax.py --peer PYTHON                   PYTHON is one that has jax2onnx
    python benchmarks/speed_from_jax.py --peer PYTHON --only 'BERT'     those whose ids have the pattern; writes nothing

Each side has a process of its own, since jax2onnx replaces functions of JAX. They take turns; time is the processor's.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/frontends/jax/battery"))

import machine  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from jax_data import inputs  # noqa: E402
from jax_models import Network  # noqa: E402
from jax_modules import MODELS  # noqa: E402
from jax_programs import Worker, section  # noqa: E402
from jax_sizes import NETWORKS  # noqa: E402

PAGE = ROOT / "docs/measured/speed-from-jax.md"
WORDS = """# From JAX: speed beside jax2onnx

Written by `benchmarks/speed_from_jax.py`. Time of the processor on one thread, of the two sides in turns, each in a
process that has converted something before. A conversion goes from the call to a protobuf in memory; nothing is
verified in it. The networks are those of `benchmarks/flax_models.py`, the small models every fourth of those of the
tests."""
ROUNDS = 3
"""How often each side converts a model after the first time."""
SECONDS = 1.0
"""How long both files of a model run, in turns."""


@dataclass(frozen=True)
class Times:
    """Of one model, by Onward and by jax2onnx: seconds of a first and of later conversions, and of a run."""

    first: tuple[float, float]
    later: tuple[float, float]
    run: tuple[float, float]
    tracing: float
    """What JAX alone takes, a part of both."""
    difference: float
    """The largest between results of the two files, as a share of the largest number."""

    @property
    def beyond(self) -> tuple[float, float]:
        return max(self.later[0] - self.tracing, 0.0), max(self.later[1] - self.tracing, 0.0)


def measured(case: Network, workers: tuple[Worker, Worker], folder: Path) -> Times | str:
    """The times, or which side does not convert it and why."""
    files = folder / "onward.onnx", folder / "jax2onnx.onnx"
    answers: list[list[dict[str, float]]] = [[], []]
    for _ in range(1 + ROUNDS):
        for worker, out, found in zip(workers, files, answers, strict=True):
            answer = worker.convert(case, out, tracing=True)
            if "error" in answer:
                return f"{worker.who}: {answer['kind']}: {answer['error'][:120]}"
            found.append(answer)
    first, later = ([found[0]["seconds"] for found in answers], [middle(found, "seconds") for found in answers])
    try:
        run, difference = runs(case, files)
    except Exception as error:
        return f"ONNX Runtime: {' '.join(str(error).split())[:120]}"
    return Times((first[0], first[1]), (later[0], later[1]), run, middle(answers[0], "tracing"), difference)


def middle(answers: list[dict[str, float]], key: str) -> float:
    return statistics.median(answer[key] for answer in answers[1:])


def runs(case: Network, files: tuple[Path, Path]) -> tuple[tuple[float, float], float]:
    sessions = [session(path) for path in files]
    given = list(inputs(case.specs, "ordinary", case.id))
    feeds = [{one.name: value for one, value in zip(s.get_inputs(), given, strict=True)} for s in sessions]
    one, other = (made.run(None, fed)[0] for made, fed in zip(sessions, feeds, strict=True))
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < 5 or sum(map(sum, times)) < SECONDS:
        for made, fed, found in zip(sessions, feeds, times, strict=True):
            began = time.process_time()
            made.run(None, fed)
            found.append(time.process_time() - began)
    largest = np.abs(one.astype(np.float64)).max(initial=1e-30)
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0.0) / largest
    return (statistics.median(times[0]), statistics.median(times[1])), float(difference)


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}" if seconds >= 0.01 else f"{seconds * 1e3:.2g}"


def share(pair: tuple[float, float]) -> float:
    return pair[0] / max(pair[1], 1e-9)


def row(name: str, times: Times) -> list[str]:
    converting = [ms(times.later[0]), ms(times.later[1]), ms(times.tracing)]
    ratios = [f"{share(pair):.2f}" for pair in (times.later, times.beyond, times.first, times.run)]
    return [name, *converting, *ratios[:3], ms(times.run[0]), ms(times.run[1]), ratios[3], f"{times.difference:.0e}"]


COLUMNS = [
    "model", "onward, ms", "jax2onnx, ms", "of it tracing", "ratio", "ratio beyond tracing", "ratio, first time",
    "run, ms", "jax2onnx's file", "ratio", "difference",
]  # fmt: skip


def table(title: str, words: str, found: dict[str, Times]) -> str:
    pairs = [[getattr(times, key) for times in found.values()] for key in ("later", "beyond", "first", "run")]
    medians = [f"{statistics.median(map(share, one)):.2f}" for one in pairs]
    rows = [row(name, times) for name, times in found.items()]
    rows.append(["**median**", "", "", "", *medians[:3], "", "", medians[3], ""])
    return section(title, words, COLUMNS, rows)


def growth(found: dict[str, Times]) -> str:
    rows = []
    for name in ("BERT", "ViT"):
        if len(sizes := [times for key, times in found.items() if key.startswith(f"flax/{name}")]) == 3:
            for side, who in enumerate(("onward", "jax2onnx")):
                rows.append([name, who, *(f"{t.later[side] / sizes[0].later[side]:.2f}" for t in sizes)])
            rows.append([name, "tracing", *(f"{t.tracing / sizes[0].tracing:.2f}" for t in sizes)])
    words = "Time of a conversion in that of 3 layers: linear is at most 1, 2, 4."
    return section("Growth", words, ["network", "", "3 layers", "6 layers", "12 layers"], rows)


def page(found: dict[str, Times], missed: dict[str, str]) -> str:
    networks = {name: times for name, times in found.items() if name.startswith("flax/")}
    small = {name: times for name, times in found.items() if name not in networks}
    parts = [WORDS]
    if networks:
        parts += [table("Networks", "Weights are drawn; a batch of one.", networks), growth(networks)]
    if small:
        parts.append(table("Small models", "Most of the time of a conversion is JAX's own tracing.", small))
    if missed:
        rows = [[name, why.replace("|", "\\|")] for name, why in missed.items()]
        parts.append(section("Not compared", "", ["model", "why"], rows))
    return "\n\n".join([*parts, machine.describe("jax", "flax", "onnxruntime", "onward")]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", required=True)
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for ids; writes nothing")
    args = parser.parse_args()
    workers = Worker("onward", sys.executable), Worker("jax2onnx", args.peer)
    found: dict[str, Times] = {}
    missed: dict[str, str] = {}
    for case in (*NETWORKS, *MODELS[::4]):
        if re.search(args.only or "", case.id):
            with tempfile.TemporaryDirectory() as folder:
                result = measured(case, workers, Path(folder))
            if isinstance(result, Times):
                found[case.id] = result
                print(row(case.id, result), flush=True)
            else:
                missed[case.id] = result
                print(case.id, result, flush=True)
    for worker in workers:
        worker.stop()
    text = page(found, missed)
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
