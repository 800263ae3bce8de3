"""Arithmetic, comparisons, reductions, special functions, activations, products of matrices."""

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

X = numbers(3, 4)
Y = numbers(3, 4, seed=1)
POSITIVE = numbers(3, 4, low=0.1, high=3)
UNIT = numbers(3, 4, low=-0.95, high=0.95)
SMALL = np.float32([-1e-4, 1e-7, 0.0, 2e-5, 0.3, -0.4, 5.0])
WIDE = np.linspace(-6, 6, 49).astype(np.float32)
WHOLE = integers(3, 4)
J = np.where(integers(3, 4, seed=1) == 0, 3, integers(3, 4, seed=1)).astype(np.int32)
B = X > 0
EDGES = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5])

UNARY = {
    name: (function, data)
    for name, function, data in [
        ("abs", tf.abs, X),
        ("acos", tf.acos, UNIT),
        ("acosh", tf.acosh, POSITIVE + 1),
        ("asin", tf.asin, UNIT),
        ("asinh", tf.asinh, X),
        ("atan", tf.atan, X),
        ("atanh", tf.atanh, UNIT),
        ("ceil", tf.math.ceil, X),
        ("cos", tf.cos, X),
        ("cosh", tf.cosh, X),
        ("erf", tf.math.erf, X),
        ("erfc", tf.math.erfc, WIDE),
        ("erfinv", tf.math.erfinv, UNIT),
        ("ndtri", tf.math.ndtri, (UNIT + 1) / 2),
        ("exp", tf.exp, X),
        ("expm1", tf.math.expm1, SMALL),
        ("floor", tf.floor, X),
        ("is_finite", tf.math.is_finite, EDGES),
        ("is_inf", tf.math.is_inf, EDGES),
        ("is_nan", tf.math.is_nan, EDGES),
        ("lgamma", tf.math.lgamma, numbers(40, low=-4.9, high=9)),
        ("digamma", tf.math.digamma, numbers(40, low=-4.9, high=9)),
        ("log", tf.math.log, POSITIVE),
        ("log1p", tf.math.log1p, np.abs(SMALL)),
        ("log_sigmoid", tf.math.log_sigmoid, X),
        ("logical_not", tf.logical_not, B),
        ("neg", tf.negative, X),
        ("reciprocal", tf.math.reciprocal, POSITIVE),
        ("rint", tf.math.rint, X),
        ("round", tf.round, np.float32([-1.5, -0.5, 0.5, 1.5, 2.5, 0.3])),
        ("rsqrt", tf.math.rsqrt, POSITIVE),
        ("sign", tf.sign, EDGES),
        ("sin", tf.sin, X),
        ("sinh", tf.sinh, X),
        ("sqrt", tf.sqrt, POSITIVE),
        ("square", tf.square, WHOLE),
        ("tan", tf.tan, UNIT),
        ("tanh", tf.tanh, X),
        ("bessel_i0e", tf.math.bessel_i0e, WIDE),
        ("bessel_i1e", tf.math.bessel_i1e, WIDE),
    ]
}

