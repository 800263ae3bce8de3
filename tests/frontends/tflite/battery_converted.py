"""Functions whose builtin op TensorFlow's converter writes: the op, what it is tried on, and the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (3, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
CUBE = RNG.uniform(-1, 1, (2, 3, 4)).astype(np.float32)
IMAGE = RNG.uniform(-1, 1, (2, 8, 9, 3)).astype(np.float32)
VOLUME = RNG.uniform(-1, 1, (1, 5, 6, 7, 2)).astype(np.float32)
KERNEL = RNG.uniform(-1, 1, (3, 3, 3, 4)).astype(np.float32)
KERNEL_3D = RNG.uniform(-1, 1, (3, 3, 3, 2, 4)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
LONG = WHOLE.astype(np.int64)
TRUTH = X > 0
IDS = np.int32([0, 2, 0])
BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.1, 1, 3.1], [5, 5, 6, 6]])
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5])
WAVE = RNG.uniform(-1, 1, (2, 8, 16)).astype(np.float32)


def summed(x: Any) -> Any:
    return tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + x), [0, tf.zeros_like(x)])[1]


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "ADD": (lambda x: x + 1.5, X),
    "ADD broadcast": (lambda x, y: x + y, CUBE, CUBE[0]),
    "ADD relu": (lambda x, y: tf.nn.relu(x + y), X, X[::-1].copy()),
    "ADD int": (lambda x: x + 7, WHOLE),
    "SUB": (lambda x: x - x[0], X),
    "MUL": (lambda x: x * x[:, :1], X),
    "MUL int": (lambda x: x * 3, LONG),
    "DIV": (lambda x: x / (tf.abs(x) + 1), X),
    "FLOOR_DIV": (lambda x: x // 3, WHOLE),
    "FLOOR_DIV float": (lambda x: x // 0.7, X),
    "FLOOR_MOD": (lambda x: x % 4, WHOLE),
    "FLOOR_MOD negative": (lambda x: x % -4, LONG),
    "FLOOR_MOD float": (lambda x: x % 0.7, X),
    "MAXIMUM": (lambda x: tf.maximum(x, 0.5), X),
    "MINIMUM": (lambda x: tf.minimum(x, 0.5), X),
    "POW": (lambda x: tf.pow(x, 1.5), POSITIVE),
    "SQUARED_DIFFERENCE": (lambda x: tf.math.squared_difference(x, x[0]), X),
    "ATAN2": (tf.atan2, X, X[::-1].copy()),
    "ABS": (tf.abs, X),
    "NEG": (lambda x: -x, X),
    "SIGN": (tf.sign, X),
    "EXP": (tf.exp, X),
    "LOG": (tf.math.log, POSITIVE),
    "SIN": (tf.sin, X),
    "COS": (tf.cos, X),
    "SQRT": (tf.sqrt, POSITIVE),
    "RSQRT": (tf.math.rsqrt, POSITIVE),
    "SQUARE": (tf.square, X),
    "ROUND": (tf.round, np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.7])),
    "FLOOR": (tf.floor, X),
    "CEIL": (tf.math.ceil, X),
    "EQUAL": (lambda x: tf.equal(x, 3), WHOLE),
    "NOT_EQUAL": (lambda x: tf.not_equal(x, x[0]), X),
    "GREATER": (lambda x: x > 0.1, X),
    "GREATER_EQUAL": (lambda x: x >= x[0], X),
    "LESS": (lambda x: x < 2, WHOLE),
    "LESS_EQUAL": (lambda x: x <= 0.1, X),
    "LOGICAL_AND": (lambda x, y: tf.logical_and(x, y), TRUTH, ~TRUTH[::-1]),
    "LOGICAL_OR": (lambda x, y: tf.logical_or(x, y), TRUTH, TRUTH[::-1].copy()),
    "LOGICAL_NOT": (tf.logical_not, TRUTH),
    "BITWISE_XOR": (lambda x: tf.bitwise.bitwise_xor(x, 5), WHOLE),
    "RIGHT_SHIFT": (lambda x: tf.bitwise.right_shift(x, 2), WHOLE),
    "RIGHT_SHIFT unsigned": (lambda x: tf.bitwise.right_shift(x, tf.constant(2, tf.uint8)), np.uint8([200, 3, 255])),
    "SELECT": (lambda x: tf.where(x > 0, x, -x * 2), X),
    "SELECT_V2": (lambda x: tf.where(x[0] > 0, x, 7.0), X),
    "RELU": (tf.nn.relu, X),
    "RELU6": (tf.nn.relu6, X * 5),
    "RELU_N1_TO_1": (lambda x: tf.maximum(-1.0, tf.minimum(x, 1.0)), X),
    "RELU_0_TO_1": (lambda x: tf.maximum(0.0, tf.minimum(x, 1.0)), X),
    "LEAKY_RELU": (tf.nn.leaky_relu, X),
    "ELU": (tf.nn.elu, X),
    "GELU": (tf.nn.gelu, X),
    "GELU tanh": (lambda x: tf.nn.gelu(x, approximate=True), X),
    "HARD_SWISH": (lambda x: x * tf.nn.relu6(x + 3) * (1 / 6), X),
    "LOGISTIC": (tf.sigmoid, X),
    "TANH": (tf.tanh, X),
    "SOFTMAX": (tf.nn.softmax, X),
    "SOFTMAX 3d": (tf.nn.softmax, CUBE),
    "LOG_SOFTMAX": (tf.nn.log_softmax, X),
    "L2_NORMALIZATION": (lambda x: tf.math.l2_normalize(x, 1), X),
    "SUM": (lambda x: tf.reduce_sum(x, 1), X),
    "SUM int": (lambda x: tf.reduce_sum(x, [0, 1]), WHOLE),
    "MEAN": (lambda x: tf.reduce_mean(x, 0, keepdims=True), X),
    "MEAN image": (lambda x: tf.reduce_mean(x, [1, 2]), IMAGE),
    "REDUCE_MAX": (lambda x: tf.reduce_max(x, 1), X),
    "REDUCE_MIN": (lambda x: tf.reduce_min(x, [0, 2]), CUBE),
    "REDUCE_PROD": (lambda x: tf.reduce_prod(x, 1), X),
    "REDUCE_ANY": (lambda x: tf.reduce_any(x, 0), TRUTH),
    "REDUCE_ALL": (lambda x: tf.reduce_all(x, 1), TRUTH),
    "ARG_MAX": (lambda x: tf.argmax(x, 1), X),
    "ARG_MIN": (lambda x: tf.argmin(x, 0, output_type=tf.int32), X),
    "CUMSUM": (lambda x: tf.cumsum(x, 1, exclusive=True), X),
    "CUMSUM reverse": (lambda x: tf.cumsum(x, 0, reverse=True), X),
    "TOPK_V2": (lambda x: tf.math.top_k(x, 2), X),
    "BATCH_MATMUL": (lambda x, y: tf.matmul(x, y, transpose_b=True), CUBE, CUBE[::-1].copy()),
    "BATCH_MATMUL adjoint": (lambda x, y: tf.matmul(x, y, transpose_a=True), CUBE, CUBE[::-1].copy()),
    "FULLY_CONNECTED": (lambda x: tf.nn.relu(tf.matmul(x, X.T) + np.float32([1, 2, 3])), X),
    "FULLY_CONNECTED no bias": (lambda x: tf.matmul(x, X.T), X),
    "FULLY_CONNECTED 3d": (lambda x: tf.tensordot(x, X.T, 1) + 1.0, CUBE),
    "FULLY_CONNECTED transposed": (lambda x, w: tf.matmul(x, w, transpose_b=True), X, X[::-1].copy()),
    "RESHAPE": (lambda x: tf.reshape(x, [2, 6]), X),
    "TRANSPOSE": (lambda x: tf.transpose(x, [0, 3, 1, 2]), IMAGE),
    "CONCATENATION": (lambda x, y: tf.concat([x, y], 1), X, X * 3),
    "PACK": (lambda x, y: tf.stack([x, y], 1), X, X[::-1].copy()),
    "UNPACK": (lambda x: tf.unstack(x, axis=1), X),
    "SPLIT": (lambda x: tf.split(x, 2, 1), X),
    "SPLIT_V": (lambda x: tf.split(x, [1, 3], 1), X),
    "STRIDED_SLICE": (lambda x: x[1:, ::-2], X),
    "STRIDED_SLICE shrink": (lambda x: x[:, 1, tf.newaxis, -2:], CUBE),
    "STRIDED_SLICE ellipsis": (lambda x: x[..., 1], CUBE),
    "SLICE": (lambda x: tf.slice(x, [1, 0], [2, 3]), X),
    "SLICE rest": (lambda x, b: tf.slice(x, b, [-1, 2]), X, np.int32([1, 1])),
    "TILE": (lambda x: tf.tile(x, [2, 1]), X),
    "PAD": (lambda x: tf.pad(x, [[1, 2], [0, 1]]), X),
    "PADV2": (lambda x: tf.pad(x, [[1, 2], [0, 1]], constant_values=7.0), X),
    "MIRROR_PAD": (lambda x: tf.pad(x, [[1, 2], [0, 1]], "SYMMETRIC"), X),
    "MIRROR_PAD reflect": (lambda x: tf.pad(x, [[1, 2], [3, 1]], "REFLECT"), X),
    "GATHER": (lambda x: tf.gather(x, [2, 0], axis=1), X),
    "GATHER batch": (lambda x, i: tf.gather(x, i, axis=1, batch_dims=1), CUBE, np.int32([[2, 0], [1, 1]])),
    "GATHER_ND": (lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), X),
    "ONE_HOT": (lambda x: tf.one_hot(x, 5), np.int32([0, 4, 7])),
    "ONE_HOT axis": (lambda x: tf.one_hot(x, 5, 2, -1, axis=0), np.int32([[0, 4], [1, -1]])),
    "SCATTER_ND": (lambda x: tf.scatter_nd([[4], [1], [4]], x, [6, 4]), X),
    "REVERSE_V2": (lambda x: tf.reverse(x, [1]), X),
    "REVERSE_SEQUENCE": (lambda x: tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0), CUBE),
    "WHERE": (lambda x: tf.where(x > 0), X),
    "UNIQUE": (lambda x: tf.unique(x), np.int32([3, 1, 3, -2])),
    "CAST": (lambda x: tf.cast(x * 10, tf.int32), X),
    "CAST bool": (lambda x: tf.cast(x, tf.float32), TRUTH),
    "CAST truth": (lambda x: tf.cast(x, tf.bool), WHOLE),
    "BITCAST": (lambda x: tf.bitcast(x, tf.int32), X),
    "BITCAST narrow": (lambda x: tf.bitcast(x, tf.uint8), WHOLE),
    "BITCAST wide": (lambda x: tf.bitcast(x, tf.int32), RNG.integers(0, 255, (3, 4)).astype(np.uint8)),
    "SHAPE": (lambda x, n: tf.shape(tf.reshape(x, n)), X, np.int32([2, 6])),
    "EXPAND_DIMS": (lambda x, n: tf.expand_dims(tf.reshape(x, n), -1), X, np.int32([2, 6])),
    "FILL": (lambda n: tf.fill(n, 2.5), np.int32([2, 3])),
    "RANGE": (lambda n: tf.range(1, n, 2), np.int32(8)),
    "RANGE float": (lambda n: tf.range(0.5, n, 0.5), np.float32(3)),
    "BROADCAST_TO": (lambda x: tf.broadcast_to(x, [2, 3, 4]), X),
    "BROADCAST_ARGS": (lambda a, b: tf.broadcast_dynamic_shape(a, b), np.int32([3, 1]), np.int32([2, 1, 4])),
    "ZEROS_LIKE": (lambda x, n: tf.zeros_like(tf.reshape(x, n)), X, np.int32([2, 6])),
    "ADD_N": (lambda x, y: tf.add_n([x, y, x]), X, X[::-1].copy()),
    "MATRIX_DIAG": (tf.linalg.diag, X),
    "MATRIX_SET_DIAG": (lambda x: tf.linalg.set_diag(x, CUBE[:, 0, :3]), CUBE),
    "SEGMENT_SUM": (lambda x: tf.math.segment_sum(x, [0, 0, 1]), X),
    "UNSORTED_SEGMENT_SUM": (lambda x: tf.math.unsorted_segment_sum(x, IDS, 4), X),
    "UNSORTED_SEGMENT_MAX": (lambda x: tf.math.unsorted_segment_max(x, IDS, 4), X),
    "UNSORTED_SEGMENT_MIN": (lambda x: tf.math.unsorted_segment_min(x, IDS, 4), X),
    "UNSORTED_SEGMENT_PROD": (lambda x: tf.math.unsorted_segment_prod(x, IDS, 4), X),
    "BUCKETIZE": (lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]), X),
    "SPARSE_TO_DENSE": (
        lambda v: tf.raw_ops.SparseToDense(
            sparse_indices=[[0, 1], [2, 0]], output_shape=[3, 2], sparse_values=v, default_value=-1.0
        ),
        np.float32([4, 5]),
    ),
    "CONV_2D": (lambda x: tf.nn.relu6(tf.nn.conv2d(x, KERNEL, 2, "SAME") + np.float32([1, 0, 2, 0])), IMAGE),
    "CONV_2D dilated": (lambda x: tf.nn.conv2d(x, KERNEL, 1, "VALID", dilations=2), IMAGE),
    "CONV_2D grouped": (
        lambda x: tf.nn.conv2d(tf.concat([x, x[..., :1]], -1), np.concatenate([KERNEL] * 2, -1)[:, :, :2], 1, "SAME"),
        IMAGE,
    ),
    "DEPTHWISE_CONV_2D": (lambda x: tf.nn.depthwise_conv2d(x, KERNEL[..., :2], [1, 1, 1, 1], "SAME"), IMAGE),
    "DEPTHWISE_CONV_2D strided": (
        lambda x: tf.nn.relu(tf.nn.depthwise_conv2d(x, KERNEL[..., :1], [1, 2, 2, 1], "VALID") + 0.5),
        IMAGE,
    ),
    "TRANSPOSE_CONV": (
        lambda x: (
            tf.nn.conv2d_transpose(x, KERNEL.transpose(0, 1, 3, 2), [2, 16, 18, 4], 2, "SAME")
            + np.float32([1, 2, 3, 0])
        ),
        IMAGE,
    ),
    "TRANSPOSE_CONV valid": (
        lambda x: tf.nn.conv2d_transpose(x, KERNEL.transpose(0, 1, 3, 2), [2, 17, 19, 4], 2, "VALID"),
        IMAGE,
    ),
    "CONV_3D": (lambda x: tf.nn.conv3d(x, KERNEL_3D, [1, 1, 2, 1, 1], "SAME"), VOLUME),
    "CONV_3D_TRANSPOSE": (
        lambda x: tf.nn.conv3d_transpose(x, KERNEL_3D.transpose(0, 1, 2, 4, 3), [1, 10, 12, 14, 4], 2, "SAME"),
        VOLUME,
    ),
    "CONV_3D_TRANSPOSE valid": (
        lambda x: tf.nn.conv3d_transpose(x, KERNEL_3D.transpose(0, 1, 2, 4, 3), [1, 7, 8, 9, 4], 1, "VALID"),
        VOLUME,
    ),
    "MAX_POOL_2D": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGE),
    "AVERAGE_POOL_2D": (lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), IMAGE),
    "AVERAGE_POOL_2D same": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGE),
    "RESIZE_BILINEAR": (lambda x: tf.image.resize(x, [16, 12]), IMAGE),
    "RESIZE_BILINEAR corners": (
        lambda x: tf.compat.v1.image.resize_bilinear(x, [15, 12], align_corners=True),
        IMAGE,
    ),
    "RESIZE_BILINEAR plain": (lambda x: tf.compat.v1.image.resize_bilinear(x, [15, 12]), IMAGE),
    "RESIZE_NEAREST_NEIGHBOR": (lambda x: tf.image.resize(x, [5, 20], "nearest"), IMAGE),
    "RESIZE_NEAREST_NEIGHBOR plain": (lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, [5, 20]), IMAGE),
    "RESIZE_NEAREST_NEIGHBOR corners": (
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, [5, 20], align_corners=True),
        IMAGE,
    ),
    "DEPTH_TO_SPACE": (lambda x: tf.nn.depth_to_space(x, 2), np.tile(IMAGE[..., :1], 4)),
    "SPACE_TO_DEPTH": (lambda x: tf.nn.space_to_depth(x, 2), IMAGE[:, :, :8]),
    "SPACE_TO_BATCH_ND": (lambda x: tf.space_to_batch(x, [2, 3], [[1, 1], [0, 0]]), IMAGE),
    "BATCH_TO_SPACE_ND": (lambda x: tf.batch_to_space(x, [2, 1], [[1, 0], [0, 2]]), IMAGE),
    "LOCAL_RESPONSE_NORMALIZATION": (lambda x: tf.nn.lrn(x, 2, 1.5, 0.3, 0.6), IMAGE),
    "NON_MAX_SUPPRESSION_V4": (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV4(
            boxes=b, scores=s, max_output_size=4, iou_threshold=0.5, score_threshold=0.2, pad_to_max_output_size=True
        ),
        BOXES,
        SCORES,
    ),
    "NON_MAX_SUPPRESSION_V5": (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV5(
            boxes=b,
            scores=s,
            max_output_size=4,
            iou_threshold=0.5,
            score_threshold=0.2,
            soft_nms_sigma=0.5,
            pad_to_max_output_size=True,
        ),
        BOXES,
        SCORES,
    ),
    "IF": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x * 2), X),
    "WHILE": (summed, X),
    "WHILE map": (lambda x: tf.map_fn(lambda row: row / (tf.reduce_sum(row) + 9), x), X),
    "WHILE numbers": (
        lambda n: tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])[1],
        np.asarray(7, np.int32),
    ),
    "RFFT2D": (lambda x: tf.abs(tf.signal.rfft2d(x)), WAVE),
    "REAL": (lambda x: tf.math.real(tf.signal.rfft2d(x)), WAVE),
    "IMAG": (lambda x: tf.math.imag(tf.signal.rfft2d(x)), WAVE),
    "COMPLEX_ABS": (lambda x: tf.abs(tf.signal.rfft2d(x)), WAVE),
}
"""By the op, and a word on the case."""

STABLEHLO: dict[str, tuple[Any, ...]] = {
    "STABLEHLO_ABS": (tf.abs, X),
    "STABLEHLO_BROADCAST_IN_DIM": (lambda x: tf.broadcast_to(x, [2, 3, 4]), X),
    "STABLEHLO_CLAMP": (tf.nn.relu6, X * 5),
    "STABLEHLO_COMPARE": (lambda x: x >= x[0], X),
    "STABLEHLO_COMPARE less": (lambda x: x < 2, WHOLE),
    "STABLEHLO_CONCATENATE": (lambda x, y: tf.concat([x, y], 1), X, X * 3),
    "STABLEHLO_CONVERT": (lambda x: tf.cast(x * 10, tf.int32), X),
    "STABLEHLO_CONVOLUTION": (lambda x: tf.nn.conv2d(x, KERNEL, 2, "SAME", dilations=1), IMAGE),
    "STABLEHLO_CONVOLUTION deep": (lambda x: tf.nn.depthwise_conv2d(x, KERNEL, [1, 1, 1, 1], "VALID"), IMAGE),
    "STABLEHLO_COSINE": (tf.cos, X),
    "STABLEHLO_DIVIDE": (lambda x, y: x / y, X, POSITIVE),
    "STABLEHLO_DOT_GENERAL": (lambda x: tf.matmul(x, X.T), X),
    "STABLEHLO_DOT_GENERAL batch": (lambda x, y: tf.matmul(x, y, transpose_b=True), CUBE, CUBE[::-1].copy()),
    "STABLEHLO_DYNAMIC_SLICE": (lambda x, i: tf.slice(x, i, [2, 2]), X, np.int32([1, 1])),
    "STABLEHLO_EXPONENTIAL": (tf.exp, X),
    "STABLEHLO_FLOOR": (tf.floor, X),
    "STABLEHLO_LOG": (tf.math.log, POSITIVE),
    "STABLEHLO_LOGISTIC": (tf.sigmoid, X),
    "STABLEHLO_NEGATE": (lambda x: -x, X),
    "STABLEHLO_OR": (tf.logical_or, TRUTH, TRUTH[::-1].copy()),
    "STABLEHLO_OR bits": (tf.bitwise.bitwise_or, WHOLE, WHOLE[::-1].copy()),
    "STABLEHLO_POWER": (tf.pow, POSITIVE, X),
    "STABLEHLO_REDUCE": (lambda x: tf.reduce_sum(x, 1), X),
    "STABLEHLO_REDUCE most": (lambda x: tf.reduce_max(x, [0, 2]), CUBE),
    "STABLEHLO_REDUCE any": (lambda x: tf.reduce_any(x, 0), TRUTH),
    "STABLEHLO_REMAINDER": (tf.compat.v1.truncatemod, X, POSITIVE),
    "STABLEHLO_RESHAPE": (lambda x: tf.reshape(x, [2, 6]), X),
    "STABLEHLO_RSQRT": (tf.math.rsqrt, POSITIVE),
    "STABLEHLO_SELECT": (lambda x: tf.where(x > 0, x, -x * 2), X),
    "STABLEHLO_SLICE": (lambda x: x[1:, ::2], X),
    "STABLEHLO_SUBTRACT": (lambda x, y: x - y, X, X[::-1].copy()),
    "STABLEHLO_TANH": (tf.tanh, X),
    "STABLEHLO_TRANSPOSE": (lambda x: tf.transpose(x, [2, 0, 1]), CUBE),
}
"""What the converter writes where it is asked for StableHLO; the interpreter does not run that, TensorFlow does."""

INT8 = (
    "ADD", "ADD broadcast", "ADD relu", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "ABS", "EXP",
    "LOG", "SQRT", "RSQRT", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SELECT_V2", "RELU",
    "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "GELU", "GELU tanh", "HARD_SWISH", "LOGISTIC",
    "TANH", "SOFTMAX", "SOFTMAX 3d", "LOG_SOFTMAX", "L2_NORMALIZATION", "SUM", "MEAN", "MEAN image", "REDUCE_MAX",
    "REDUCE_MIN", "REDUCE_PROD", "ARG_MAX", "ARG_MIN", "TOPK_V2", "BATCH_MATMUL", "BATCH_MATMUL adjoint",
    "FULLY_CONNECTED", "FULLY_CONNECTED no bias", "FULLY_CONNECTED 3d", "FULLY_CONNECTED transposed", "RESHAPE",
    "TRANSPOSE", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "STRIDED_SLICE shrink",
    "STRIDED_SLICE ellipsis", "SLICE", "SLICE rest", "TILE", "PAD", "PADV2", "MIRROR_PAD", "MIRROR_PAD reflect",
    "GATHER", "GATHER batch", "GATHER_ND", "SCATTER_ND", "REVERSE_V2", "WHERE", "CAST", "SHAPE", "EXPAND_DIMS",
    "BROADCAST_TO", "ZEROS_LIKE", "MATRIX_DIAG", "MATRIX_SET_DIAG", "SPARSE_TO_DENSE", "CONV_2D", "CONV_2D dilated",
    "CONV_2D grouped", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D strided", "TRANSPOSE_CONV", "TRANSPOSE_CONV valid",
    "MAX_POOL_2D", "AVERAGE_POOL_2D", "AVERAGE_POOL_2D same", "RESIZE_BILINEAR", "RESIZE_BILINEAR corners",
    "RESIZE_BILINEAR plain", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_NEAREST_NEIGHBOR plain",
    "RESIZE_NEAREST_NEIGHBOR corners", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND",
    "IF",
)  # fmt: skip
"""Those with an op that has kernels of 8 bits."""
INT16 = (
    "ADD", "MUL", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "LOGISTIC",
    "TANH", "SOFTMAX", "MEAN", "PAD", "TRANSPOSE_CONV valid", "AVERAGE_POOL_2D", "MAX_POOL_2D", "LEAKY_RELU",
    "RESIZE_NEAREST_NEIGHBOR", "SPLIT", "STRIDED_SLICE", "SELECT_V2",
)  # fmt: skip
"""Some of those with an op that has kernels of 16 bits; a few of these are less exact than 16 bits can be."""
