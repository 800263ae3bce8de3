"""Models of Flax's linen."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax_data import structs
from jax_models import Given, drawn, model


def linen(module: nn.Module, *specs: str) -> Given:
    """A module with its weights."""
    variables = drawn(jax.eval_shape(module.init, jax.random.key(0), *structs(specs)))
    return Given((module, variables), lambda *args: module.apply(variables, *args))


class Perceptron(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (32, 16):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


@model("f32[b,20] plain")
def perceptron():
    return linen(Perceptron(), "f32[2,20]")


class ConvNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (8, 16):
            x = nn.Conv(width, (3, 3))(x)
            x = nn.BatchNorm(use_running_average=True)(x)
            x = nn.relu(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = x.reshape((x.shape[0], -1))
        return nn.log_softmax(nn.Dense(10)(x))


@model("f32[b,12,12,1] plain")
def conv_net():
    return linen(ConvNet(), "f32[2,12,12,1]")


class ResidualBlock(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        norm = lambda: nn.BatchNorm(use_running_average=True)  # noqa: E731
        y = nn.relu(norm()(nn.Conv(self.width, (3, 3), (self.stride,) * 2, use_bias=False)(x)))
        y = norm()(nn.Conv(self.width, (3, 3), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm()(nn.Conv(self.width, (1, 1), (self.stride,) * 2, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3), use_bias=False)(x))
        for width, stride in ((8, 1), (16, 2), (32, 2)):
            x = ResidualBlock(width, stride)(x)
        return nn.Dense(10)(x.mean((1, 2)))


@model("f32[b,16,16,3] plain")
def resnet():
    return linen(ResNet(), "f32[2,16,16,3]")


class EncoderLayer(nn.Module):
    heads: int = 4

    @nn.compact
    def __call__(self, x, mask=None):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, deterministic=True)(y, y, mask=mask)
        y = nn.LayerNorm()(x)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(y)))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(50, 16)(ids) + self.param("positions", nn.initializers.normal(0.02), (8, 16))
        mask = nn.make_attention_mask(ids > 0, ids > 0)
        for _ in range(2):
            x = EncoderLayer()(x, mask)
        return nn.LayerNorm()(x)


@model("i32[b,8] 0..49")
def transformer_encoder():
    return linen(Encoder(), "i32[2,8] 0..49")


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, ids, memory):
        x = nn.Embed(50, 16)(ids)
        causal = nn.make_causal_mask(ids)
        for _ in range(2):
            x = EncoderLayer()(x, causal)
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(4, deterministic=True)(y, memory)
        return nn.Dense(50)(nn.LayerNorm()(x))


@model("i32[b,6] 0..49", "f32[b,9,16] plain")
def transformer_decoder():
    return linen(Decoder(), "i32[2,6] 0..49", "f32[2,9,16]")


class Recurrent(nn.Module):
    cell: Any
    reverse: bool = False

    @nn.compact
    def __call__(self, x):
        return nn.RNN(self.cell, reverse=self.reverse, keep_order=self.reverse)(x)


@model("f32[2,7,5] plain")
def lstm():
    return linen(Recurrent(nn.LSTMCell(8)), "f32[2,7,5]")


@model("f32[2,7,5] plain")
def optimized_lstm():
    return linen(Recurrent(nn.OptimizedLSTMCell(8)), "f32[2,7,5]")


@model("f32[2,7,5] plain")
def gru():
    return linen(Recurrent(nn.GRUCell(8)), "f32[2,7,5]")


@model("f32[2,7,5] plain")
def reversed_simple_recurrence():
    return linen(Recurrent(nn.SimpleCell(8), reverse=True), "f32[2,7,5]")


class Bidirectional(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Bidirectional(nn.RNN(nn.LSTMCell(4)), nn.RNN(nn.GRUCell(4)))(x)


@model("f32[2,7,5] plain")
def bidirectional():
    return linen(Bidirectional(), "f32[2,7,5]")


@model("f32[2,4,6,6,3] plain")
def convolutional_lstm():
    return linen(Recurrent(nn.ConvLSTMCell(4, (3, 3))), "f32[2,4,6,6,3]")


class SqueezeExcite(nn.Module):
    @nn.compact
    def __call__(self, x):
        gate = nn.relu(nn.Dense(4)(x.mean((1, 2), keepdims=True)))
        return x * nn.sigmoid(nn.Dense(x.shape[-1])(gate))


class MobileNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(8, (3, 3), 2)(x)
        x = nn.Conv(16, (1, 1))(x)
        x = nn.hard_swish(nn.Conv(16, (3, 3), feature_group_count=16)(x))
        x = SqueezeExcite()(x)
        return nn.Conv(8, (1, 1), use_bias=False)(x).mean((1, 2))


@model("f32[b,12,12,3] plain")
def mobile_net():
    return linen(MobileNet(), "f32[2,12,12,3]")


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        one = nn.relu(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
        two = nn.relu(nn.GroupNorm(4)(nn.Conv(16, (3, 3))(nn.avg_pool(one, (2, 2), (2, 2)))))
        up = nn.ConvTranspose(8, (2, 2), (2, 2))(two)
        return nn.Conv(1, (1, 1))(nn.relu(nn.Conv(8, (3, 3))(jnp.concatenate([one, up], -1))))


@model("f32[b,8,8,3] plain")
def unet():
    return linen(UNet(), "f32[2,8,8,3]")


class Autoencoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        mean, log_variance = jnp.split(nn.Dense(8)(nn.tanh(nn.Dense(16)(x))), 2, -1)
        noise = jax.random.normal(jax.random.key(7), (4,))
        z = mean + jnp.exp(log_variance / 2) * noise
        return nn.sigmoid(nn.Dense(20)(nn.tanh(nn.Dense(16)(z)))), mean, log_variance


@model("f32[b,20] plain")
def variational_autoencoder():
    return linen(Autoencoder(), "f32[2,20]")


class Vision(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (4, 4), (4, 4), padding="VALID")(x)
        x = x.reshape(x.shape[0], -1, 16)
        token = self.param("token", nn.initializers.zeros, (1, 1, 16))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, 16)), x], 1)
        x = x + self.param("positions", nn.initializers.normal(0.02), (1, 10, 16))
        for _ in range(2):
            x = EncoderLayer()(x)
        return nn.Dense(10)(nn.LayerNorm()(x)[:, 0])


@model("f32[b,12,12,3] plain")
def vision_transformer():
    return linen(Vision(), "f32[2,12,12,3]")


class MixerBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x).swapaxes(1, 2)
        y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(12)(y)))
        x = x + y.swapaxes(1, 2)
        return x + nn.Dense(x.shape[2])(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))


class Mixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (4, 4), (4, 4))(x).reshape(x.shape[0], 9, 16)
        for _ in range(2):
            x = MixerBlock()(x)
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


@model("f32[b,12,12,3] plain")
def mlp_mixer():
    return linen(Mixer(), "f32[2,12,12,3]")


class Layers(nn.Module):
    """One layer, scanned over its weights."""

    @nn.compact
    def __call__(self, x):
        layer = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return layer()(x, None)[0]


class Step(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.tanh(nn.Dense(8)(x)), None


@model("f32[b,8] plain")
def scanned_layers():
    return linen(Layers(), "f32[2,8]")


class Norms(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.RMSNorm()(nn.Dense(16)(x))
        x = nn.InstanceNorm()(x)
        return nn.WeightNorm(nn.Dense(4))(nn.PReLU()(nn.LayerNorm(use_bias=False)(x)))


@model("f32[b,6,8] plain")
def norms():
    return linen(Norms(), "f32[2,6,8]")


class Bilinear(nn.Module):
    @nn.compact
    def __call__(self, x, y):
        z = nn.DenseGeneral((2, 4), axis=(-1,))(x) * nn.Einsum((8, 2, 4), "bi,ihd->bhd")(y)
        return nn.swish(z).sum(-1)


@model("f32[b,6] plain", "f32[b,8] plain")
def general_products():
    return linen(Bilinear(), "f32[2,6]", "f32[2,8]")
