"""Models of Equinox: modules of one example, mapped over the batch."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import nn, random
from jax_models import Given, drawn, model


def built(build: Callable[[jax.Array], Any]) -> Any:
    """A module with its weights."""
    return drawn(eqx.filter_eval_shape(build, jax.random.key(0)))


def mapped(build: Callable[[jax.Array], eqx.Module]) -> Given:
    net = jax.vmap(built(build))
    return Given(net, net)


def alone(build: Callable[[jax.Array], eqx.Module]) -> Given:
    net = built(build)
    return Given(net, lambda *args: net(*args))


@model("f32[b,6] plain")
def perceptron():
    return mapped(lambda key: eqx.nn.MLP(6, 3, 16, 2, key=key))


@model("f32[6] plain")
def perceptron_of_one():
    return alone(lambda key: eqx.nn.MLP(6, 3, 16, 2, activation=nn.gelu, final_activation=nn.sigmoid, key=key))


class ConvNet(eqx.Module):
    layers: list

    def __init__(self, key):
        one, two, three = random.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, 4, 3, padding=1, key=one),
            eqx.nn.MaxPool2d(2, 2),
            nn.relu,
            eqx.nn.Conv2d(4, 8, 3, key=two),
            nn.relu,
            jnp.ravel,
            eqx.nn.Linear(8 * 4 * 4, 10, key=three),
            nn.log_softmax,
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@model("f32[b,1,12,12] plain")
def conv_net():
    return mapped(ConvNet)


class Recurrent(eqx.Module):
    cell: eqx.Module
    head: eqx.nn.Linear

    def __init__(self, kind, key):
        one, two = random.split(key)
        self.cell = kind(4, 8, key=one)
        self.head = eqx.nn.Linear(8, 2, key=two)

    def __call__(self, xs):
        start = jnp.zeros(8)
        if isinstance(self.cell, eqx.nn.LSTMCell):
            (h, _), _ = jax.lax.scan(lambda s, x: (self.cell(x, s), None), (start, start), xs)
        else:
            h, _ = jax.lax.scan(lambda s, x: (self.cell(x, s), None), start, xs)
        return self.head(h)


@model("f32[b,6,4] plain")
def gru():
    return mapped(lambda key: Recurrent(eqx.nn.GRUCell, key))


@model("f32[b,6,4] plain")
def lstm():
    return mapped(lambda key: Recurrent(eqx.nn.LSTMCell, key))


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    norm2: eqx.nn.LayerNorm
    mlp: eqx.nn.MLP

    def __init__(self, key):
        one, two = random.split(key)
        self.norm1 = eqx.nn.LayerNorm(16)
        self.attention = eqx.nn.MultiheadAttention(4, 16, key=one)
        self.norm2 = eqx.nn.LayerNorm(16)
        self.mlp = eqx.nn.MLP(16, 16, 32, 1, activation=nn.gelu, key=two)

    def __call__(self, x):
        y = jax.vmap(self.norm1)(x)
        x = x + self.attention(y, y, y, mask=jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)))
        return x + jax.vmap(self.mlp)(jax.vmap(self.norm2)(x))


class Transformer(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, key):
        one, two, three, four = random.split(key, 4)
        self.embed = eqx.nn.Embedding(30, 16, key=one)
        self.blocks = [Block(two), Block(three)]
        self.head = eqx.nn.Linear(16, 30, key=four)

    def __call__(self, ids):
        x = jax.vmap(self.embed)(ids)
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.head)(x)


@model("i32[b,7] 0..29")
def transformer():
    return mapped(Transformer)


class Rotary(eqx.Module):
    rope: eqx.nn.RotaryPositionalEmbedding
    attention: eqx.nn.MultiheadAttention

    def __init__(self, key):
        self.rope = eqx.nn.RotaryPositionalEmbedding(4)
        self.attention = eqx.nn.MultiheadAttention(4, 16, key=key)

    def __call__(self, x):
        turn = lambda q, k, v: (jax.vmap(self.rope, 1, 1)(q), jax.vmap(self.rope, 1, 1)(k), v)  # noqa: E731
        return self.attention(x, x, x, process_heads=turn)


@model("f32[b,6,16] plain")
def rotary_attention():
    return mapped(Rotary)


class BatchNormed(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm

    def __init__(self, key):
        self.conv = eqx.nn.Conv2d(3, 4, 3, key=key)
        self.norm = eqx.nn.BatchNorm(4, "batch", mode="batch")

    def __call__(self, x, state):
        x, state = self.norm(self.conv(x), state)
        return nn.relu(x), state


@model("f32[b,3,8,8] plain")
def batch_normed():
    net, state = eqx.nn.make_with_state(BatchNormed)(random.key(0))
    net = eqx.nn.inference_mode(net)
    call = lambda x: jax.vmap(net, (0, None), (0, None), axis_name="batch")(x, state)[0]  # noqa: E731
    return Given(call, call)


class Decoder(eqx.Module):
    dense: eqx.nn.Linear
    norm: eqx.nn.GroupNorm
    up1: eqx.nn.ConvTranspose2d
    up2: eqx.nn.ConvTranspose2d

    def __init__(self, key):
        one, two, three = random.split(key, 3)
        self.dense = eqx.nn.Linear(6, 8 * 3 * 3, key=one)
        self.norm = eqx.nn.GroupNorm(2, 8)
        self.up1 = eqx.nn.ConvTranspose2d(8, 4, 4, 2, padding=1, key=two)
        self.up2 = eqx.nn.ConvTranspose2d(4, 1, 3, 2, padding=1, output_padding=1, key=three)

    def __call__(self, z):
        x = self.norm(nn.relu(self.dense(z)).reshape(8, 3, 3))
        return nn.sigmoid(self.up2(nn.relu(self.up1(x))))


@model("f32[b,6] plain")
def decoder():
    return mapped(Decoder)


class UNetBlock(eqx.Module):
    down: eqx.nn.Conv2d
    middle: eqx.nn.Conv2d
    up: eqx.nn.ConvTranspose2d
    out: eqx.nn.Conv2d
    time: eqx.nn.MLP

    def __init__(self, key):
        keys = random.split(key, 5)
        self.down = eqx.nn.Conv2d(2, 4, 3, 2, padding=1, key=keys[0])
        self.middle = eqx.nn.Conv2d(4, 4, 3, padding=1, key=keys[1])
        self.up = eqx.nn.ConvTranspose2d(4, 4, 4, 2, padding=1, key=keys[2])
        self.out = eqx.nn.Conv2d(6, 2, 1, key=keys[3])
        self.time = eqx.nn.MLP(4, 4, 8, 1, activation=nn.silu, key=keys[4])

    def __call__(self, x, t):
        rates = jnp.exp(-jnp.arange(2.0))
        when = self.time(jnp.concatenate([jnp.sin(t * rates), jnp.cos(t * rates)]))
        y = nn.silu(self.down(x)) + when[:, None, None]
        return self.out(jnp.concatenate([x, self.up(nn.silu(self.middle(y)))]))


@model("f32[b,2,8,8] plain", "f32[b] 0..1")
def diffusion_unet():
    return mapped(UNetBlock)


def pools(key):
    one, two = random.split(key)
    layers = [
        eqx.nn.Conv2d(3, 6, 3, groups=3, key=one),
        eqx.nn.Lambda(eqx.nn.PReLU(0.1)),
        eqx.nn.AvgPool2d(2, 2),
        eqx.nn.Lambda(nn.softplus),
        eqx.nn.AdaptiveAvgPool2d((1, 1)),
        eqx.nn.Lambda(jnp.ravel),
        eqx.nn.Linear(6, 4, key=two),
        eqx.nn.RMSNorm(4),
    ]
    return eqx.nn.Sequential(layers)


@model("f32[b,3,8,8] plain")
def sequential_pools():
    return mapped(pools)


class WaveNet(eqx.Module):
    layers: list

    def __init__(self, key):
        keys = random.split(key, 3)
        self.layers = [eqx.nn.Conv1d(4, 8, 2, dilation=2**i, key=k) for i, k in enumerate(keys)]

    def __call__(self, x):
        for i, layer in enumerate(self.layers):
            gate, value = jnp.split(layer(jnp.pad(x, ((0, 0), (2**i, 0)))), 2)
            x = x + nn.sigmoid(gate) * jnp.tanh(value)
        return x


@model("f32[b,4,10] plain")
def wave_net():
    return mapped(WaveNet)


class Flow(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP(2, 4, 8, 1, activation=jnp.tanh, key=key)

    def __call__(self, x):
        one, other = jnp.split(x, 2)
        shift, scale = jnp.split(self.net(one), 2)
        return jnp.concatenate([one, other * jnp.exp(jnp.tanh(scale)) + shift]), jnp.tanh(scale).sum()


@model("f32[b,4] plain")
def coupling_flow():
    return mapped(Flow)


class NeuralOde(eqx.Module):
    field: eqx.nn.MLP

    def __call__(self, y):
        step = lambda y, _: (y + 0.1 * self.field(y), y)  # noqa: E731
        return jax.lax.scan(step, y, None, length=5)


@model("f32[b,3] plain")
def neural_ode():
    return mapped(lambda key: NeuralOde(eqx.nn.MLP(3, 3, 8, 1, activation=nn.softplus, key=key)))
