"""Narrow floats, integers of every width, and bools."""

import jax.numpy as jnp
from jax import lax, nn
from jax_cases import case, cases

for spec in ("bf16", "f16"):
    cases(
        f"{spec}[4,6]",
        **{
            f"{spec}_exp": jnp.exp,
            f"{spec}_tanh": jnp.tanh,
            f"{spec}_relu": nn.relu,
            f"{spec}_abs_neg": lambda x: (jnp.abs(x), -x),
            f"{spec}_where": lambda x: jnp.where(x > 0, x, 0),
            f"{spec}_max": lambda x: (x.max(), x.min(1)),
            f"{spec}_floor": lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x)),
            f"{spec}_isnan": jnp.isnan,
            f"{spec}_sort": jnp.sort,
            f"{spec}_argmax": lambda x: jnp.argmax(x, 1),
            f"{spec}_to_float": lambda x: x.astype(jnp.float32),
            f"{spec}_to_int": lambda x: jnp.clip(x, -9, 9).astype(jnp.int32),
            f"{spec}_reshape": lambda x: jnp.concatenate([x.T, x.T], 1)[::-1],
            f"{spec}_clip": lambda x: jnp.clip(x, -1, 1),
            f"{spec}_compare": lambda x: (x == x[0], x >= 0.5, x != 1),
            f"{spec}_indexed": lambda x: x[jnp.array([0, 3, 1])].at[0].set(1),
            f"{spec}_sign": jnp.sign,
            f"{spec}_pad": lambda x: jnp.pad(x, 1, constant_values=2),
            f"{spec}_bits": lambda x: lax.bitcast_convert_type(x, jnp.int16) & 0x7FFF < 0x7C00,
        },
    )
    cases(
        f"{spec}[4,6] -2..2",
        **{
            f"{spec}_add": lambda x: x + x[0] * 2,
            f"{spec}_mean": lambda x: x.mean(1),
            f"{spec}_sum": lambda x: x.sum(),
            f"{spec}_softmax": nn.softmax,
            f"{spec}_sigmoid": nn.sigmoid,
            f"{spec}_silu": nn.silu,
            f"{spec}_gelu": nn.gelu,
            f"{spec}_matmul": lambda x: x @ x.T,
            f"{spec}_matmul_in_float": lambda x: lax.dot(x, x.T, preferred_element_type=jnp.float32),
            f"{spec}_layer_norm": lambda x: nn.standardize(x),
            f"{spec}_cumsum": lambda x: jnp.cumsum(x, 1),
            f"{spec}_mixed": lambda x: x + jnp.arange(6.0),
            f"{spec}_number": lambda x: x * 2.5 + 1,
            f"{spec}_sqrt": lambda x: jnp.sqrt(x + 2),
            f"{spec}_log": lambda x: jnp.log(x + 3),
            f"{spec}_einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
            f"{spec}_sin": lambda x: (jnp.sin(x), jnp.cos(x)),
            f"{spec}_scan": lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(6, x.dtype), x),
            f"{spec}_erf": lambda x: lax.erf(x),
            f"{spec}_pow": lambda x: (x + 3) ** 1.5,
        },
    )
    cases(
        f"{spec}[1,6,6,2] -2..2",
        f"{spec}[3,3,2,4] -1..1",
        **{
            f"{spec}_conv": lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            f"{spec}_pool": lambda x, w: lax.reduce_window(
                x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            ),
            f"{spec}_mean_pool": lambda x, w: x.mean((1, 2)) + w.sum((0, 1))[0, :2],
        },
    )

