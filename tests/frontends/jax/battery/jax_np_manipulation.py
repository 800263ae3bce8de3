"""Functions of jax.numpy that make and rearrange arrays."""

import jax
import jax.numpy as jnp
from jax_cases import case, cases

cases(
    "f32[2,3,4]",
    reshape=lambda x: x.reshape(4, -1),
    reshape_fortran=lambda x: jnp.reshape(x, (6, 4), order="F"),
    ravel=jnp.ravel,
    flatten=lambda x: x.flatten(),
    transpose=lambda x: x.transpose(1, 2, 0),
    transpose_all=lambda x: x.T,
    matrix_transpose=lambda x: x.mT,
    swapaxes=lambda x: x.swapaxes(0, 2),
    moveaxis=lambda x: jnp.moveaxis(x, 0, -1),
    moveaxis_many=lambda x: jnp.moveaxis(x, (0, 1), (2, 0)),
    rollaxis=lambda x: jnp.rollaxis(x, 2),
    expand_dims=lambda x: jnp.expand_dims(x, (0, 2)),
    squeeze=lambda x: jnp.squeeze(x[:, :1]),
    concatenate=lambda x: jnp.concatenate([x, x + 1], axis=-1),
    stack=lambda x: jnp.stack([x, -x], axis=1),
    vstack=lambda x: jnp.vstack([x, x]),
    hstack=lambda x: jnp.hstack([x, x]),
    dstack=lambda x: jnp.dstack([x, x]),
    column_stack=lambda x: jnp.column_stack([x[0, 0], x[1, 1]]),
    append_values=lambda x: jnp.append(x, x[:, :1], axis=1),
    split_evenly=lambda x: jnp.split(x, 2, axis=2),
    split_at=lambda x: jnp.split(x, [1, 3], axis=-1),
    array_split=lambda x: jnp.array_split(x, 3, axis=2),
    hsplit=lambda x: jnp.hsplit(x, 3),
    unstack=lambda x: jnp.unstack(x, axis=1),
    tile=lambda x: jnp.tile(x, (2, 1, 2)),
    tile_more_dims=lambda x: jnp.tile(x[0], (2, 2, 1)),
    repeat=lambda x: jnp.repeat(x, 2, axis=1),
    repeat_each=lambda x: jnp.repeat(x, jnp.array([1, 0, 3]), axis=1, total_repeat_length=4),
    flip=lambda x: jnp.flip(x),
    flip_axis=lambda x: jnp.flip(x, 1),
    fliplr=jnp.fliplr,
    flipud=jnp.flipud,
    rot90=lambda x: jnp.rot90(x, 1, (1, 2)),
    roll=lambda x: jnp.roll(x, 2, axis=2),
    roll_flat=lambda x: jnp.roll(x, -5),
    roll_many=lambda x: jnp.roll(x, (1, -1), axis=(0, 2)),
    pad_constant=lambda x: jnp.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=9.0),
    pad_edge=lambda x: jnp.pad(x, ((1, 1), (0, 2), (2, 0)), mode="edge"),
    pad_reflect=lambda x: jnp.pad(x, ((0, 0), (2, 1), (3, 2)), mode="reflect"),
    pad_symmetric=lambda x: jnp.pad(x, ((0, 1), (2, 2), (1, 1)), mode="symmetric"),
    pad_wrap=lambda x: jnp.pad(x, ((0, 0), (2, 1), (3, 2)), mode="wrap"),
    pad_maximum=lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 0)), mode="maximum"),
    pad_mean=lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 2)), mode="mean"),
    pad_linear_ramp=lambda x: jnp.pad(x, ((0, 0), (0, 0), (2, 2)), mode="linear_ramp", end_values=0.0),
    broadcast_to=lambda x: jnp.broadcast_to(x[:, :1], (2, 5, 4)),
    broadcast_arrays=lambda x: jnp.broadcast_arrays(x[0, :, :1], x[1, :1]),
    atleast=lambda x: (jnp.atleast_2d(x[0, 0]), jnp.atleast_3d(x[0])),
    diagonal=lambda x: jnp.diagonal(x, axis1=1, axis2=2),
    diagonal_offset=lambda x: jnp.diagonal(x, 1, 1, 2),
    trace=lambda x: jnp.trace(x, axis1=1, axis2=2),
    tril=lambda x: jnp.tril(x),
    triu_above=lambda x: jnp.triu(x, 1),
    resize_repeats=lambda x: jnp.resize(x, (5, 7)),
    insert_value=lambda x: jnp.insert(x, 1, 5.0, axis=2),
    delete_column=lambda x: jnp.delete(x, 1, axis=2),
    delete_columns=lambda x: jnp.delete(x, jnp.array([0, 2]), axis=2, assume_unique_indices=True),
    apply_along_axis=lambda x: jnp.apply_along_axis(lambda v: v - v.max(), 2, x),
    apply_over_axes=lambda x: jnp.apply_over_axes(jnp.sum, x, (0, 2)),
    ones_and_zeros_like=lambda x: jnp.ones_like(x) + jnp.zeros_like(x) + jnp.full_like(x, 2),
    space_to_depth=lambda x: x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 6),
)
cases(
    "f32[4]",
    diag_of_vector=lambda x: jnp.diag(x),
    diag_offset=lambda x: jnp.diag(x, -1),
    diagflat=lambda x: jnp.diagflat(x),
    vander=lambda x: jnp.vander(x / 4, 3),
    outer_sum=lambda x: x[:, None] + x[None, :],
    meshgrid=lambda x: jnp.meshgrid(x, jnp.arange(3.0)),
    meshgrid_by_matrix=lambda x: jnp.meshgrid(x, x[:2], indexing="ij"),
    eye=lambda x: x * jnp.eye(3, 4, 1),
    identity=lambda x: x + jnp.identity(4),
    arange=lambda x: x + jnp.arange(1, 9, 2),
    linspace=lambda x: x * jnp.linspace(0, 1, 4),
    linspace_between_tensors=lambda x: jnp.linspace(x[0], x[1], 5),
    logspace=lambda x: x * jnp.logspace(0, 2, 4),
    geomspace=lambda x: x * jnp.geomspace(1, 100, 4),
    tri=lambda x: x * jnp.tri(4),
    constant_only=lambda x: jnp.arange(6).reshape(2, 3),
    hamming=lambda x: x * jnp.hamming(4),
    block=lambda x: jnp.block([[x, x], [x + 1, x * 2]]),
    fill_diagonal=lambda x: jnp.fill_diagonal(jnp.outer(x, x), 7.0, inplace=False),
    vectorize=lambda x: jnp.vectorize(lambda a, b: a * 2 + b)(x, x[::-1]),
    trim_and_view=lambda x: x.view(jnp.int32),
    concat_of_types=lambda x: jnp.concatenate([x, jnp.arange(3)]),
    asarray_of_scalars=lambda x: jnp.array([x[0], 1.0, x[1] * 2]),
    array_of_rows=lambda x: jnp.array([[x[0], x[1]], [x[2], 0]]),
    packed_bits=lambda x: jnp.packbits(x > 0),
)


