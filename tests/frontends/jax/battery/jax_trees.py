"""Pytrees in and out."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax_cases import case


class Point(NamedTuple):
    x: object
    y: object


@jax.tree_util.register_dataclass
@dataclass
class State:
    h: object
    c: object


@case({"a": "f32[3]", "b": "f32[3]"})
def dict_in(given):
    return given["a"] + given["b"]


@case("f32[3]")
def dict_out(x):
    return {"twice": x * 2, "half": x / 2, "again": {"minus": -x}}


@case(("f32[3]", "i32[2]"))
def tuple_in(pair):
    x, i = pair
    return x * 2, i + 1


@case(["f32[3]", "f32[4]"], "f32[]")
def list_in(parts, scale):
    return [part * scale for part in parts]


@case(Point("f32[3]", "f32[3]"))
def named_tuple_in_and_out(p):
    return Point(p.x + p.y, p.x - p.y)


@case(State("f32[2,3]", "f32[2,3]"), "f32[2,3]")
def dataclass_in_and_out(state, x):
    h = jnp.tanh(state.h + x)
    return h, State(h, state.c + h)


@case(
    {"layers": [{"w": "f32[4,4] plain", "b": "f32[4] plain"}, {"w": "f32[4,2] plain", "b": "f32[2] plain"}]},
    "f32[3,4] plain",
)
def nested_parameters(params, x):
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x


@case({"z": "f32[2]", "a": "f32[3]"})
def keys_are_sorted(given):
    return given["z"].sum() - given["a"].max(), given


@case("f32[3]", "f32[3]")
def the_same_twice(x, y):
    return x, x, y + x


@case("f32[3]", "f32[3]")
def unused_input(x, y):
    return x * 2


@case("f32[3]")
def input_as_output(x):
    return x


@case("f32[3]")
def constant_output(x):
    return x.sum(), jnp.arange(4.0), 7


@case("f32[]", "i32[]", "bool[]")
def scalars(x, i, flag):
    return jnp.where(flag, x * i, x), i + 1, ~flag


@case({"w": "f32[3,2] plain", "none": None}, "f32[4,3] plain")
def none_in_a_tree(params, x):
    return x @ params["w"]


@case({"a": "f32[3]", "b": ("f32[2]", ["f32[1]"])})
def tree_map(tree):
    return jax.tree.map(lambda leaf: leaf * 2 + 1, tree)


@case({"a": "f32[3] plain", "b": "f32[2] plain"}, {"a": "f32[3] plain", "b": "f32[2] plain"})
def tree_of_two(p, g):
    return jax.tree.map(lambda w, d: w - 0.1 * d, p, g), sum(jnp.vdot(a, a) for a in jax.tree.leaves(g))


@case({"a": "f32[2,3]", "b": "f32[4]"})
def raveled(tree):
    flat, restore = ravel_pytree(tree)
    return flat, restore(flat * 2)


@case("f32[3]", "f32[3]")
def keyword_default(x, y, *, scale=2.0):
    return (x + y) * scale


@case("f32[3]", "f32[3]", "f32[3]")
def many_positional(*parts):
    return sum(parts)


@case("f32[4]")
def partial_of_a_function(x):
    return partial(jnp.clip, min=-1.0, max=1.0)(x)


@case({"image": "f32[b,4,4,1] plain", "label": "i32[b] 0..2"})
def batch_of_a_dataset(batch):
    pixels = batch["image"].reshape(batch["image"].shape[0], -1)
    return {"mean": pixels.mean(1), "label": jax.nn.one_hot(batch["label"], 3)}


@case({"cache": {"k": "f32[1,8,4] plain", "v": "f32[1,8,4] plain", "index": "i32[] 0..6"}}, "f32[1,1,4] plain")
def cache_updated(state, x):
    cache = state["cache"]
    i = cache["index"]
    keys = jax.lax.dynamic_update_slice(cache["k"], x, (0, i, 0))
    values = jax.lax.dynamic_update_slice(cache["v"], x * 2, (0, i, 0))
    weights = jax.nn.softmax(jnp.where(jnp.arange(8) <= i, x @ keys.mT, -1e9))
    return weights @ values, {"cache": {"k": keys, "v": values, "index": i + 1}}


@case("f32[2,3] plain")
def ordered_dict_out(x):
    return OrderedDict(z=x.sum(), a=x.max(0))


@case("f32[2,3] plain")
def deep_tuple_out(x):
    return (x, (x.sum(), [x.T, {"k": x[0]}]))


@case("f32[3]", "i32[3]")
def empty_output(x, i):
    return x[:0], i[3:], x


@case("f32[0,3]", "f32[2,3] plain")
def empty_input(x, y):
    return jnp.concatenate([x, y]), x.sum(0), x.T @ y[:0]
