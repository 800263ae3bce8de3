"""ONNX's own backend suite on the PyTorch backend and on ONNX Runtime, with known and unknown shapes.

python benchmarks/scoreboard.py          runs all of it and writes docs/scoreboard.md
"""

import time
from collections import Counter
from pathlib import Path

import machine
from rich.console import Console

from onward.verify import suite
from onward.verify.exceptions import EXCEPTIONS

PAGE = Path(__file__).parent.parent / "docs" / "scoreboard.md"
Results = dict[str, suite.Result]


def run(backend: str, unknown_shapes: bool) -> tuple[Results, float]:
    start = time.perf_counter()
    results = {r.name: r for r in suite.run(backend, suite.cases(), unknown_shapes)}
    return results, time.perf_counter() - start


def family(name: str) -> str:
    """The part of the suite a case is from."""
    case = suite.cases()[name]
    if case.kind == "node":
        return "node, ai.onnx.ml" if name.startswith("test_ai_onnx_ml") else "node"
    return str(case.kind)


def passed(results: Results) -> set[str]:
    return {name for name, result in results.items() if result.outcome == "pass"}


def page(known: Results, unknown: Results, ort: Results, ort_unknown: Results, seconds: float) -> str:
    random = {name for name, reason in EXCEPTIONS["torch"].items() if "random" in reason}
    ours, ours_unknown, theirs, theirs_unknown = map(passed, (known, unknown, ort, ort_unknown))
    missing = sorted(theirs_unknown - ours_unknown - random)
    lines = [
        "# Scoreboard: ONNX's own backend suite",
        "",
        f"All {len(known):,} cases of the suite in the `onnx` package, each with its own tolerance. Made by",
        "`benchmarks/scoreboard.py`.",
        "",
        machine.describe("onward", "torch", "onnx", "onnxruntime"),
        f"The PyTorch run takes {seconds / 60:.1f} minutes on this machine.",
        "",
        "| | known shapes | unknown shapes |",
        "|---|---|---|",
        f"| Onward → PyTorch | **{len(ours - random):,}** | **{len(ours_unknown - random):,}** |",
        f"| ONNX Runtime | {len(theirs):,} | {len(theirs_unknown):,} |",
        "",
        "ONNX Runtime is run through `InferenceSession.run`, as most users do; it takes no 8-bit floats there, and no",
        "opset above 26.",
        "",
        "*Unknown shapes*: every dimension of every input is made symbolic, and all shapes of intermediate and",
        "output values are removed from the file. Cases that ONNX Runtime runs in this form and Onward does not: "
        + (f"{len(missing)} ({', '.join(missing)})." if missing else "none."),
        "",
        f"The {len(random)} Bernoulli cases expect one random draw; they are not counted above, and are tested by",
        "their statistics instead.",
        "",
        "| part of the suite | cases | pass |",
        "|---|---|---|",
    ]
    totals = Counter(map(family, known))
    good = Counter(map(family, ours - random))
    lines += [f"| {part} | {total:,} | {good[part]:,} |" for part, total in sorted(totals.items())]
    lines += ["", "## Exceptions", "", "| case | reason |", "|---|---|"]
    lines += [f"| `{name}` | {reason} |" for name, reason in sorted(EXCEPTIONS["torch"].items())]
    unexplained = sorted((known.keys() - ours) - EXCEPTIONS["torch"].keys())
    lines += [f"| `{name}` | {known[name].message[:120]} |" for name in unexplained]
    return "\n".join(lines) + "\n"


def main() -> None:
    console = Console()
    with console.status("PyTorch, known shapes"):
        known, seconds = run("torch", False)
    with console.status("PyTorch, unknown shapes"):
        unknown, _ = run("torch", True)
    with console.status("ONNX Runtime"):
        ort, ort_unknown = run("onnxruntime", False)[0], run("onnxruntime", True)[0]
    text = page(known, unknown, ort, ort_unknown, seconds)
    PAGE.write_text(text, encoding="utf-8")
    console.print(text, highlight=False)


if __name__ == "__main__":
    main()
