"""Special functions, dtypes, arrays and control flow."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

POSITIVE = numbers(3, 4, low=0.1, high=3)


def asserting(x):
    with tf.control_dependencies([tf.debugging.assert_positive(tf.abs(x) + 1)]):
        return x * 2


def printing(x):
    tf.print("x", x)
    return x + 1


def nestedwhile(n, x):
    i = tf.constant(0)
    while i < n:
        j = tf.constant(0)
        while j < i:
            if tf.reduce_sum(x) > 3.0:  # noqa: SIM108
                x = x - 1.0
            else:
                x = x + 0.5
            j += 1
        i += 1
    return (x, i)


def forrange(n, x):
    for i in tf.range(n):
        if i == 2:
            continue
        x = x + tf.cast(i, tf.float32)
    return x


def forrows(x):
    out = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    for row in x:
        out = out.write(out.size(), tf.reduce_sum(row))
    return out.stack()


def early(x):
    if tf.reduce_sum(x) > 0.0:
        return x * 2.0
    return x - 1.0


ORDERS = np.array([[1.5], [0.5], [-1.0], [0.0], [1.0], [2.0], [3.0]])
EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, -2.0, -1.5, 1.0, 2.5, 30.0])

DYNAMIC: dict[str, tuple[Any, ...]] = {
    "polygamma_edges": (tf.math.polygamma, ORDERS, EDGES),
    "zeta_edges": (tf.math.zeta, np.append(ORDERS, [[np.inf], [np.nan]], 0), EDGES),
    "igamma_edges": (tf.math.igamma, ORDERS, EDGES),
    "igammac_edges": (tf.math.igammac, ORDERS, EDGES),
    "digamma_edges": (tf.math.digamma, EDGES),
    "bessel_k_edges": (
        lambda x: [getattr(tf.math.special, f"bessel_{name}")(x) for name in ("k0", "k0e", "k1", "k1e")],
        np.array([0.0, 1e-30, 1e-9, 1e-7, 49.0, 51.0, 1000.0, 1e10, np.inf]),
    ),
    "integrals_of_infinity": (
        lambda x: [getattr(tf.math.special, name)(x) for name in ("dawsn", "fresnel_cos", "fresnel_sin")],
        np.array([np.inf, -np.inf, 1e20, -1e20, 0.5]),
    ),
    "polygamma": (
        lambda a, x: tf.math.polygamma(a, x),
        np.array([1.0, 2.0, 3.0], np.float32),
        np.array([1.5, 2.5, 0.7], np.float32),
    ),
    "igammac": (tf.math.igammac, POSITIVE, numbers(3, 4, low=0.1, high=4, seed=3)),
    "betainc": (
        tf.math.betainc,
        POSITIVE,
        numbers(3, 4, low=0.2, high=3, seed=1),
        numbers(3, 4, low=0.05, high=0.95, seed=2),
    ),
    "lbeta": (tf.math.lbeta, POSITIVE),
    "sobol": (lambda x: x + tf.math.sobol_sample(2, 3), numbers(3, 2)),
    "cumulative_logsumexp_rev": (
        lambda x: tf.math.cumulative_logsumexp(x, axis=1, reverse=True, exclusive=True),
        numbers(3, 4),
    ),
    "reduce_logsumexp_empty": (lambda x: tf.reduce_logsumexp(x, axis=[0, 1], keepdims=True), numbers(3, 4)),
    "top_k_unsorted": (lambda x: tf.math.top_k(x, 3, sorted=True), numbers(3, 8)),
    "nextafter64": (lambda x: tf.math.nextafter(x, x + 1), numbers(3).astype(np.float64)),
    "floormod_neg": (lambda x, y: x % y, integers(3, 4), integers(3, 4, low=1, high=5)),
    "mod_int64": (lambda x: x % np.int64(7), integers(5, dtype=np.int64)),
    "invert": (tf.bitwise.invert, integers(5)),
    "invert_u8": (tf.bitwise.invert, integers(5, low=0, high=200, dtype=np.uint8)),
    "shift64": (lambda x: tf.bitwise.right_shift(x, np.int64(2)), integers(5, dtype=np.int64)),
    "popcount": (lambda x: tf.raw_ops.PopulationCount(x=x), integers(6, low=0, high=1000)),
    "float64_math": (lambda x: tf.math.lgamma(x) + tf.math.erf(x) + tf.math.digamma(x), POSITIVE.astype(np.float64)),
    "bf16": (lambda x: tf.cast(tf.cast(x, tf.bfloat16) * 2, tf.float32), numbers(3, 4)),
    "int8_add": (lambda x: x + x, integers(5, dtype=np.int8)),
    "uint8_sub": (lambda x: x - np.uint8(200), integers(5, low=0, high=250, dtype=np.uint8)),
    "int16_mul": (lambda x: x * x, integers(5, dtype=np.int16)),
    "uint32": (lambda x: x // np.uint32(3), integers(5, low=0, dtype=np.uint32)),
    "acc_n": (lambda x: tf.math.accumulate_n([x, x, x]), numbers(3)),
    "reduce_std_axis": (lambda x: tf.math.reduce_std(x, 0), numbers(3, 4)),
    "unsorted_prod": (
        lambda x, i: tf.math.unsorted_segment_prod(x, i, 4),
        numbers(5, 2),
        np.array([0, 2, 1, 2, 0], np.int32),
    ),
    "unsorted_mean": (
        lambda x, i: tf.math.unsorted_segment_mean(x, i, 4),
        numbers(5, 2),
        np.array([0, 2, 1, 2, 0], np.int32),
    ),
    "unsorted_sqrt_n": (
        lambda x, i: tf.math.unsorted_segment_sqrt_n(x, i, 4),
        numbers(5, 2),
        np.array([0, 2, 1, 2, 0], np.int32),
    ),
    "unsorted_min": (
        lambda x, i: tf.math.unsorted_segment_min(x, i, 4),
        numbers(5, 2),
        np.array([0, 2, 1, 2, 0], np.int32),
    ),
    "unsorted_neg_id": (
        lambda x, i: tf.math.unsorted_segment_sum(x, i, 3),
        numbers(4, 2),
        np.array([0, -1, 2, -1], np.int32),
    ),
    "segment_max": (tf.math.segment_max, numbers(5, 2), np.array([0, 0, 1, 3, 3], np.int32)),
    "segment_prod": (tf.math.segment_prod, numbers(5, 2), np.array([0, 0, 1, 3, 3], np.int32)),
    "segment_min": (tf.math.segment_min, numbers(5, 2), np.array([0, 0, 1, 3, 3], np.int32)),
    "sparse_segment_mean": (
        lambda x, i, j: tf.sparse.segment_mean(x, i, j),
        numbers(5, 2),
        np.array([0, 3, 1], np.int32),
        np.array([0, 0, 1], np.int32),
    ),
    "sparse_segment_sqrt_n": (
        lambda x, i, j: tf.sparse.segment_sqrt_n(x, i, j, num_segments=4),
        numbers(5, 2),
        np.array([0, 3, 1], np.int32),
        np.array([0, 0, 2], np.int32),
    ),
    "ndtr_tfp": (lambda x: 0.5 * (1 + tf.math.erf(x / np.sqrt(2).astype(np.float32))), numbers(4)),
    "softmax_temp": (lambda x: tf.nn.softmax(x / 0.5, axis=0), numbers(3, 4)),
    "is_strictly_increasing": (tf.math.is_strictly_increasing, numbers(4)),
    "is_non_decreasing": (tf.math.is_non_decreasing, numbers(4)),
    "reduce_any_axis": (lambda x: tf.reduce_any(x > 0, axis=[0, 2]), numbers(2, 3, 4)),
    "argmax_out32": (lambda x: tf.argmax(x, 1, output_type=tf.int32), numbers(3, 4)),
    "argmax_u16": (lambda x: tf.argmax(x, 1, output_type=tf.uint16), numbers(3, 4)),
    "bincount_weights": (
        lambda x, w: tf.math.bincount(x, w, minlength=6),
        np.array([0, 2, 2, 5], np.int32),
        numbers(4),
    ),
    "bincount_binary": (
        lambda x: tf.math.bincount(x, minlength=6, maxlength=6, axis=-1, binary_output=True),
        np.array([[0, 2, 2, 5]], np.int32),
    ),
    "histogram_bins": (lambda x: tf.histogram_fixed_width_bins(x, [-2.0, 2.0], nbins=7), numbers(30)),
    "complex_mul": (lambda x, y: tf.math.real(tf.complex(x, y) * tf.complex(y, x)), numbers(3), numbers(3, seed=1)),
    "complex_exp": (lambda x, y: tf.math.imag(tf.exp(tf.complex(x, y))), numbers(3), numbers(3, seed=1)),
    "complex_abs_conj": (lambda x, y: tf.abs(tf.math.conj(tf.complex(x, y))), numbers(3), numbers(3, seed=1)),
    "complex_matmul": (
        lambda x, y: tf.math.real(tf.matmul(tf.complex(x, y), tf.complex(y, x))),
        numbers(3, 3),
        numbers(3, 3, seed=1),
    ),
    "complex_div": (lambda x, y: tf.math.imag(tf.complex(x, y) / tf.complex(y, x)), numbers(3), numbers(3, seed=1)),
    "tensor_scatter_nd_nonalias": (
        lambda x, i, u: tf.tensor_scatter_nd_update(x, i, u),
        numbers(4, 3),
        np.array([[1, 2], [0, 0]], np.int32),
        numbers(2),
    ),
    "gather_nd_bd2": (
        lambda x, i: tf.gather_nd(x, i, batch_dims=2),
        numbers(2, 3, 4, 5),
        integers(2, 3, 2, 1, low=0, high=4),
    ),
    "where_xy_bc": (lambda x, y: tf.where(x > 0, x, y), numbers(3, 4), numbers(4)),
    "where_nd": (lambda x: tf.where(x > 0), numbers(2, 3, 4)),
    "boolean_mask_axis": (lambda x: tf.boolean_mask(x, [True, False, True, True], axis=1), numbers(3, 4)),
    "roll_multi": (lambda x: tf.roll(x, [1, -2], [0, 1]), numbers(3, 4)),
    "pad_const": (lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=3.0), numbers(3, 4)),
    "pad_dyn": (lambda x, p: tf.pad(x, p), numbers(3, 4), np.array([[1, 0], [0, 2]], np.int32)),
    "strided_ellipsis": (lambda x: x[..., ::2, None], numbers(2, 3, 4)),
    "strided_assign": (lambda x: tf.tensor_scatter_nd_update(x, [[0]], [9.0]), numbers(4)),
    "unique_axis": (lambda x: tf.raw_ops.UniqueV2(x=x, axis=[0])[0], np.array([[1, 2], [1, 2], [3, 4]], np.int32)),
    "setdiff1d": (
        lambda x, y: tf.sets.difference(x[None], y[None]).values,
        np.array([1, 2, 3, 4], np.int32),
        np.array([2, 4], np.int32),
    ),
    "listdiff": (
        lambda x, y: tf.raw_ops.ListDiff(x=x, y=y)[0],
        np.array([1, 2, 3, 4], np.int32),
        np.array([2, 4], np.int32),
    ),
    "matrix_diag_k": (lambda x: tf.linalg.diag(x, k=1), numbers(2, 3)),
    "matrix_diag_part_k": (lambda x: tf.linalg.diag_part(x, k=(-1, 1)), numbers(4, 4)),
    "diag_padding": (lambda x: tf.linalg.diag(x, k=-1, padding_value=7.0), numbers(3)),
    "set_diag_k": (lambda x: tf.linalg.set_diag(x, tf.ones([3]), k=1), numbers(4, 4)),
    "tensor_diag_part": (tf.linalg.tensor_diag_part, numbers(2, 3, 2, 3)),
    "band_part_dyn": (lambda x, n: tf.linalg.band_part(x, n, -1), numbers(4, 4), np.array(1, np.int32)),
    "unravel": (lambda x: tf.unravel_index(x, [3, 4]), np.array([5, 7], np.int32)),
    "sparse_cross": (lambda x: tf.one_hot(x, 5, on_value=3, off_value=-1, axis=0), np.array([1, 2, 7], np.int32)),
    "guarantee": (lambda x: tf.grad_pass_through(tf.identity)(x), numbers(3)),
    "stop_grad": (tf.stop_gradient, numbers(3)),
    "debug_num": (lambda x: tf.debugging.check_numerics(x, "m"), numbers(3)),
    "assert": (asserting, numbers(3)),
    "assert_shapes": (lambda x: (tf.debugging.assert_rank(x, 2), x)[1], numbers(3, 3)),
    "print": (printing, numbers(3)),
    "space_batch_nd": (lambda x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 1]]), numbers(1, 4, 2, 3)),
    "sort_desc": (lambda x: tf.sort(x, axis=0, direction="DESCENDING"), numbers(5, 3)),
    "argsort_stable": (lambda x: tf.argsort(x, stable=True), integers(3, 6, low=0, high=3)),
    "searchsorted_2d": (lambda x, v: tf.searchsorted(x, v), np.sort(numbers(2, 5), 1), numbers(2, 3)),
    "meshgrid_ij": (lambda x, y: tf.meshgrid(x, y, indexing="ij"), numbers(3), numbers(4)),
    "repeat_axis": (lambda x, r: tf.repeat(x, r, axis=0), numbers(3, 2), np.array([1, 0, 2], np.int32)),
    "ragged_range": (lambda x: tf.ragged.range(x).to_tensor(), np.array([2, 0, 3], np.int32)),
    "shape_n_out64": (lambda x: tf.shape(x, out_type=tf.int64), numbers(2, 3)),
    "dynamic_partition3": (
        lambda x, p: tf.dynamic_partition(x, p, 3),
        numbers(6, 2),
        np.array([0, 2, 1, 1, 2, 0], np.int32),
    ),
    "parallel_dynamic_stitch": (
        lambda i, j, x, y: tf.raw_ops.ParallelDynamicStitch(indices=[i, j], data=[x, y]),
        np.array([0, 2], np.int32),
        np.array([1, 3], np.int32),
        numbers(2, 2),
        numbers(2, 2, seed=4),
    ),
    "batch_gather_neg": (
        lambda x, i: tf.gather(x, i, axis=-1, batch_dims=1),
        numbers(2, 3, 4),
        integers(2, 2, low=0, high=3),
    ),
    "upper_bound": (
        lambda x, v: tf.raw_ops.UpperBound(sorted_inputs=x, values=v),
        np.sort(numbers(2, 5), 1),
        numbers(2, 3),
    ),
    "reverse_seq_axes": (
        lambda x, n: tf.reverse_sequence(x, n, seq_axis=0, batch_axis=1),
        numbers(4, 3, 2),
        np.array([2, 4, 1], np.int32),
    ),
    "quantize_deq": (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1, 1, 8), numbers(3, 4)),
    "fq_vars": (lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -1.3, 1.1, 8, True), numbers(3, 4)),
    "fq_chan": (
        lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1.0, -2, -0.5, -1], [1.0, 2, 0.5, 1]),
        numbers(3, 4),
    ),
    "qdq_v2": (lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0), numbers(3, 4)),
    "quantize": (lambda x: tf.cast(tf.quantization.quantize(x, -2.0, 2.0, tf.quint8)[0], tf.int32), numbers(3, 4)),
    "nested_while": (nestedwhile, np.array(4, np.int32), numbers(3)),
    "for_range_continue": (forrange, np.array(5, np.int32), numbers(3)),
    "for_rows": (forrows, numbers(3, 4)),
    "early_return": (early, numbers(3)),
    "scan_rev": (lambda x: tf.scan(lambda a, b: a * 0.5 + b, x, reverse=True), numbers(5, 2)),
    "scan_init": (
        lambda x: tf.scan(lambda a, b: (a[0] + b, a[1] * b), x, initializer=(tf.zeros([2]), tf.ones([2]))),
        numbers(5, 2),
    ),
    "map_nested": (lambda x: tf.map_fn(lambda r: tf.map_fn(lambda v: v * 2, r), x), numbers(3, 4)),
    "map_struct": (
        lambda x: tf.map_fn(
            lambda r: {"a": r + 1, "b": tf.reduce_sum(r)}, x, fn_output_signature={"a": tf.float32, "b": tf.float32}
        ),
        numbers(3, 4),
    ),
    "ta_unstack": (lambda x: tf.TensorArray(tf.float32, 3).unstack(x).gather([2, 0]), numbers(3, 4)),
    "ta_concat": (
        lambda x: tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, [1, 2, 1]).concat(),
        numbers(4, 2),
    ),
    "ta_elem": (
        lambda x: tf.TensorArray(tf.float32, 2, element_shape=[None]).write(0, x).write(1, x * 2).stack(),
        numbers(4),
    ),
    "cond_lambda_capt": (
        lambda x, p: tf.cond(p, lambda: tf.cond(x[0] > 0, lambda: x, lambda: -x), lambda: x * 0),
        numbers(3),
        np.array(True),
    ),
    "case_excl": (
        lambda x: tf.case([(x[0] > 5, lambda: x), (x[0] > -5, lambda: x * 3)], default=lambda: x * 0),
        numbers(3),
    ),
    "switch_dyn": (
        lambda x, i: tf.switch_case(i, [lambda: x, lambda: x + 1, lambda: x * 2]),
        numbers(3),
        np.array(7, np.int32),
    ),
    "foldl_init": (lambda x: tf.foldl(lambda a, b: a + b * a, x, initializer=1.0), numbers(4)),
    "while_shape_grow": (
        lambda x: tf.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, tf.concat([y, y[:1]], 0)),
            [0, x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
        )[1],
        numbers(2, 2),
    ),
    "vectorized_map2": (lambda x: tf.vectorized_map(lambda r: tf.linalg.matvec(tf.eye(4) * r[0], r), x), numbers(3, 4)),
    "custom_grad": (tf.custom_gradient(lambda x: (tf.nn.relu(x), lambda d: d)), numbers(3)),
    "numpy_fn": (lambda x: tf.experimental.numpy.cumsum(x), numbers(3)),
    "special_bessel_i0": (tf.math.special.bessel_i0, POSITIVE),
    "special_bessel_i0e": (tf.math.special.bessel_i0e, POSITIVE),
    "special_bessel_i1": (tf.math.special.bessel_i1, POSITIVE),
    "special_bessel_i1e": (tf.math.special.bessel_i1e, POSITIVE),
    "special_bessel_j0": (tf.math.special.bessel_j0, POSITIVE),
    "special_bessel_j1": (tf.math.special.bessel_j1, POSITIVE),
    "special_bessel_k0": (tf.math.special.bessel_k0, POSITIVE),
    "special_bessel_k0e": (tf.math.special.bessel_k0e, POSITIVE),
    "special_bessel_k1": (tf.math.special.bessel_k1, POSITIVE),
    "special_bessel_k1e": (tf.math.special.bessel_k1e, POSITIVE),
    "special_bessel_y0": (tf.math.special.bessel_y0, POSITIVE),
    "special_bessel_y1": (tf.math.special.bessel_y1, POSITIVE),
    "special_dawsn": (tf.math.special.dawsn, POSITIVE),
    "special_expint": (tf.math.special.expint, POSITIVE),
    "special_fresnel_cos": (tf.math.special.fresnel_cos, POSITIVE),
    "special_fresnel_sin": (tf.math.special.fresnel_sin, POSITIVE),
    "special_spence": (tf.math.special.spence, POSITIVE),
}
STATIC: dict[str, tuple[Any, ...]] = {
    "extract_patches_valid": (
        lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 2, 1], "VALID"),
        numbers(1, 6, 6, 2),
    ),
    "extract_volume": (
        lambda x: (
            tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")
            if hasattr(tf, "extract_volume_patches")
            else tf.raw_ops.ExtractVolumePatches(
                input=x, ksizes=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID"
            )
        ),
        numbers(1, 4, 4, 4, 2),
    ),
    "py_list_acc": (lambda x: tf.stack([x[i] * i for i in range(3)]), numbers(3, 2)),
}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
