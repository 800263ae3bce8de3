"""Layers of networks, and random numbers."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

IMAGE = numbers(1, 8, 8, 3, low=0, high=1)

DYNAMIC: dict[str, tuple[Any, ...]] = {
    "nn_wce": (lambda x: tf.nn.weighted_cross_entropy_with_logits(tf.ones_like(x), x, 2.0), numbers(3, 4)),
    "nn_log_poisson": (lambda x: tf.nn.log_poisson_loss(tf.ones_like(x), x, True), numbers(3, 4)),
    "nn_frac_pool": (lambda x: tf.nn.max_pool(x, [2, 3], [2, 1], "VALID"), IMAGE),
    "nn_avg_same": (lambda x: tf.nn.avg_pool(x, 3, 2, "SAME"), IMAGE),
    "nn_with_space": (lambda x: tf.nn.pool(x, [2, 2], "AVG", strides=[2, 2], padding="VALID"), IMAGE),
    "nn_bn_axis": (
        lambda x: tf.nn.batch_normalization(x, tf.reduce_mean(x, 0), tf.math.reduce_variance(x, 0), None, None, 0.001),
        numbers(4, 3),
    ),
    "nn_suff": (lambda x: tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0])[:3], None), numbers(4, 3)),
    "nn_wmom": (lambda x: tf.nn.weighted_moments(x, [0], tf.abs(x)), numbers(4, 3)),
    "nn_swish_b": (lambda x: tf.nn.silu(x, 2.0), numbers(4)),
    "nn_isotonic": (lambda x: tf.nn.isotonic_regression(x)[0], numbers(2, 6)),
    "nn_nce_like": (lambda x: tf.nn.embedding_lookup(x, [[1, 0]], max_norm=1.0), numbers(4, 3)),
    "nn_safe_emb": (
        lambda x: tf.nn.safe_embedding_lookup_sparse(
            x, tf.SparseTensor([[0, 0], [2, 1]], tf.constant([1, 3], tf.int64), [3, 2])
        ),
        numbers(4, 3),
    ),
    "nn_emb_sqrtn": (
        lambda x: tf.nn.embedding_lookup_sparse(
            x,
            tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 3, 2], tf.int64), [2, 2]),
            None,
            combiner="sqrtn",
        ),
        numbers(4, 3),
    ),
    "nn_lrn2": (lambda x: tf.nn.local_response_normalization(x, 2, 1.0, 0.5, 0.75), numbers(1, 2, 2, 8)),
    "rd_stateless_u": (lambda x: x + tf.random.stateless_uniform([3], [1, 2]), numbers(3)),
    "rd_stateless_n": (lambda x: x + tf.random.stateless_normal([3], [1, 2]), numbers(3)),
    "rd_stateless_seed_in": (lambda x: tf.random.stateless_uniform([3], x), np.array([1, 2], np.int32)),
    "rd_shape": (lambda x: tf.shape(tf.random.normal(tf.shape(x))), numbers(3, 4)),
    "rd_trunc": (lambda x: tf.shape(tf.random.truncated_normal(tf.shape(x))), numbers(3, 4)),
    "rd_gamma": (lambda x: tf.shape(tf.random.gamma([2], x)), numbers(3, low=1, high=2)),
    "rd_poisson": (lambda x: tf.shape(tf.random.poisson([2], x)), numbers(3, low=1, high=2)),
    "rd_cat": (lambda x: tf.shape(tf.random.categorical(x, 5)), numbers(3, 4)),
    "rd_int": (lambda x: tf.reduce_max(tf.random.uniform(tf.shape(x), 0, 1, tf.int32)), numbers(3)),
    "rd_shuffle": (lambda x: tf.sort(tf.random.shuffle(x)), numbers(5)),
    "rd_dropout": (lambda x: tf.shape(tf.nn.dropout(x, 0.5)), numbers(3, 4)),
    "rd_stateless_dropout": (lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, seed=[1, 2]), numbers(3, 4)),
    "rd_stateless_int": (lambda x: tf.random.stateless_uniform([3], [1, 2], 0, 100, tf.int32) + x, integers(3)),
    "rd_flip": (lambda x: tf.shape(tf.image.random_flip_left_right(x)), IMAGE),
    "rd_fold": (lambda x: tf.random.fold_in([1, 2], x), np.array(3, np.int32)),
    "rd_split": (lambda x: tf.random.split([1, 2], 2) + x, integers(2)),
    "rd_log_uniform": (
        lambda x: (
            tf.shape(tf.random.log_uniform_candidate_sampler(x, 1, 2, True, 5).sampled_candidates)
            if hasattr(tf.random, "log_uniform_candidate_sampler")
            else tf.shape(x)
        ),
        np.array([[1]], np.int64),
    ),
}
STATIC: dict[str, tuple[Any, ...]] = {
    "nn_ctc_greedy": (
        lambda x: tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(x, tf.constant([5, 4]))[0][0]),
        numbers(5, 2, 6),
    ),
    "nn_ctc_beam": (
        lambda x: tf.sparse.to_dense(tf.nn.ctc_beam_search_decoder(x, tf.constant([5, 4]))[0][0]),
        numbers(5, 2, 6),
    ),
    "nn_ctc_loss": (
        lambda x: tf.nn.ctc_loss(
            tf.constant([[1, 2], [3, 1]]), x, tf.constant([2, 2]), tf.constant([5, 5]), blank_index=0
        ),
        numbers(5, 2, 6),
    ),
    "nn_atrous": (lambda x: tf.nn.atrous_conv2d(x, tf.ones([3, 3, 3, 2]), 2, "SAME"), IMAGE),
    "nn_conv_t_out": (
        lambda x: tf.nn.conv2d_transpose(x, tf.ones([3, 3, 4, 3]) * 0.1, [1, 17, 17, 4], 2, "VALID"),
        IMAGE,
    ),
    "nn_conv1d_t": (lambda x: tf.nn.conv1d_transpose(x, tf.ones([3, 4, 3]), [1, 16, 4], 2), numbers(1, 8, 3)),
    "nn_dw_mult": (lambda x: tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]), [1, 2, 2, 1], "SAME"), IMAGE),
    "nn_maxpool_expl": (lambda x: tf.nn.max_pool(x, 3, 2, [[0, 0], [1, 1], [1, 0], [0, 0]]), IMAGE),
    "nn_erosion": (
        lambda x: tf.nn.erosion2d(x, tf.zeros([2, 2, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
        IMAGE,
    ),
    "nn_conv3d_dil": (
        lambda x: tf.nn.conv3d(x, tf.ones([2, 2, 2, 2, 3]), [1, 1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 2, 1]),
        numbers(1, 5, 5, 5, 2),
    ),
    "nn_lstm_block": (
        lambda x: (
            tf.raw_ops.LSTMBlockCell(
                x=x,
                cs_prev=tf.zeros([2, 4]),
                h_prev=tf.zeros([2, 4]),
                w=tf.ones([7, 16]) * 0.1,
                wci=tf.zeros([4]),
                wcf=tf.zeros([4]),
                wco=tf.zeros([4]),
                b=tf.zeros([16]),
            ).h
        ),
        numbers(2, 3),
    ),
    "nn_gru_block": (
        lambda x: (
            tf.raw_ops.GRUBlockCell(
                x=x,
                h_prev=tf.zeros([2, 4]),
                w_ru=tf.ones([7, 8]) * 0.1,
                w_c=tf.ones([7, 4]) * 0.1,
                b_ru=tf.zeros([8]),
                b_c=tf.zeros([4]),
            ).h
        ),
        numbers(2, 3),
    ),
}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
