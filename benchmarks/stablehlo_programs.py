"""The JAX battery through StableHLO: exported by JAX, converted to ONNX; writes docs/measured/stablehlo-programs.md.

python benchmarks/stablehlo_programs.py                 all programs and models
python benchmarks/stablehlo_programs.py --only linen    those whose ids have the pattern; writes no page
python benchmarks/stablehlo_programs.py --kept FILE     verdicts are kept there as they come, and not made again
python benchmarks/stablehlo_programs.py --sample 800    all models, and so many programs, drawn once for all

The cases are those of `jax_programs.py`. They are judged in processes of their own, each of which ends after a hundred.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

import machine
from jax_programs import CASES, MODELS, OUTCOMES, ROOT, Case, Findings, Verdict, by_theme, cell, judge, section, summary
from jax_programs import asked as drawn

# isort: split
from jax_judge import through_stablehlo  # after jax_programs, which knows where the battery is

PAGE = ROOT / "docs/measured/stablehlo-programs.md"
WORDS = """# Programs and models of JAX to ONNX through StableHLO

The cases of [the programs and models of JAX](jax-programs.md). JAX exports each to a module of StableHLO,
`onward.from_stablehlo` converts its text, and ONNX Runtime computes beside JAX itself, on the same data and within the
same tolerances. Names, scans and some functions of JAX are not in StableHLO any more: a scan is a loop, and a
decomposition is a call of LAPACK. Made by `benchmarks/stablehlo_programs.py`."""
CHUNK = 100
"""How many cases a process judges: what JAX compiled for them fills memory."""
BY_ID = {case.id: case for case in (*CASES, *MODELS)}


def judged(name: str) -> tuple[str, str]:
    verdict = judge(BY_ID[name], through_stablehlo)
    return verdict.word, verdict.detail


def together(names: list[str], workers: int) -> Iterator[tuple[str, Verdict]]:
    """Verdicts in this order, by as many processes, which end then; no more of them where one of these breaks."""
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool, suppress(BrokenProcessPool):
        for name, (word, detail) in zip(names, pool.map(judged, names), strict=True):
            yield name, Verdict(word, detail)


def found(pattern: str, sample: int | None, kept: Path | None, workers: int) -> dict[Case, Verdict]:
    lines = kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []
    verdicts = {name: Verdict(*rest) for name, *rest in map(json.loads, lines)}
    asked = [name for name in drawn(sample) if re.search(pattern, name)]

    def keep(name: str, verdict: Verdict) -> None:
        verdicts[name] = verdict
        print(name, verdict, flush=True)
        if kept:
            with kept.open("a", encoding="utf-8") as file:
                print(json.dumps([name, *astuple(verdict)]), file=file)

    while left := [name for name in asked if name not in verdicts]:
        for name, verdict in together(left[: CHUNK * workers], workers):
            keep(name, verdict)
        if left[0] not in verdicts:  # a process broke: this one alone shows whose it was
            keep(left[0], next((v for _, v in together(left[:1], 1)), Verdict("crash", "the process ended")))
    return {case: verdicts[name] for name, case in BY_ID.items() if name in asked}


def page(verdicts: dict[Case, Verdict], note: str) -> str:
    result = Findings(own=verdicts)
    words = summary(result)
    if left := len(BY_ID) - len(verdicts):
        words = f"{len(verdicts):,} of {len(BY_ID):,} cases, drawn once for all; {left:,} were not run.\n\n{words}"
    differing = [[f"`{c.id}`", v.word, cell(v.detail)] for c, v in verdicts.items() if v.word != "same"]
    parts = [
        WORDS,
        *([note] if note else []),
        section("By theme", words, ["theme", "cases", *OUTCOMES], by_theme(result)),
        section("What is not the same", "", ["case", "outcome", "what is said"], differing),
        machine.describe("jax", "flax", "equinox", "dm-haiku", "onnxruntime"),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for ids; writes no page")
    parser.add_argument("--kept", metavar="FILE", type=Path, help="keeps verdicts, for a run that goes on")
    parser.add_argument("--sample", metavar="N", type=int, help="programs that are judged, else all")
    parser.add_argument("--note", default="", help="what the page says of this run")
    parser.add_argument("--workers", type=int, default=1, help="how many cases are judged at a time")
    args = parser.parse_args()
    text = page(found(args.only or "", args.sample, args.kept, args.workers), args.note)
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
