"""Probabilities of support vector machines."""

import torch
from torch import Tensor


def couple_pairs(pairs: Tensor) -> Tensor:
    """The probabilities of classes from those of each class against each other one: (rows, classes, classes).

    Wu, Lin and Weng, 'Probability Estimates for Multi-class Classification by Pairwise Coupling', 2004, with the
    number of rounds and the precision that LIBSVM and ONNX Runtime use.
    """
    count = pairs.shape[-1]
    r = pairs * (1 - torch.eye(count, dtype=pairs.dtype, device=pairs.device))
    q = torch.diag_embed((r * r).sum(1)) - r.transpose(1, 2) * r
    p = torch.full_like(r[:, 0], 1 / count)
    for _ in range(100):
        qp = (q @ p[..., None])[..., 0]
        pqp = (p * qp).sum(1)
        active = ((qp - pqp[:, None]).abs().amax(1) >= 0.005 / count)[:, None]
        if not active.any():
            break
        new = p
        for i in range(count):
            step = (pqp - qp[:, i]) / q[:, i, i]
            scale = 1 + step
            pqp = (pqp + step * (step * q[:, i, i] + 2 * qp[:, i])) / scale / scale
            qp = (qp + step[:, None] * q[:, i]) / scale[:, None]
            moved = torch.zeros_like(p)
            moved[:, i] = step
            new = (new + moved) / scale[:, None]
        p = torch.where(active, new, p)
    return p
