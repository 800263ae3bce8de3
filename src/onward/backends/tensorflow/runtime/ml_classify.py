"""Probabilities of support vector machines."""

from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.control_flow import loop


def couple_pairs(pairs: tf.Tensor) -> tf.Tensor:
    """The probabilities of classes from those of each class against each other one: (rows, classes, classes).

    Wu, Lin and Weng, 'Probability Estimates for Multi-class Classification by Pairwise Coupling', 2004, with the
    number of rounds and the precision that LIBSVM and ONNX Runtime use.
    """
    count = pairs.shape[-1]
    unit = tf.eye(count, dtype=pairs.dtype)
    r = pairs * (1 - unit)
    q = tf.linalg.diag(tf.reduce_sum(r * r, 1)) - tf.linalg.matrix_transpose(r) * r

    def body(_: Any, p: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        qp = tf.reduce_sum(q * p[:, tf.newaxis], 2)
        pqp = tf.reduce_sum(p * qp, 1)
        active = tf.reduce_max(tf.abs(qp - pqp[:, tf.newaxis]), 1) >= 0.005 / count
        new = p
        for i in range(count):
            step = (pqp - qp[:, i]) / q[:, i, i]
            scale = 1 + step
            pqp = (pqp + step * (step * q[:, i, i] + 2 * qp[:, i])) / scale / scale
            qp = (qp + step[:, tf.newaxis] * q[:, i]) / scale[:, tf.newaxis]
            new = (new + step[:, tf.newaxis] * unit[i]) / scale[:, tf.newaxis]
        return tf.reduce_any(active), tf.where(active[:, tf.newaxis], new, p)

    (p,) = loop(body, [tf.ones_like(r[:, 0]) / count], count=100)
    return p
