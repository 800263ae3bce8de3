"""The text of `train.py`: what someone would write by hand to train the model in PyTorch."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.printer import wrap
from onward.training.export.plan import Plan, indented, quoted
from onward.training.export.progress import PROGRESS
from onward.training.export.schedules import factor
from onward.training.export.torch.classes import LOW_RANK, OWN
from onward.training.export.torch.words import loss_call, optimizer_call, penalty_call
from onward.training.recipe.schedules import Constant


class Script(Plan):
    """The text, and what it depends on."""

    def text(self) -> str:
        parts: list[str | list[str]] = [self._head()]
        if self.adapters:
            parts.append(LOW_RANK)
        parts.append(self._loss())
        if own := OWN.get(type(self.optimizer)):
            parts.append(own.source(self.optimizer))
        parts += [self._make_optimizer(), self._load_optimizer()]
        if self.average is not None:
            parts.append(self._load_average(self.average))
        if self.scheduled:
            parts.append(self._rate())
        parts += [self._train(), PROGRESS, self._save(), BATCHES, ALONE, self._main()]
        body = "\n\n\n".join("\n".join(part) if isinstance(part, list) else part.strip("\n") for part in parts)
        return f'{body}\n\n\nif __name__ == "__main__":\n    main()\n'

    def _head(self) -> list[str]:
        after = f"after {self.steps} steps" if self.steps else "from its first step on"
        inputs = ", ".join(f"{quoted(name)}: torch.{dtype}" for name, dtype in {**self.data, **self.labels}.items())
        imports = ["import argparse", "import json"]
        if self.scheduled and "math." in factor(self.schedule or Constant()):
            imports.append("import math")
        imports.append("import os")
        own = type(self.optimizer) in OWN
        constants = wrap(f"INPUTS = {{{inputs}}}")
        if self.slots:
            constants += wrap(f"SLOTS = [{', '.join(map(quoted, self.slots))}]")
        if self.adapters:
            scales = ", ".join(f"{quoted(name)}: {scale!r}" for name, scale in self.adapters.items())
            constants += wrap(f"ADAPTERS = {{{scales}}}")
        return [
            f'"""Trains the model {after}: python -m PACKAGE.train data.npz --epochs 3."""',
            "",
            *imports,
            "from collections.abc import Iterable, Iterator",
            "from pathlib import Path",
            *(["from typing import Any"] if own else []),
            "",
            "import numpy as np",
            "import torch",
            "import torch.nn.functional as F",
            "from safetensors.torch import load_file, save_file",
            f"from torch import Tensor{', nn' if self.adapters else ''}",
            *(["from torch.nn.utils.parametrize import register_parametrization"] if self.adapters else []),
            *([f"from torch.optim.swa_utils import {AVERAGING}"] if self.average is not None else []),
            "",
            "from .model import Model, load",
            "",
            "Batch = dict[str, Tensor]",
            "FOLDER = Path(__file__).parent",
            *constants,
        ]

    def _loss(self) -> list[str]:
        arguments = ", ".join(f"batch[{quoted(name)}]" for name in self.data)
        result = "y" if len(self.outputs) == 1 else "outputs"
        terms = []
        for term in self.terms:
            index = self.outputs.index(term.output or self.outputs[0])
            prediction = "y" if len(self.outputs) == 1 else f"outputs[{index}]"
            loss: Any = term.loss
            call = loss_call(loss, prediction, lambda name: f"batch[{quoted(name)}]")
            terms.append(call if term.weight == 1 else f"{term.weight!r} * {call}")
        for penalty, names in self.penalties:
            weights = f"map(net.get_parameter, [{', '.join(map(quoted, names))}])"
            terms.append(penalty_call(penalty, weights if names else "net.parameters() if w.requires_grad"))
        first, *more = terms
        lines = [*wrap(f"{result} = net({arguments})"), *wrap(f"{'loss =' if more else 'return'} {first}")]
        lines += [line for term in more for line in wrap(f"loss = loss + {term}")]
        lines += ["return loss"] if more else []
        return [
            "def loss_of(net: Model, batch: Batch) -> Tensor:",
            '    """What training minimises."""',
            *indented(lines),
        ]

    def _make_optimizer(self) -> list[str]:
        lines = ["def make_optimizer(net: Model) -> torch.optim.Optimizer:", '    """Without state."""']
        if self.groups:
            lines.append("    groups = [")
            for rule, names in self.groups.items():
                found = ", ".join(map(quoted, names))
                own = {"lr": float(f"{self.lr * rule.lr:.12g}"), "weight_decay": rule.decay}
                lines += indented(
                    [
                        "{",
                        *indented(wrap(f'"params": [net.get_parameter(name) for name in [{found}]],')),
                        *(f'    "{key}": {value!r},' for key, value in own.items()),
                        "},",
                    ],
                    2,
                )
            lines.append("    ]")
        else:
            lines.append("    parameters = [p for p in net.parameters() if p.requires_grad]")
        call = optimizer_call(self.optimizer, "groups" if self.groups else "parameters", self.lr)
        if not self.scheduled:
            return [*lines, *indented(wrap(f"return {call}"))]
        return [
            *lines,
            *indented(wrap(f"optimizer = {call}")),
            "    for group in optimizer.param_groups:",
            '        group["initial_lr"] = group["lr"]',
            "    return optimizer",
        ]

    def _load_optimizer(self) -> list[str]:
        if not self.slots:
            return [
                "def load_optimizer(net: Model) -> torch.optim.Optimizer:",
                '    """The optimizer, which has no state."""',
                "    return make_optimizer(net)",
            ]
        start = []
        if not self.steps:
            start = ['    if not (FOLDER / "optimizer.safetensors").exists():', "        return optimizer"]
        return [
            "def names_of(net: Model, optimizer: torch.optim.Optimizer) -> list[str]:",
            '    """The names of the parameters that are trained, in the order of the optimizer."""',
            "    names = {parameter: name for name, parameter in net.named_parameters()}",
            '    return [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]',
            "",
            "",
            "def load_optimizer(net: Model) -> torch.optim.Optimizer:",
            '    """The optimizer with the state of the steps that were made."""',
            "    optimizer = make_optimizer(net)",
            *start,
            '    saved = load_file(FOLDER / "optimizer.safetensors")',
            "    state = optimizer.state_dict()",
            "    for index, name in enumerate(names_of(net, optimizer)):",
            '        state["state"][index] = {slot: saved[f"{name}.{slot}"] for slot in SLOTS}',
            "    optimizer.load_state_dict(state)",
            "    return optimizer",
        ]

    def _load_average(self, share: float) -> list[str]:
        return [
            "def load_average(net: Model) -> AveragedModel:",
            '    """The moving average of the weights; its `module` is the model that has them."""',
            *indented(wrap(f"average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn({share!r}))")),
            '    if (FOLDER / "average.safetensors").exists():',
            '        average.module.load_state_dict(load_file(FOLDER / "average.safetensors"), strict=False)',
            "    average.n_averaged.fill_(1)  # it has begun: the next weights are added to it, not put in its place",
            "    return average",
        ]

    def _save(self) -> list[str]:
        given = {"optimizer": "torch.optim.Optimizer"} if self.slots else {}
        given |= {"average": "AveragedModel"} if self.average is not None else {}
        arguments = ", ".join(["net: Model", *(f"{name}: {kind}" for name, kind in given.items())])
        body = ['weights, now = load_file(FOLDER / "weights.safetensors"), net.state_dict()', "files = {}"]
        if self.adapters:
            body += ADAPTED.strip("\n").splitlines()
        body += WEIGHTS.strip("\n").splitlines()
        if self.slots:
            body += STATE.strip("\n").splitlines()
        if self.average is not None:
            body += AVERAGE.strip("\n").splitlines()
        return [
            *wrap(f"def save({arguments}, *, step: int, epoch: int) -> None:"),
            '    """Write everything to where it is read from: all of it or nothing, whatever interrupts this."""',
            *indented([*body, *SAVED.strip("\n").splitlines()]),
        ]

    def _rate(self) -> list[str]:
        return [
            "def rate(step: int) -> float:",
            '    """What the learning rate is multiplied by; the first step is 1."""',
            *indented(wrap(f"return {factor(self.schedule or Constant())}")),
        ]

    def _train(self) -> list[str]:
        scheduled, several = self.scheduled, self.accumulate > 1
        start = f", start: int = {self.steps}" if scheduled else ""
        doc = "One step a batch" if not several else f"One step of the optimizer every {self.accumulate} batches"
        doc += "; gives the loss of each."
        doc += " `start` steps were made before." if scheduled else ""
        lines = [f"net.{'train' if self.trains else 'eval'}()", "losses = []"]
        steps = []
        if scheduled:
            number = f"start + number // {self.accumulate}" if several else "start + number"
            steps += [
                "for group in optimizer.param_groups:",
                f'    group["lr"] = group["initial_lr"] * rate({number})',
            ]
        if self.clip_norm is not None:
            steps.append(f"torch.nn.utils.clip_grad_norm_(net.parameters(), {self.clip_norm!r})")
        if self.clip_value is not None:
            steps.append(f"torch.nn.utils.clip_grad_value_(net.parameters(), {self.clip_value!r})")
        steps += ["optimizer.step()", "optimizer.zero_grad()"]
        steps += ["average.update_parameters(net)"] if self.average is not None else []
        loop = [
            "loss = loss_of(net, batch)",
            f"(loss / {self.accumulate}).backward()" if several else "loss.backward()",
        ]
        loop += [f"if number % {self.accumulate} == 0:", *indented(steps)] if several else steps
        loop.append("losses.append(loss.item())")
        counted = scheduled or several
        lines += ["optimizer.zero_grad()"]
        lines += ["for number, batch in enumerate(batches, 1):" if counted else "for batch in batches:"]
        lines += [*indented(loop), "return losses"]
        average = ", average: AveragedModel" if self.average is not None else ""
        arguments = f"net: Model, optimizer: torch.optim.Optimizer, batches: Iterable[Batch]{average}{start}"
        return [*wrap(f"def train({arguments}) -> list[float]:"), f'    """{doc}"""', *indented(lines)]

    def _main(self) -> list[str]:
        names = ", ".join({**self.data, **self.labels})
        own = [*(["optimizer"] if self.slots else []), *(["average"] if self.average is not None else [])]
        more = ", average" if self.average is not None else ""
        more += ", step" if self.scheduled else ""
        per = "" if self.accumulate == 1 else f" // {self.accumulate}"
        return [
            "def main() -> None:",
            '    parser = argparse.ArgumentParser(description="Goes on training; weights are written in place.")',
            *indented(wrap(f'parser.add_argument("data", help={quoted(f"an .npz file with {names}")})')),
            '    parser.add_argument("--epochs", type=int, default=1)',
            '    parser.add_argument("--batch", type=int, default=32, help="samples of a batch")',
            "    args = parser.parse_args()",
            "    check_alone()",
            "    with np.load(args.data) as file:",
            "        data = {name: torch.from_numpy(file[name]).to(dtype) for name, dtype in INPUTS.items()}",
            "    step, before = load_progress()",
            f"    net = {'load_adapted' if self.adapters else 'load'}()",
            "    optimizer = load_optimizer(net)",
            *(["    average = load_average(net)"] if self.average is not None else []),
            "    for epoch in range(before + 1, before + args.epochs + 1):",
            "        torch.manual_seed(epoch)  # an epoch is the same, however often training was interrupted before",
            f"        losses = train(net, optimizer, batches_of(data, args.batch){more})",
            f"        step += len(losses){per}",
            *indented(wrap(f"save({', '.join(['net', *own])}, step=step, epoch=epoch)"), 2),
            '        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")',
        ]


AVERAGING = "AveragedModel, get_ema_multi_avg_fn"
ADAPTED = """
adapters = {}
for name in ADAPTERS:
    module, own = place_of(net, name)
    now[name] = getattr(module, own)
    parts = module.parametrizations[own].state_dict()
    adapters |= {f"{name}.{key}": tensor for key, tensor in parts.items()}
