"""Indices of all forms, read and written."""

import jax.numpy as jnp
import numpy as np
from jax_cases import case, cases

ROWS = np.array([3, 0, -1, 2])

cases(
    "f32[5,6,4]",
    integer=lambda x: x[2],
    negative_integer=lambda x: x[-1, :, -2],
    slice_plain=lambda x: x[1:4],
    slice_negative=lambda x: x[:, -3:-1],
    slice_step=lambda x: x[::2, 1::3],
    slice_reversed=lambda x: x[::-1, :, ::-1],
    slice_reversed_step=lambda x: x[4:0:-2],
    slice_beyond_the_end=lambda x: x[3:99],
    slice_empty=lambda x: x[3:3],
    ellipsis=lambda x: x[..., 0],
    ellipsis_in_the_middle=lambda x: x[1, ..., 2:],
    new_axes=lambda x: x[:, None, 1, :, None],
    fancy_rows=lambda x: x[ROWS],
    fancy_rows_list=lambda x: x[jnp.array([1, 1, 3])],
    fancy_columns=lambda x: x[:, jnp.array([0, -1, 5])],
    fancy_pairs=lambda x: x[jnp.array([0, 1, 2]), jnp.array([5, 4, 3])],
    fancy_broadcast=lambda x: x[jnp.array([[0], [2]]), jnp.array([1, 3, 5])],
    fancy_separated=lambda x: x[jnp.array([0, 1]), :, jnp.array([2, 3])],
    fancy_with_slice=lambda x: x[1:3, jnp.array([0, 2, 4]), ::2],
    fancy_with_integer=lambda x: x[0, jnp.array([1, 2]), 3],
    fancy_out_of_range_clips=lambda x: x[jnp.array([7, -9, 2])],
    constant_mask=lambda x: x[np.array([True, False, True, True, False])],
    take_flat=lambda x: jnp.take(x, jnp.array([0, 119, 60])),
    take_axis=lambda x: jnp.take(x, jnp.array([[0, 2], [1, 1]]), axis=1),
    take_clip=lambda x: jnp.take(x, jnp.array([-1, 9]), axis=0, mode="clip"),
    take_wrap=lambda x: jnp.take(x, jnp.array([-1, 9, 13]), axis=1, mode="wrap"),
    take_fill=lambda x: jnp.take(x, jnp.array([-2, 9, 1]), axis=0, mode="fill", fill_value=-5.0),
    at_set_row=lambda x: x.at[1].set(0.0),
    at_set_slice=lambda x: x.at[1:3, ::2].set(-1.0),
    at_add_slice=lambda x: x.at[:, -1].add(2.0),
    at_multiply=lambda x: x.at[..., 0].multiply(3.0),
    at_divide=lambda x: x.at[0, 0].divide(2.0),
    at_power=lambda x: x.at[0].power(2.0),
    at_min=lambda x: x.at[2:].min(0.5),
    at_max=lambda x: x.at[:, 1].max(0.5),
    at_apply=lambda x: x.at[1].apply(jnp.tanh),
    at_set_fancy=lambda x: x.at[jnp.array([0, 2])].set(9.0),
    at_set_reversed=lambda x: x.at[::-1, 0].set(jnp.arange(20.0).reshape(5, 4)),
    at_get_fill=lambda x: x.at[jnp.array([0, 8])].get(mode="fill", fill_value=0.5),
    at_get_clip=lambda x: x.at[jnp.array([0, 8])].get(mode="clip"),
    at_add_duplicates=lambda x: x.at[jnp.array([1, 1, 1])].add(1.0),
    swap_rows=lambda x: x.at[jnp.array([0, 1])].set(x[jnp.array([1, 0])]),
    every_second_zero=lambda x: x.at[::2].set(0),
)
cases(
    "f32[6,4]",
    "i32[5] -8..9",
    rows_by_tensor=lambda x, i: x[i],
    elements_by_tensor=lambda x, i: x[i, i % 4],
    columns_by_tensor=lambda x, i: x[:, i],
    take_by_tensor=lambda x, i: jnp.take(x, i, axis=0),
    take_clip_by_tensor=lambda x, i: jnp.take(x, i, axis=1, mode="clip"),
    take_wrap_by_tensor=lambda x, i: jnp.take(x, i, axis=1, mode="wrap"),
    set_by_tensor_drop=lambda x, i: x.at[i[:1]].set(1.5, mode="drop"),
    set_by_tensor_clip=lambda x, i: x.at[i[:1]].set(1.5, mode="clip"),
    add_by_tensor=lambda x, i: x.at[i].add(1.0),
    add_by_tensor_clip=lambda x, i: x.at[i].add(1.0, mode="clip"),
    max_by_tensor=lambda x, i: x.at[i, i % 4].max(0.25),
    min_by_tensor_drop=lambda x, i: x.at[:, i].min(0.25, mode="drop"),
    multiply_by_tensor=lambda x, i: x.at[i].multiply(2.0),
    get_by_tensor_fill=lambda x, i: x.at[i].get(mode="fill", fill_value=-1),
    one_element=lambda x, i: x[i[0], i[1]],
    one_row_updated=lambda x, i: x.at[i[0]].add(x[i[1]]),
    compare_with_rows=lambda x, i: jnp.arange(6)[:, None] == i,
)
cases(
    "f32[12]",
    mask_where=lambda x: jnp.where(x > 0, x, 0),
    mask_nonzero_sized=lambda x: jnp.nonzero(x > 0, size=8, fill_value=-1),
    mask_where_sized=lambda x: jnp.where(x > 0, size=5)[0],
    mask_argwhere_sized=lambda x: jnp.argwhere(x.reshape(3, 4) > 0, size=6, fill_value=-1),
    mask_compress_sized=lambda x: jnp.compress(x > 0, x, size=6, fill_value=0.5),
    mask_extract_sized=lambda x: jnp.extract(x > 0, x, size=6, fill_value=0.5),
    mask_flatnonzero_sized=lambda x: jnp.flatnonzero(x > 0, size=12, fill_value=12),
    mask_set=lambda x: x.at[jnp.nonzero(x > 0, size=12, fill_value=12)].set(-1.0, mode="drop"),
    mask_replace_nan=lambda x: jnp.where(jnp.isnan(x), 0.0, x),
    mask_count=lambda x: jnp.count_nonzero(x > 0),
    mask_mean=lambda x: jnp.mean(x, where=jnp.isfinite(x)),
    mask_first=lambda x: jnp.argmax(x > 0.5),
    mask_put=lambda x: jnp.put(x, jnp.array([0, 3]), jnp.array([1.0, 2.0]), inplace=False),
    mask_place=lambda x: jnp.place(x, x > 0, jnp.array([1.0, 2.0, 3.0]), inplace=False),
)


