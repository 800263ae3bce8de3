"""Models of Haiku."""

from collections.abc import Callable
from functools import partial
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax_data import structs
from jax_models import Given, drawn, model


def haiku(function: Callable[..., Any], *specs: str) -> Given:
    """The function that is transformed, with its weights as `params`."""
    pair = hk.without_apply_rng(hk.transform(function))
    params = drawn(jax.eval_shape(pair.init, jax.random.key(0), *structs(specs)))
    return Given(pair.apply, lambda *args: pair.apply(params, *args), {"params": params})


def with_state(function: Callable[..., Any], *specs: str) -> Given:
    """As a closure over weights and statistics, which inference does not change."""
    pair = hk.without_apply_rng(hk.transform_with_state(function))
    shapes = jax.eval_shape(partial(pair.init, is_training=True), jax.random.key(0), *structs(specs))
    params, state = drawn(shapes)
    call = lambda *args: pair.apply(params, state, *args, is_training=False)[0]  # noqa: E731
    return Given(call, call)


@model("f32[b,20] plain")
def perceptron():
    return haiku(lambda x: hk.nets.MLP([32, 16, 10])(x), "f32[2,20]")


@model("f32[b,12,12,1] plain")
def conv_net():
    def net(x):
        x = jax.nn.relu(hk.Conv2D(8, 3)(x))
        x = hk.MaxPool(2, 2, "SAME")(x)
        x = jax.nn.relu(hk.Conv2D(16, 3, stride=2)(x))
        return hk.Linear(10)(hk.Flatten()(x))

    return haiku(net, "f32[2,12,12,1]")


@model("f32[b,8,8,3] plain")
def batch_normed():
    def net(x, is_training):
        x = hk.Conv2D(8, 3, with_bias=False)(x)
        x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training))
        return hk.Linear(4)(x.mean((1, 2)))

    return with_state(net, "f32[2,8,8,3]")


@model("f32[2,32,32,3] plain")
def resnet():
    def net(x, is_training):
        groups = {"blocks_per_group": (1, 1, 1, 1), "channels_per_group": (8, 8, 16, 16)}
        whole = hk.nets.ResNet(num_classes=5, bottleneck=False, use_projection=(True,) * 4, **groups)
        return whole(x, is_training)

    return with_state(net, "f32[2,32,32,3]")


@model("f32[2,32,32,3] plain")
def mobile_net():
    def net(x, is_training):
        return hk.nets.MobileNetV1(strides=(1, 2), channels=(8, 16), num_classes=5)(x, is_training)

    return with_state(net, "f32[2,32,32,3]")


@model("f32[7,2,5] plain")
def lstm():
    def net(xs):
        core = hk.LSTM(8)
        return hk.dynamic_unroll(core, xs, core.initial_state(2))

    return haiku(net, "f32[7,2,5]")


@model("f32[7,2,5] plain")
def gru():
    def net(xs):
        core = hk.GRU(8)
        return hk.dynamic_unroll(core, xs, core.initial_state(2))[0]

    return haiku(net, "f32[7,2,5]")


@model("f32[5,2,6,6,3] plain")
def convolutional_lstm():
    def net(xs):
        core = hk.Conv2DLSTM((6, 6), 4, 3)
        return hk.dynamic_unroll(core, xs, core.initial_state(2))[0]

    return haiku(net, "f32[5,2,6,6,3]")


@model("i32[b,8] 0..49")
def transformer():
    def net(ids):
        x = hk.Embed(50, 16)(ids) + hk.get_parameter("positions", (8, 16), init=hk.initializers.TruncatedNormal(0.02))
        for _ in range(2):
            y = hk.LayerNorm(-1, True, True)(x)
            causal = jnp.tril(jnp.ones((1, 1, 8, 8)))
            attention = hk.MultiHeadAttention(4, 4, w_init=hk.initializers.VarianceScaling(1.0))
            x = x + attention(y, y, y, mask=causal)
            y = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.Linear(16)(jax.nn.gelu(hk.Linear(64)(y)))
        return hk.Linear(50)(x)

    return haiku(net, "i32[2,8] 0..49")


@model("f32[b,8,8,3] plain")
def unet_block():
    def net(x):
        one = jax.nn.relu(hk.GroupNorm(4)(hk.Conv2D(8, 3)(x)))
        two = jax.nn.relu(hk.Conv2D(16, 3)(hk.AvgPool(2, 2, "VALID")(one)))
        up = hk.Conv2DTranspose(8, 2, 2)(two)
        return hk.Conv2D(1, 1)(jnp.concatenate([one, up], -1))

    return haiku(net, "f32[2,8,8,3]")


@model("f32[b,8,8,4] plain")
def separable():
    def net(x):
        x = jax.nn.relu6(hk.SeparableDepthwiseConv2D(2, 3)(x))
        x = hk.DepthwiseConv2D(1, 3, stride=2)(x)
        return hk.LayerNorm((-1,), True, True)(x.mean((1, 2)))

    return haiku(net, "f32[2,8,8,4]")


@model("f32[b,20] plain")
def autoencoder():
    def net(x):
        z = hk.nets.MLP([16, 4], activation=jnp.tanh)(x)
        return z, hk.nets.MLP([16, 20], activation=jnp.tanh)(z)

    return haiku(net, "f32[2,20]")


@model("f32[b,6] plain")
def vector_quantised():
    def net(x):
        table = hk.get_parameter("table", (8, 4), init=hk.initializers.RandomNormal())
        z = hk.Linear(4)(x)
        nearest = jnp.argmin(((z[:, None] - table) ** 2).sum(-1), 1)
        return hk.Linear(6)(z + jax.lax.stop_gradient(table[nearest] - z)), nearest

    return haiku(net, "f32[2,6]")


@model("f32[b,9,6] plain")
def normed_stack():
    def net(x):
        x = hk.RMSNorm(-1)(hk.Linear(8)(x))
        x = hk.InstanceNorm(True, True)(x)
        return hk.Sequential([hk.Linear(8), jax.nn.silu, hk.Linear(2)])(x).mean(1)

    return haiku(net, "f32[2,9,6]")
