"""Hashes of whole numbers written as strings: ONNX has no op for the bytes of a string, but digits can be computed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

K0, K1, K2 = (int(np.uint64(k).astype(np.int64)) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
"""The constants of FarmHash, as signed numbers: products of these wrap around in the same way."""
DIGITS, LONGEST = 19, 20


@rule("StringToHashBucketFast")
def hash_bucket(op: Writer, x: Tensor, *, num_buckets: int) -> Tensor:
    if num_buckets == 1:
        return op.Expand(op.index(0), op.Shape(x))
    made = x.value.producer()
    number = made.inputs[0] if made is not None and made.op_type == "Cast" else None
    if number is None or number.dtype is None or number.dtype.numpy().kind != "i":
        raise UnsupportedError(
            f"it hashes strings into {num_buckets} buckets, and ONNX has no op for the bytes of a string: convert a "
            "model that takes the numbers of the buckets, and hash before it; a single bucket, and whole numbers that "
            "are written as strings, can be converted"
        )
    hashed = _Hash(op, op.int64(op.tensor(number))).value().cast(ir.DataType.UINT64)
    return op.Mod(hashed, op.like(num_buckets, hashed)).cast(ir.DataType.INT64)


class _Hash:
    """FarmHash's fingerprint of the decimal digits of each number, of which there are at most twenty with the sign."""

    def __init__(self, op: Writer, number: Tensor) -> None:
        self.op, self.shape = op, op.Shape(number)
        below = op.unsqueeze(op.flat(op.Where(number > op.index(0), -number, number)), [1])
        powers = op.constant(np.array([[10**k for k in range(DIGITS)]], np.int64))
        shifted = below / powers
        digits = -(shifted - shifted / op.index(10) * op.index(10))
        count = op.Max(op.reduced("ReduceSum", (shifted < op.index(0)).cast(ir.DataType.INT64), [1], True), op.index(1))
        sign = op.unsqueeze(op.flat(number < op.index(0)), [1]).cast(ir.DataType.INT64)
        self.length = count + sign
        places = op.constant(np.arange(LONGEST, dtype=np.int64)[None])
        wanted = count - op.index(1) - places + sign
        inside = op.Max(op.Min(wanted, op.index(DIGITS - 1)), op.index(0))
        text = op.GatherElements(digits, inside, axis=1) + op.index(ord("0"))
        text = op.Where(op.And(places < sign, sign > op.index(0)), op.index(ord("-")), text)
        self.text = op.Where(places < self.length, text, op.index(0))
        self.times = self.length * op.index(2) + op.index(K2)

    def value(self) -> Tensor:
        op = self.op
        few = op.where(self.length < op.index(4), self._shortest(), self._short())
        many = op.where(self.length <= op.index(16), self._middle(), self._long())
        return op.Reshape(op.where(self.length < op.index(8), few, many), self.shape)

    def _shortest(self) -> Tensor:
        op = self.op
        first, last = self._bytes(op.index(0), 1), self._bytes(self.length - op.index(1), 1)
        half = self._bytes(self.length / op.index(2), 1)
        mixed = self._xor(
            (first + half * op.index(256)) * op.index(K2), (self.length + last * op.index(4)) * op.index(K0)
        )
        return self._mixed(mixed) * op.index(K2)

    def _short(self) -> Tensor:
        op = self.op
        return self._both(
            self.length + self._bytes(op.index(0), 4) * op.index(8), self._bytes(self.length - op.index(4), 4)
        )

    def _middle(self) -> Tensor:
        op = self.op
        a, b = self._bytes(op.index(0), 8) + op.index(K2), self._bytes(self.length - op.index(8), 8)
        return self._both(self._turned(b, 37) * self.times + a, (self._turned(a, 25) + b) * self.times)

    def _long(self) -> Tensor:
        op = self.op
        a, b = self._bytes(op.index(0), 8) * op.index(K1), self._bytes(op.index(8), 8)
        c = self._bytes(self.length - op.index(8), 8) * self.times
        d = self._bytes(self.length - op.index(16), 8) * op.index(K2)
        left = self._turned(a + b, 43) + self._turned(c, 30) + d
        return self._both(left, a + self._turned(b + op.index(K2), 18) + c)

    def _both(self, a: Tensor, b: Tensor) -> Tensor:
        mixed = self._mixed(self._xor(a, b) * self.times)
        return self._mixed(self._xor(b, mixed) * self.times) * self.times

    def _bytes(self, start: Tensor, count: int) -> Tensor:
        """Some bytes as one number, the first the lowest; in fours, as ONNX Runtime's sums are exact to 53 bits."""
        op = self.op
        if count > 4:
            return self._bytes(start, 4) + self._bytes(start + op.index(4), count - 4) * op.index(2**32)
        places = op.Max(start + op.constant(np.arange(count, dtype=np.int64)[None]), op.index(0))
        rows = op.Gather(op.Shape(self.text), op.ints([0]))
        wide = op.Expand(op.Min(places, op.index(LONGEST - 1)), op.Concat(rows, op.ints([count]), axis=0))
        taken = op.GatherElements(self.text, wide, axis=1)
        weights = op.constant(np.array([[256**k for k in range(count)]], np.int64))
        return op.reduced("ReduceSum", taken * weights, [1], keepdims=True)

    def _xor(self, a: Tensor, b: Tensor) -> Tensor:
        return self.op.BitwiseXor(a, b)

    def _mixed(self, x: Tensor) -> Tensor:
        return self._xor(x, self._shifted(x, 47, "RIGHT"))

    def _turned(self, x: Tensor, by: int) -> Tensor:
        return self._shifted(x, by, "RIGHT") + self._shifted(x, 64 - by, "LEFT")

    def _shifted(self, x: Tensor, by: int, direction: str) -> Tensor:
        bits = x.cast(ir.DataType.UINT64)
        return self.op.BitShift(bits, self.op.like(by, bits), direction=direction).cast(ir.DataType.INT64)
