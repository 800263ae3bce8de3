"""Training comes from PyTorch: a module, its loss and its optimizer, as they are, become a trainable ONNX model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from onward.advice.extras import missing_packages
from onward.errors import UnsupportedError
from onward.frontends.torch.export import positional
from onward.frontends.torch.in_training import exported_to_train
from onward.training.capture.torch_gradients import check_gradients
from onward.training.recipe.by_shape import Adafactor
from onward.training.recipe.ctc import CTC
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
    Term,
)
from onward.training.recipe.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from onward.training.trainable import Options, Trainable, prepare

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, np.dtype[Any]]
LATER = ("amsgrad", "maximize", "differentiable")
"""Options of `torch.optim` that change what a step computes, and are not known here."""


@missing_packages()
def from_torch(
    module: torch.nn.Module,
    args: torch.Tensor | Sequence[Any],
    loss: Any = "cross_entropy",
    optimizer: torch.optim.Optimizer | Optimizer | str = "adamw",
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = True,
    **options: Unpack[Options],
) -> Trainable:
    """A PyTorch module as a trainable model whose next steps are those that PyTorch would make.

    `args` are inputs such as the module is called with; their first axis is the batch unless `dynamic_batch` is off.
    `loss` is a loss of `torch.nn` or `torch.nn.functional`, or whatever `prepare` takes. Of a `torch.optim` optimizer
    the parameters, their groups and the state are taken over; else what requires a gradient is trained. The module's
    mode, `train()` or `eval()`, says how batch normalisation and dropout behave; it is left as it is. `options` are
    those of `prepare`.
    """
    import torch

    given = positional(args)
    trains = _mode(module)
    names = {parameter: name for name, parameter in module.named_parameters() if parameter.requires_grad}
    how: Any = optimizer
    groups: list[Group] = []
    if isinstance(optimizer, torch.optim.Optimizer):
        how, groups, names = _optimizer(optimizer, names)
    model = exported_to_train(module, given, trains, input_names, output_names, dynamic_batch)
    wanted = set(names.values())
    options["groups"] = [*groups, *options.get("groups", ())]
    made = prepare(
        model,
        _loss(loss),
        how,
        lambda name: name in wanted,
        train_mode=trains,
        **options,
    )
    _check_parameters(module, given, made, names)
    check_gradients(module, given, model, input_names, made, trains)
    if trains:
        _check_statistics(module, made)
    if isinstance(optimizer, torch.optim.Optimizer):
        state, step = _state(optimizer, names, made)
        made = replace(made, state=state, step=step)
    return made


def _mode(module: torch.nn.Module) -> bool:
    """Whether the module is in the mode of training, and all of it."""
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.dropout import _DropoutNd

    parts = [part for part in module.modules() if isinstance(part, _BatchNorm | _DropoutNd)]
    for part in parts:
        if isinstance(part, _BatchNorm) and (part.momentum is None or not part.track_running_stats) and part.training:
            raise UnsupportedError(f"{part} cannot be trained: set track_running_stats=True and a momentum")
    modes = {part.training for part in parts}
    if len(modes) > 1:
        raise UnsupportedError(
            "some batch normalisation or dropout of the module is in the mode of eval(), some is not:"
            " put all of it in one mode"
        )
    return modes.pop() if modes else module.training


def _check_parameters(
    module: torch.nn.Module, args: tuple[Any, ...], made: Trainable, names: Mapping[torch.nn.Parameter, str]
) -> None:
    """Refuse a model in which a parameter that has a gradient in PyTorch is none any more."""
    import torch

    missing = set(names.values()) - made.parameters.keys()
    if not missing:
        return
    copied = copy.deepcopy(module)
    with torch.enable_grad(), torch.random.fork_rng():
        outputs = copied(*args)
        first = outputs if isinstance(outputs, torch.Tensor) else next(iter(outputs))
        first.sum().backward()
    reached = {name for name, parameter in copied.named_parameters() if parameter.grad is not None}
    if lost := sorted(missing & reached):
        raise UnsupportedError(f"the parameter {lost[0]!r} is not a weight of the model that PyTorch exports")


def _check_statistics(module: torch.nn.Module, made: Trainable) -> None:
    own = {name for name, _ in module.named_buffers() if name.endswith(("running_mean", "running_var"))}
    if odd := sorted(own - made.buffers.keys()):
        raise UnsupportedError(f"the running statistic {odd[0]!r} would not follow the training")


def _loss(loss: Any) -> Any:
    """A loss of `torch.nn`, or a function of `torch.nn.functional`, as one of Onward's; others as they are."""
    from torch import nn
    from torch.nn import functional

    functions: dict[Any, type[nn.Module]] = {
        functional.cross_entropy: nn.CrossEntropyLoss,
        functional.nll_loss: nn.NLLLoss,
        functional.binary_cross_entropy_with_logits: nn.BCEWithLogitsLoss,
        functional.mse_loss: nn.MSELoss,
        functional.l1_loss: nn.L1Loss,
        functional.huber_loss: nn.HuberLoss,
        functional.smooth_l1_loss: nn.SmoothL1Loss,
        functional.ctc_loss: nn.CTCLoss,
    }
    if callable(loss) and loss in functions:
        loss = functions[loss]()
    if not isinstance(loss, nn.Module):
        return loss
    reduction: Any = getattr(loss, "reduction", "mean")
    weight = getattr(loss, "weight", None)
    numbers = None if weight is None else tuple(weight.tolist())
    match loss:
        case nn.KLDivLoss() if reduction == "batchmean" and not loss.log_target:
            return KLDivergence()
        case _ if reduction not in ("mean", "sum"):
            pass
        case nn.CrossEntropyLoss():
            return CrossEntropy(loss.label_smoothing, loss.ignore_index, numbers, reduction=reduction)
        case nn.NLLLoss():
            return NegativeLogLikelihood(loss.ignore_index, numbers, reduction=reduction)
        case nn.BCEWithLogitsLoss() if weight is None and (loss.pos_weight is None or loss.pos_weight.numel() == 1):
            return BinaryCrossEntropy(1.0 if loss.pos_weight is None else loss.pos_weight.item(), reduction)
        case nn.MSELoss():
            return MeanSquaredError(reduction)
        case nn.L1Loss():
            return L1(reduction)
        case nn.HuberLoss():
            return Huber(loss.delta, reduction)
        case nn.CTCLoss():
            return CTC(loss.blank, loss.zero_infinity, reduction)
        case nn.SmoothL1Loss():
            return L1(reduction) if not loss.beta else Term(Huber(loss.beta, reduction), 1 / loss.beta)
    raise UnsupportedError(f"the loss {loss} (reduction {reduction!r}) has no counterpart; prepare takes ONNX models")


