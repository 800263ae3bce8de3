"""The text of `train.py`: what someone would write by hand to train the model in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onward.backends.emit.printing.language import wrap
from onward.training.export import script
from onward.training.export.schedules import PYTHON, factor
from onward.training.export.script import ALONE, PROGRESS, Text, batch, indented, listed, quoted
from onward.training.export.torch.classes import CTC_LOSS, LOW_RANK, OWN
from onward.training.export.torch.processes import GATHERED, SEVERAL, SHARED, counted
from onward.training.export.torch.words import loss_call, optimizer_call
from onward.training.recipe.schedules import Constant
from onward.training.step_graphs import CLIP_EPSILON


class Script(script.Script):
    """In PyTorch's words."""

    dtypes, numbers = "torch", PYTHON

    @staticmethod
    def part_of_adapter(matrix: str, part: str) -> tuple[str, str]:
        """As parametrised modules call it."""
        path, _, own = matrix.rpartition(".")
        return f"{path}.parametrizations.{own}.0.{part}".lstrip("."), f"{matrix}.0.{part}"

    def all_rows(self, text: str) -> str:
        return f"gathered({text})" if self._several else text

    def weight(self, name: str) -> str:
        return f"{self._whole}.get_parameter({quoted(name)})"

    def turned(self, text: str, axes: tuple[int, ...]) -> str:
        return f"{text}.permute{axes}"

    def text(self) -> str:
        parts: list[Text] = [LOW_RANK] if self.adapters else []
        loss = self._loss()
        parts += [CTC_LOSS] if any(" ctc_loss(" in line for line in loss) else []
        parts.append(loss)
        if own := OWN.get(type(self.optimizer)):
            parts.append(own.source(self.optimizer))
        parts += [self._make_optimizer(), self._load_optimizer()]
        if self.average is not None:
            parts.append(self._load_average(self.average))
        if self.scheduled:
            parts.append(self.rate(("int", "float")))
        parts += [BIASED] if self.unbiased is False else []
        parts += [SHARED.format(counted=self._counted)] if self._counted else [GATHERED] if self._several else []
        parts += [self._train(), PROGRESS, self._save(), BATCHES, SEVERAL if self._several else ALONE, self._main()]
        return self.whole(self._head(), self.joined(parts))

    @property
    def _counted(self) -> str | None:
        """How much rows count in a loss that is a mean; None where it is none."""
        return counted(self.terms, batch, batch(next(iter({**self.labels, **self.data}))))

    @property
    def _several(self) -> bool:
        """Whether several processes can train together."""
        return self._counted is not None if self.graph is None else self.graph.by_rows

    @property
    def _whole(self) -> str:
        """The model, in several processes too."""
        return 'getattr(net, "module", net)' if self._several else "net"

    def _head(self) -> list[str]:
        imports = ["import argparse", "import json"]
        several = self._several
        if self.scheduled and "math." in factor(self.schedule or Constant()):
            imports.append("import math")
        imports.append("import os")
        own = type(self.optimizer) in OWN
        return [
            *imports,
            "from collections.abc import Iterable, Iterator",
            *(["from contextlib import nullcontext"] if several and self.accumulate > 1 else []),
            "from pathlib import Path",
            *(["from typing import Any"] if own or self.unbiased is False else []),
            "",
            "import numpy as np",
            "import torch",
            *(["import torch.distributed as dist"] if several else []),
            *([] if self.graph is not None else ["import torch.nn.functional as F"]),
            "from safetensors.torch import load_file, save_file",
            f"from torch import Tensor{', nn' if self.adapters or several else ''}",
            *(["from torch.nn.parallel import DistributedDataParallel"] if several else []),
            *(["from torch.nn.utils.parametrize import register_parametrization"] if self.adapters else []),
            *([f"from torch.optim.swa_utils import {AVERAGING}"] if self.average is not None else []),
            "",
            *sorted(["from .model import Model, load", *self.modules.instances()[0]]),
            "",
            "Batch = dict[str, Tensor]",
            *self.tables(),
            *(wrap(f"SLOTS = {listed(self.slots)}") if self.slots else []),
            *self.modules.instances()[1],
        ]

    def _loss(self) -> list[str]:
        def weights(names: Sequence[str]) -> str:
            found = f"map({self._whole}.get_parameter, {listed(names)})"
            return found if names else "net.parameters() if w.requires_grad"

        return [
            f"def loss_of(net: {'nn.Module' if self._several else 'Model'}, batch: Batch) -> Tensor:",
            '    """What training minimises."""',
            *indented(wrap(f"{self.result} = net({', '.join(self.arguments)})")),
            *indented(self.summed(partial(loss_call, normalised=self.normalised), weights)),
        ]

    def _make_optimizer(self) -> list[str]:
        lines = ["def make_optimizer(net: Model) -> torch.optim.Optimizer:", '    """Without state."""']
        if self.groups:
            lines.append("    groups = [")
            for rule, names in self.groups.items():
                own = {"lr": float(f"{self.lr * rule.lr:.12g}"), "weight_decay": rule.decay}
                lines += indented(
                    [
                        "{",
                        *indented(wrap(f'"params": [net.get_parameter(name) for name in {listed(names)}],')),
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
        body = ['weights, now = load_file(FOLDER / "weights.safetensors"), net.state_dict()', "files = {}"]
        if self.adapters:
            body += ADAPTED.strip("\n").splitlines()
        body += WEIGHTS.strip("\n").splitlines()
        if self.slots:
            body += STATE.strip("\n").splitlines()
        if self.average is not None:
            body += AVERAGE.strip("\n").splitlines()
        arguments = ["net: Model", *(f"{name}: {kind}" for name, kind in given.items())]
        return self.save(arguments, body, "{key: tensor.detach().contiguous() for key, tensor in tensors.items()}")

    def _train(self) -> list[str]:
        scheduled, several = self.scheduled, self.accumulate > 1
        start = f", start: int = {self.steps}" if scheduled else ""
        doc = f"{self.doc_of_training()}; gives the loss of each."
        doc += " `start` steps were made before." if scheduled else ""
        lines = ["keep_biased(net)"] if self.unbiased is False else []
        lines += [f"net.{'train' if self.trains else 'eval'}()", "losses = []"]
        steps = []
        if scheduled:
            number = f"start + number // {self.accumulate}" if several else "start + number"
            steps += [
                "for group in optimizer.param_groups:",
                f'    group["lr"] = group["initial_lr"] * rate({number})',
            ]
        if self.clip_norm is not None and self.clip_epsilon == CLIP_EPSILON:
            steps.append(f"torch.nn.utils.clip_grad_norm_(net.parameters(), {self.clip_norm!r})")
        elif self.clip_norm is not None:
            steps += CLIP.format(limit=self.clip_norm).strip("\n").splitlines()
        if self.clip_value is not None:
            steps.append(f"torch.nn.utils.clip_grad_value_(net.parameters(), {self.clip_value!r})")
        clear = f"optimizer.zero_grad({'set_to_none=False' if self.branches else ''})"
        steps += ["optimizer.step()", clear]
        steps += ["average.update_parameters(net)"] if self.average is not None else []
        together = self._several
        loop = [
            "loss = shared(loss_of(net, batch), batch)" if self._counted else "loss = loss_of(net, batch)",
            f"(loss / {self.accumulate}).backward()" if several else "loss.backward()",
        ]
        if self.branches:  # there may be no way from the loss to any weight
            loop[1:] = ["if loss.requires_grad:", *indented(loop[1:])]
        if several and together:
            last = f"number % {self.accumulate} == 0 or not dist.is_initialized()"
            loop = [f"with nullcontext() if {last} else net.no_sync():", *indented(loop)]
        loop += [f"if number % {self.accumulate} == 0:", *indented(steps)] if several else steps
        loop.append("losses.append(loss.item())")
        counted = scheduled or several
        if self.branches:
            lines += ["for p in net.parameters():", "    p.grad = torch.zeros_like(p) if p.requires_grad else None"]
        else:
            lines += ["optimizer.zero_grad()"]
        lines += ["for number, batch in enumerate(batches, 1):" if counted else "for batch in batches:"]
        lines += indented(loop)
        if together:
            lines += ["if dist.is_initialized():", *indented(MEAN_LOSSES.strip("\n").splitlines())]
        lines.append("return losses")
        average = ", average: AveragedModel" if self.average is not None else ""
        kind = "nn.Module" if together else "Model"
        arguments = f"net: {kind}, optimizer: torch.optim.Optimizer, batches: Iterable[Batch]{average}{start}"
        return [*wrap(f"def train({arguments}) -> list[float]:"), f'    """{doc}"""', *indented(lines)]

    def _main(self) -> list[str]:
        own = [*(["optimizer"] if self.slots else []), *(["average"] if self.average is not None else [])]
        more = ", average" if self.average is not None else ""
        more += ", made" if self.scheduled else ""
        load = "load_adapted()" if self.adapters else "load()"
        average = ["average = load_average(net)"] if self.average is not None else []
        read, saved = "torch.from_numpy(file[name]).to(dtype)", ["net", *own]
        if not self._several:
            return self.main(
                read,
                [f"net = {load}", "optimizer = load_optimizer(net)", *average],
                [
                    "torch.manual_seed(epoch)  # an epoch is the same, however often training was interrupted before",
                    f"losses = train(net, optimizer, batches_of(data, args.batch, epoch){more})",
                ],
                saved,
            )
        unused = ", find_unused_parameters=True" if len(self.outputs) > 1 else ""
        return self.main(
            read,
            [
                f"net = {load}.to(device)",
                "optimizer = load_optimizer(net)",
                *average,
                *(["LOSS.to(device)"] if self.graph is not None else []),
                f"model = DistributedDataParallel(net{unused}) if count > 1 else net",
            ],
            [
                "torch.manual_seed(epoch * count + rank)  # the same, however often training was interrupted before",
                "batches = batches_of(data, args.batch, epoch, rank, count, device)",
                f"losses = train(model, optimizer, batches{more})",
            ],
            saved,
            options=[
                'parser.add_argument("--device", default="cpu", help="cpu, or cuda: one for each process of a machine")'
            ],
            begin=BEGIN.strip("\n").splitlines(),
            writes="rank == 0",
            end=["if count > 1:", "    dist.destroy_process_group()"],
        )


CLIP = """
given = [w.grad for w in net.parameters() if w.grad is not None]
factor = torch.clamp({limit!r} / torch.nn.utils.get_total_norm(given), max=1.0)
torch._foreach_mul_(given, factor)
"""
"""Without the small number that PyTorch adds to the norm."""
BIASED = '''
def keep_biased(net: torch.nn.Module) -> None:
    """Let running variances take in the biased variance of a batch, where PyTorch takes the unbiased one."""

    def before(layer: Any, given: Any) -> None:
        layer.kept = (1 - layer.momentum) * layer.running_var

    def after(layer: Any, given: Any, result: Tensor) -> None:
        if layer.training:
            count = given[0].numel() // layer.num_features
            biased = layer.kept + (layer.running_var - layer.kept) * (count - 1) / count
            layer.running_var.data.copy_(biased)  # in its place: processes share the tensor itself

    for layer in net.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and not hasattr(layer, "kept"):
            layer.register_forward_pre_hook(before)
            layer.register_forward_hook(after)
            layer.kept = layer.running_var.clone()
'''
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
BATCHES = '''
def batches_of(
    data: Batch, size: int, epoch: int, rank: int = 0, count: int = 1, device: str = "cpu"
) -> Iterator[Batch]:
    """Cut into batches, in an order that follows from the epoch; of each, the rows of one of several processes."""
    total = min(len(tensor) for tensor in data.values())
    order = torch.randperm(total, generator=torch.Generator().manual_seed(epoch))
    for index in order.split(size):
        yield {name: tensor[index.tensor_split(count)[rank]].to(device) for name, tensor in data.items()}
'''
MEAN_LOSSES = """
total = torch.tensor(losses, device=loss.device)
dist.all_reduce(total)
losses = (total / dist.get_world_size()).tolist()
"""
BEGIN = """
rank, count = start_processes(args.device)
device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if args.device == "cuda" else args.device
"""
