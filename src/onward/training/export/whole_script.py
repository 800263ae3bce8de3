"""The text of a `train.py` that calls the graphs of a training, whatever the framework, and of the README beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onward.backends.emit.helpers import sort_imports
from onward.backends.emit.package import imports
from onward.backends.emit.printing.language import wrap
from onward.training.export import script
from onward.training.export.graphs import HELD_MODULE, MOVE_MODULE, STEP_MODULE
from onward.training.export.schedules import PYTHON
from onward.training.export.script import ALONE, IMPORTS, PROGRESS, Text, batches, indented, listed, quoted
from onward.training.step_graphs import LEARNING_RATE, LOSS, STEP


@dataclass(frozen=True)
class Framework:
    """What is said otherwise in each framework."""

    title: str
    tensor: str
    """The type of what is computed with."""
    imports: Mapping[str, str]
    """By the name that they are for."""
    dtypes: str = "np"
    """The module that has the dtypes of the data."""
    read: str = "file[name].astype(dtype)"
    """What `main` makes of an array of its data."""
    loaded: str = "load_file({path})"
    """The tensors of a file, to be computed with."""
    plain: str = "{{name: np.asarray(tensor) for name, tensor in {tensors}.items()}}"
    """Tensors as they are written."""
    traced: Sequence[str] = ()
    """What stands over functions that run for each batch."""
    compiled: str = ""
    """What compiles them, where that is what stands over them."""
    scalars: tuple[str, str] = ("{}", "{}")
    """The learning rate and the number of a step as tensors."""
    key: str = ""
    """What random numbers follow from, where that is an argument: of the number of a batch."""
    seed: str = ""
    """What `main` says before each epoch, where random numbers are drawn."""
    model: str = ""
    """The import of what makes the model, where `held` needs it."""
    held: str = ""
    """The lines that write the model, of `held`, which are its weights by their names; else they are in files."""
    written: str = "list(files)"


@dataclass(frozen=True)
class Script(script.Script):
    words: Framework = field(kw_only=True)
    draws: bool = field(kw_only=True)
    """Whether a step draws random numbers."""
    reads: Mapping[str, Sequence[str]] = field(kw_only=True)
    """The inputs of each graph."""
    gives: Mapping[str, Sequence[str]] = field(kw_only=True)
    """Its outputs, by the names that the loop has for them."""

    files: Sequence[str] = field(kw_only=True)
    """Those of the model's weights."""

    numbers = PYTHON

    @property
    def dtypes(self) -> str:  # type: ignore[override]
        return self.words.dtypes

    def text(self) -> str:
        parts: list[Text] = [self._load(), CALLED.replace("TENSOR", self.words.tensor), self._passed()]
        parts += [self._moved()] if self._moves else []
        parts += [self.rate(("int", "float"))] if self.scheduled else []
        parts += [self._train(), PROGRESS, self._save(), batches("dict[str, Any]", "Tensors"), ALONE, self._main()]
        text = self.joined(parts)
        return self.whole(self._head(text), text)

    @property
    def _moves(self) -> bool:
        """Whether a graph of its own makes a step of gradients."""
        return MOVE_MODULE in self.gives

    @property
    def _keyed(self) -> bool:
        return self.draws and bool(self.words.key)

    def _traced(self, name: str) -> list[str]:
        """What stands over a function that calls a graph."""
        fits = self.modules.graphs.traceable(self.modules.sources[name])
        return [] if not fits or (self.draws and not self.words.key) else list(self.words.traced)

    def _head(self, body: str) -> list[str]:
        more, made = self.modules.instances()
        tables = [f"Tensors = dict[str, {self.words.tensor}]", *self.tables()]
        for name in self.gives:
            tables += wrap(f"{name.upper()}_READS = {listed(self.reads[name])}")
            tables += wrap(f"{name.upper()}_GIVES = {listed(self.gives[name])}")
        text = "\n".join([*tables, *made, body])
        beside = sorted([*more, *([self.words.model] if self.words.model else [])])
        return [*sort_imports(imports(text, {**IMPORTS, **self.words.imports})), "", *beside, "", *tables, *made]

    def _load(self) -> list[str]:
        loaded = self.words.loaded.format(path=f"FOLDER / {quoted('state.safetensors')}")
        return [
            "def load_state() -> Tensors:",
            '    """All that a step changes, by the names and in the layout of the ONNX file."""',
            *indented(wrap(f"return {loaded}")),
        ]

    def _passed(self) -> list[str]:
        key = f", key: {self.words.tensor}" if self._keyed else ""
        graph = "partial(STEP, key=key)" if self._keyed else "STEP"
        what = "the gradients of weights, and statistics after it" if self._moves else "and all that the step changes"
        return [
            *self._traced(STEP_MODULE),
            *wrap(f"def passed(state: Tensors, batch: Tensors{key}) -> Tensors:"),
            f'    """The loss of a batch, {what}."""',
            *indented(wrap(f"return called({graph}, STEP_READS, STEP_GIVES, {{**state, **batch}})")),
        ]

    def _moved(self) -> list[str]:
        kind = self.words.tensor
        return [
            *self._traced(MOVE_MODULE),
            *wrap(f"def moved(state: Tensors, gradients: Tensors, lr: {kind}, step: {kind}) -> Tensors:"),
            '    """What gradients make of the state in the step of this number."""',
            *indented(wrap(f"given = {{**state, **gradients, {quoted(LEARNING_RATE)}: lr, {quoted(STEP)}: step}}")),
            "    return after(state, called(UPDATE, UPDATE_READS, UPDATE_GIVES, given))",
        ]

    def _train(self) -> list[str]:
        several, counts = self.accumulate > 1, self._moves or self._keyed
        doc = f"{self.doc_of_training()}; changes the state, and gives the loss of each."
        doc += " `start` steps were made before." if counts else ""
        number = "start + number" if not several else f"start + number // {self.accumulate}"
        key = ""
        if self._keyed:
            batches = "start + number" if not several else f"start * {self.accumulate} + number"
            key = f", {self.words.key.format(batches)}"
        loop = [*wrap(f"found = passed(state, batch{key})"), "state.update(after(state, found))"]
        steps = []
        if self._moves:
            rate = f"{self.lr!r} * rate({number})" if self.scheduled else repr(self.lr)
            scalars = ", ".join(t.format(x) for t, x in zip(self.words.scalars, (rate, number), strict=True))
            slopes = "found"
            if several:
                slopes = "means"
                steps += wrap(f"means = {{name: total / {self.accumulate} for name, total in sums.items()}}")
            steps += wrap(f"state.update(moved(state, {slopes}, {scalars}))")
            if several:
                grads = listed([name for name in self.gives[STEP_MODULE] if name.endswith(".grad")])
                loop += wrap(f"sums = {{name: sums.get(name, 0) + found[name] for name in {grads}}}")
                loop += [f"if number % {self.accumulate} == 0:", *indented([*steps, "sums = {}"])]
            else:
                loop += steps
        loop.append(f"losses.append(float(found[{quoted(LOSS)}]))")
        head = "for number, batch in enumerate(batches, 1):" if counts else "for batch in batches:"
        start = f", start: int = {self.steps}" if counts else ""
        return [
            *wrap(f"def train(state: Tensors, batches: Iterable[Tensors]{start}) -> list[float]:"),
            f'    """{doc}"""',
            "    losses = []",
            *(["    sums: Tensors = {}"] if several and self._moves else []),
            f"    {head}",
            *indented(loop, 2),
            "    return losses",
        ]

    def _save(self) -> list[str]:
        plain = self.words.plain
        body = [*wrap(f"files = {{{quoted('state.safetensors')}: {plain.format(tensors='state')}}}")]
        if HELD_MODULE in self.gives:
            body += wrap("held = called(WEIGHTS, WEIGHTS_READS, WEIGHTS_GIVES, state)")
            body += wrap(f"held = {plain.format(tensors='held')}")
            if self.words.held:
                body += self.words.held.strip("\n").splitlines()
            else:
                body += FILES.replace("NAMES", listed(self.files)).strip("\n").splitlines()
        return self.save(["state: Tensors"], body, "tensors", self.words.written)

    def _main(self) -> list[str]:
        start = ", made" if self._moves or self._keyed else ""
        seed = [self.words.seed] if self.draws and self.words.seed else []
        return self.main(
            self.words.read,
            ["state = load_state()"],
            [*seed, f"losses = train(state, batches_of(data, args.batch, epoch){start})"],
            ["state"],
        )

    def readme(self, why: str) -> str:
        """What someone who opens the folder ought to know."""
        rows = {
            "model.py": "the model, with the weights of the last epoch",
            f"{STEP_MODULE}.py": "the loss, the gradients and the running statistics, of a batch"
            if self._moves
            else "a whole step: the loss, the gradients and what the optimizer makes of them",
            f"{MOVE_MODULE}.py": "what the optimizer makes of the gradients",
            f"{HELD_MODULE}.py": "the weights of model.py, of what a step changes",
            "state.safetensors": "all that a step changes, by the names and in the layout of the ONNX file",
            "train.py": "the loop that calls these",
        }
        there = [f"{name}.py" for name in self.gives]
        rows = {k: v for k, v in rows.items() if k in there or k in ("model.py", "state.safetensors", "train.py")}
        table = "\n".join(f"| `{name}` | {what} |" for name, what in rows.items())
        return README.format(title=self.words.title, why=why, table=table) + self._uncompiled()

    def _uncompiled(self) -> str:
        """What is said of functions that run op by op."""
        called = {STEP_MODULE: "passed", MOVE_MODULE: "moved"}
        plain = [name for name in called if name in self.gives and not self._traced(name)]
        if not self.words.compiled or not plain:
            return ""
        functions = " and ".join(f"`{called[name]}`" for name in plain)
        files = " and ".join(f"`{name}.py`" for name in plain)
        sized = not all(self.modules.graphs.traceable(self.modules.sources[name]) for name in plain)
        reason = f"sizes in {files} follow from the data" if sized else "each batch is to draw its own random numbers"
        runs = "runs" if len(plain) == 1 else "run"
        return f"- {functions} {runs} op by op, without `{self.words.compiled}`, since {reason}. That is slower.\n"


CALLED = '''
def called(graph: Any, reads: list[str], gives: list[str], given: Tensors) -> Tensors:
    """What a graph makes of tensors, both by the names of the ONNX file."""
    found = graph(*(given[name] for name in reads))
    return dict(zip(gives, found if isinstance(found, tuple) else (found,), strict=True))


def after(state: Tensors, found: Tensors) -> Tensors:
    """The state, with what of it was made anew."""
    return {name: found.get(f"{name}.next", tensor) for name, tensor in state.items()}
'''
FILES = """
for file in NAMES:
    before = load_file(FOLDER / file)
    files[file] = {name: held.get(name, tensor) for name, tensor in before.items()}
"""
README = """# A training as its graphs, in {title}

`python -m PACKAGE.train data.npz --epochs 3` goes on where the training was, and again where it stopped.

{title} has no words of its own for a part of this training: {why}.
So its graphs, as ONNX Runtime runs them, were converted to {title} as a model is, and `train.py` calls them.

| file | what it has |
|---|---|
{table}

- Gradients are computed by these functions, not by {title}'s own differentiation. To change the loss or the optimizer,
  change the training file and export it again.
- It trains in one process.
"""
