"""Conversion of JAX beside jax2onnx, and the files of both in ONNX Runtime; writes docs/measured/speed-from-jax.md.

    python benchmarks/speed_from_jax.py --peer PYTHON                   PYTHON is one that has jax2onnx
    python benchmarks/speed_from_jax.py --peer PYTHON --only 'BERT'     those whose ids have the pattern; writes nothing
    python benchmarks/speed_from_jax.py --peer PYTHON --files /dev/shm  files are in memory, where no disk disturbs

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
from typing import Any

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
ROUNDS = 7
"""How often each side converts a model after the first time."""
WORDS = f"""# From JAX: speed beside jax2onnx

Written by `benchmarks/speed_from_jax.py`. Time of the processor on one thread, for the program and for the system
together, of the two sides in turns, each in a process that has converted something before. A conversion goes from the
call to the file that its side writes, with the settings that each has by itself, and nothing is verified in it; beside
it are the first conversion of a model in its process, and one that goes to a protobuf in memory instead. Numbers are
medians of {ROUNDS}. The networks are those of `benchmarks/flax_models.py`, the small models every fourth of those of
the tests.

Each conversion goes to a new file: what it takes to give back the memory of an old one is not counted. What the system
takes depends on how full its memory is, so it is given apart, in brackets, and *without the system* is the ratio of
what the two programs take themselves. For comparison each side also writes as many bytes plainly, after each
conversion: in one call, from memory that is there, to a new file in the same folder.

JAX's own tracing is what `jax.make_jaxpr` takes for the module as it is called by a user, and beside it is its share of
all that jax2onnx takes: a converter that leaves JAX as it is comes no lower, unless it traces less. Onward does for
modules of linen: it asks for the shapes of parameters together, and traces equal layers of Flax once. jax2onnx needs
less for many layers, since it puts functions of its own in place of those of JAX and Flax, which Onward never does.

