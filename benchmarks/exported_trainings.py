"""Every training that ONNX Runtime runs in the tests, exported to other frameworks.

    python benchmarks/exported_trainings.py                      all tests of training; writes the page
    python benchmarks/exported_trainings.py --rows FILE          goes on where a run with this file ended
    python benchmarks/exported_trainings.py --to torch tests/training/recipe      some; writes nothing

The tests run as they are. Beside them, what each makes trainable is noted. When the test is over, ONNX Runtime makes
two steps of it on data that are made up, and it is exported. In PyTorch the package then makes the same steps, in this
process, and the losses have to be the same. What draws random numbers is exported and not compared. A schedule that is
a function of the user is exported as the list of what it gives, as its refusal says.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import machine
import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/measured/exported-trainings.md"
FRAMEWORKS = ("torch", "keras", "tensorflow", "jax")
FILE, TO = "ONWARD_EXPORTED", "ONWARD_EXPORTED_TO"
STEPS, EACH = 2, 3
"""Batches that are compared, and trainings that are taken of one test."""
LIMIT = 1e-3
"""How far a loss may be off, of itself."""
noted: list[Any] = []
busy = [0]
"""Whether what is made trainable is made here, not by a test."""


def pytest_configure() -> None:
    """As a plugin: note what is made trainable."""
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable

    make, start = Trainable.__init__, Trainer.__init__

    def made(self: Any, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        if busy == [0] and len(noted) < EACH:
            noted.append(self)

    def started(self: Any, *args: Any, **options: Any) -> None:
        busy[0] += 1  # what a trainer makes of a training, such as large weights as inputs, is for itself
        try:
            start(self, *args, **options)
        finally:
            busy[0] -= 1

    Trainable.__init__ = made  # type: ignore[method-assign]
    Trainer.__init__ = started  # type: ignore[method-assign]


def pytest_runtest_teardown(item: Any) -> None:
    found, rows = list(noted), []
    noted.clear()
    busy[0] += 1
    for trainable in found:
        if (ran := steps_of(trainable)) is not None:
            for to in os.environ[TO].split(","):
                rows.append({"test": item.nodeid, "to": to, **exported(trainable, *ran, to)})
    busy[0] -= 1
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def steps_of(trainable: Any) -> tuple[list[Any], list[float]] | None:
    """Batches and what ONNX Runtime makes of them; None where it does not train this, as some tests mean it."""
    from onward.training.runtime.trainer import Trainer
    from onward.training.verification.data import made_up

    try:
        trainer = Trainer(trainable, kernels=False)
        batches = made_up(trainer, STEPS * trainable.accumulate, 0)
        losses = [trainer.step(batch) for batch in batches]
    except Exception:
        return None
    finite = all(np.isfinite(array).all() for array in trainer.parameters.values() if array.dtype.kind == "f")
    return (batches, losses) if finite else None


def exported(trainable: Any, batches: list[Any], losses: list[float], to: str) -> dict[str, Any]:
    """How it went: in words, by graphs, refused; and whether the losses are the same."""
    from onward.errors import OnwardError
    from onward.training.recipe.schedules import Table, is_own
    from onward.training.verification.chance import without_chance

    given = Path(tempfile.mkdtemp(prefix="onward-exported-")) / f"net_{os.urandom(4).hex()}"
    try:
        module = __import__("onward.training", fromlist=["training"])
        if (schedule := trainable.schedule) is not None and is_own(schedule):
            trainable = replace(trainable, schedule=Table.of(schedule, trainable.step + STEPS))
        folder = getattr(module, f"to_{to}_package")(trainable, given)
    except OnwardError as error:
        return {"how": "refused", "why": " ".join(str(error).split())}
    except Exception as error:
        return {"how": "failed", "why": f"{type(error).__name__}: {error}"}
    how = "graphs" if (folder / "state.safetensors").exists() else "words"
    try:
        drawn = bool(without_chance(trainable)[1])
    except OnwardError:
        drawn = True
    if to != "torch" or drawn:
        return {"how": how, "why": "", "off": None}
    try:
        off = apart(folder, how, batches, losses, trainable.accumulate)
    except Exception as error:
        return {"how": "failed", "why": f"{type(error).__name__}: {error}"}
    return {"how": how if off <= LIMIT else "different", "why": "" if off <= LIMIT else f"off by {off:.2g}", "off": off}


def apart(folder: Path, how: str, batches: list[Any], losses: list[float], accumulate: int) -> float:
    """How far the losses of the package are from those of the test."""
    from onward.training.verification.torch import TorchPackage
    from onward.training.verification.whole_step import WholeStep

    package = (WholeStep if how == "graphs" else TorchPackage)(folder, [])
    parts = [batches[i : i + accumulate] for i in range(0, len(batches), accumulate)]
    found = [loss for part in parts for loss in package.step(part)]
    scale = max(max(map(abs, losses)), 1e-6)
    return max(abs(a - b) for a, b in zip(found, losses, strict=True)) / scale


def files_of(tests: list[str]) -> list[str]:
    """The files of tests in some folders; a file, or one of its tests, is itself."""
    found = [sorted(map(str, (ROOT / test).rglob("test_*.py"))) if (ROOT / test).is_dir() else [test] for test in tests]
    return [file for group in found for file in group]


def run(test: str, to: str) -> list[dict[str, Any]]:
    """In a process of its own, so that memory is given back."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.touch()
        env = os.environ | {FILE: str(file), TO: to, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{Path(__file__).parent}"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "exported_trainings", test]
        subprocess.run(command, cwd=ROOT, env=env, check=False)
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def page(rows: list[dict[str, Any]], tests: list[str]) -> str:
    names = {"torch": "PyTorch", "keras": "Keras", "tensorflow": "TensorFlow", "jax": "JAX"}
    kinds = ["words", "graphs", "refused", "different", "failed"]
    lines = [
        "# Trainings of the tests, exported",
        "",
        "Of every training that ONNX Runtime runs in the tests of training (at most "
        f"{EACH} of each test), whether `onward train export` writes it for another framework: in its own words, by",
        "its graphs where there are none, or not at all. In PyTorch the package then makes "
        f"{STEPS} steps on the same data, whose losses have to be the same (within {LIMIT:g} of the largest).",
        "",
        f"`python benchmarks/exported_trainings.py` · {machine.describe('onward', 'torch', 'onnxruntime')}",
        "",
        f"Tests: {', '.join(f'`{test}`' for test in tests)}",
        "",
        "| to | trainings | in words | by graphs | refused | different | failed |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for to in names:
        own = [row for row in rows if row["to"] == to]
        counts = Counter(row["how"] for row in own)
        if own:
            lines.append(f"| {names[to]} | {len(own)} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    compared = [row for row in rows if row.get("off") is not None]
    lines += ["", f"Compared in PyTorch: {len(compared)}; the others draw random numbers.", ""]
    lines += [
        "A schedule that is a function of the user was given as `Table.of(yours, steps)`, as the refusal says.",
        "",
    ]
    bad = [row for row in rows if row["how"] in kinds[2:]]
    if bad:
        lines += ["| to | why not | trainings |", "|---|---|---:|"]
        for (to, why), count in Counter((row["to"], row["why"]) for row in bad).most_common():
            lines.append(f"| {names[to]} | {why.replace('|', '/')[:200]} | {count} |")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="tests, or their folders; all of training by default")
    parser.add_argument("--to", default=",".join(FRAMEWORKS))
    parser.add_argument("--rows", type=Path, default=Path(os.devnull), help="what was found of each file of tests")
    args = parser.parse_args()
    tests = args.tests or ["tests/training"]
    known = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows.is_file() else []
    rows = {found["file"]: found["rows"] for found in known}
    for test in files_of(tests):
        if test not in rows:
            rows[test] = run(test, args.to)
            with args.rows.open("a") as file:
                file.write(json.dumps({"file": test, "rows": rows[test]}) + "\n")
    text = page([row for test in files_of(tests) for row in rows[test]], tests)
    print(text)
    if not args.tests:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
