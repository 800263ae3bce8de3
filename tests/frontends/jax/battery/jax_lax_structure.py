"""Functions of lax that move, join, reduce and window."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_cases import case, cases

cases(
    "f32[2,3,4]",
    transpose=lambda x: lax.transpose(x, (2, 0, 1)),
    reshape=lambda x: lax.reshape(x, (4, 6)),
    reshape_with_dimensions=lambda x: lax.reshape(x, (6, 4), (2, 1, 0)),
    squeeze=lambda x: lax.squeeze(x[:1], (0,)),
    expand_dims=lambda x: lax.expand_dims(x, (1, 3)),
    rev=lambda x: lax.rev(x, (0, 2)),
    broadcast=lambda x: lax.broadcast(x, (2,)),
    broadcast_in_dim=lambda x: lax.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)),
    slice_strided=lambda x: lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 2, 3)),
    slice_in_dim=lambda x: lax.slice_in_dim(x, 1, 3, axis=2),
    pad_edges=lambda x: lax.pad(x, 0.5, ((1, 0, 0), (0, 2, 0), (1, 1, 0))),
    pad_interior=lambda x: lax.pad(x, 0.0, ((0, 0, 1), (1, 0, 2), (0, 0, 0))),
    pad_negative=lambda x: lax.pad(x, 0.0, ((0, 0, 0), (-1, 0, 0), (-1, -2, 0))),
    pad_negative_interior=lambda x: lax.pad(x, 7.0, ((-1, 2, 1), (-1, -1, 2), (3, -2, 0))),
    concatenate=lambda x: lax.concatenate([x, x * 2, x], 1),
    collapse=lambda x: lax.collapse(x, 1, 3),
    split=lambda x: lax.split(x, (1, 2, 1), axis=2),
    reduce_sum=lambda x: lax.reduce(x, 0.0, lax.add, (0, 2)),
    reduce_product=lambda x: lax.reduce(x, 1.0, lax.mul, (1,)),
    reduce_max=lambda x: lax.reduce(x, -jnp.inf, lax.max, (2,)),
    reduce_min_with_start=lambda x: lax.reduce(x, 0.25, lax.min, (0,)),
    cumsum=lambda x: lax.cumsum(x, 1),
    cumsum_reverse=lambda x: lax.cumsum(x, 2, reverse=True),
    cumprod=lambda x: lax.cumprod(x, 0),
    cummax=lambda x: lax.cummax(x, 2),
    cummin_reverse=lambda x: lax.cummin(x, 1, reverse=True),
    cumlogsumexp=lambda x: lax.cumlogsumexp(x, 2),
    argmax=lambda x: lax.argmax(x, 2, jnp.int32),
    argmin=lambda x: lax.argmin(x, 1, jnp.int32),
    sort=lambda x: lax.sort(x, dimension=2),
    top_k=lambda x: lax.top_k(x, 2),
    dynamic_slice_fixed=lambda x: lax.dynamic_slice(x, (1, 1, 2), (1, 2, 2)),
    full_like=lambda x: lax.full_like(x, 3.5),
    iota=lambda x: x[0, 0] + lax.iota(jnp.float32, 4),
    broadcasted_iota=lambda x: lax.broadcasted_iota(jnp.int32, (2, 3, 4), 1) * x.astype(jnp.int32),
    rng_free_eye=lambda x: x[0, :, :3] + jnp.eye(3),
    optimization_barrier=lambda x: lax.optimization_barrier(x + 1),
    tile=lambda x: lax.tile(x, (2, 1, 3)),
)


@case("f32[6,5]", "i32[2] -3..8")
def dynamic_slice_clamps(x, start):
    return lax.dynamic_slice(x, (start[0], start[1]), (3, 2))


@case("f32[6,5]", "i32[2] -3..8", "f32[2,3]")
def dynamic_update_slice_clamps(x, start, update):
    return lax.dynamic_update_slice(x, update, (start[0], start[1]))


@case("f32[6,5]", "i32[] -7..9")
def dynamic_index(x, i):
    return lax.dynamic_index_in_dim(x, i, axis=0, keepdims=False)


@case("f32[6,5]", "i32[] -7..9", "f32[6]")
def dynamic_update_index(x, i, column):
    return lax.dynamic_update_index_in_dim(x, column, i, axis=1)


@case("f32[8,5]", "i32[] 0..5")
def dynamic_slice_in_dim(x, i):
    return lax.dynamic_slice_in_dim(x, i, 4, axis=0)


@case("i32[10] 0..3", "f32[10]", "i32[10]")
def sort_with_two_keys(a, b, c):
    return lax.sort((a, b, c), num_keys=2)


@case("f32[3,8]", "i32[3,8]")
def sort_carries_values(keys, values):
    return lax.sort((keys, values), dimension=1, num_keys=1, is_stable=True)


@case("i32[3,6]")
def top_k_of_ints(x):
    return lax.top_k(x, 3)


@case("f32[4,5] plain", "f32[5,3] plain")
def dot(x, y):
    return lax.dot(x, y)


@case("f32[2,4,5] plain", "f32[2,5,3] plain")
def batch_matmul(x, y):
    return lax.batch_matmul(x, y)


@case("f32[2,3,4,5] plain", "f32[4,2,6,3] plain")
def dot_general_two_contractions(x, y):
    return lax.dot_general(x, y, (((1, 2), (3, 0)), ((0,), (1,))))


@case("i8[3,8]", "i8[8,4]")
def dot_of_bytes_in_ints(x, y):
    return lax.dot(x, y, preferred_element_type=jnp.int32)


@case("f32[7] plain", "f32[7] plain")
def dot_of_vectors(x, y):
    return lax.dot(x, y)


@case("f32[2,3,8,8] plain", "f32[4,3,3,3] plain")
def conv_same(x, w):
    return lax.conv(x, w, (1, 1), "SAME")


@case("f32[2,9,9,3] plain", "f32[3,3,3,4] plain")
def conv_nhwc_strided(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@case("f32[1,8,8,4] plain", "f32[3,3,1,8] plain")
def conv_depthwise(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
    )


@case("f32[1,2,7,7] plain", "f32[3,2,3,3] plain")
def conv_dilated_both_sides(x, w):
    return lax.conv_general_dilated(x, w, (1, 2), ((2, 1), (0, 3)), lhs_dilation=(2, 1), rhs_dilation=(1, 2))


@case("f32[1,2,7,7] plain", "f32[3,2,3,3] plain")
def conv_negative_padding(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), ((-1, 2), (1, -2)))


@case("f32[4,2,6,6] plain", "f32[6,2,3,3] plain")
def conv_batch_groups(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", batch_group_count=2)


@case("f32[2,10,3] plain", "f32[4,3,5] plain")
def conv_1d(x, w):
    return lax.conv_general_dilated(x, w, (1,), ((3, 0),), dimension_numbers=("NWC", "WIO", "NWC"))


@case("f32[1,4,5,6,2] plain", "f32[2,2,2,2,3] plain")
def conv_3d(x, w):
    return lax.conv_general_dilated(x, w, (1, 2, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))


@case("f32[1,5,5,3] plain", "f32[3,3,3,4] plain")
def conv_transpose_same(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@case("f32[1,5,5,3] plain", "f32[4,4,4,3] plain")
def conv_transpose_kernel_flipped(x, w):
    return lax.conv_transpose(x, w, (2, 2), "VALID", transpose_kernel=True)


@case("f32[1,3,6,6] plain")
def conv_patches(x):
    return lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID")


@case("f32[2,8,8,3]")
def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@case("f32[2,7,7,3] plain")
def sum_pool_same(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@case("f32[3,9]")
def min_window_dilated(x):
    return lax.reduce_window(x, jnp.inf, lax.min, (1, 3), (1, 1), "VALID", window_dilation=(1, 2))


@case("f32[3,9] -2..2")
def product_window(x):
    return lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 1), "VALID")


@case("i32[4,8] -9..9")
def max_window_of_ints(x):
    return lax.reduce_window(x, np.int32(-(2**31)), lax.max, (2, 2), (2, 2), "VALID")


@case("f32[3,9] plain")
def sum_window_base_dilated(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 2), ((0, 0), (1, 1)), base_dilation=(1, 2))


@case("f32[2,5,6]", "i32[5,6]")
def windows_that_start_with_a_number(x, i):
    padding = [(0, 0), (1, 1), (2, 0)]
    sums = lax.reduce_window(x, 3.0, lax.add, (1, 2, 3), (1, 2, 1), padding)
    products = lax.reduce_window(i, 2, lax.mul, (2, 2), (1, 2), "SAME", base_dilation=(1, 2))
    return sums, products, lax.reduce_window(i, 5, lax.add, (2, 2), (1, 1), [(-1, 1), (2, -1)])


@case("f32[6,7] plain", "i32[6,7]")
def windows_of_pairs(x, i):
    def larger(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    return lax.reduce_window((x, i), (jnp.float32(-0.3), jnp.int32(3)), larger, (2, 2), (2, 1), "SAME")


@case("f32[4,6] plain", "i32[4,6]")
def reduce_two_at_once(values, indices):
    def larger(a, b):
        keep = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(keep, a[0], b[0]), jnp.where(keep, a[1], b[1])

    return lax.reduce((values, indices), (-jnp.inf, np.int32(2**31 - 1)), larger, (1,))


@case("bool[3,5]")
def reduce_of_bools(x):
    return lax.reduce(x, False, lax.bitwise_or, (1,)), lax.reduce(x, True, lax.bitwise_and, (0,))


@case("i32[3,5]")
def reduce_bits(x):
    return lax.reduce(x, np.int32(0), lax.bitwise_xor, (1,))


@case("f32[5,4]", "i32[6,1] -3..7")
def gather_rows_clip(x, indices):
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return lax.gather(x, indices, numbers, (1, 4), mode="clip")


@case("f32[5,4]", "i32[6,2] -3..7")
def gather_windows_fill(x, indices):
    numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    return lax.gather(x, indices, numbers, (2, 3), mode="fill", fill_value=-1.0)


@case("f32[3,5,4]", "i32[3,2] 0..4")
def gather_batched(x, indices):
    numbers = lax.GatherDimensionNumbers((2,), (1,), (1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,))
    return lax.gather(x, indices[..., None], numbers, (1, 1, 4), mode="clip")


@case("f32[5,4] plain", "i32[3,1] -2..6", "f32[3,4] plain")
def scatter_add_drops(x, indices, updates):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lax.scatter_add(x, indices, updates, numbers, mode="drop")


@case("f32[5,4]", "i32[3,1] -2..6", "f32[3,4]")
def scatter_max_clips(x, indices, updates):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lax.scatter_max(x, indices, updates, numbers, mode="clip")


@case("f32[5,4]", "i32[3,1] 0..4", "f32[3,4]")
def scatter_min(x, indices, updates):
    return lax.scatter_min(x, indices, updates, lax.ScatterDimensionNumbers((1,), (0,), (0,)))


@case("f32[5,4] -2..2", "i32[3,1] 0..4", "f32[3,4] -2..2")
def scatter_mul(x, indices, updates):
    return lax.scatter_mul(x, indices, updates, lax.ScatterDimensionNumbers((1,), (0,), (0,)))


@case("f32[6,6]", "i32[2] -1..6", "f32[2,3]")
def scatter_a_window(x, start, update):
    numbers = lax.ScatterDimensionNumbers((0, 1), (), (0, 1))
    return lax.scatter(x, start, update, numbers, mode="drop")


@case("f32[4,6]")
def approximate_max(x):
    return lax.approx_max_k(x, 3)
