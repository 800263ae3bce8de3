"""Arithmetic of jax.numpy."""

import jax
import jax.numpy as jnp
from jax_cases import case, cases

cases(
    "f32[4,6]",
    absolute=jnp.abs,
    around=lambda x: jnp.round(x, 1),
    around_whole=jnp.round,
    around_tens=lambda x: jnp.round(x * 10, -1),
    cbrt=jnp.cbrt,
    clip=lambda x: jnp.clip(x, -1, 1),
    clip_one_side=lambda x: jnp.clip(x, min=0.0),
    deg2rad=jnp.deg2rad,
    degrees=jnp.degrees,
    exp2=jnp.exp2,
    fabs=jnp.fabs,
    fix=jnp.trunc,
    floor_divide_by_number=lambda x: x // 0.7,
    remainder_by_number=lambda x: x % 0.7,
    frexp_parts=lambda x: jnp.frexp(jnp.where(jnp.isfinite(x), x, 1.5)),
    isfinite=jnp.isfinite,
    isinf=jnp.isinf,
    isnan=jnp.isnan,
    isneginf=jnp.isneginf,
    isposinf=jnp.isposinf,
    modf=lambda x: jnp.modf(jnp.where(jnp.isfinite(x), x, 1.5)),
    nan_to_num=jnp.nan_to_num,
    nan_to_num_with_values=lambda x: jnp.nan_to_num(x, nan=1.0, posinf=9.0, neginf=-9.0),
    negative=jnp.negative,
    positive=jnp.positive,
    rad2deg=jnp.rad2deg,
    reciprocal=jnp.reciprocal,
    rint=jnp.rint,
    sign=jnp.sign,
    signbit=jnp.signbit,
    sinc=jnp.sinc,
    square=jnp.square,
    trunc=jnp.trunc,
    sqrt_of_abs=lambda x: jnp.sqrt(jnp.abs(x)),
    log_of_abs=lambda x: jnp.log(jnp.abs(x) + 1e-3),
    log10=lambda x: jnp.log10(jnp.abs(x)),
    log2=lambda x: jnp.log2(jnp.abs(x)),
    power_of_two=lambda x: x**2,
    power_of_half=lambda x: jnp.abs(x) ** 0.5,
    to_the_power_of_x=lambda x: 2.0**x,
    spacing_mask=lambda x: jnp.where(x > 0, x, -x),
    where_nested=lambda x: jnp.where(x > 1, 1.0, jnp.where(x < -1, -1.0, x)),
    polynomial=lambda x: jnp.polyval(jnp.array([1.0, -2.0, 0.5, 3.0]), x),
    comparison_chain=lambda x: (x > -1) & (x < 1) | jnp.isnan(x),
    astype_int=lambda x: x.astype(jnp.int32),
    astype_byte=lambda x: x.astype(jnp.uint8),
    average_of_both=lambda x: (jnp.ceil(x) + jnp.floor(x)) / 2,
    heaviside=lambda x: jnp.heaviside(x, 0.5),
)
cases(
    "f32[3,5]",
    "f32[5]",
    add=jnp.add,
    arctan2=jnp.arctan2,
    copysign=jnp.copysign,
    divide=jnp.divide,
    equal=jnp.equal,
    floor_divide=lambda x, y: x // y,
    fmax=jnp.fmax,
    fmin=jnp.fmin,
    fmod=jnp.fmod,
    greater_equal=jnp.greater_equal,
    hypot=jnp.hypot,
    isclose=lambda x, y: jnp.isclose(x, y, rtol=0.1, equal_nan=True),
    logaddexp=jnp.logaddexp,
    logaddexp2=jnp.logaddexp2,
    maximum=jnp.maximum,
    minimum=jnp.minimum,
    mod=jnp.mod,
    multiply_outer=lambda x, y: jnp.multiply.outer(x, y),
    nextafter=jnp.nextafter,
    not_equal=jnp.not_equal,
    remainder=jnp.remainder,
    subtract=jnp.subtract,
    true_divide=jnp.true_divide,
    array_equal=lambda x, y: jnp.array_equal(x[0], y),
    divmod_parts=lambda x, y: jnp.divmod(x, jnp.where(jnp.isfinite(y), jnp.abs(y) + 0.5, 2.0)),
    logical_functions=lambda x, y: (jnp.logical_and(x, y), jnp.logical_or(x, y), jnp.logical_xor(x, y)),
)
cases(
    "i32[4,6]",
    int_abs=jnp.abs,
    int_divide_is_float=lambda x: x / 4,
    int_floor_divide=lambda x: x // 7,
    int_mod=lambda x: x % 7,
    int_mod_negative=lambda x: x % -7,
    int_power=lambda x: x**3,
    int_shift=lambda x: (x << 2, x >> 1),
    int_invert=lambda x: ~x,
    int_sqrt=lambda x: jnp.sqrt(x % 100),
    int_clip=lambda x: jnp.clip(x, -3, 5),
    int_sum_is_int=lambda x: x.sum(0),
    int_mean_is_float=lambda x: (x % 1000).mean(1),
    int_bits=lambda x: jnp.bitwise_count(x),
    int_sign=jnp.sign,
    int_and_number=lambda x: x & 0xFF | 3,
    int_times_float=lambda x: x * 0.5,
)
cases(
    "i32[8] -40..40",
    "i32[8] 1..12",
    gcd=jnp.gcd,
    lcm=jnp.lcm,
    int_floor_divide_pair=lambda x, y: (x // y, x % y, -x // y),
    float_power=jnp.float_power,
    ldexp=lambda x, y: jnp.ldexp(x.astype(jnp.float32), y),
    left_shift=lambda x, y: jnp.left_shift(x, y),
    bitwise_right_shift=lambda x, y: jnp.right_shift(x, y),
)
cases("u8[9]", "u8[9]", byte_add_wraps=jnp.add, byte_subtract_wraps=jnp.subtract, byte_multiply_wraps=jnp.multiply)
cases("bool[7]", logical_not=jnp.logical_not, bool_sum=lambda x: x.sum(), bool_to_float=lambda x: x * 2.5)


@case("f32[4,3]", "f32[3]", "f32[]")
def affine(x, w, b):
    return x * w + b


@case("f32[8] 0.1..5")
def hyperbolic(x):
    return jnp.sinh(x / 2), jnp.cosh(x / 2), jnp.tanh(x), jnp.arcsinh(x), jnp.arccosh(1 + x)


@case("f32[8] -0.99..0.99")
def inverse_trigonometry(x):
    return jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arctanh(x)


@case("f32[8] -3..3")
def trigonometry(x):
    return jnp.sin(x), jnp.cos(x), jnp.tan(x / 3), jnp.sin(x) ** 2 + jnp.cos(x) ** 2


@case("f32[10] plain")
def unwrap_angles(x):
    return jnp.unwrap(jnp.cumsum(x))


@case("f32[9] -12..12")
def angle_wrapped(x):
    return jnp.mod(x + jnp.pi, 2 * jnp.pi) - jnp.pi


@case("f32[4,2] plain")
def complex_inside(x):
    z = x[:, 0] + 1j * x[:, 1]
    return jnp.real(z * z), jnp.imag(jnp.exp(z * 0.1)), jnp.abs(z), jnp.angle(z + 5.0)


@case("f32[6] plain", "f32[6] plain", "f32[] 0..1")
def lerp(a, b, t):
    return a + (b - a) * t


@case("f32[6]")
def select_by_conditions(x):
    return jnp.select([x < -1, x < 0, x > 1], [x * 2, -x, jnp.sqrt(x)], default=0.25)


@case("f32[6]")
def piecewise_functions(x):
    return jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v**2, 0.5])


