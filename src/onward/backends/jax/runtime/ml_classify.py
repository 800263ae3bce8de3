"""Probabilities of support vector machines."""

import jax.numpy as jnp
from jax import Array, lax


def couple_pairs(pairs: Array) -> Array:
    """The probabilities of classes from those of each class against each other one: (rows, classes, classes).

    Wu, Lin and Weng, 'Probability Estimates for Multi-class Classification by Pairwise Coupling', 2004, with the
    number of rounds and the precision that LIBSVM and ONNX Runtime use.
    """
    count = pairs.shape[-1]
    unit = jnp.eye(count, dtype=pairs.dtype)
    r = pairs * (1 - unit)
    q = unit * (r * r).sum(1)[:, None] - r.transpose(0, 2, 1) * r

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        i, is_active, _ = state
        return is_active & (i < 100)

    def step_of(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, _, p = state
        qp = (q * p[:, None]).sum(2)
        pqp = (p * qp).sum(1)
        active = jnp.abs(qp - pqp[:, None]).max(1) >= 0.005 / count
        new = p
        for k in range(count):
            step = (pqp - qp[:, k]) / q[:, k, k]
            scale = 1 + step
            pqp = (pqp + step * (step * q[:, k, k] + 2 * qp[:, k])) / scale / scale
            qp = (qp + step[:, None] * q[:, k]) / scale[:, None]
            new = (new + step[:, None] * unit[k]) / scale[:, None]
        return i + 1, active.any(), jnp.where(active[:, None], new, p)

    return lax.while_loop(goes_on, step_of, (0, True, jnp.full_like(r[:, 0], 1 / count)))[2]
