"""Programs and models of JAX as ONNX beside JAX itself; writes docs/measured/jax-programs.md.

python benchmarks/jax_programs.py                   all of them
python benchmarks/jax_programs.py --only linen      those whose ids have the pattern; writes nothing
python benchmarks/jax_programs.py --peer PYTHON     with jax2onnx beside, which this other Python has
python benchmarks/jax_programs.py --kept FOLDER     what jax2onnx converts is kept there, and not converted again

python benchmarks/jax_programs.py --peer PYTHON --sample 800    jax2onnx gets so many programs, drawn once for all
python benchmarks/jax_programs.py --only gmres --again          puts the verdicts on these into the page as it is
python benchmarks/jax_programs.py --again                       those on all; what jax2onnx made of them stays

The cases are those of the tests, in tests/frontends/jax/battery.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import selectors
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/frontends/jax/battery"))

import machine  # noqa: E402
from jax_cases import Case, Refusal  # noqa: E402
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
many ties. Symbolic sizes have other values in each. Integers, bools and random bits have to be the same, floats to 2e-5
of themselves in float32, 1e-10 in float64, 4e-3 in float16 and 3.2e-2 in bfloat16. Made by
`benchmarks/jax_programs.py`; the same cases run in the tests.

What JAX computes is what it computes without `jit`: each primitive is compiled and run by itself. By default
`jit` gives other numbers in two places, which depend on what XLA puts together: roundings to float16 and bfloat16
between primitives are left out, and NaN times False is 0. To compile every primitive takes six times as long as to
compile the program once with both left out (`xla_allow_excess_precision`, `algsimp`). So that is compared first, and
where it differs, the primitives are run one by one, and decide. jax2onnx is judged in the same way."""
DIFFERING = "What is not the same"
OUTCOMES = ("same", "refused", "invalid", "wrong", "crash")
PATIENCE = 120
"""After how many seconds a conversion is given up."""
START = 900
"""After how many seconds the first is, which has to wait for imports."""


@dataclass
class Worker:
    """Conversions in a process of their own, which is begun anew after a hundred, and after one that does not end."""

    who: str
    python: str
    process: subprocess.Popen[str] | None = None
    count: int = 0

    def convert(self, case: Case, out: Path, to_file: bool = False) -> dict[str, Any]:
        if self.process is None or self.count >= 100:
            self.stop()
            self.process, self.count = self.started(), 0
        self.count += 1
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": case.id, "out": str(out), "to_file": to_file}) + "\n")
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
    """Verdicts by case: of Onward, and of the peer if there is one."""

    own: dict[Case, Verdict] = field(default_factory=dict)
    peer: dict[Case, Verdict] = field(default_factory=dict)
    refused: dict[Refusal, Verdict] = field(default_factory=dict)


def peer_verdict(case: Case, worker: Worker, folder: Path) -> Verdict:
    """The same judge; an error of the conversion is a refusal, whatever it says."""
    out = folder / f"{case.id.replace('/', '__')}.onnx"
    said = out.with_suffix(".json")

    def convert(case: Case) -> onward.Model:
        if not said.exists():
            said.write_text(json.dumps(worker.convert(case, out)), encoding="utf-8")
        answer = json.loads(said.read_text(encoding="utf-8"))
        if "error" in answer:
            raise UnsupportedError(f"{answer['kind']}: {answer['error']}")
        return onward.load(out)

    return judge(case, convert)


def asked(sample: int | None) -> list[str]:
    """All models, and of the programs as many, or all: the first of an order that is always the same."""
    ids = [case.id for case in CASES]
    random.Random(0).shuffle(ids)
    return [*(case.id for case in MODELS), *ids[:sample]]