@case("f32[3] plain", "f32[3] plain")
def cross_product(x, y):
    return jnp.cross(x, y)


@case("f32[5,3] plain", "f32[5,3] plain")
def cross_products_of_rows(x, y):
    return jnp.cross(x, y)


@case("f32[8] plain")
def differences(x):
    return jnp.diff(x), jnp.diff(x, n=2), jnp.ediff1d(x, to_end=1.0)


@case("f32[8] plain")
def numerical_gradient(x):
    return jnp.gradient(x), jnp.gradient(x, 0.5)


@case("f32[8] plain")
def trapezoid(x):
    return jnp.trapezoid(x, dx=0.5)


@case("f32[4] plain", "f32[3] plain")
def convolve_and_correlate(x, y):
    return jnp.convolve(x, y), jnp.convolve(x, y, "same"), jnp.correlate(x, y, "valid")


@case("f32[5] 0..4")
def interpolate_table(x):
    return jnp.interp(x, jnp.array([0.0, 1.0, 2.5, 4.0]), jnp.array([1.0, 3.0, 2.0, 0.0]))


@case("f32[3] plain", "f32[4] plain")
def polynomials(p, q):
    return jnp.polymul(p, q), jnp.polyadd(p, q), jnp.polyder(q), jnp.polyint(p)


@case("f32[2,6]")
@jax.jit
def under_jit(x):
    return jax.jit(jnp.tanh)(x) + jax.jit(lambda v: v * 2, inline=True)(x)


@case("f32[4,6]", "i32[4,6]", "bool[4,6]", "u8[4,6]")
def promotion(x, i, flag, byte):
    return x + i, i + flag, byte * x, byte + i
