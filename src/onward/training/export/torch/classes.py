"""What PyTorch lacks, as source for `train.py`: optimizers, adapters beside a matrix, and a loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.optimizers import LAMB
from onward.training.recipe.user_models import OnnxOptimizer

STEP = """
    def __init__(self, params: Iterable[Any], lr: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            lr, decay = group["lr"], group["weight_decay"]
            for w in group["params"]:
                state, g = self.state[w], w.grad
                if not state:
                    state.update({slot: torch.zeros_like(w) for slot in SLOTS}, step=torch.zeros(()))
                state["step"] += 1
"""
MOMENTS = """
mean = state["exp_avg"].mul_({first}).add_(g, alpha=1 - {first})
square = state["exp_avg_sq"].mul_({second}).addcmul_(g, g, value=1 - {second})
"""


@dataclass(frozen=True)
class Own:
    """An optimizer in PyTorch's form."""

    name: str
    doc: str
    options: tuple[str, ...]
    """Of ours, which are attributes of the class by the same names."""
    body: str
    """What is done for a weight `w` with the gradient `g`."""

    def source(self, optimizer: Any) -> str:
        values = {name: getattr(optimizer, name) for name in self.options}
        options = [f"{k} = {tuple(v.items()) if isinstance(v, Mapping) else v!r}" for k, v in values.items()]
        body = [line for line in self.body.strip("\n").splitlines() if line]
        return "\n".join(
            [
                f"class {self.name}(torch.optim.Optimizer):",
                f'    """{self.doc}"""',
                "",
                *(f"    {line}" for line in options),
                *STEP.rstrip("\n").splitlines(),
                *(" " * 16 + line for line in body),
            ]
        )


OWN: Mapping[type[Any], Own] = {
    LAMB: Own(
        "Lamb",
        "AdamW with steps scaled tensor by tensor, by the norm of the weight over that of its step.",
        ("betas", "eps"),
        'first, second = self.betas\ncount = state["step"].item()'
        + MOMENTS.format(first="first", second="second")
        + """
move = mean / (1 - first**count) / ((square / (1 - second**count)).sqrt() + self.eps) + decay * w
size, length = w.norm(), move.norm()
trust = torch.where((size > 0) & (length > 0), size / length, 1.0)
w.sub_(lr * trust * move)
""",
    ),
    OnnxAdam: Own(
        "OnnxAdam",
        "Adam as ai.onnx.preview.training defines it: epsilon is added before the correction.",
        ("first", "alpha", "beta", "epsilon", "norm_coefficient_post"),
        'count = state["step"].item() + self.first - 1\ng = g + decay * w'
        + MOMENTS.format(first="self.alpha", second="self.beta")
        + """
rate = lr * (1 - self.beta**count) ** 0.5 / (1 - self.alpha**count) if count > 0 else lr
w.sub_(rate * mean / (square.sqrt() + self.epsilon)).mul_(1 - self.norm_coefficient_post)
""",
    ),
    OnnxOptimizer: Own(
        "OfFile",
        "The optimizer of the file: optimizer.py has what it does to a weight.",
        ("initial",),
        """
if state["step"] == 1:
    for slot, number in self.initial:
        state[slot].fill_(number)
now = torch.tensor(lr), torch.tensor(decay), state["step"].long()
changed = OPTIMIZER(w, g, *now, *(state[slot] for slot in SLOTS[1:]))
after, *states = changed if isinstance(changed, tuple) else (changed,)
w.copy_(after)
state.update(zip(SLOTS[1:], states, strict=True))
""",
    ),
    OnnxAdagrad: Own(
        "OnnxAdagrad",
        "Adagrad as ai.onnx.preview.training defines it.",
        ("first", "decay_factor", "epsilon"),
        """
count = state["step"].item() + self.first - 1
g = g + decay * w
total = state["sum"].addcmul_(g, g)
w.sub_(lr / (1 + count * self.decay_factor) * g / (total.sqrt() + self.epsilon))
""",
    ),
    OnnxMomentum: Own(
        "OnnxMomentum",
        "Momentum as ai.onnx.preview.training defines it.",
        ("first", "alpha", "beta", "mode"),
        """
count = state["step"].item() + self.first - 1
g = g + decay * w
speed = state["momentum_buffer"].mul_(self.alpha).add_(g, alpha=self.beta if count > 0 else 1.0)
w.sub_(lr * (g + self.alpha * speed if self.mode == "nesterov" else speed))
""",
    ),
}

LOW_RANK = '''
class LowRank(nn.Module):
    """A matrix that stays as it is, and beside it the product of two small ones, which are trained."""

    def __init__(self, a: Tensor, b: Tensor, scale: float) -> None:
        super().__init__()
        self.a, self.b, self.scale = nn.Parameter(a), nn.Parameter(b), scale

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.scale * (self.a @ self.b)


def place_of(net: Model, name: str) -> tuple[nn.Module, str]:
    """The module that has a weight, and what the weight is called there."""
    path, _, own = name.rpartition(".")
    return net.get_submodule(path), own


def load_adapted() -> Model:
    """The model with its adapters apart from the matrices; `load` gives one that has them merged."""
    net, saved = load(), load_file(FOLDER / "adapters.safetensors")
    for name, scale in ADAPTERS.items():
        module, own = place_of(net, name)
        module.get_parameter(own).requires_grad_(False).copy_(saved[f"{name}.original"])
        register_parametrization(module, own, LowRank(saved[f"{name}.0.a"], saved[f"{name}.0.b"], scale))
    return net
'''

CTC_LOSS = '''
def ctc_loss(
    y: Tensor,
    labels: Tensor,
    times: Tensor,
    lengths: Tensor,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`F.ctc_loss`, whose gradient is its derivative only where `y` are logarithms of probabilities, of any `y`."""
    losses = F.ctc_loss(y.log_softmax(-1), labels, times, lengths, blank, "none", zero_infinity)
    counts = torch.arange(len(y), device=y.device)[:, None] < times.to(y.device)
    if zero_infinity:
        with torch.no_grad():
            counts = counts & F.ctc_loss(y.log_softmax(-1), labels, times, lengths, blank, "none").isfinite()
    losses = losses - torch.where(counts, y.logsumexp(-1), 0.0).sum(0)
    return losses.sum() if reduction == "sum" else (losses / lengths.to(losses).clamp(min=1)).mean()
'''
"""Every way through the times of a sample is as much likelier as all that is added to its `y`."""
