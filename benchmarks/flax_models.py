"""Three networks of `models.py` as one writes them in Flax, channels last, and PyTorch's weights for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import flax.linen as nn
import jax
import jax.numpy as jnp

if TYPE_CHECKING:  # where another converter runs, there need be no PyTorch
    from torch import Tensor

HEADS = 12


class Bottleneck(nn.Module):
    channels: int
    stride: int = 1
    shortcut: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        def conv(out: int, size: int, stride: int = 1, name: str = "") -> nn.Module:
            return nn.Conv(out, (size, size), stride, padding=size // 2, use_bias=False, name=name)

        y = nn.relu(norm("bn1")(conv(self.channels, 1, name="conv1")(x)))
        y = nn.relu(norm("bn2")(conv(self.channels, 3, self.stride, name="conv2")(y)))
        y = norm("bn3")(conv(4 * self.channels, 1, name="conv3")(y))
        if self.shortcut:
            x = norm("downsample_1")(conv(4 * self.channels, 1, self.stride, name="downsample_0")(x))
        return nn.relu(x + y)


def norm(name: str) -> nn.Module:
    return nn.BatchNorm(use_running_average=True, epsilon=1e-5, name=name)


class ResNet50(nn.Module):
    @nn.compact
    def __call__(self, image: jax.Array) -> jax.Array:
        x = nn.Conv(64, (7, 7), 2, padding=3, use_bias=False, name="conv1")(image)
        x = nn.max_pool(nn.relu(norm("bn1")(x)), window_shape=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for number, blocks in enumerate((3, 4, 6, 3)):
            for i in range(blocks):
                stride = 2 if number and i == 0 else 1
                x = Bottleneck(64 * 2**number, stride, i == 0, name=f"layer{number + 1}_{i}")(x)
        return nn.Dense(1000, name="fc")(x.mean((1, 2)))


class BertLayer(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        y = nn.MultiHeadDotProductAttention(HEADS, name="attention")(x, mask=mask)
        x = nn.LayerNorm(1e-12, name="attention_norm")(x + y)
        y = nn.gelu(nn.Dense(4 * x.shape[-1], name="intermediate")(x), approximate=False)
        return nn.LayerNorm(1e-12, name="output_norm")(x + nn.Dense(x.shape[-1], name="output")(y))


class BertEncoder(nn.Module):
    layers: int = 12
    width: int = 768

    @nn.compact
    def __call__(self, input_ids: jax.Array, attention_mask: jax.Array, token_type_ids: jax.Array) -> jax.Array:
        x = nn.Embed(30522, self.width, name="word_embeddings")(input_ids)
        x = x + nn.Embed(2, self.width, name="token_type_embeddings")(token_type_ids)
        x = x + nn.Embed(512, self.width, name="position_embeddings")(jnp.arange(input_ids.shape[1]))
        x = nn.LayerNorm(1e-12, name="embedding_norm")(x)
        mask = attention_mask[:, None, None, :] > 0
        for i in range(self.layers):
            x = BertLayer(name=f"layer_{i}")(x, mask)
        return x


class ViTBlock(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = nn.LayerNorm(1e-5, name="norm1")(x)
        x = x + nn.MultiHeadDotProductAttention(HEADS, name="attention")(y)
        y = nn.gelu(nn.Dense(4 * x.shape[-1], name="up")(nn.LayerNorm(1e-5, name="norm2")(x)), approximate=False)
        return x + nn.Dense(x.shape[-1], name="down")(y)


class ViT(nn.Module):
    layers: int = 12
    width: int = 768

    @nn.compact
    def __call__(self, image: jax.Array) -> jax.Array:
        x = nn.Conv(self.width, (16, 16), 16, padding="VALID", name="patches")(image)
        x = x.reshape(x.shape[0], -1, self.width)
        token = self.param("token", nn.initializers.zeros, (1, 1, self.width))
        places = self.param("positions", nn.initializers.zeros, (1, 1 + x.shape[1], self.width))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, self.width)), x], 1) + places
        for i in range(self.layers):
            x = ViTBlock(name=f"blocks_{i}")(x)
        return nn.Dense(1000, name="head")(nn.LayerNorm(1e-5, name="norm")(x[:, 0]))


NETWORKS = {"resnet50": ResNet50, "bert": BertEncoder, "vit": ViT}


def variables(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """A state dict of PyTorch as the variables of the Flax module of the same names: `layer1.0` is `layer1_0`."""
    tree: dict[str, Any] = {}
    for name, tensor in state.items():
        if name.endswith(("position_ids", "num_batches_tracked")):
            continue
        *scopes, last = name.replace(".downsample.", ".downsample_").split(".")
        path: list[str] = []
        for part in scopes:
            path[-1:] = [f"{path[-1]}_{part}"] if part.isdigit() else [*path[-1:], part]
        in_attention = "attention" in path and path[-1] != "attention_norm"
        if in_attention and path[-1] == "output":
            path[-1] = "out"
        kind, key, array = _arranged(path, last, jnp.asarray(tensor.detach().numpy()), in_attention)
        place = tree.setdefault(kind, {})
        for part in path:
            place = place.setdefault(part, {})
        place[key] = array
    return tree


def _arranged(path: list[str], last: str, array: jax.Array, in_attention: bool) -> tuple[str, str, jax.Array]:
    """The collection, the name and the array by which Flax knows a tensor."""
    if last.startswith("running_"):
        return "batch_stats", last.removeprefix("running_"), array
    if last != "weight":
        heads = in_attention and last == "bias" and path[-1] != "out"
        return "params", last, array.reshape(HEADS, -1) if heads else array
    if array.ndim == 1:
        return "params", "scale", array
    if "embeddings" in path[-1]:
        return "params", "embedding", array
    if array.ndim == 4:
        return "params", "kernel", array.transpose(2, 3, 1, 0)
    if not in_attention:
        return "params", "kernel", array.T
    out = path[-1] == "out"
    return (
        "params",
        "kernel",
        array.T.reshape(HEADS, -1, array.shape[0]) if out else array.T.reshape(-1, HEADS, array.shape[0] // HEADS),
    )
