"""Models of Flax's nnx."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx
from jax_models import Given, drawn, model


def module(build: Callable[[nnx.Rngs], nnx.Module]) -> Given:
    """A module with its weights, in the mode of inference."""
    definition, shapes = nnx.split(nnx.eval_shape(lambda: build(nnx.Rngs(0))))
    weights = drawn(shapes)
    net = nnx.merge(definition, weights)
    net.eval()
    definition, weights = nnx.split(net)
    return Given(net, lambda *args: nnx.merge(definition, weights, copy=True)(*args))


class Perceptron(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.Linear(20, 32, rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.two = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        return self.two(self.dropout(nnx.gelu(self.norm(self.one(x)))))


@model("f32[b,20] plain")
def perceptron():
    return module(Perceptron)


class ConvNet(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.two = nnx.Conv(8, 16, (3, 3), strides=2, padding="VALID", rngs=rngs)
        self.head = nnx.Linear(16 * 4, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.one(x)), (2, 2), (2, 2))
        return self.head(nnx.relu(self.two(x)).reshape(x.shape[0], -1))


@model("f32[b,12,12,1] plain")
def conv_net():
    return module(ConvNet)


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.conv1 = nnx.Conv(width, width, (3, 3), use_bias=False, rngs=rngs)
        self.norm1 = nnx.BatchNorm(width, rngs=rngs)
        self.conv2 = nnx.Conv(width, width, (3, 3), use_bias=False, rngs=rngs)
        self.norm2 = nnx.BatchNorm(width, rngs=rngs)

    def __call__(self, x):
        y = nnx.relu(self.norm1(self.conv1(x)))
        return nnx.relu(x + self.norm2(self.conv2(y)))


class ResNet(nnx.Module):
    def __init__(self, rngs):
        self.stem = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.blocks = nnx.List([Block(8, rngs) for _ in range(3)])
        self.head = nnx.Linear(8, 10, rngs=rngs)

    def __call__(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


@model("f32[b,8,8,3] plain")
def resnet():
    return module(ResNet)


class GptBlock(nnx.Module):
    def __init__(self, rngs):
        self.norm1 = nnx.LayerNorm(16, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(16, rngs=rngs)
        self.up = nnx.Linear(16, 64, rngs=rngs)
        self.down = nnx.Linear(64, 16, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Gpt(nnx.Module):
    def __init__(self, rngs):
        self.tokens = nnx.Embed(50, 16, rngs=rngs)
        self.positions = nnx.Embed(32, 16, rngs=rngs)
        self.blocks = nnx.List([GptBlock(rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(16, rngs=rngs)

    def __call__(self, ids):
        x = self.tokens(ids) + self.positions(jnp.arange(ids.shape[1]))
        mask = nnx.make_causal_mask(ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.tokens.attend(self.norm(x))


@model("i32[b,t] 0..49")
def gpt():
    return module(Gpt)


class Llama(nnx.Module):
    """RMS norm, rotary positions, grouped queries, gated feed-forward."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(40, 16, rngs=rngs)
        self.norm1, self.norm2 = (nnx.RMSNorm(16, rngs=rngs) for _ in range(2))
        self.q = nnx.Linear(16, 16, use_bias=False, rngs=rngs)
        self.k = nnx.Linear(16, 8, use_bias=False, rngs=rngs)
        self.v = nnx.Linear(16, 8, use_bias=False, rngs=rngs)
        self.o = nnx.Linear(16, 16, use_bias=False, rngs=rngs)
        self.gate, self.up = (nnx.Linear(16, 32, use_bias=False, rngs=rngs) for _ in range(2))
        self.down = nnx.Linear(32, 16, use_bias=False, rngs=rngs)

    def rotate(self, x):
        angles = jnp.arange(x.shape[1])[:, None, None] * 10000.0 ** (-jnp.arange(2) / 2)
        one, other = jnp.split(x, 2, -1)
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        return jnp.concatenate([one * cos - other * sin, other * cos + one * sin], -1)

    def __call__(self, ids):
        x = self.embed(ids)
        y = self.norm1(x)
        q, k, v = (part.reshape(*part.shape[:2], -1, 4) for part in (self.q(y), self.k(y), self.v(y)))
        attended = jax.nn.dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.o(attended.reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(y)) * self.up(y))


@model("i32[b,t] 0..39")
def llama_block():
    return module(Llama)


class Recurrent(nnx.Module):
    def __init__(self, cell, rngs):
        self.rnn = nnx.RNN(cell)
        self.head = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x):
        return self.head(self.rnn(x)[:, -1])


