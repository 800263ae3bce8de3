"""What the text of a `train.py` says alike in every framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from onward.backends.emit.printing.language import wrap
from onward.training.export.graphs import LossGraph
from onward.training.export.plan import Plan
from onward.training.export.schedules import Words, factor
from onward.training.recipe.losses import Penalty
from onward.training.recipe.schedules import Constant

Text = str | Sequence[str]
"""A part of the script: a text, or its lines."""


@dataclass(frozen=True)
class Script(Plan):
    """The text of `train.py`, and what it depends on. A framework derives from it and adds its own words."""

    dtypes: ClassVar[str]
    """The module that has the dtypes of the data."""
    numbers: ClassVar[Words]
    """How a schedule is computed with."""
    sums: ClassVar[tuple[str, str]] = ("abs(w).sum()", "(w * w).sum()")
    """Of the sizes of a weight, and of their squares."""

    def joined(self, parts: Sequence[Text]) -> str:
        """Functions, one below the other."""
        return "\n\n\n".join(part.strip("\n") if isinstance(part, str) else "\n".join(part) for part in parts)

    def whole(self, head: Sequence[str], body: str) -> str:
        after = f"after {self.steps} steps" if self.steps else "from its first step on"
        title = f'"""Trains the model {after}: python -m PACKAGE.train data.npz --epochs 3."""'
        return "\n".join([title, "", *head, "", "", body, "", "", 'if __name__ == "__main__":', "    main()", ""])

    def tables(self) -> list[str]:
        """The constants that say what is read, and which matrices have adapters."""
        given = {**self.data, **self.labels}.items()
        lines = wrap(f"INPUTS = {{{', '.join(f'{quoted(name)}: {self.dtypes}.{dtype}' for name, dtype in given)}}}")
        if self.adapters:
            scales = ", ".join(f"{quoted(name)}: {scale!r}" for name, scale in self.adapters.items())
            lines += wrap(f"ADAPTERS = {{{scales}}}")
        return ["FOLDER = Path(__file__).parent", *lines]

    def rules(self) -> list[str]:
        """What each weight goes by."""
        lines = ["RULES = {  # what the learning rate is multiplied by, and the weight decay"]
        for rule, names in self.groups.items():
            lines += indented(wrap(f"**dict.fromkeys({listed(names)}, ({rule.lr!r}, {rule.decay!r})),"))
        return [*lines, "}"]

    @property
    def result(self) -> str:
        """What the loss calls all that the model gives."""
        return "y" if len(self.outputs) == 1 else "outputs"

    @property
    def arguments(self) -> list[str]:
        """What the model is called with."""
        return [batch(name) for name in self.data]

    def summed(
        self,
        call: Callable[[Any, str, Callable[[str], str]], str],
        weights: Callable[[Sequence[str]], str],
        *more: str,
    ) -> list[str]:
        """Lines that give the loss, and `more` beside it.

        `call` writes a loss of a prediction, `weights` what goes through those of some names, or through all.
        """
        terms = [] if self.graph is None else [self._of_graph(self.graph)]
        for term in self.terms:
            written = call(term.loss, self._output(term.output or self.outputs[0]), batch)
            terms.append(written if term.weight == 1 else f"{term.weight!r} * {written}")
        terms += [self._penalty(penalty, weights(names)) for penalty, names in self.penalties]
        if len(terms) == 1 and not more:
            return wrap(f"return {terms[0]}")
        first, *others = terms
        lines = [*wrap(f"loss = {first}"), *(line for term in others for line in wrap(f"loss = loss + {term}"))]
        return [*lines, f"return {', '.join(['loss', *more])}"]

    def _output(self, name: str) -> str:
        return self.result if len(self.outputs) == 1 else f"{self.result}[{self.outputs.index(name)}]"

    def _of_graph(self, loss: LossGraph) -> str:
        """A call of the module that the loss is."""
        given = []
        for kind, name, axes in loss.arguments:
            text = {"output": self._output, "batch": batch, "weight": self.weight}[kind](name)
            text = text if kind == "weight" else self.all_rows(text)
            given.append(text if axes is None else self.turned(text, axes))
        return f"LOSS({', '.join(given)})"

    def all_rows(self, text: str) -> str:
        """What a loss that is a graph is given of a tensor that has a row for each sample."""
        return text

    def weight(self, name: str) -> str:
        """How the loss calls one of the weights."""
        raise NotImplementedError

    def turned(self, text: str, axes: tuple[int, ...]) -> str:
        """A tensor with its axes in another order."""
        raise NotImplementedError

    def _penalty(self, penalty: Penalty, weights: str) -> str:
        factor = penalty.factor if penalty.power == 1 else penalty.factor / 2
        return f"{factor!r} * sum({self.sums[penalty.power - 1]} for w in {weights})"

    def rate(self, types: tuple[str, str]) -> list[str]:
        """The schedule as a function, of these types, of the number of the step."""
        given, gives = types
        return [
            f"def rate(step: {given}) -> {gives}:",
            '    """What the learning rate is multiplied by; the first step is 1."""',
            *indented(wrap(f"return {factor(self.schedule or Constant(), self.numbers)}")),
        ]

    def doc_of_training(self) -> str:
        return (
            f"One step of the optimizer every {self.accumulate} batches" if self.accumulate > 1 else "One step a batch"
        )

    def save(self, given: Sequence[str], body: Sequence[str], tensors: str, written: str = "list(files)") -> list[str]:
        """`body` fills `files`, whose `tensors` are written; `written` are the names of all."""
        return [
            *wrap(f"def save({', '.join(given)}, *, step: int, epoch: int) -> None:"),
            '    """Write everything to where it is read from: all of it or nothing, whatever interrupts this."""',
            *indented(body),
            "    for name, tensors in files.items():",
            *indented(wrap(f'save_file({tensors}, FOLDER / f"{{name}}.part")'), 2),
            f"    note_progress(step, epoch, {written})",
            "    load_progress()",
        ]

    def main(
        self,
        read: str,
        start: Sequence[str],
        train: Sequence[str],
        saved: Sequence[str],
        *,
        options: Sequence[str] = (),
        begin: Sequence[str] = ("check_alone()",),
        writes: str | None = None,
        end: Sequence[str] = (),
    ) -> list[str]:
        """`read` makes data of what a file has for each name, `train` makes `losses` of an epoch.

        Files are written by the process for which `writes` holds.
        """
        last = [
            *wrap(f"save({', '.join(saved)}, step=made, epoch=epoch)"),
            'print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")',
        ]
        names = ", ".join({**self.data, **self.labels}).replace("%", "%%")  # for argparse
        per = "" if self.accumulate == 1 else f" // {self.accumulate}"
        return [
            "def main() -> None:",
            '    parser = argparse.ArgumentParser(description="Goes on training; weights are written in place.")',
            *indented(wrap(f'parser.add_argument("data", help={quoted(f"an .npz file with {names}")})')),
            '    parser.add_argument("--epochs", type=int, default=1)',
            '    parser.add_argument("--batch", type=int, default=32, help="samples of a batch")',
            *indented(options),
            "    args = parser.parse_args()",
            *indented(begin),
            "    with np.load(args.data) as file:",
            f"        data = {{name: {read} for name, dtype in INPUTS.items()}}",
            "    made, before = load_progress()",
            *indented(start),
            "    for epoch in range(before + 1, before + args.epochs + 1):",
            *indented(train, 2),
            f"        made += len(losses){per}",
            *indented(last if writes is None else [f"if {writes}:", *indented(last)], 2),
            *indented(end),
        ]


def quoted(text: str) -> str:
    """A name of the file as a string of Python."""
    return '"' + text.encode("unicode_escape").decode().replace('"', '\\"') + '"'


def listed(names: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, names))}]"


def batch(name: str) -> str:
    return f"batch[{quoted(name)}]"


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line if line else line for line in lines]


PROGRESS = '''
def load_progress() -> tuple[int, int]:
    """The steps and epochs that were made; a run that ended while it moved what it had written is finished first."""
    progress = json.loads((FOLDER / "progress.json").read_text())
    for name in progress["written"]:
        if (FOLDER / f"{name}.part").exists():
            (FOLDER / f"{name}.part").replace(FOLDER / name)
    if progress["written"]:
        note_progress(progress["step"], progress["epoch"], [])
    return progress["step"], progress["epoch"]


def note_progress(step: int, epoch: int, written: list[str]) -> None:
    """`written` are files that are complete, but not in their places yet."""
    part = FOLDER / "progress.json.part"
    part.write_text(json.dumps({"step": step, "epoch": epoch, "written": written}))
    part.replace(FOLDER / "progress.json")
'''
"""How it keeps count of its steps, and writes all of its files or none."""
ALONE = '''
def check_alone() -> None:
    """Processes that torchrun or mpirun start would each train a copy of their own, and write over each other."""
    for name in ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]:
        if int(os.environ.get(name) or 1) > 1:
            raise SystemExit(f"{name}={os.environ[name]}: each process would train its own copy: start one, by python")
'''
BATCHES = '''
def batches_of(data: GIVEN, size: int, seed: int) -> Iterator[MADE]:
    """Cut into batches, in an order that the seed gives."""
    count = min(len(array) for array in data.values())
    order = np.random.default_rng(seed).permutation(count)
    for start in range(0, count, size):
        yield {name: ROWS for name, array in data.items()}
'''
ROWS = "array[order[start : start + size]]"
IMPORTS = {
    "argparse": "import argparse",
    "json": "import json",
    "math": "import math",
    "os": "import os",
    "Iterable": "from collections.abc import Iterable",
    "Iterator": "from collections.abc import Iterator",
    "Sequence": "from collections.abc import Sequence",
    "partial": "from functools import partial",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "np": "import numpy as np",
}
"""What every `train.py` may need, by the name that it is for."""


def batches(given: str, made: str, rows: str = ROWS) -> str:
    """The function that cuts arrays of the type `given` into batches of the type `made`."""
    return BATCHES.replace("GIVEN", given).replace("MADE", made).replace("ROWS", rows)
