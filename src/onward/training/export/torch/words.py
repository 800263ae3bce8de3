"""Losses, optimizers and schedules in PyTorch's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onward.training.export.state import NotInWords
from onward.training.export.torch.classes import OWN
from onward.training.recipe.ctc import CTC
from onward.training.recipe.losses import (
    L1,
    TOKENS,
    BinaryCrossEntropy,
    CausalLM,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
)
from onward.training.recipe.optimizers import SGD, Adagrad, Adam, AdamW, RMSprop

IGNORED = -100
"""The class that PyTorch ignores unless it is told another one."""
OPTIMIZERS: Mapping[type[Any], tuple[str, tuple[str, ...]]] = {
    SGD: ("SGD", ("lr", "momentum", "dampening", "nesterov", "weight_decay")),
    Adagrad: ("Adagrad", ("lr", "lr_decay", "eps", "weight_decay")),
    RMSprop: ("RMSprop", ("lr", "alpha", "eps", "momentum", "centered", "weight_decay")),
    Adam: ("Adam", ("lr", "betas", "eps", "weight_decay")),
    AdamW: ("AdamW", ("lr", "betas", "eps", "weight_decay")),
}
"""The class of `torch.optim`, and the options that it has by the same names."""


def loss_call(loss: Any, prediction: str, batch: Callable[[str], str], *, normalised: bool = True) -> str:
    """A call of `torch.nn.functional`; `batch` is how an input of a name is written.

    Of CTC where a prediction may not be `normalised`, PyTorch's gradient is not that of its own loss: `ctc_loss` of
    these classes is called.
    """
    options: dict[str, str] = {}
    module = "F."
    more: list[str] = []
    match loss:
        case CrossEntropy() | NegativeLogLikelihood():
            function = "cross_entropy" if isinstance(loss, CrossEntropy) else "nll_loss"
            if loss.weight is not None:
                options["weight"] = _tensor(loss.weight, prediction)
            if loss.ignore_index not in (None, IGNORED):
                options["ignore_index"] = str(loss.ignore_index)
            if isinstance(loss, CrossEntropy) and loss.label_smoothing:
                options["label_smoothing"] = repr(loss.label_smoothing)
        case CausalLM():
            return _next_tokens(loss, prediction, batch)
        case BinaryCrossEntropy():
            function = "binary_cross_entropy_with_logits"
            if loss.pos_weight != 1:
                options["pos_weight"] = _tensor(loss.pos_weight, prediction)
        case MeanSquaredError():
            function = "mse_loss"
        case L1():
            function = "l1_loss"
        case Huber():
            function = "huber_loss"
            options["delta"] = repr(loss.delta)
        case KLDivergence():
            function = "kl_div"
            options["reduction"] = '"batchmean"'
        case CTC():
            function = "ctc_loss"
            module = "F." if normalised or loss.logits else ""
            prediction, more = _ctc_inputs(loss, prediction, batch)
            options |= {"blank": str(loss.blank)} if loss.blank else {}
            options |= {"zero_infinity": "True"} if loss.zero_infinity else {}
        case _:
            raise NotInWords(f"the loss {type(loss).__name__} has no counterpart in PyTorch")
    if getattr(loss, "reduction", "mean") != "mean":
        options["reduction"] = f'"{loss.reduction}"'
    arguments = [prediction, batch(loss.labels), *more, *(f"{key}={value}" for key, value in options.items())]
    return f"{module}{function}({', '.join(arguments)})"


def _next_tokens(loss: CausalLM, prediction: str, batch: Callable[[str], str]) -> str:
    wanted = f"{batch(loss.labels or TOKENS)}[:, 1:].flatten()"
    if loss.pad is not None:
        wanted += f".masked_fill({wanted} == {loss.pad}, {loss.ignore_index})"
    options = [f"{prediction}[:, :-1].flatten(0, 1).float()", f"{wanted}.long()"]
    options += [] if loss.ignore_index == IGNORED else [f"ignore_index={loss.ignore_index}"]
    options += [] if loss.reduction == "mean" else [f'reduction="{loss.reduction}"']
    return f"F.cross_entropy({', '.join(options)})"


def _ctc_inputs(loss: CTC, prediction: str, batch: Callable[[str], str]) -> tuple[str, list[str]]:
    """The prediction as `F.ctc_loss` takes it, and the lengths."""
    lengths = batch(loss.target_lengths)
    times = f"torch.full_like({lengths}, {prediction}.shape[{int(loss.batch_first)}])"
    if loss.input_lengths is not None:
        times = batch(loss.input_lengths)
    prediction += ".transpose(0, 1)" if loss.batch_first else ""
    return prediction + (".log_softmax(-1)" if loss.logits else ""), [times, lengths]


def _tensor(numbers: float | Sequence[float], like: str) -> str:
    shown = repr(list(numbers) if isinstance(numbers, Sequence) else numbers)
    return f"{like}.new_tensor({shown})"


def optimizer_call(optimizer: Any, parameters: str, lr: float) -> str:
    """The constructor of an optimizer with all options that matter."""
    if own := OWN.get(type(optimizer)):
        return f"{own.name}({parameters}, lr={lr!r}, weight_decay={optimizer.weight_decay!r})"
    name, options = OPTIMIZERS[type(optimizer)]
    plain = type(optimizer)()
    given = {"lr": repr(lr)}
    for option in options[1:]:
        value = getattr(optimizer, option)
        if option == "weight_decay" or value != getattr(plain, option):
            given[option] = repr(value)
    return f"torch.optim.{name}({parameters}, {', '.join(f'{k}={v}' for k, v in given.items())})"