@case("f32[4,5]", "i32[4,2] 0..4")
def take_along_axis(x, i):
    return jnp.take_along_axis(x, i, axis=1)


@case("f32[4,5]", "i32[1,5] 0..3")
def take_along_rows(x, i):
    return jnp.take_along_axis(x, i, axis=0)


@case("f32[4,5]", "i32[4,1] 0..4")
def put_along_axis(x, i):
    return jnp.put_along_axis(x, i, 7.0, axis=1, inplace=False)


@case("f32[10,8]", "i32[2,5] 0..9")
def embedding_lookup(table, ids):
    return table[ids]


@case("f32[10,8] plain", "i32[2,5] 0..9")
def embedding_mean_without_padding(table, ids):
    mask = (ids != 0)[..., None]
    return (table[ids] * mask).sum(1) / jnp.maximum(mask.sum(1), 1)


@case("f32[6,7] plain", "i32[6] 0..6")
def picked_log_probabilities(logits, labels):
    shifted = logits - jnp.log(jnp.sum(jnp.exp(logits), -1, keepdims=True))
    return shifted[jnp.arange(6), labels]


@case("f32[3,6,4]", "i32[3] 0..5")
def last_step_of_each_sequence(x, lengths):
    return x[jnp.arange(3), lengths]


@case("f32[8,3] plain", "i32[6,2] 0..7", "f32[6,3] plain")
def messages_of_a_graph(nodes, edges, features):
    messages = nodes[edges[:, 0]] * features
    return jnp.zeros_like(nodes).at[edges[:, 1]].add(messages)


@case("f32[4,4]", "i32[2] 0..3", "f32[]")
def one_cell(x, where, value):
    return x.at[where[0], where[1]].set(value), x.at[tuple(where)].add(value)


@case("i32[20] -3..12")
def counts_by_at(x):
    return jnp.zeros(8, jnp.int32).at[x].add(1, mode="drop")


@case("f32[5]", "i32[5] 0..4")
def inverse_of_a_permutation(x, keys):
    order = jnp.argsort(keys, stable=True)
    return x[order], jnp.zeros_like(x).at[order].set(x), jnp.argsort(order)


@case("f32[6,6] plain")
def triangle_entries(x):
    rows, columns = np.triu_indices(6, 1)
    return x[rows, columns], x.at[rows, columns].set(0.0)


@case("f32[3,4,5]")
def ix_of_lists(x):
    return x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]), jnp.array([4, 0, 1]))]


@case("i32[7] 0..23")
def unravel_and_ravel(x):
    rows, columns = jnp.unravel_index(x, (4, 6))
    return rows, columns, jnp.ravel_multi_index((rows, columns), (4, 6), mode="clip")


@case("f32[8]", "i32[] 0..7")
def dynamic_start(x, i):
    return x[i], x.at[i].set(0), jnp.arange(8) < i


@case("f32[4,6]", "i32[3] 0..2", "f32[3]")
def choose_between(x, which, y):
    return jnp.choose(which, [y, y * 2, x[0, :3]], mode="clip"), jnp.where(which == 1, y, x[1, :3])


@case("u8[5,4]", "i32[3] 0..4")
def bytes_indexed(x, i):
    return x[i], x.at[i].set(7), x.at[i].max(9), x.at[i].add(200)


@case("bool[5,4]", "i32[3] 0..4")
def bools_indexed(x, i):
    return x[i], x.at[i].set(True), x[::-1]


@case("f32[6,5]", "i32[4] -2..7", "i32[4] -2..6", "f32[4]")
def pairs_set_drop(x, rows, columns, values):
    order = jnp.arange(4)
    return x.at[rows[:1], columns[:1]].set(values[:1], mode="drop"), x.at[order, order].set(values)
