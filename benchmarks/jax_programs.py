"""Programs and models of JAX as ONNX beside JAX itself; writes docs/measured/jax-programs.md.

python benchmarks/jax_programs.py                   all of them
python benchmarks/jax_programs.py --only linen      those whose ids have the pattern; writes nothing
python benchmarks/jax_programs.py --peer PYTHON     with jax2onnx beside, which this other Python has
python benchmarks/jax_programs.py --kept FILE       verdicts of jax2onnx are kept there, and not made again

The cases are those of the tests, in tests/frontends/jax/battery.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/frontends/jax/battery"))

import jax  # noqa: E402
import machine  # noqa: E402
import onnxruntime  # noqa: E402
from jax_cases import Case, Refusal  # noqa: E402
from jax_data import inputs  # noqa: E402
from jax_judge import Verdict, judge, judge_refusal  # noqa: E402
from jax_models import Network  # noqa: E402
from jax_modules import CASES, MODELS, REFUSALS  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402

PAGE = ROOT / "docs/measured/jax-programs.md"
WORDS = """# Programs and models of JAX to ONNX

Each case is a program as people write it, or a small model of a library with random weights. It is converted by
`onward.from_jax`, then run by JAX, compiled, and by ONNX Runtime on three sets of data: ordinary numbers, special
values (NaN, infinities, negative zeros, the ends of integers, indices out of range), and whole and half numbers with
many ties. Symbolic sizes have other values in each. Integers, bools and random bits have to be the same, floats to 5e-5
of themselves in float32, 1e-10 in float64, 4e-3 in float16 and 3.2e-2 in bfloat16. Made by
`benchmarks/jax_programs.py`; the same cases run in the tests."""
OUTCOMES = ("same", "refused", "invalid", "wrong", "crash")
PATIENCE = 120
"""After how many seconds a conversion is given up."""
START = 900
"""After how many seconds the first is, which has to wait for imports."""
ROUNDS = 5
"""How often a model is converted by each side, in turn."""


@dataclass
class Worker:
    """Conversions in a process of their own, which is begun anew after a hundred, and after one that does not end."""

    who: str
    python: str
    process: subprocess.Popen[str] | None = None
    count: int = 0

    def convert(self, case: Case, out: Path) -> dict[str, Any]:
        if self.process is None or self.count >= 100:
            self.stop()
            self.process, self.count = self.started(), 0
        self.count += 1
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": case.id, "out": str(out)}) + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if ready.select(START if self.count == 1 else PATIENCE) else None
        if not line:
            self.stop()
            return {"kind": "crash", "error": "the process ended" if line == "" else f"no end in {PATIENCE} seconds"}
        return json.loads(line)  # type: ignore[no-any-return]

    def started(self) -> subprocess.Popen[str]:
        command = [self.python, str(Path(__file__).with_name("jax_worker.py")), self.who]
        paths = os.environ | {"PYTHONPATH": str(ROOT / "src") if self.who == "onward" else "", "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=paths)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None


@dataclass
class Findings:
    """Verdicts by case: of Onward, and of the peer if there is one; and times of models by side."""

    own: dict[Case, Verdict] = field(default_factory=dict)
    peer: dict[Case, Verdict] = field(default_factory=dict)
    refused: dict[Refusal, Verdict] = field(default_factory=dict)
    converting: dict[Case, tuple[float, float]] = field(default_factory=dict)
    running: dict[Case, tuple[float, float]] = field(default_factory=dict)


def peer_verdict(case: Case, worker: Worker, folder: Path) -> Verdict:
    """The same judge; an error of the conversion is a refusal, whatever it says."""
    out = folder / "peer.onnx"

    def convert(case: Case) -> onward.Model:
        answer = worker.convert(case, out)
        if "error" in answer:
            raise UnsupportedError(f"{answer['kind']}: {answer['error']}")
        return onward.load(out)

    try:
        return judge(case, convert)
    finally:
        for path in folder.glob("peer.onnx*"):
            path.unlink()


def times(case: Case, own: Worker, peer: Worker, folder: Path) -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds of processor time of the conversion, and of one run on one thread, of Onward and of the peer."""
    files = [folder / "own.onnx", folder / "other.onnx"]
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for worker, out, found in zip((own, peer), files, seconds, strict=True):
            found.append(worker.convert(case, out)["seconds"])
    sessions = [session(path) for path in files]
    given = jax.tree.leaves(inputs(case.specs, "ordinary", case.id))
    feeds = [{one.name: value for one, value in zip(s.get_inputs(), given, strict=True)} for s in sessions]
    runs: list[list[float]] = [[], []]
    for _ in range(30):
        for made, fed, found in zip(sessions, feeds, runs, strict=True):
            began = time.process_time()
            for _ in range(10):
                made.run(None, fed)
            found.append((time.process_time() - began) / 10)
    converting, running = ([statistics.median(found) for found in both] for both in (seconds, runs))
    return (converting[0], converting[1]), (running[0], running[1])


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def found(pattern: str, python: str | None, kept: Path | None) -> Findings:
    result = Findings()
    known = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}
    own, peer = Worker("onward", sys.executable), Worker("jax2onnx", python or "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in (*CASES, *MODELS):
            if re.search(pattern, case.id):
                result.own[case] = judge(case)
                if python:
                    result.peer[case] = Verdict(*(known.get(case.id) or astuple(peer_verdict(case, peer, folder))))
                    known[case.id] = astuple(result.peer[case])
                if kept:
                    kept.write_text(json.dumps(known), encoding="utf-8")
                print(case.id, result.own[case].word, result.peer.get(case, Verdict("")).word, flush=True)
        both = [case for case, verdict in result.peer.items() if verdict.word == result.own[case].word == "same"]
        for case in both:
            if isinstance(case, Network):
                result.converting[case], result.running[case] = times(case, own, peer, folder)
    own.stop()
    peer.stop()
    result.refused = {one: judge_refusal(one) for one in REFUSALS if re.search(pattern, one.name)}
    return result


def by_theme(result: Findings) -> list[list[str]]:
    """A row a theme, one for all programs and one for all models."""
    rows = []
    groups = {theme: [case for case in result.own if case.theme == theme] for theme in themes(result)}
    groups["**all programs**"] = [case for case in result.own if not isinstance(case, Network)]
    groups["**all models**"] = [case for case in result.own if isinstance(case, Network)]
    for theme, cases in groups.items():
        counts = [str(len(cases))]
        for verdicts in (result.own, result.peer) if result.peer else (result.own,):
            words = Counter(verdicts[case].word for case in cases)
            counts += [str(words[word]) for word in OUTCOMES]
        rows.append([theme, *counts])
    return rows


def themes(result: Findings) -> list[str]:
    return list(dict.fromkeys(case.theme for case in result.own))


def cell(text: str) -> str:
    """A message in one cell of a table, without the folders of files."""
    return re.sub(r"(/[^\s/]+)+/(?=jax_)", "", " ".join(text.split())).replace("|", "\\|")


def section(title: str, words: str, columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return f"## {title}\n\n{words}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary(result: Findings) -> str:
    parts = []
    for what, is_model in (("programs", False), ("models", True)):
        for who, verdicts in (("Onward", result.own), ("jax2onnx", result.peer)):
            words = Counter(v.word for case, v in verdicts.items() if isinstance(case, Network) == is_model)
            if total := words.total():
                parts.append(
                    f"{who}: {words['same']} of {total} {what} are the same ({100 * words['same'] / total:.1f} %), "
                    f"{words['refused']} are refused, {words['invalid']} are files that ONNX Runtime does not load, "
                    f"{words['wrong']} are wrong, {words['crash']} crash."
                )
    return "\n\n".join(parts)


def speed(result: Findings) -> str:
    rows = []
    for case, (one, other) in result.converting.items():
        run, its_run = result.running[case]
        ratios = [f"{one / other:.2f}", f"{run * 1e6:.0f}", f"{its_run * 1e6:.0f}", f"{run / its_run:.2f}"]
        rows.append([case.id, f"{one * 1e3:.0f}", f"{other * 1e3:.0f}", *ratios])
    halves = (result.converting.values(), result.running.values())
    middles = [statistics.median(one / other for one, other in pairs) for pairs in halves]
    words = (
        "Models that both convert: processor time in ms of a conversion, and in µs of a run in ONNX Runtime on one "
        f"thread, in turn in one run. The median of the ratios is {middles[0]:.2f} for conversions and "
        f"{middles[1]:.2f} for runs."
    )
    columns = ["model", "convert", "jax2onnx", "ratio", "run", "jax2onnx's file", "ratio"]
    return section("Time, beside jax2onnx", words, columns, rows)


def page(result: Findings) -> str:
    columns = ["theme", "cases", *OUTCOMES]
    if result.peer:
        columns += [f"jax2onnx: {OUTCOMES[0]}", *OUTCOMES[1:]]
    differing = [[f"`{c.id}`", v.word, cell(v.detail)] for c, v in result.own.items() if v.word != "same"]
    refused = [[f"`{one.name}`", v.word, cell(v.detail)] for one, v in result.refused.items()]
    named = sum(verdict.word == "refused" for verdict in result.refused.values())
    parts = [WORDS, section("By theme", summary(result), columns, by_theme(result))]
    parts.append(section("What is not the same", "", ["case", "outcome", "what is said"], differing))
    words = f"{named} of {len(refused)} programs that no graph can stand for are refused by name."
    parts.append(section("What should be refused", words, ["program", "outcome", "what is said"], refused))
    if result.converting:
        parts.append(speed(result))
    if wrong := [
        [f"`{c.id}`", v.word, cell(v.detail)] for c, v in result.peer.items() if v.word in ("wrong", "invalid")
    ]:
        words = "What jax2onnx converts without an error, and is wrong or does not load."
        parts.append(section("Beside: jax2onnx", words, ["case", "outcome", "what differs"], wrong))
    libraries = ("jax", "flax", "equinox", "dm-haiku", "onnxruntime")
    return "\n\n".join([*parts, machine.describe(*libraries)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for ids; writes nothing")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has jax2onnx, the JAX of this one and ONNX")
    parser.add_argument("--kept", metavar="FILE", type=Path, help="keeps verdicts of jax2onnx, for another run")
    args = parser.parse_args()
    text = page(found(args.only or "", args.peer, args.kept))
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