@model("f32[2,7,5] plain")
def lstm():
    return module(lambda rngs: Recurrent(nnx.OptimizedLSTMCell(5, 8, rngs=rngs), rngs))


@model("f32[2,7,5] plain")
def gru():
    return module(lambda rngs: Recurrent(nnx.GRUCell(5, 8, rngs=rngs), rngs))


class Experts(nnx.Module):
    """A mixture: the best two of four experts for each token."""

    def __init__(self, rngs):
        self.router = nnx.Linear(8, 4, use_bias=False, rngs=rngs)
        self.up = nnx.Param(jax.random.normal(rngs.params(), (4, 8, 16)) / 3)
        self.down = nnx.Param(jax.random.normal(rngs.params(), (4, 16, 8)) / 4)

    def __call__(self, x):
        weights, chosen = jax.lax.top_k(nnx.softmax(self.router(x)), 2)
        gates = (nnx.one_hot(chosen, 4) * (weights / weights.sum(-1, keepdims=True))[..., None]).sum(-2)
        hidden = nnx.relu(jnp.einsum("btd,edh->bteh", x, self.up[...]))
        return jnp.einsum("bteh,ehd,bte->btd", hidden, self.down[...], gates)


@model("f32[b,t,8] plain")
def mixture_of_experts():
    return module(Experts)


class Cached(nnx.Module):
    """One step of a decoder: the cache comes in and goes out."""

    def __init__(self, rngs):
        self.q, self.k, self.v = (nnx.Linear(8, 8, rngs=rngs) for _ in range(3))
        self.o = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x, keys, values, index):
        keys = jax.lax.dynamic_update_slice(keys, self.k(x), (0, index, 0))
        values = jax.lax.dynamic_update_slice(values, self.v(x), (0, index, 0))
        scores = self.q(x) @ keys.mT / 8**0.5
        weights = nnx.softmax(jnp.where(jnp.arange(keys.shape[1]) <= index, scores, -1e9))
        return self.o(weights @ values), keys, values


@model("f32[2,1,8] plain", "f32[2,6,8] plain", "f32[2,6,8] plain", "i32[] 0..5")
def attention_with_cache():
    return module(Cached)


class Lora(nnx.Module):
    def __init__(self, rngs):
        self.adapted = nnx.LoRALinear(8, 6, lora_rank=2, rngs=rngs)
        self.norm = nnx.GroupNorm(6, num_groups=2, rngs=rngs)

    def __call__(self, x):
        return self.norm(nnx.silu(self.adapted(x)))


@model("f32[b,8] plain")
def lora():
    return module(Lora)


class Upsampling(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(8, 4 * 4 * 8, rngs=rngs)
        self.up1 = nnx.ConvTranspose(8, 4, (4, 4), (2, 2), rngs=rngs)
        self.up2 = nnx.ConvTranspose(4, 3, (4, 4), (2, 2), rngs=rngs)

    def __call__(self, z):
        x = nnx.relu(self.dense(z)).reshape(-1, 4, 4, 8)
        return nnx.tanh(self.up2(nnx.leaky_relu(self.up1(x), 0.2)))


@model("f32[b,8] plain")
def generator():
    return module(Upsampling)


class TextClassifier(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(30, 8, rngs=rngs)
        self.conv = nnx.Conv(8, 6, (3,), rngs=rngs)
        self.head = nnx.Linear(6, 2, rngs=rngs)

    def __call__(self, ids):
        x = nnx.relu(self.conv(self.embed(ids)))
        mask = (ids != 0)[..., None]
        return nnx.log_softmax(self.head(jnp.where(mask, x, 0).sum(1) / jnp.maximum(mask.sum(1), 1)))


@model("i32[b,9] 0..29")
def text_classifier():
    return module(TextClassifier)


@model("f32[b,6] plain")
def sequential():
    def build(rngs):
        return nnx.Sequential(nnx.Linear(6, 8, rngs=rngs), nnx.relu, nnx.Linear(8, 4, rngs=rngs), nnx.softmax)

    return module(build)


class Scanned(nnx.Module):
    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap
        def make(rngs):
            return nnx.Linear(8, 8, rngs=rngs)

        self.layers = make(rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def step(x, layer):
            return x + nnx.tanh(layer(x))

        return step(x, self.layers)


@model("f32[b,8] plain")
def scanned_layers():
    return module(Scanned)
