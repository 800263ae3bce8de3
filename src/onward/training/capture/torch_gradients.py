"""Are the gradients of a module those of the graph that PyTorch exports of it?

A graph says what is computed, and not that a gradient stops (`detach`, `no_grad`) or is a function of its own
(`autograd.Function`): so both sides compute those of the same errors, on random numbers, and are compared.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.torch.in_training import draws
from onward.frontends.torch.names import called
from onward.model import Model
from onward.training.recipe.losses import MeanSquaredError, Term
from onward.training.recipe.optimizers import SGD
from onward.training.runtime.session import open_session
from onward.training.trainable import Trainable, prepare
from onward.training.verification.chance import without_chance

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
APART = 1e-2
"""How far gradients that are the same may be apart, of their norm: a rounding error may take a number over an edge."""
SMALL = 1e-3
"""Below so much of the largest gradient, the rest is rounding."""
LABELS = "onward.wanted"
DRAWS = 2
"""Gradients differ only if they do in all of these."""


def check_gradients(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    model: Model,
    inputs: Sequence[str] | None,
    made: Trainable,
    trains: bool,
) -> None:
    """Refuse a module of which a parameter has another gradient in PyTorch; one that draws numbers is not looked at.

    `model` is what was exported, and `made` the training of it.
    """
    import torch

    copied = copy.deepcopy(module).cpu().train(trains)
    if any(map(_is_half, copied.parameters())):  # the graph is trained in float32
        copied, args = copied.float(), torch.utils._pytree.tree_map(lambda a: a.float() if _is_half(a) else a, args)
    for part in copied.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    own = dict(copied.named_parameters())
    wanted = (made.parameters.keys() | made.adapters.keys()) & own.keys()
    if not wanted or (trains and draws(copied, args)):
        return
    outputs = [value.name for value in model.ir.graph.outputs]
    output = next((term.output for term in made.loss or () if term.output), outputs[0])
    loss = [Term(MeanSquaredError(labels=LABELS), 1.0, output)]
    start, _ = without_chance(prepare(model, loss, SGD(), lambda name: name in wanted, train_mode=trains))
    session = open_session(start.gradients)
    apart = set(start.parameters)
    for seed in range(DRAWS):
        given = _drawn(args, seed)
        parameters = [own[name].requires_grad_() for name in start.parameters]
        try:
            with torch.enable_grad(), torch.random.fork_rng():
                result = torch.utils._pytree.tree_leaves(copied(*given))[outputs.index(output)]
                labels = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed)).to(result.dtype)
                error = ((result - labels) ** 2).mean()
            slopes = torch.autograd.grad(error, parameters, materialize_grads=True, allow_unused=True)
        except (RuntimeError, ValueError):  # such numbers do not suit it
            return
        theirs = {name: slope.numpy() for name, slope in zip(start.parameters, slopes, strict=True)}
        feeds = {name: tensor.cpu().numpy() for name, tensor in called(copied, given, {}, inputs).tensors.items()}
        held = {**start.parameters, **start.buffers, **feeds, LABELS: labels.numpy()}
        found = session.run([f"{name}.grad" for name in theirs], {v.name: held[v.name] for v in session.get_inputs()})
        apart &= _apart(theirs, dict(zip(theirs, found, strict=True)))
    if apart:
        name = next(name for name in start.parameters if name in apart)
        raise UnsupportedError(
            f"PyTorch has another gradient of {name!r} than the graph that it exports: the module stops gradients "
            "(detach, no_grad) or has some of its own (autograd.Function), and a graph does not say so. Freeze this "
            "parameter (requires_grad_(False)), or train in PyTorch"
        )


def _is_half(part: Any) -> bool:
    import torch

    return isinstance(part, torch.Tensor) and part.dtype in (torch.float16, torch.bfloat16)


def _drawn(args: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """Such inputs with other numbers: at zero, say, a Relu has an edge, of which either side will do."""
    import torch

    draw = torch.Generator().manual_seed(seed)

    def other(part: Any) -> Any:
        is_float = isinstance(part, torch.Tensor) and part.is_floating_point()
        if not isinstance(part, torch.Tensor):
            return part
        return torch.rand(part.shape, generator=draw).to(part.dtype) + 0.01 if is_float else part.cpu()

    found: tuple[Any, ...] = torch.utils._pytree.tree_map(other, args)
    return found


def _apart(theirs: Arrays, found: Arrays) -> set[str]:
    """The names of those that differ."""
    largest = max(float(np.linalg.norm(array)) for array in theirs.values())
    if not np.isfinite(largest):
        return set()
    return {
        name
        for name, array in theirs.items()
        if np.linalg.norm(array - found[name]) > APART * max(float(np.linalg.norm(array)), SMALL * largest)
    }