Both sides are given sizes by their names. A name is the same symbol in all conversions of Onward, so that JAX finds the
inner functions again which it has traced for the same sizes, as it does where they are numbers. The first conversion of
a model has little of that."""
SECONDS = 1.0
"""How long both files of a model run, in turns."""
TURN = 0.01
"""How long one of them runs at a time, at least."""
Pair = tuple[float, float]
"""Of Onward and of jax2onnx."""


@dataclass(frozen=True)
class Times:
    """Of one model, by Onward and by jax2onnx: seconds of a first and of later conversions, and of a run."""

    first: Pair
    later: Pair
    system: Pair
    """The part of `later` that the system takes."""
    write: float
    """What it takes to write as many bytes plainly."""
    memory: Pair
    """To a protobuf instead of a file."""
    tracing: float
    """What JAX alone takes."""
    run: Pair | None
    """None where ONNX Runtime does not load both files."""
    difference: float
    """The largest between results of the two files, as a share of the largest number."""

    @property
    def own(self) -> Pair:
        """What both take without the system."""
        return self.later[0] - self.system[0], self.later[1] - self.system[1]


def measured(case: Network, workers: tuple[Worker, Worker], folder: Path) -> Times | str:
    """The times, or which side does not convert it and why."""
    files = folder / "onward.onnx", folder / "jax2onnx.onnx"
    answers: dict[bool, list[list[dict[str, float]]]] = {True: [[], []], False: [[], []]}
    for to_file in [True] * (1 + ROUNDS) + [False] * ROUNDS:
        for worker, out, found in zip(workers, files, answers[to_file], strict=True):
            answer = worker.convert(case, out if to_file else out.with_suffix(".other"), to_file)
            if "error" in answer:
                return f"{worker.who}: {answer['kind']}: {answer['error'][:120]}"
            found.append(answer)
    first = tuple(found[0]["seconds"] for found in answers[True])
    later = tuple(middle(found[1:], "seconds") for found in answers[True])
    system = tuple(middle(found[1:], "system") for found in answers[True])
    write = middle([one for found in answers[True] for one in found[1:]], "write")
    memory = tuple(middle(found, "seconds") for found in answers[False])
    try:
        run, difference = runs(case, files)
    except Exception as error:
        print(case.id, "in ONNX Runtime:", " ".join(str(error).split())[:160])
        run, difference = None, 0.0
    tracing = middle(answers[True][0][1:], "tracing")
    return Times(first, later, system, write, memory, tracing, run, difference)  # type: ignore[arg-type]


def middle(answers: list[dict[str, float]], key: str) -> float:
    return statistics.median(answer[key] for answer in answers)


def runs(case: Network, files: tuple[Path, Path]) -> tuple[Pair, float]:
    sessions = [session(path) for path in files]
    given = list(inputs(case.specs, "ordinary", case.id))
    feeds = [{one.name: value for one, value in zip(s.get_inputs(), given, strict=True)} for s in sessions]
    one, other = (made.run(None, fed)[0] for made, fed in zip(sessions, feeds, strict=True))
    count = 1 + int(TURN / seconds_of(sessions[0], feeds[0], 3))
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < 7 or sum(map(sum, times)) * count < SECONDS:
        for made, fed, found in zip(sessions, feeds, times, strict=True):
            found.append(seconds_of(made, fed, count))
    largest = np.abs(one.astype(np.float64)).max(initial=1e-30)
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0.0) / largest
    return (statistics.median(times[0]), statistics.median(times[1])), float(difference)


def seconds_of(made: onnxruntime.InferenceSession, fed: dict[str, Any], count: int) -> float:
    """Of one run, where so many follow each other."""
    began = time.process_time()
    for _ in range(count):
        made.run(None, fed)
    return (time.process_time() - began) / count


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}" if seconds >= 0.01 else f"{seconds * 1e3:.2g}"


def share(pair: Pair) -> float:
    return pair[0] / max(pair[1], 1e-9)


def row(name: str, times: Times) -> list[str]:
    ratios = [f"{share(pair):.2f}" for pair in (times.later, times.own, times.first, times.memory)]
    alone = f"{times.tracing / max(times.later[1], 1e-9):.2f}"
    sides = [f"{ms(all_)} ({ms(part)})" for all_, part in zip(times.later, times.system, strict=True)]
    cells = [name, ms(times.tracing), alone, *sides, ms(times.write), *ratios]
    if times.run is None:
        return [*cells, "", "does not load", "", ""]
    return [*cells, ms(times.run[0]), ms(times.run[1]), f"{share(times.run):.2f}", f"{times.difference:.0e}"]


COLUMNS = [
    "model", "JAX's tracing, ms", "its share", "Onward, ms (system)", "jax2onnx, ms (system)", "plain write, ms",
    "ratio", "without the system", "first time", "to a protobuf",
    "run, ms", "jax2onnx's file", "ratio of runs", "difference",
]  # fmt: skip


def table(title: str, words: str, found: dict[str, Times]) -> str:
    medians = [
        f"{statistics.median([share(getattr(times, key)) for times in found.values() if getattr(times, key)]):.2f}"
        for key in ("later", "own", "first", "memory", "run")
    ]
    rows = [row(name, times) for name, times in found.items()]
    rows.append(["**median**", "", "", "", "", "", *medians[:4], "", "", medians[4], ""])
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


def page(found: dict[str, Times], missed: dict[str, str], files: str | None) -> str:
    networks = {name: times for name, times in found.items() if name.startswith("flax/")}
    small = {name: times for name, times in found.items() if name not in networks}
    parts = [WORDS + (f"\n\nFiles were written to `{files}` by both." if files else "")]
    if networks:
        parts += [table("Networks", "Weights are drawn; a batch of one.", networks), growth(networks)]
    if small:
        over = sum(times.tracing > times.later[1] / 2 for times in small.values())
        words = (
            f"Of {over} of these {len(small)} models JAX's own tracing takes more than half of all that jax2onnx takes,"
            " so that no converter which leaves JAX as it is can take half of its time, unless it traces less."
        )
        parts.append(table("Small models", words, small))
    if missed:
        rows = [[name, why.replace("|", "\\|")] for name, why in missed.items()]
        parts.append(section("Not compared", "What one of the two does not convert.", ["model", "why"], rows))
    return "\n\n".join([*parts, machine.describe("jax", "flax", "onnxruntime", "onward")]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", required=True)
    parser.add_argument("--files", metavar="FOLDER", help="in which both sides write; that of temporary files, else")
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for ids; writes nothing")
    args = parser.parse_args()
    workers = Worker("onward", sys.executable), Worker("jax2onnx", args.peer)
    found: dict[str, Times] = {}
    missed: dict[str, str] = {}
    for case in (*NETWORKS, *MODELS[::4]):
        if re.search(args.only or "", case.id):
            with tempfile.TemporaryDirectory(dir=args.files) as folder:
                result = measured(case, workers, Path(folder))
            if isinstance(result, Times):
                found[case.id] = result
                print(row(case.id, result), flush=True)
            else:
                missed[case.id] = result
                print(case.id, result, flush=True)
    for worker in workers:
        worker.stop()
    text = page(found, missed, args.files)
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
