"""One step of ONNX's optimizers for one tensor, as the standard's pseudo code has them."""

import torch
from torch import Tensor


def differentiable(x: Tensor) -> Tensor:
    """A tensor that gradients can be asked for."""
    return x if x.requires_grad else x.detach().requires_grad_()


def gradients(y: Tensor, xs: list[Tensor], keep: bool) -> tuple[Tensor, ...]:
    """The derivatives of the sum of y, themselves differentiable where `keep` is true."""
    if not y.requires_grad:
        return tuple(torch.zeros_like(x) for x in xs)
    return torch.autograd.grad(y.sum(), xs, create_graph=keep, materialize_grads=True)


def adam_step(
    rate: Tensor,
    count: Tensor,
    x: Tensor,
    gradient: Tensor,
    average: Tensor,
    squares: Tensor,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The new tensor, average of gradients and average of their squares."""
    gradient = norm_coefficient * x + gradient
    average = alpha * average + (1 - alpha) * gradient
    squares = beta * squares + (1 - beta) * gradient * gradient
    steps = count.double()
    correction = torch.where(count > 0, (1 - beta**steps).sqrt() / (1 - alpha**steps), 1.0)
    x = x - (rate * correction).to(x.dtype) * average / (squares.sqrt() + epsilon)
    return (1 - norm_coefficient_post) * x, average, squares


def adagrad_step(
    rate: Tensor,
    count: Tensor,
    x: Tensor,
    gradient: Tensor,
    squares: Tensor,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The new tensor and sum of squared gradients."""
    gradient = norm_coefficient * x + gradient
    squares = squares + gradient * gradient
    rate = (rate / (1 + count * decay_factor)).to(x.dtype)
    return x - rate * gradient / (squares.sqrt() + epsilon), squares


def momentum_step(
    rate: Tensor,
    count: Tensor,
    x: Tensor,
    gradient: Tensor,
    momentum: Tensor,
    *,
    alpha: float,
    beta: float,
    norm_coefficient: float,
    nesterov: bool = False,
) -> tuple[Tensor, Tensor]:
    """The new tensor and momentum; at the first step, the gradient counts in full."""
    gradient = norm_coefficient * x + gradient
    share = torch.where(count > 0, beta, 1.0).to(x.dtype)
    momentum = alpha * momentum + share * gradient
    direction = gradient + alpha * momentum if nesterov else momentum
    return x - rate.to(x.dtype) * direction, momentum