BINARY = {
    name: (function, a, b)
    for name, function, a, b in [
        ("add", tf.add, X, Y[0]),
        ("sub", tf.subtract, X, Y[:, :1]),
        ("mul", tf.multiply, WHOLE, J),
        ("truediv", tf.truediv, WHOLE, J),
        ("divide_no_nan", tf.math.divide_no_nan, X, np.where(Y > 0, Y, 0).astype(np.float32)),
        ("multiply_no_nan", tf.math.multiply_no_nan, EDGES, np.float32([0, 0, 0, 1, 2, 0])),
        ("floordiv", tf.math.floordiv, WHOLE, J),
        ("floordiv_float", tf.math.floordiv, X, Y),
        ("floormod", tf.math.floormod, WHOLE, J),
        ("floormod_float", tf.math.floormod, X, Y),
        ("truncatediv", tf.truncatediv, WHOLE, J),
        ("truncatemod", tf.truncatemod, WHOLE, J),
        ("pow", tf.pow, POSITIVE, Y),
        ("pow_int", tf.pow, WHOLE, np.abs(J) % 4),
        ("maximum", tf.maximum, X, Y),
        ("minimum_nan", tf.minimum, EDGES, EDGES[::-1].copy()),
        ("atan2", tf.atan2, X, Y),
        ("atan2_axes", tf.atan2, np.float32([0, 0, 1, -1, 0]), np.float32([1, -1, 0, 0, 0])),
        ("squared_difference", tf.math.squared_difference, X, Y),
        ("xlogy", tf.math.xlogy, np.maximum(X, 0), POSITIVE),
        ("xlog1py", tf.math.xlog1py, np.maximum(X, 0), POSITIVE),
        ("xdivy", tf.math.xdivy, np.maximum(X, 0), POSITIVE),
        ("equal", tf.equal, WHOLE, J),
        ("not_equal", tf.not_equal, WHOLE, J),
        ("greater", tf.greater, X, Y),
        ("greater_equal", tf.greater_equal, WHOLE, J),
        ("less", tf.less, X, Y),
        ("less_equal", tf.less_equal, WHOLE, J),
        ("logical_and", tf.logical_and, B, Y > 0),
        ("logical_or", tf.logical_or, B, Y > 0),
        ("logical_xor", tf.math.logical_xor, B, Y > 0),
        ("bitwise_and", tf.bitwise.bitwise_and, WHOLE, J),
        ("bitwise_or", tf.bitwise.bitwise_or, WHOLE, J),
        ("bitwise_xor", tf.bitwise.bitwise_xor, WHOLE, J),
        ("left_shift", tf.bitwise.left_shift, WHOLE, np.abs(J) % 5),
        ("right_shift", tf.bitwise.right_shift, WHOLE, np.abs(J) % 5),
        ("igamma", tf.math.igamma, POSITIVE, POSITIVE[::-1].copy()),
        ("nextafter", tf.math.nextafter, X.astype(np.float64), Y.astype(np.float64)),
        ("zeta", tf.math.zeta, POSITIVE + 1.5, POSITIVE[::-1].copy()),
    ]
}

REDUCTIONS = {
    "reduce_sum": (lambda x: tf.reduce_sum(x, 1), X),
    "reduce_sum_all": (tf.reduce_sum, X),
    "reduce_sum_keep": (lambda x: tf.reduce_sum(x, [0, 1], keepdims=True), X),
    "reduce_sum_no_axes": (lambda x: tf.reduce_sum(x, []), X),
    "reduce_mean": (lambda x: tf.reduce_mean(x, -1), X),
    "reduce_mean_int": (lambda x: tf.reduce_mean(x, -1), WHOLE),
    "reduce_max": (lambda x: tf.reduce_max(x, 0), X),
    "reduce_min": (lambda x: tf.reduce_min(x, 0), WHOLE),
    "reduce_prod": (lambda x: tf.reduce_prod(x, 1), X),
    "reduce_all": (lambda x: tf.reduce_all(x, 1), B),
    "reduce_any": (lambda x: tf.reduce_any(x, 0), B),
    "reduce_std": (lambda x: tf.math.reduce_std(x, 0), X),
    "reduce_variance": (lambda x: tf.math.reduce_variance(x, 1), X),
    "reduce_logsumexp": (lambda x: tf.reduce_logsumexp(x, 1), X),
    "reduce_euclidean_norm": (lambda x: tf.math.reduce_euclidean_norm(x, 1), X),
    "reduce_axis_input": (lambda x, axis: tf.reduce_sum(x, axis), X, np.int32([1])),
    "argmax": (lambda x: tf.argmax(x, 1), X),
    "argmin_int32": (lambda x: tf.argmin(x, 0, output_type=tf.int32), X),
    "cumsum": (lambda x: tf.cumsum(x, 1), X),
    "cumsum_exclusive_reverse": (lambda x: tf.cumsum(x, 0, exclusive=True, reverse=True), X),
    "cumprod": (lambda x: tf.math.cumprod(x, 1), X),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x, 1), X),
    "count_nonzero": (lambda x: tf.math.count_nonzero(x, 1), WHOLE % 3),
    "bincount": (lambda x: tf.math.bincount(x, minlength=6, maxlength=6), np.int32([1, 2, 2, 5])),
    "bincount_rows": (
        lambda x: tf.math.bincount(x, minlength=6, maxlength=6, axis=-1),
        np.int32([[1, 2, 2, 5], [0, 9, 1, 1]]),
    ),
    "segment_sum": (lambda x: tf.math.segment_sum(x, tf.constant([0, 0, 1])), X),
    "segment_mean": (lambda x: tf.math.segment_mean(x, tf.constant([0, 0, 2])), X),
    "unsorted_segment_max": (lambda x: tf.math.unsorted_segment_max(x, tf.constant([2, 0, 2]), 4), X),
    "unsorted_segment_sum": (lambda x: tf.math.unsorted_segment_sum(x, tf.constant([2, 0, -1]), 3), X),
    "top_k": (lambda x: tf.math.top_k(x, 2), X),
    "in_top_k": (lambda x: tf.math.in_top_k(tf.constant([0, 2, 3]), x, 2), X),
    "l2_normalize": (lambda x: tf.math.l2_normalize(x, 1), X),
    "normalize": (lambda x: tf.linalg.normalize(x, axis=1)[0], X),
    "moments": (lambda x: tf.nn.moments(x, [0]), X),
    "polyval": (lambda x: tf.math.polyval([1.0, 2.0, 3.0], x), X),
    "confusion_matrix": (lambda a: tf.math.confusion_matrix(a, [0, 1, 2, 2], 3), np.int32([0, 2, 2, 1])),
    "zero_fraction": (tf.math.zero_fraction, WHOLE % 2),
    "clip_by_value": (lambda x: tf.clip_by_value(x, -1, 1), X),
    "clip_by_norm": (lambda x: tf.clip_by_norm(x, 1.0), X),
    "clip_by_global_norm": (lambda x: tf.clip_by_global_norm([x, 2 * x], 1.0)[0], X),
    "add_n": (lambda x, y: tf.add_n([x, y, x]), X, Y),
    "cast_int": (lambda x: tf.cast(x, tf.int32), X),
    "cast_bool": (lambda x: tf.cast(x, tf.bool), WHOLE),
    "cast_half": (lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), X),
    "saturate_cast": (lambda x: tf.saturate_cast(x, tf.uint8), X * 200),
    "bitcast": (lambda x: tf.bitcast(x, tf.int32), X),
}