@case("f32[2,6,6,3]")
def patches_of_an_image(x):
    b, h, w, c = x.shape
    patches = x.reshape(b, h // 2, 2, w // 2, 2, c)
    return patches.transpose(0, 1, 3, 2, 4, 5).reshape(b, -1, 4 * c)


@case("f32[2,4,4,2]")
def nearest_by_repeat(x):
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)


@case("f32[1,4,5,2] plain")
def image_resize_bilinear(x):
    return jax.image.resize(x, (1, 8, 10, 2), "bilinear")


@case("f32[1,4,6,2] plain")
def image_resize_nearest(x):
    return jax.image.resize(x, (1, 8, 9, 2), "nearest")


@case("f32[1,8,9,2] plain")
def image_resize_down_antialiased(x):
    return jax.image.resize(x, (1, 4, 3, 2), "linear")


@case("f32[5,6] plain")
def image_resize_cubic(x):
    return jax.image.resize(x, (9, 8), "cubic")


@case("f32[6,7] plain")
def image_resize_lanczos(x):
    return jax.image.resize(x, (4, 9), "lanczos3", antialias=False)


@case("f32[5,6] plain")
def image_scale_and_translate(x):
    scale, shift = jnp.array([1.5, 0.5]), jnp.array([0.2, -1.0])
    return jax.image.scale_and_translate(x, (7, 7), (0, 1), scale, shift, "linear")


@case("u8[9]")
def unpack_bits(x):
    return jnp.unpackbits(x)


@case("f32[3,4]", "i32[] -9..9")
def roll_by_a_tensor(x, shift):
    return jnp.roll(x, shift, axis=1)


@case("i32[3,4]", "i32[4]")
def ints_stacked(x, y):
    return jnp.vstack([x, y]), jnp.concatenate([x, y[None] * 2]), jnp.tile(y, 2)


@case("bool[3,4]")
def bools_rearranged(x):
    return x.T, jnp.concatenate([x, ~x]), jnp.pad(x, 1), jnp.roll(x, 1)