for spec in ("i8", "i16", "u8", "u16", "u32"):
    cases(
        f"{spec}[12]",
        f"{spec}[12]",
        **{
            f"{spec}_arithmetic": lambda x, y: (x + y, x - y, x * y),
            f"{spec}_compare": lambda x, y: (x < y, x == y, jnp.maximum(x, y), jnp.minimum(x, y)),
            f"{spec}_bits": lambda x, y: (x & y, x | y, x ^ y, ~x),
            f"{spec}_divide": lambda x, y: (x // jnp.maximum(y, 1), x % jnp.maximum(y, 1)),
            f"{spec}_shift": lambda x, y: (x << 3, x >> 2),
            f"{spec}_reduce": lambda x, y: (x.sum(), x.max(), y.min(), x.mean()),
            f"{spec}_where": lambda x, y: jnp.where(x > 5, x, y),
            f"{spec}_sort": lambda x, y: (jnp.sort(x), jnp.argsort(y)),
            f"{spec}_casts": lambda x, y: (x.astype(jnp.int32), y.astype(jnp.float32), x.astype(jnp.bool_)),
            f"{spec}_indexed": lambda x, y: (x[::2], y[jnp.array([3, 1])], x.at[2].set(y[0])),
            f"{spec}_cumsum": lambda x, y: jnp.cumsum(x),
            f"{spec}_shapes": lambda x, y: (jnp.stack([x, y]).T, jnp.tile(x, 2), jnp.pad(y, 1)),
            f"{spec}_unary": lambda x, y: (abs(x), -x, jnp.sign(y)),
            f"{spec}_power": lambda x, y: (x**2, y**3),
            f"{spec}_dot": lambda x, y: x @ y,
        },
    )


@case("f32[9]")
def casts_of_special_values(x):
    return x.astype(jnp.int8), x.astype(jnp.uint32), x.astype(jnp.int16), x.astype(jnp.bfloat16)


@case("i32[9]")
def casts_of_ints(x):
    return x.astype(jnp.int8), x.astype(jnp.uint16), x.astype(jnp.float16), x.astype(jnp.bfloat16), x.astype(bool)


@case("bool[9]")
def casts_of_bools(x):
    return x.astype(jnp.int8), x.astype(jnp.float32), x.astype(jnp.bfloat16), x.astype(jnp.uint32)


@case("bool[3,4]", "bool[4]")
def bool_logic(x, y):
    return x & y, x | y, x ^ y, ~x, x == y, jnp.where(x, y, ~y)


@case("bool[3,4]")
def bool_reductions(x):
    return x.any(0), x.all(1), x.sum(), x.argmax(1), jnp.cumsum(x, 0)


@case("i8[4,8]", "i8[8,3]", "f32[4,1] 0.01..0.1", "f32[3] 0.01..0.1")
def quantised_matmul(x, w, x_scale, w_scale):
    return lax.dot(x, w, preferred_element_type=jnp.int32).astype(jnp.float32) * x_scale * w_scale


@case("f32[4,8] plain")
def quantise_to_bytes(x):
    scale = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127
    return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale


@case("u8[2,4,4,3]")
def normalised_image(x):
    mean, std = jnp.array([0.485, 0.456, 0.406]), jnp.array([0.229, 0.224, 0.225])
    return (x.astype(jnp.float32) / 255 - mean) / std


@case("f32[2,4] plain", "bf16[4,3] -2..2")
def mixed_precision(x, w):
    return (x.astype(jnp.bfloat16) @ w).astype(jnp.float32)


@case("bf16[2,3,4] -2..2", "bf16[2,3,4] -2..2", "bf16[2,3,4] -2..2")
def attention_in_bfloat16(q, k, v):
    weights = nn.softmax((q @ k.mT).astype(jnp.float32) / 2.0)
    return weights.astype(jnp.bfloat16) @ v


@case("u32[6]")
def hash_of_ints(x):
    x = (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)
    x = (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)
    return x ^ (x >> 16)


@case("u32[6]", "u32[6] 0..31")
def rotated_bits(x, n):
    return (x << n) | (x >> ((32 - n) & 31))


@case("u32[6]")
def linear_congruence(x):
    return lax.fori_loop(0, 5, lambda i, v: v * jnp.uint32(1664525) + jnp.uint32(1013904223), x)


@case("i32[5]")
def weak_types(x):
    return x * 2, x * 2.0, x + True, jnp.float16(1.5) * 2, jnp.asarray(3) + x


@case("f32[5]")
def finfo_limits(x):
    return jnp.where(x > 0, jnp.finfo(x.dtype).max, jnp.finfo(x.dtype).min), jnp.iinfo(jnp.int32).max - x.size


@case("f32[3,4] plain")
def default_dtypes(x):
    return jnp.arange(3), jnp.zeros(2), jnp.array([1, 2]) + x[0, :2]