ACTIVATIONS = {
    name: (function, X)
    for name, function in [
        ("relu", tf.nn.relu),
        ("relu6", lambda x: tf.nn.relu6(x * 5)),
        ("elu", tf.nn.elu),
        ("selu", tf.nn.selu),
        ("leaky_relu", tf.nn.leaky_relu),
        ("softplus", tf.nn.softplus),
        ("softsign", tf.nn.softsign),
        ("sigmoid", tf.sigmoid),
        ("silu", tf.nn.silu),
        ("gelu", tf.nn.gelu),
        ("gelu_tanh", lambda x: tf.nn.gelu(x, approximate=True)),
        ("crelu", tf.nn.crelu),
        ("softmax", tf.nn.softmax),
        ("softmax_first", lambda x: tf.nn.softmax(x, axis=0)),
        ("log_softmax", tf.nn.log_softmax),
        ("hard_swish", lambda x: x * tf.nn.relu6(x + 3) / 6),
        ("sigmoid_cross_entropy", lambda x: tf.nn.sigmoid_cross_entropy_with_logits(tf.sigmoid(-x), x)),
        ("softmax_cross_entropy", lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(-x), x)),
        ("sparse_cross_entropy", lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant([1, 0, 3]), x)),
        ("l2_loss", tf.nn.l2_loss),
        ("dropout_off", lambda x: tf.nn.dropout(x, 0.0)),
    ]
}

PRODUCTS = {
    "matmul": (lambda a, b: tf.matmul(a, b), numbers(3, 4), numbers(4, 5)),
    "matmul_transposed": (
        lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True),
        numbers(4, 3),
        numbers(5, 4),
    ),
    "batch_matmul": (lambda a, b: tf.matmul(a, b, transpose_b=True), numbers(2, 3, 4), numbers(2, 5, 4)),
    "matmul_int": (lambda a, b: tf.matmul(a, b), integers(3, 4), integers(4, 2)),
    "matvec": (lambda a, b: tf.linalg.matvec(a, b), numbers(3, 4), numbers(4)),
    "einsum": (lambda a, b: tf.einsum("bij,bjk->bik", a, b), numbers(2, 3, 4), numbers(2, 4, 5)),
    "einsum_ellipsis": (lambda a, b: tf.einsum("...ij,jk->...ik", a, b), numbers(2, 3, 4), numbers(4, 5)),
    "einsum_trace": (lambda a: tf.einsum("ii->", a), numbers(4, 4)),
    "tensordot": (lambda a, b: tf.tensordot(a, b, [[1], [0]]), numbers(2, 3, 4), numbers(3, 5)),
    "bias_add": (lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0, 4.0]), X),
    "bias_add_nchw": (lambda x: tf.nn.bias_add(x, tf.constant([1.0, 2.0]), "NCHW"), numbers(3, 2, 4, 4)),
    "dot_axes": (lambda a, b: tf.tensordot(a, b, 1), numbers(4), numbers(4)),
}

CASES = cases({**UNARY, **BINARY, **REDUCTIONS, **ACTIVATIONS, **PRODUCTS})