files["adapters.safetensors"] = adapters
"""
WEIGHTS = """
trained = {name: now[name] for name in weights if name in now and now[name].dtype == weights[name].dtype}
files["weights.safetensors"] = {**weights, **trained}
"""
STATE = """
state = optimizer.state_dict()["state"]
names = names_of(net, optimizer)
slots = {f"{names[index]}.{slot}": own[slot] for index, own in state.items() for slot in SLOTS}
files["optimizer.safetensors"] = slots
"""
AVERAGE = """
files["average.safetensors"] = dict(average.module.named_parameters())
"""
SAVED = """
for name, tensors in files.items():
    save_file({key: tensor.detach().contiguous() for key, tensor in tensors.items()}, FOLDER / f"{name}.part")
note_progress(step, epoch, list(files))
load_progress()
"""
ALONE = '''
def check_alone() -> None:
    """Processes that torchrun or mpirun start would each train a copy of their own, and write over each other."""
    for name in ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]:
        if int(os.environ.get(name) or 1) > 1:
            raise SystemExit(f"{name}={os.environ[name]}: each process would train its own copy; use python alone")
'''
BATCHES = '''
def batches_of(data: Batch, size: int) -> Iterator[Batch]:
    """Cut into batches, in a new order each time."""
    count = min(len(tensor) for tensor in data.values())
    for index in torch.randperm(count).split(size):
        yield {name: tensor[index] for name, tensor in data.items()}
'''
