"""Elementwise functions of lax."""

import jax.numpy as jnp
from jax import lax
from jax_cases import case, cases

cases(
    "f32[4,6]",
    abs=lax.abs,
    ceil=lax.ceil,
    cos=lax.cos,
    erf=lax.erf,
    erfc=lax.erfc,
    exp=lax.exp,
    exp2=lax.exp2,
    expm1=lax.expm1,
    floor=lax.floor,
    is_finite=lax.is_finite,
    logistic=lax.logistic,
    neg=lax.neg,
    reciprocal=lax.reciprocal,
    round_away_from_zero=lax.round,
    round_to_even=lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    sign=lax.sign,
    sin=lax.sin,
    square=lax.square,
    tanh=lax.tanh,
    atan=lax.atan,
    asinh=lax.asinh,
    cosh=lax.cosh,
    sinh=lax.sinh,
    integer_pow_3=lambda x: lax.integer_pow(x, 3),
    integer_pow_negative=lambda x: lax.integer_pow(x, -2),
    stop_gradient=lambda x: lax.stop_gradient(x) * 2,
    cast_to_int=lambda x: lax.convert_element_type(x, jnp.int32),
    cast_to_bool=lambda x: lax.convert_element_type(x, jnp.bool_),
    cast_to_half=lambda x: lax.convert_element_type(x, jnp.float16),
    reduce_precision=lambda x: lax.reduce_precision(x, 8, 7),
    reduce_precision_half=lambda x: lax.reduce_precision(x, 5, 10),
    bits_of_a_float=lambda x: lax.bitcast_convert_type(x, jnp.int32),
    clamp_between_numbers=lambda x: lax.clamp(-1.0, x, 1.0),
)
cases(
    "f32[4,6] 0..5",
    cbrt=lax.cbrt,
    log=lax.log,
    log1p=lax.log1p,
    rsqrt=lax.rsqrt,
    sqrt=lax.sqrt,
    lgamma=lambda x: lax.lgamma(x + 0.1),
    digamma=lambda x: lax.digamma(x + 0.1),
    acosh=lambda x: lax.acosh(x + 1),
    bessel_i0e=lax.bessel_i0e,
    bessel_i1e=lax.bessel_i1e,
    tan=lambda x: lax.tan(x / 4),
)
cases(
    "f32[4,6] -1..1",
    acos=lax.acos,
    asin=lax.asin,
    atanh=lambda x: lax.atanh(x * 0.99),
    erf_inv=lambda x: lax.erf_inv(x),
)
cases(
    "f32[3,5]",
    "f32[3,5]",
    add=lax.add,
    sub=lax.sub,
    mul=lax.mul,
    div=lax.div,
    max=lax.max,
    min=lax.min,
    rem=lax.rem,
    atan2=lax.atan2,
    eq=lax.eq,
    ne=lax.ne,
    lt=lax.lt,
    le=lax.le,
    gt=lax.gt,
    ge=lax.ge,
    nextafter=lax.nextafter,
    select_by_comparison=lambda x, y: lax.select(x < y, x, y),
    clamp_by_tensors=lambda x, y: lax.clamp(lax.min(x, y), x * 0.5, lax.max(x, y)),
)
cases(
    "f32[3,5] 0..4",
    "f32[3,5] -2..3",
    pow=lax.pow,
    igamma=lambda a, x: lax.igamma(a + 0.5, lax.abs(x)),
    igammac=lambda a, x: lax.igammac(a + 0.5, lax.abs(x)),
    complex_and_back=lambda x, y: lax.abs(lax.complex(x, y)),
    angle_of_a_product=lambda x, y: lax.imag(lax.complex(x, y) * lax.conj(lax.complex(y, x + 1.0))),
)
cases(
    "i32[12]",
    "i32[12]",
    bit_and=lax.bitwise_and,
    bit_or=lax.bitwise_or,
    bit_xor=lax.bitwise_xor,
    int_add_wraps=lax.add,
    int_mul_wraps=lax.mul,
    int_max=lax.max,
    int_sub_wraps=lax.sub,
    int_compare=lambda x, y: (x < y, x >= y),
)
cases(
    "i32[12] -50..50",
    "i32[12] 1..9",
    int_div=lax.div,
    int_div_by_negative=lambda x, y: lax.div(x, -y),
    int_rem=lax.rem,
    int_rem_of_negative=lambda x, y: lax.rem(-x, -y),
    pow_by_ints=lambda x, y: lax.pow(x.astype(jnp.float32), y),
    shift_left=lax.shift_left,
    shift_right_arithmetic=lax.shift_right_arithmetic,
    shift_right_logical=lax.shift_right_logical,
)
cases(
    "i32[12]",
    bit_not=lax.bitwise_not,
    clz=lax.clz,
    int_abs=lax.abs,
    int_neg=lax.neg,
    int_sign=lax.sign,
    population_count=lax.population_count,
    int_to_float=lambda x: lax.convert_element_type(x, jnp.float32),
    int_to_byte=lambda x: lax.convert_element_type(x, jnp.int8),
    int_to_unsigned=lambda x: lax.convert_element_type(x, jnp.uint32),
    float_of_bits=lambda x: lax.bitcast_convert_type(lax.bitwise_and(x, 0x3F7FFFFF), jnp.float32),
    int_integer_pow=lambda x: lax.integer_pow(x, 3),
)
cases("u32[9]", unsigned_shift=lambda x: lax.shift_right_logical(x, jnp.uint32(7)), unsigned_clz=lax.clz)
cases("bool[8]", "bool[8]", logical_and=lax.bitwise_and, logical_or=lax.bitwise_or, logical_xor=lax.bitwise_xor)


@case("i32[7] 0..2", "f32[7]", "f32[7]", "f32[7]")
def select_n_of_three(which, a, b, c):
    return lax.select_n(which, a, b, c)


@case("f32[4]", "f32[4]")
def bits_to_bytes_and_back(x, y):
    parts = lax.bitcast_convert_type(x, jnp.uint8)
    return parts, lax.bitcast_convert_type(parts, jnp.float32) + y


@case("u16[6]")
def halves_of_bits(x):
    return lax.convert_element_type(lax.bitcast_convert_type(x & 0x7BFF, jnp.float16), jnp.float32)


@case("f32[5] 0.5..4", "f32[5] 0.5..4", "f32[5] 0.05..0.95")
def regularized_incomplete_beta(a, b, x):
    return lax.betainc(a, b, x)


@case("f32[5] 1.5..4", "f32[5] 0.5..4")
def zeta(x, q):
    return lax.zeta(x, q)


@case("f32[6] 0.5..4")
def polygamma(x):
    return lax.polygamma(jnp.full_like(x, 1.0), x)


@case("f32[8]")
def sign_of_zero_is_kept(x):
    return lax.div(1.0, lax.mul(x, -1.0))
