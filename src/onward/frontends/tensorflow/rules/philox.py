"""Random numbers that a seed alone decides, and so the same ones: Philox 4x32-10, in words of 32 bits held by int64.

In training they are left to ONNX Runtime: there they have to differ from step to step, and need not be the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules import random
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

ROUNDS = 10
FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
START = (0x3EC8F720, 0x02461E29)
"""The key that seeds are scrambled with."""
MASK = 2**32 - 1
ALGORITHM = 1


def _low(op: Writer, x: Tensor) -> Tensor:
    return op.BitwiseAnd(x, op.index(MASK))


def _high(op: Writer, x: Tensor) -> Tensor:
    return _low(op, op.Div(x - _low(op, x), op.index(2**32)))


def _mixed(op: Writer, counter: Sequence[Tensor], key: Sequence[Tensor]) -> list[Tensor]:
    a, b, c, d = counter
    k, m = key
    for _ in range(ROUNDS):
        first, second = a * op.index(FACTORS[0]), c * op.index(FACTORS[1])
        a = op.BitwiseXor(op.BitwiseXor(_high(op, second), b), k)
        c = op.BitwiseXor(op.BitwiseXor(_high(op, first), d), m)
        b, d = _low(op, second), _low(op, first)
        k, m = (_low(op, word + op.index(step)) for word, step in zip((k, m), STEPS, strict=True))
    return [a, b, c, d]


def _words(op: Writer, x: Tensor) -> list[Tensor]:
    """Each number of 64 bits as two words, as scalars."""
    whole = x.cast(ir.DataType.INT64)
    size = x.sizes[0] if x.sizes else 2
    items = [op.Gather(whole, op.index(i)) for i in range(size)]
    return [part(op, item) for item in items for part in (_low, _high)]


@rule("StatelessRandomGetAlg")
def algorithm(op: Writer) -> Tensor:
    return op.constant(np.asarray(ALGORITHM, np.int32))


@rule("StatelessRandomGetKeyCounter")
def key_counter(op: Writer, seed: Tensor) -> list[Tensor]:
    if op.translator.stateful:
        return [op.constant(np.zeros(size, np.uint64)) for size in (1, 2)]
    mixed = _mixed(op, _words(op, op.Reshape(seed, op.ints([2]))), [op.index(word) for word in START])
    key, upper = (op.flat(high * op.index(2**32) + low) for low, high in (mixed[:2], mixed[2:]))
    counter = op.Concat(op.ints([0]), upper, axis=0)
    return [key.cast(ir.DataType.UINT64), counter.cast(ir.DataType.UINT64)]


def _drawn(op: Writer, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor) -> tuple[Tensor, Tensor]:
    """As many words as there are elements, four of each count, as rows of four; and how many elements there are."""
    if op.numbers(alg, "the algorithm")[0] not in (ALGORITHM, 3):
        raise UnsupportedError("random numbers of an algorithm other than Philox are not supported")
    count = op.reduced("ReduceProd", op.int64(shape), [0], keepdims=True)
    blocks = op.squeeze(op.Div(count + op.ints([3]), op.ints([4])), [0])
    low, next_low, *upper = _words(op, op.Reshape(counter, op.ints([2])))
    numbers = op.Range(op.index(0), blocks, op.index(1)) + low + next_low * op.index(2**32)
    words = _mixed(op, [_low(op, numbers), _high(op, numbers), *upper], _words(op, op.Reshape(key, op.ints([1]))))
    return op.Concat(*(op.unsqueeze(word + numbers * op.index(0), [1]) for word in words), axis=1), count


def _shaped(op: Writer, rows: Tensor, count: Tensor, shape: Tensor) -> Tensor:
    return op.Reshape(op.Slice(op.flat(rows), op.ints([0]), count, op.ints([0])), op.int64(shape))


def _uniform(op: Writer, words: Tensor) -> Tensor:
    return op.BitwiseAnd(words, op.index(2**23 - 1)).cast(ir.DataType.FLOAT) * 2.0**-23


def _single(dtype: ir.DataType) -> None:
    if dtype != ir.DataType.FLOAT:
        raise UnsupportedError("random numbers of a seed in another precision than single are not supported")


@rule("StatelessRandomUniformV2")
def uniform(op: Writer, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor, *, dtype: ir.DataType) -> Tensor:
    if op.translator.stateful:
        return random.uniform(op, shape, dtype=dtype)
    _single(dtype)
    words, count = _drawn(op, shape, key, counter, alg)
    return _shaped(op, _uniform(op, words), count, shape)


@rule("StatelessRandomNormalV2")
def normal(op: Writer, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor, *, dtype: ir.DataType) -> Tensor:
    """By G. E. P. Box and M. E. Muller: of two even numbers a length and an angle."""
    if op.translator.stateful:
        return random.normal(op, shape, dtype=dtype)
    _single(dtype)
    words, count = _drawn(op, shape, key, counter, alg)
    even = op.Reshape(_uniform(op, words), op.ints([-1, 2]))
    first, second = (op.Slice(even, op.ints([i]), op.ints([i + 1]), op.ints([1])) for i in (0, 1))
    length = op.Sqrt(op.Log(op.Max(first, op.like(1e-7, first))) * -2.0)
    angle = second * (2 * math.pi)
    return _shaped(op, op.Concat(op.Sin(angle) * length, op.Cos(angle) * length, axis=1), count, shape)


@rule("StatelessRandomUniformIntV2")
def uniform_int(
    op: Writer, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    if op.translator.stateful:
        return random.uniform_int(op, shape, low, high)
    _whole(low.dtype)
    words, count = _drawn(op, shape, key, counter, alg)
    begin, end = op.int64(low), op.int64(high)
    return _shaped(op, op.Mod(words, end - begin) + begin, count, shape).cast(low.dtype)


@rule("StatelessRandomUniformFullIntV2")
def full_int(op: Writer, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor, *, dtype: ir.DataType) -> Tensor:
    _whole(dtype)
    words, count = _drawn(op, shape, key, counter, alg)
    if dtype == ir.DataType.INT32:
        words = op.where(words >= op.index(2**31), words - op.index(2**32), words)
    return _shaped(op, words, count, shape).cast(dtype)


def _whole(dtype: ir.DataType) -> None:
    if dtype not in (ir.DataType.INT32, ir.DataType.UINT32):
        raise UnsupportedError("random whole numbers of more than 32 bits are not supported")