def _kind(optimizer: torch.optim.Optimizer) -> type[Any]:
    from torch import optim

    kinds: dict[type[Any], type[Any]] = {
        optim.SGD: SGD,
        optim.Adagrad: Adagrad,
        optim.RMSprop: RMSprop,
        optim.Adam: Adam,
        optim.AdamW: AdamW,
        optim.Adafactor: Adafactor,
    }
    if isinstance(optimizer, optim.Muon):
        raise UnsupportedError(
            "the optimizer Muon rounds to bfloat16 on the way, which ONNX Runtime has no kernels for: give "
            "optimizer='muon', the same formula in the precision of the weights"
        )
    found = kinds.get(type(optimizer))
    if found is None:
        known = ", ".join(kind.__name__ for kind in kinds)
        raise UnsupportedError(f"the optimizer {type(optimizer).__name__} has no counterpart; there are {known}")
    decoupled = optimizer.param_groups[0].get("decoupled_weight_decay", False)
    return AdamW if found is Adam and decoupled else found


def _optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[torch.nn.Parameter, str]
) -> tuple[Optimizer, list[Group], dict[torch.nn.Parameter, str]]:
    """The optimizer by the options of its first group, what differs in others, and its parameters by name."""
    kind = _kind(optimizer)
    known = [option.name for option in fields(kind)]
    first, *_ = optimizer.param_groups
    rate = float(first["lr"])
    groups: list[Group] = []
    own: dict[torch.nn.Parameter, str] = {}
    for group in optimizer.param_groups:
        for option in LATER:
            if group.get(option):
                raise UnsupportedError(f"{type(optimizer).__name__} with {option} has no counterpart")
        for option in known:
            if option not in ("lr", "weight_decay") and group[option] != first[option]:
                raise UnsupportedError(f"groups of parameters cannot have another {option}: give all of them the same")
        if not rate and group["lr"]:
            raise UnsupportedError(
                "the learning rate of the first group of parameters is 0, of another it is not: put another group first"
            )
        found = {parameter: names[parameter] for parameter in group["params"] if parameter in names}
        own |= found
        if found and group is not first:
            patterns = ["".join(f"[{ch}]" if ch in "*?[" else ch for ch in name) for name in found.values()]
            factor = float(group["lr"]) / rate if rate else 1.0
            groups.append(Group(patterns, factor, float(group["weight_decay"])))
    options = {option: first[option] for option in known} | {"lr": rate}
    if "betas" in options:
        options["betas"] = tuple(map(float, options["betas"]))
    made: Optimizer = kind(**options)
    return made, groups, own


def _state(
    optimizer: torch.optim.Optimizer, names: Mapping[torch.nn.Parameter, str], made: Trainable
) -> tuple[dict[str, Array], int]:
    """The optimizer's state by ONNX names, and the number of steps that it is of; SGD's says no more than some."""
    import torch

    state = dict(made.state)
    steps = set()
    for parameter, name in names.items():
        if name not in made.parameters:
            continue
        own = optimizer.state.get(parameter, {})
        for slot in made.optimizer.states:
            if own.get(slot) is not None:
                like = torch.from_numpy(state[f"{name}.{slot}"])
                state[f"{name}.{slot}"] = own[slot].detach().cpu().to(like.dtype).numpy().copy()
        steps.add(int(own["step"]) if "step" in own else int(own.get("momentum_buffer") is not None))
    if len(steps) > 1:
        raise UnsupportedError("parameters have made different numbers of steps")
    return state, steps.pop() if steps else 0
