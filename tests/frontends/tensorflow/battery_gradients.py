"""Gradients."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, numbers

POSITIVE = numbers(3, 4, low=0.1, high=3)

DEFINITE = (numbers(4, 4) @ numbers(4, 4).T + 4 * np.eye(4)).astype(np.float32)


def gradient_of(f):

    def run(*x):
        x = [tf.convert_to_tensor(v) for v in x]
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(*x)
        return t.gradient(y, x)

    return run


DYNAMIC: dict[str, tuple[Any, ...]] = {
    "gr_lstm_like": (
        gradient_of(lambda x, w: tf.reduce_sum(tf.tanh(tf.sigmoid(x @ w) * tf.tanh(x @ w)))),
        numbers(2, 3),
        numbers(3, 4),
    ),
    "gr_ln": (
        gradient_of(
            lambda x: tf.reduce_sum(
                tf.sin(x)
                * (x - tf.reduce_mean(x, -1, True))
                * tf.math.rsqrt(tf.math.reduce_variance(x, -1, True) + 0.001)
            )
        ),
        numbers(2, 5),
    ),
    "gr_einsum": (
        gradient_of(lambda a, b: tf.reduce_sum(tf.einsum("bij,bjk->bik", a, b) ** 2)),
        numbers(2, 3, 4),
        numbers(2, 4, 5),
    ),
    "gr_bias_of_any_rank": (
        lambda x, shape: [
            tf.raw_ops.BiasAddGrad(out_backprop=tf.reshape(x, shape), data_format=layout) for layout in ("NHWC", "NCHW")
        ],
        numbers(24),
        np.array([2, 3, 2, 2]),
    ),
    "gr_cond": (gradient_of(lambda x: tf.cond(x[0] > 0, lambda: x * x, lambda: x * 3)), numbers(3)),
    "gr_cumsum": (gradient_of(lambda x: tf.reduce_sum(tf.cumsum(x) ** 2)), numbers(4)),
    "gr_gather_nd": (gradient_of(lambda x: tf.reduce_sum(tf.gather_nd(x, [[0, 1], [1, 2]]) ** 2)), numbers(3, 4)),
    "gr_strided": (gradient_of(lambda x: tf.reduce_sum(x[::2, 1:] ** 2)), numbers(4, 5)),
    "gr_sort": (gradient_of(lambda x: tf.reduce_sum(tf.sort(x) * tf.range(5.0))), numbers(5)),
    "gr_topk": (gradient_of(lambda x: tf.reduce_sum(tf.math.top_k(x, 2)[0] ** 2)), numbers(3, 5)),
    "gr_segsum": (gradient_of(lambda x: tf.reduce_sum(tf.math.segment_sum(x, [0, 0, 1]) ** 2)), numbers(3, 2)),
    "gr_unsorted_max": (
        gradient_of(lambda x: tf.reduce_sum(tf.math.unsorted_segment_max(x, [1, 0, 1], 2) ** 2)),
        numbers(3, 2),
    ),
    "gr_lrn": (gradient_of(lambda x: tf.reduce_sum(tf.nn.lrn(x) ** 2)), numbers(1, 2, 2, 8)),
    "gr_logsoftmax": (gradient_of(lambda x: tf.reduce_sum(tf.nn.log_softmax(x)[:, 0])), numbers(3, 4)),
    "gr_prod": (gradient_of(lambda x: tf.reduce_sum(tf.reduce_prod(x, 1))), numbers(3, 4)),
    "gr_erf": (gradient_of(lambda x: tf.reduce_sum(tf.math.erf(x) + tf.math.erfinv(x * 0.3))), numbers(3)),
    "gr_lgamma": (gradient_of(lambda x: tf.reduce_sum(tf.math.lgamma(x))), POSITIVE),
    "gr_pow": (gradient_of(lambda x, y: tf.reduce_sum(x**y)), POSITIVE, numbers(3, 4)),
    "gr_atan2": (gradient_of(lambda x, y: tf.reduce_sum(tf.atan2(x, y))), numbers(3), numbers(3, seed=3)),
    "gr_norm": (gradient_of(lambda x: tf.norm(x)), numbers(3)),
    "gr_clip": (gradient_of(lambda x: tf.reduce_sum(tf.clip_by_value(x, -1, 1) ** 2)), numbers(5)),
    "gr_where": (gradient_of(lambda x: tf.reduce_sum(tf.where(x > 0, x**2, -x))), numbers(5)),
    "gr_minmax": (
        gradient_of(lambda x, y: tf.reduce_sum(tf.minimum(x, y) * tf.maximum(x, y))),
        numbers(5),
        numbers(5, seed=2),
    ),
    "gr_tile": (gradient_of(lambda x: tf.reduce_sum(tf.tile(x, [2, 3]) ** 2)), numbers(2, 2)),
    "gr_mirror": (gradient_of(lambda x: tf.reduce_sum(tf.pad(x, [[1, 1]], "REFLECT") ** 2)), numbers(4)),
    "gr_hess": (
        gradient_of(
            lambda x: gradient_of(lambda y: tf.reduce_sum(gradient_of(lambda z: tf.reduce_sum(z**3))(y)[0]))(x)[0]
        ),
        numbers(3),
    ),
}
STATIC: dict[str, tuple[Any, ...]] = {
    "gr_while": (
        gradient_of(lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y * 0.5), [0, x])[1]),
        numbers(3),
    ),
    "gr_conv3d": (
        gradient_of(lambda x, w: tf.reduce_sum(tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME") ** 2)),
        numbers(1, 4, 4, 4, 2),
        numbers(2, 2, 2, 2, 3),
    ),
    "gr_conv2d_t": (
        gradient_of(lambda x, w: tf.reduce_sum(tf.nn.conv2d_transpose(x, w, [1, 8, 8, 3], 2) ** 2)),
        numbers(1, 4, 4, 2),
        numbers(3, 3, 3, 2),
    ),
    "gr_inv": (gradient_of(lambda x: tf.reduce_sum(tf.linalg.inv(x))), DEFINITE),
    "gr_chol": (gradient_of(lambda x: tf.reduce_sum(tf.linalg.cholesky(x))), DEFINITE),
    "gr_det": (gradient_of(lambda x: tf.linalg.det(x)), DEFINITE),
    "gr_map_fn": (gradient_of(lambda x: tf.reduce_sum(tf.map_fn(lambda r: r * tf.reduce_sum(r), x))), numbers(3, 2)),
    "gr_pool3d": (
        gradient_of(lambda x: tf.reduce_sum(tf.nn.max_pool3d(x, 2, 2, "VALID") ** 2)),
        numbers(1, 4, 4, 4, 2),
    ),
    "gr_fft": (gradient_of(lambda x: tf.reduce_sum(tf.abs(tf.signal.rfft(x)))), numbers(8)),
    "gr_resize_n": (
        gradient_of(lambda x: tf.reduce_sum(tf.image.resize(x, [4, 4], "nearest") ** 2)),
        numbers(1, 8, 8, 1),
    ),
    "gr_crop": (
        gradient_of(lambda x: tf.reduce_sum(tf.image.crop_and_resize(x, [[0.0, 0, 0.8, 0.7]], [0], [3, 3]) ** 2)),
        numbers(1, 8, 8, 1),
    ),
    "gr_ctc": (
        gradient_of(
            lambda x: tf.reduce_sum(
                tf.nn.ctc_loss(tf.constant([[1, 2]]), x, tf.constant([2]), tf.constant([5]), blank_index=0)
            )
        ),
        numbers(5, 1, 6),
    ),
    "gr_space": (gradient_of(lambda x: tf.reduce_sum(tf.nn.space_to_depth(x, 2) ** 2)), numbers(1, 4, 4, 2)),
    "gr_dilated": (
        gradient_of(lambda x, w: tf.reduce_sum(tf.nn.conv2d(x, w, 1, "SAME", dilations=2) ** 2)),
        numbers(1, 6, 6, 2),
        numbers(3, 3, 2, 3),
    ),
    "gr_gru_scan": (
        gradient_of(lambda x: tf.reduce_sum(tf.scan(lambda h, v: tf.tanh(h * 0.5 + v), x)[-1])),
        numbers(4, 2),
    ),
}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
