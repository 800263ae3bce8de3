"""From scores to probabilities and labels, as classical models of ONNX define it."""

import math

import numpy as np
import torch
from torch import Tensor


def softmax_zero(x: Tensor) -> Tensor:
    """Softmax over the last axis in which scores of zero stay zero."""
    top = x.amax(-1, keepdim=True)
    is_zero = x.abs() <= 1e-7
    powers = torch.where(is_zero, 0, torch.exp(x - top))
    return torch.where(is_zero, x * torch.exp(-top), powers) / powers.sum(-1, keepdim=True)


def probit(x: Tensor) -> Tensor:
    """The quantile of the normal distribution, in the approximation that ONNX Runtime computes."""
    y = 2 * x - 1
    log = torch.log((1 - y) * (1 + y))
    v = 2 / (math.pi * 0.147) + 0.5 * log
    root = torch.sqrt(torch.sqrt(v * v - log / 0.147) - v)
    return math.sqrt(2) * torch.where(y < 0, -root, root)


def pick_strings(names: np.ndarray, index: Tensor) -> np.ndarray:
    """The name of each index."""
    return np.asarray(names[index.cpu().numpy()], dtype=object)