def found(pattern: str, python: str | None, kept: Path | None, sample: int | None) -> Findings:
    result, wanted = Findings(), set(asked(sample))
    peer = Worker("jax2onnx", python or "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in (*CASES, *MODELS):
            if re.search(pattern, case.id):
                result.own[case] = judge(case)
                if python and case.id in wanted:
                    result.peer[case] = peer_verdict(case, peer, kept or folder)
                print(case.id, result.own[case].word, result.peer.get(case, Verdict("")).word, flush=True)
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
            words = Counter(verdicts[case].word for case in cases if case in verdicts)
            if verdicts is result.peer:
                counts.append(str(words.total()))
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


def page(result: Findings) -> str:
    columns = ["theme", "cases", *OUTCOMES]
    if result.peer:
        columns += ["jax2onnx: cases", *OUTCOMES]
    differing = [[f"`{c.id}`", v.word, cell(v.detail)] for c, v in result.own.items() if v.word != "same"]
    refused = [[f"`{one.name}`", v.word, cell(v.detail)] for one, v in result.refused.items()]
    named = sum(verdict.word == "refused" for verdict in result.refused.values())
    words = summary(result)
    if 0 < len(result.peer) < len(result.own):
        words += "\n\njax2onnx was given all models, and programs that were drawn by chance."
    parts = [WORDS, section("By theme", words, columns, by_theme(result))]
    nothing = f"## {DIFFERING}\n\nNothing."
    parts.append(section(DIFFERING, "", ["case", "outcome", "what is said"], differing) if differing else nothing)
    words = f"{named} of {len(refused)} programs that no graph can stand for are refused by name."
    parts.append(section("What should be refused", words, ["program", "outcome", "what is said"], refused))
    if wrong := [
        [f"`{c.id}`", v.word, cell(v.detail)] for c, v in result.peer.items() if v.word in ("wrong", "invalid")
    ]:
        words = "What jax2onnx converts without an error, and is wrong or does not load."
        parts.append(section("Beside: jax2onnx", words, ["case", "outcome", "what differs"], wrong))
    libraries = ("jax", "flax", "equinox", "dm-haiku", "onnxruntime")
    return "\n\n".join([*parts, machine.describe(*libraries)]) + "\n"


def again(pattern: str, old: str) -> str:
    """The page, with what Onward makes of some cases today; all else is of the run before."""
    rows = re.findall(r"^\| `([^`]+/[^`]+)` \| (\w+) \| (.*) \|$", part(old, DIFFERING), re.MULTILINE)
    listed = {name: Verdict(*said) for name, *said in rows}
    fresh = found(pattern, None, None, None).own
    own = {case: fresh.get(case) or listed.get(case.id, Verdict("same")) for case in (*CASES, *MODELS)}
    new = page(Findings(own))
    counts = {counted(line): line for line in new.splitlines() if counted(line)}
    lines = []
    for line in old.splitlines():
        if (what := counted(line)) and what not in counts:
            raise SystemExit(f"the page and the cases differ in '{what}': run all of them")
        peer = line.split(" | ")[2 + len(OUTCOMES) :] if line.startswith("| ") else []
        lines.append(" | ".join([counts[what].removesuffix(" |"), *peer]) if what else line)
    which = f"{len(fresh)} cases, `{pattern}`" if pattern else f"all {len(fresh)} cases of Onward"
    about = f"Judged again on {machine.describe('jax', 'onnxruntime')}: {which}."
    return "\n".join(lines).replace(part(old, DIFFERING), f"\n\n{about}" + part(new, DIFFERING)) + "\n"


def part(text: str, title: str) -> str:
    return text.partition(f"## {title}")[2].partition("\n## ")[0]


def counted(line: str) -> str:
    """What a line gives Onward's counts of: a theme and its cases, or all programs or models; else nothing."""
    match = re.match(r"\| ([a-z*][\w *]+ \| \d+) \||Onward: \d+ of (\d+ \w+)", line)
    return match[1] or match[2] if match else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for ids; writes nothing")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has jax2onnx, the JAX of this one and ONNX")
    parser.add_argument("--kept", metavar="FOLDER", type=Path, help="keeps what jax2onnx converts, for another run")
    parser.add_argument("--sample", metavar="N", type=int, help="programs that jax2onnx is given, else all")
    parser.add_argument("--again", action="store_true", help="judge those of --only again, and put that into the page")
    args = parser.parse_args()
    if args.again:
        text = again(args.only or "", PAGE.read_text(encoding="utf-8"))
    else:
        text = page(found(args.only or "", args.peer, args.kept, args.sample))
    print(text)
    if args.again or not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
