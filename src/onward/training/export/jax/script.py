"""The text of `train.py`: what someone would write by hand to train the model in JAX with optax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onward.backends.emit.helpers import sort_imports
from onward.backends.emit.package import imports
from onward.backends.emit.printer import wrap
from onward.training.export.jax.transforms import OWN
from onward.training.export.jax.words import (
    APART,
    CLASS_LOSS,
    CLIP,
    FIELDS,
    SOFT_CLASS_LOSS,
    core,
    decays,
    is_counted,
    is_own,
    loss_call,
    penalty_call,
)
from onward.training.export.plan import Plan, indented, quoted
from onward.training.export.progress import PROGRESS
from onward.training.export.schedules import Words, factor
from onward.training.recipe.optimizers import LAMB
from onward.training.recipe.schedules import Constant

TRACED = Words("jnp.minimum", "jnp", "jnp.where({test}, {yes}, {no})")


@dataclass(frozen=True)
class Script(Plan):
    """The text, and what it depends on."""

    has_constants: bool = False
    """Whether the model holds what is not trained."""
    statistics: Sequence[str] = ()
    """What of that a step changes: the model in training gives these after its outputs."""

    def text(self) -> str:
        loss = self._loss()
        parts: list[str | list[str]] = [loss]
        body = "\n".join(loss)
        parts += [text for name, text in HELPERS.items() if f" {name}(" in body]
        if self.clip_norm is not None:
            parts.append(CLIP)
        if is_own(self.optimizer):
            parts.append(OWN[type(self.optimizer)].source)
        if self.groups:
            parts.append(AMONG)
        if self.scheduled:
            parts.append(self._rate())
        parts += [self._make_optimizer(), FLAT, self._load_optimizer()]
        if self.average is not None:
            parts.append(LOAD_AVERAGE)
        parts += [self._step(), self._train(), PROGRESS, self._save(), BATCHES, self._main()]
        text = "\n\n\n".join("\n".join(part) if isinstance(part, list) else part.strip("\n") for part in parts)
        head = "\n".join(self._head(text))
        return f'{head}\n\n\n{text}\n\n\nif __name__ == "__main__":\n    main()\n'

    @property
    def _fields(self) -> dict[str, str]:
        names = FIELDS[type(self.optimizer)]
        return {slot: names[slot] for slot in self.optimizer.states}

    @property
    def _counted(self) -> bool:
        return self.scheduled or is_counted(self.optimizer)

    def _head(self, body: str) -> list[str]:
        after = f"after {self.steps} steps" if self.steps else "from its first step on"
        inputs = ", ".join(f"{quoted(name)}: np.{dtype}" for name, dtype in {**self.data, **self.labels}.items())
        constants = wrap(f"INPUTS = {{{inputs}}}")
        if self._fields:
            fields = ", ".join(f"{quoted(slot)}: {quoted(field)}" for slot, field in self._fields.items())
            constants += wrap(f"SLOTS = {{{fields}}}")
        if self.statistics:
            constants += wrap(f"STATISTICS = [{', '.join(map(quoted, self.statistics))}]")
        constants = ["Batch = dict[str, Array]", "FOLDER = Path(__file__).parent", *constants]
        text = "\n".join([*constants, body])
        return [
            f'"""Trains the model {after}: python -m PACKAGE.train data.npz --epochs 3."""',
            "",
            *sort_imports(imports(text, IMPORTS)),
            "",
            *sort_imports(self._own_imports(text)),
            "",
            *constants,
        ]

    def _own_imports(self, text: str) -> set[str]:
        found = imports(text, OWN_IMPORTS)
        return found | {f"from .{TRAINING if self.statistics else 'model'} import apply"}

    def _loss(self) -> list[str]:
        inputs = [f"batch[{quoted(name)}]" for name in self.data]
        given = ", ".join(["params", *inputs, *(["constants"] if self.has_constants else [])])
        result = "y" if len(self.outputs) == 1 else "outputs"
        terms = []
        for term in self.terms:
            index = self.outputs.index(term.output or self.outputs[0])
            prediction = "y" if len(self.outputs) == 1 else f"outputs[{index}]"
            call = loss_call(term.loss, prediction, lambda name: f"batch[{quoted(name)}]")
            terms.append(call if term.weight == 1 else f"{term.weight!r} * {call}")
        for penalty, names in self.penalties:
            chosen = f"[flat(params)[name] for name in [{', '.join(map(quoted, names))}]]"
            terms.append(penalty_call(penalty, chosen if names else "jax.tree.leaves(params)"))
        first, *more = terms
        keeps = bool(more or self.statistics)
        lines = [*wrap(f"{result} = apply({given})")]
        if self.statistics:
            count = len(self.outputs)
            lines = [*wrap(f"{result}, *statistics = apply({given})")]
            if count > 1:
                lines = [*wrap(f"found = apply({given})"), f"outputs, statistics = found[:{count}], found[{count}:]"]
        lines += wrap(f"{'loss =' if keeps else 'return'} {first}")
        lines += [line for term in more for line in wrap(f"loss = loss + {term}")]
        if self.statistics:
            lines.append("return loss, dict(zip(STATISTICS, statistics, strict=True))")
        elif more:
            lines.append("return loss")
        doc = "What training minimises" + (", and the statistics after it." if self.statistics else ".")
        gives = "Any" if self.statistics else "Array"
        return [
            f"def loss_of({self._arguments('params: Any', 'batch: Batch')}) -> {gives}:",
            f'    """{doc}"""',
            *indented(lines),
        ]

    def _arguments(self, *given: str) -> str:
        return ", ".join([*given, *(["constants: Any"] if self.has_constants else [])])

    def _make_optimizer(self) -> list[str]:
        decay = decays(self.optimizer, self.groups, lambda names: f"[{', '.join(map(quoted, names))}]")
        chain = [f"clip_by_norm({self.clip_norm!r})"] if self.clip_norm is not None else []
        chain += [f"optax.clip({self.clip_value!r})"] if self.clip_value is not None else []
        chain += (
            [*core(self.optimizer), *decay] if isinstance(self.optimizer, APART) else [*decay, *core(self.optimizer)]
        )
        chain += ["optax.scale_by_trust_ratio()"] if isinstance(self.optimizer, LAMB) else []
        chain += [
            f"optax.masked(optax.scale({rule.lr!r}), partial(among, [{', '.join(map(quoted, names))}]))"
            for rule, names in self.groups.items()
            if rule.lr != 1
        ]
        rate = f"lambda count: {self.lr!r} * rate(count + 1)" if self.scheduled else repr(self.lr)
        chain.append(f"optax.scale_by_learning_rate({rate})")
        if post := getattr(self.optimizer, "norm_coefficient_post", 0):
            shrunk = f"jax.tree.map(lambda u, w: u - {post!r} * (w + u), moves, params)"
            chain.append(f"optax.stateless(lambda moves, params: {shrunk})")
        made = chain[0] if len(chain) == 1 else f"optax.chain({', '.join(chain)})"
        lines = wrap(f"return {made}")
        kind = "optax.GradientTransformation"
        if self.accumulate > 1:
            lines = [*wrap(f"optimizer = {made}"), f"return optax.MultiSteps(optimizer, {self.accumulate})"]
            kind = "optax.MultiSteps"
        return [f"def make_optimizer() -> {kind}:", '    """Without state."""', *indented(lines)]

    def _load_optimizer(self) -> list[str]:
        head = [
            "def load_optimizer(params: Any, step: int) -> Any:",
            '    """The state of the optimizer after the steps that were made."""',
        ]
        known = ["count=np.int32(step)"] if self._counted else []
        lines = ["state = make_optimizer().init(params)"] if known or self._fields else []
        if self._fields:
            known.append("**trees")
            if not self.steps:
                lines += ['if not (FOLDER / "optimizer.safetensors").exists():', "    return state"]
            lines += ['saved = load_file(FOLDER / "optimizer.safetensors")', "trees = {"]
            lines += ['    field: nested({name: saved[f"{name}.{slot}"] for name in flat(params)})']
            lines += ["    for slot, field in SLOTS.items()", "}"]
        made = f"optax.tree_utils.tree_set(state, {', '.join(known)})" if known else "make_optimizer().init(params)"
        if self.accumulate > 1:  # set apart, since it stands around the others
            lines += [*wrap(f"state = {made}")]
            made = "optax.tree_utils.tree_set(state, gradient_step=np.int32(step))"
        lines += wrap(f"return {made}")
        return [*head, *indented(lines)]

    def _step(self) -> list[str]:
        given = self._arguments("params: Any", "state: Any", "batch: Batch")
        if self.statistics:
            return [
                "@partial(jax.jit, donate_argnums=(0, 1))",
                f"def step({given}) -> tuple[Any, Any, Any, Array]:",
                '    """Parameters, state and constants after a step, and the loss before it."""',
                "    gradient = jax.value_and_grad(loss_of, has_aux=True)",
                "    (loss, statistics), gradients = gradient(params, batch, constants)",
                "    moves, state = make_optimizer().update(gradients, state, params)",
                "    constants = nested({**flat(constants), **statistics})",
                "    return optax.apply_updates(params, moves), state, constants, loss",
            ]
        more = ", constants" if self.has_constants else ""
        return [
            "@partial(jax.jit, donate_argnums=(0, 1))",
            f"def step({given}) -> tuple[Any, Any, Array]:",
            '    """Parameters and state after a step, and the loss before it."""',
            f"    loss, gradients = jax.value_and_grad(loss_of)(params, batch{more})",
            "    moves, state = make_optimizer().update(gradients, state, params)",
            "    return optax.apply_updates(params, moves), state, loss",
        ]

    def _rate(self) -> list[str]:
        return [
            "def rate(step: Array) -> Any:",
            '    """What the learning rate is multiplied by; the first step is 1."""',
            *indented(wrap(f"return {factor(self.schedule or Constant(), TRACED)}")),
        ]

    @property
    def _kept(self) -> list[str]:
        """What training makes anew, and `save` writes."""
        statistics = ["constants"] if self.statistics else []
        return ["params", "state", *statistics, *(["average"] if self.average is not None else [])]

    def _train(self) -> list[str]:
        several = self.accumulate > 1
        doc = "One step a batch" if not several else f"One step of the optimizer every {self.accumulate} batches"
        kept = self._kept
        lines = ["constants = load_constants()"] if self.has_constants and not self.statistics else []
        counted = several and self.average is not None
        lines += ["losses = []", "for number, batch in enumerate(batches, 1):" if counted else "for batch in batches:"]
        more = ", constants" if self.has_constants else ""
        changed = ", ".join(name for name in kept if name != "average")
        loop = [f"{changed}, loss = step(params, state, batch{more})"]
        if self.average is not None:
            update = f"average = optax.incremental_update(params, average, {1 - self.average!r})"
            loop += [f"if number % {self.accumulate} == 0:", f"    {update}"] if several else [update]
        loop.append("losses.append(loss)")
        lines += [*indented(loop), f"return {', '.join(kept)}, [float(loss) for loss in losses]"]
        arguments = ", ".join(f"{name}: Any" for name in kept) + ", batches: Iterable[Batch]"
        results = f"tuple[{', '.join(['Any'] * len(kept))}, list[float]]"
        return [
            *wrap(f"def train({arguments}) -> {results}:"),
            f'    """{doc}; gives what it made of all these, and the loss of each batch."""',
            *indented(lines),
        ]

    def _save(self) -> list[str]:
        body = ['files = {"weights.safetensors": flat(params)}']
        if self.statistics:
            body.append('files["constants.safetensors"] = flat(constants)')
        if self._fields:
            body += STATE.strip("\n").splitlines()
        if self.average is not None:
            body.append('files["average.safetensors"] = flat(average)')
        arguments = ", ".join(f"{name}: Any" for name in self._kept)
        return [
            *wrap(f"def save({arguments}, *, step: int, epoch: int) -> None:"),
            '    """Write everything to where it is read from: all of it or nothing, whatever interrupts this."""',
            *indented([*body, *SAVED.strip("\n").splitlines()]),
        ]

    def _main(self) -> list[str]:
        names = ", ".join({**self.data, **self.labels})
        own = ", ".join(self._kept)
        per = "" if self.accumulate == 1 else f" // {self.accumulate}"
        call = f"train({own}, batches_of(data, args.batch, epoch))"
        return [
            "def main() -> None:",
            '    parser = argparse.ArgumentParser(description="Goes on training; weights are written in place.")',
            *indented(wrap(f'parser.add_argument("data", help={quoted(f"an .npz file with {names}")})')),
            '    parser.add_argument("--epochs", type=int, default=1)',
            '    parser.add_argument("--batch", type=int, default=32, help="samples of a batch")',
            "    args = parser.parse_args()",
            "    with np.load(args.data) as file:",
            "        data = {name: file[name].astype(dtype) for name, dtype in INPUTS.items()}",
            "    made, before = load_progress()",
            "    params = load()",
            "    state = load_optimizer(params, made)",
            *(["    constants = load_constants()"] if self.statistics else []),
            *(["    average = load_average(params)"] if self.average is not None else []),
            "    for epoch in range(before + 1, before + args.epochs + 1):",
            *indented(wrap(f"{own}, losses = {call}"), 2),
            f"        made += len(losses){per}",
            *indented(wrap(f"save({own}, step=made, epoch=epoch)"), 2),
            '        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")',
        ]


IMPORTS = {
    "argparse": "import argparse",
    "json": "import json",
    "Iterable": "from collections.abc import Iterable",
    "Iterator": "from collections.abc import Iterator",
    "partial": "from functools import partial",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "NamedTuple": "from typing import NamedTuple",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "optax": "import optax",
    "Array": "from jax import Array",
    "load_file": "from safetensors.flax import load_file",
    "save_file": "from safetensors.flax import save_file",
}
TRAINING = "in_training"
"""The module with the model as it is while it is trained, where that differs."""
OWN_IMPORTS = {
    "load": "from .model import load",
    "load_constants": "from .model import load_constants",
    "nested": "from .ops import nested",
}
HELPERS: dict[str, Any] = {"class_loss": CLASS_LOSS, "soft_class_loss": SOFT_CLASS_LOSS}
AMONG = '''
def among(names: list[str], params: Any) -> Any:
    """Which of the parameters have these names."""
    return nested({name: name in names for name in flat(params)})
'''
FLAT = '''
def flat(tree: Any) -> dict[str, Any]:
    """The tensors of a tree by their names in the files."""
    paths = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
'''
LOAD_AVERAGE = '''
def load_average(params: Any) -> Any:
    """The moving average of the weights, in place of which they are used themselves before the first step."""
    if (FOLDER / "average.safetensors").exists():
        return nested(load_file(FOLDER / "average.safetensors"))
    return jax.tree.map(jnp.copy, params)
'''
STATE = """
files["optimizer.safetensors"] = {
    f"{name}.{slot}": tensor
    for slot, field in SLOTS.items()
    for name, tensor in flat(optax.tree_utils.tree_get(state, field)).items()
}
"""
SAVED = """
for name, tensors in files.items():
    save_file(tensors, FOLDER / f"{name}.part")
note_progress(step, epoch, list(files))
load_progress()
"""
BATCHES = '''
def batches_of(data: dict[str, np.ndarray], size: int, seed: int) -> Iterator[Batch]:
    """Cut into batches, in an order that the seed gives."""
    count = min(len(array) for array in data.values())
    order = np.random.default_rng(seed).permutation(count)
    for start in range(0, count, size):
        yield {name: jnp.asarray(array[order[start : start + size]]) for name, array in data.items()}
'''
