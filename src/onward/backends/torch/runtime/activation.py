"""Activation functions that PyTorch does not have, and Dropout with its mask."""

import numpy as np
import torch
from torch import Tensor


def shrink(x: Tensor, limit: float, bias: float) -> Tensor:
    """Zero within `limit` of zero; beyond, moved by `bias` towards zero."""
    return torch.where(x < -limit, x + bias, torch.where(x > limit, x - bias, 0))


def half_precision_softmax(x: Tensor, axis: int) -> Tensor:
    """Softmax that rounds at each step of its definition, as ONNX's does in half precision."""
    if x.shape[axis] == 0:
        return x
    powers = torch.exp(x - x.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


def hardmax(x: Tensor, axis: int) -> Tensor:
    """1 at the first of the largest elements along an axis, which may be empty, and 0 elsewhere."""
    if x.shape[axis] == 0:
        return torch.zeros_like(x)
    return torch.zeros_like(x).scatter(axis, x.argmax(dim=axis, keepdim=True), 1.0)


def dropout_with_mask(x: Tensor, rate: float, training: bool, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Dropout, and which elements it kept. With a seed, those that ONNX's reference implementation keeps."""
    if not training or rate == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    if seed is None:
        drawn = torch.rand(x.shape, device=x.device)
    else:
        drawn = torch.from_numpy(np.random.RandomState(seed).uniform(size=x.shape)).to(x.device)
    kept = drawn >= rate
    return torch.where(kept, x / (1 - rate), 0), kept
