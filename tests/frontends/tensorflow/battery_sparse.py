"""Ragged and sparse tensors."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

LENGTHS = np.array([2, 0, 3], np.int64)


def sparse(v):
    return tf.SparseTensor([[0, 1], [1, 2], [2, 0]], v, [3, 4])


def ragged(x, n):
    return tf.RaggedTensor.from_row_lengths(x, n)


DYNAMIC: dict[str, tuple[Any, ...]] = {
    "rg_concat": (lambda x, n: tf.concat([ragged(x, n), ragged(x, n)], 1).to_tensor(), numbers(5), LENGTHS),
    "rg_max": (lambda x, n: tf.reduce_max(ragged(x, n), 1), numbers(5), LENGTHS),
    "rg_mul": (lambda x, n: (ragged(x, n) * 2.0).flat_values, numbers(5), LENGTHS),
    "rg_mask": (lambda x: tf.ragged.boolean_mask(x, x > 0).to_tensor(), numbers(3, 4)),
    "rg_softmax": (lambda x, n: tf.reduce_sum(tf.exp(ragged(x, n)), 1), numbers(5), LENGTHS),
    "rg_stack": (lambda x, n: tf.ragged.stack([x, n * 1.0]).to_tensor(), numbers(2), numbers(3)),
    "rg_expand": (lambda x, n: tf.expand_dims(ragged(x, n), -1).to_tensor(), numbers(5), LENGTHS),
    "rg_gather_nd": (lambda x, n: tf.gather(ragged(x, n), [2, 0]).to_tensor(), numbers(5), LENGTHS),
    "rg_slice": (lambda x, n: ragged(x, n)[:, :2].to_tensor(), numbers(5), LENGTHS),
    "rg_slice_rows": (lambda x, n: ragged(x, n)[1:].to_tensor(), numbers(5), LENGTHS),
    "rg_starts": (lambda x, n: ragged(x, n).row_starts(), numbers(5), LENGTHS),
    "rg_from_tensor_pad": (
        lambda x: tf.RaggedTensor.from_tensor(x, padding=0.0).row_lengths(),
        np.array([[1.0, 2, 0], [3, 0, 0]], np.float32),
    ),
    "rg_bounding": (lambda x, n: ragged(x, n).bounding_shape(), numbers(5), LENGTHS),
    "rg_to_sparse": (lambda x, n: tf.sparse.to_dense(ragged(x, n).to_sparse()), numbers(5), LENGTHS),
    "rg_matmul_emb": (
        lambda x, n: tf.reduce_mean(
            tf.ragged.map_flat_values(tf.nn.embedding_lookup, tf.ones([9, 4]), ragged(x, n)), 1
        ),
        integers(5, low=0, high=9),
        LENGTHS,
    ),
    "rg_2": (
        lambda x, n: tf.RaggedTensor.from_nested_row_splits(
            x, [tf.constant([0, 1, 3], tf.int64), tf.concat([[0], tf.cumsum(n)], 0)]
        ).to_tensor(),
        numbers(5),
        LENGTHS,
    ),
    "rg_where": (
        lambda x, n: tf.where(ragged(x, n) > 0, ragged(x, n), ragged(x, n) * 0).to_tensor(),
        numbers(5),
        LENGTHS,
    ),
    "rg_reverse": (lambda x, n: tf.reverse(ragged(x, n), [0]).to_tensor(), numbers(5), LENGTHS),
    "rg_tile": (lambda x, n: tf.tile(ragged(x, n), [1, 2]).to_tensor(), numbers(5), LENGTHS),
    "rg_map_fn": (
        lambda x, n: tf.map_fn(tf.reduce_sum, ragged(x, n), fn_output_signature=tf.float32),
        numbers(5),
        LENGTHS,
    ),
    "sp_add": (lambda v: tf.sparse.to_dense(tf.sparse.add(sparse(v), sparse(v * 2))), numbers(3)),
    "sp_reshape": (lambda v: tf.sparse.to_dense(tf.sparse.reshape(sparse(v), [2, 6])), numbers(3)),
    "sp_reorder": (lambda v: tf.sparse.to_dense(tf.sparse.reorder(sparse(v))), numbers(3)),
    "sp_slice": (lambda v: tf.sparse.to_dense(tf.sparse.slice(sparse(v), [0, 0], [2, 3])), numbers(3)),
    "sp_concat": (lambda v: tf.sparse.to_dense(tf.sparse.concat(0, [sparse(v), sparse(v)])), numbers(3)),
    "sp_mul": (lambda v: tf.sparse.to_dense(sparse(v) * tf.ones([3, 4]) * 3), numbers(3)),
    "sp_softmax": (lambda v: tf.sparse.softmax(sparse(v)).values, numbers(3)),
    "sp_max": (lambda v: tf.sparse.reduce_max(sparse(v), 1), numbers(3)),
    "sp_retain": (lambda v: tf.sparse.to_dense(tf.sparse.retain(sparse(v), v > 0)), numbers(3)),
    "sp_fill": (lambda v: tf.sparse.fill_empty_rows(sparse(v), 9.0)[0].values, numbers(3)),
    "sp_mask": (lambda v: tf.sparse.mask(tf.IndexedSlices(v, [0, 1, 2]), [1]).values, numbers(3, 2)),
    "sp_expand": (lambda v: tf.sparse.to_dense(tf.sparse.expand_dims(sparse(v), 0)), numbers(3)),
    "sp_eye": (lambda v: tf.sparse.to_dense(tf.sparse.eye(3)) * v, numbers(3)),
    "sp_matmul_adj": (
        lambda v, d: tf.sparse.sparse_dense_matmul(sparse(v), d, adjoint_a=True),
        numbers(3),
        numbers(3, 2),
    ),
    "sp_minimum": (lambda v: tf.sparse.to_dense(tf.sparse.minimum(sparse(v), sparse(v * 0))), numbers(3)),
    "sp_bincount": (
        lambda x: tf.sparse.to_dense(tf.sparse.bincount(x, axis=-1, minlength=5)),
        np.array([[1, 1, 4]], np.int64),
    ),
    "sp_to_indicator": (
        lambda v: tf.sparse.to_indicator(tf.SparseTensor([[0, 0], [1, 0]], v, [2, 1]), 5),
        np.array([3, 1], np.int64),
    ),
    "sp_map_values": (lambda v: tf.sparse.map_values(tf.abs, sparse(v)).values, numbers(3)),
    "sp_split": (lambda v: [tf.sparse.to_dense(p) for p in tf.sparse.split(sparse(v), 2, 1)], numbers(3)),
    "sp_cross": (lambda x: tf.sparse.to_dense(tf.sparse.from_dense(x)), numbers(2, 3)),
}
STATIC: dict[str, tuple[Any, ...]] = {}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
