"""What element-wise ops, layers and contractions say about the sizes of their inputs, see `linked_sizes`."""

from __future__ import annotations

from functools import partial

from onward.graph.slots import Dim
from onward.verification.data.linked_shapes import first
from onward.verification.data.linked_sizes import Dims, Rule, Shapes, View

# fmt: off
ELEMENTWISE = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "StringConcat", "Sub", "Sum",
    "Where", "Xor",
)
FIRST = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitwiseNot", "Cast", "CastLike", "Ceil",
    "Celu", "Clip", "Cos", "Cosh", "CumSum", "Dropout", "DynamicQuantizeLinear", "Elu", "Erf", "Exp", "EyeLike",
    "FastGelu", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "IsInf", "IsNaN", "LRN",
    "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not",
    "QuickGelu", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax",
    "Softplus", "Softsign", "Sqrt", "StringNormalizer", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)
LONE = {
    "TopK": (1,), "OneHot": (1,), "NonMaxSuppression": (2, 3, 4), "CumSum": (1,), "Trilu": (1,), "Loop": (0, 1),
    "If": (0,), "Dropout": (1, 2), "DFT": (1, 2), "STFT": (1, 3), "Range": (0, 1, 2), "Clip": (1, 2),
    "SequenceAt": (1,), "SequenceErase": (1,), "SequenceInsert": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4),
    "HannWindow": (0,), "HammingWindow": (0,), "BlackmanWindow": (0,), "Pad": (2,), "ConvInteger": (2, 3),
    "QLinearConv": (1, 2, 4, 6, 7), "QLinearMatMul": (1, 2, 4, 5, 6, 7), "MatMulInteger": (2, 3), "CumProd": (1,),
    "Adam": (0, 1), "Adagrad": (0, 1), "Momentum": (0, 1), "Squeeze": (1,), "Unsqueeze": (1,),
}
"""Inputs that are scalars, or vectors of one element, by number."""
LAYER_NORMS = (
    "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)
# fmt: on


def _elementwise(v: View) -> Shapes:
    shapes = [v.dims(i) for i in range(len(v.node.inputs))]
    for index, dims in enumerate(shapes[1:], 1):
        if dims != shapes[0]:
            for axis in range(-min(len(dims or ()), len(shapes[0] or ())), 0):
                v.meet((0, axis), (index, axis))
    return [v.fit.broadcast(shapes)]


def conv(v: View, x: int = 0, w: int = 1, bias: int = 2) -> Shapes:
    group = v.number("group", 1)
    channels = v.size(w, 1)
    if group == 1:
        v.equal((x, 1), (w, 1))
    else:
        if channels is None and isinstance(v.axis(w, 1), str):
            v.equal((w, 1), channels := max(1, (v.size(x, 1) or group) // group))
        v.equal((x, 1), channels and channels * group)
        if v.size(w, 0) is None:
            v.equal((w, 0), group)
    _kernel(v, w)
    kernel = [v.size(w, axis) for axis in range(2, v.rank(w) or 2)]
    v.reach([size for size in kernel if size is not None], x)
    v.equal((bias, 0), (w, 0))
    rank = v.rank(x)
    return [(v.axis(x, 0), v.axis(w, 0), *[None] * (rank - 2))] if rank else None


def _kernel(v: View, w: int) -> None:
    """The weight's spatial axes: as said, or small."""
    kernel = v.numbers("kernel_shape") or [3] * ((v.rank(w) or 2) - 2)
    for axis, size in enumerate(kernel, 2):
        v.equal((w, axis), size)


def _conv_transpose(v: View) -> Shapes:
    group = v.number("group", 1)
    v.equal((1, 0), group if group > 1 and v.size(0, 1) is None else v.size(0, 1))
    v.equal((0, 1), (1, 0))
    _kernel(v, 1)
    out = v.size(1, 1)
    v.equal((2, 0), (1, 1) if group == 1 else out and out * group)
    rank = v.rank()
    return [(v.axis(0, 0), v.axis(1, 1) if group == 1 else None, *[None] * (rank - 2))] if rank else None


def matmul(v: View, a: int = 0, b: int = 1) -> Shapes:
    first, second = v.dims(a), v.dims(b)
    if not first or not second:
        if second:
            v.equal((b, max(-2, -len(second))), v.size(a, -1))
        return None
    v.equal((a, -1), (b, max(-2, -len(second))))
    batch = v.fit.broadcast([first[:-2], second[:-2]]) or ()
    return [(*batch, *first[-2:-1], *(second[-1:] if len(second) > 1 else ()))]


def _gemm(v: View) -> Shapes:
    outer, inner = (1, 0) if v.number("transA") else (0, 1)
    inner_b, columns = (1, 0) if v.number("transB") else (0, 1)
    v.equal((0, inner), (1, inner_b))
    out: Dims = (v.axis(0, outer), v.axis(1, columns))
    if v.rank(2) is not None and v.size(2, -1) != 1:
        v.equal((2, -1), (1, columns))
    if v.rank(2) == 2 and v.size(2, 0) != 1:
        v.equal((2, 0), (0, outer))
    return [out]


def _channel_norm(v: View) -> Shapes:
    for index in range(1, len(v.node.inputs)):
        v.equal((index, 0), (0, 1))
        v.equal((0, 1), (index, 0))
    return [v.dims(0)]


def _group_norm(v: View) -> Shapes:
    groups = v.number("num_groups", 1)
    v.equal((0, 1), 2 * groups)
    for index in (1, 2):
        v.equal((index, 0), 2 * groups if v.node.version is None or v.node.version >= 21 else groups)
    return [v.dims(0)]


def _layer_norm(v: View) -> Shapes:
    rank = v.rank()
    if rank is not None:
        axis = v.number("axis", -1) % rank
        for index in range(1, len(v.node.inputs)):
            for place in range(1, min(rank - axis, v.rank(index) or 0) + 1):
                v.equal((index, -place), (0, -place))
    return [v.dims(0)]


def _recurrent(v: View, gates: int) -> Shapes:
    directions = 2 if v.text("direction", "forward") == "bidirectional" else 1
    hidden = v.number("hidden_size") or v.size(2, 2) or 4
    time, batch = (1, 0) if v.number("layout") else (0, 1)
    v.equal((0, 2), (1, 2))
    v.fix(1, directions, gates * hidden, None)
    v.fix(2, directions, gates * hidden, hidden)
    v.fix(3, directions, 2 * gates * hidden)
    v.equal((4, 0), (0, batch))
    for state in (5, 6) if gates == 4 else (5,):
        v.fix(state, *((None, directions, hidden) if v.number("layout") else (directions, None, hidden)))
        v.equal((state, 0 if v.number("layout") else 1), (0, batch))
    v.fix(7, directions, 3 * hidden)
    x, n, length = (directions, v.axis(0, batch), v.axis(0, time))
    if v.number("layout"):
        return [(n, length, x, hidden), (n, x, hidden), (n, x, hidden)]
    return [(length, x, n, hidden), (x, n, hidden), (x, n, hidden)]


def lone(v: View) -> Shapes:
    for index in LONE.get(v.node.op_type, ()):
        v.equal((index, 0), 1)
    return None


def _lone_first(v: View) -> Shapes:
    lone(v)
    return first(v)


def _one_hot(v: View) -> Shapes:
    v.equal((2, 0), 2)
    return lone(v)


def _einsum(v: View) -> Shapes:
    left, _, right = v.text("equation").replace(" ", "").partition("->")
    letters: dict[str, Dim | None] = {}
    for index, term in enumerate(left.split(",")):
        dims = v.dims(index)
        if dims is None or "." in term or len(dims) != len(term):
            return None
        for axis, letter in enumerate(term):
            v.fit.equal(letters.setdefault(letter, dims[axis]), dims[axis])
    return [tuple(letters.get(letter) for letter in right)] if right else None


def _square(v: View) -> Shapes:
    v.equal((0, -1), (0, -2))
    return None


def _reverse_sequence(v: View) -> Shapes:
    v.equal((1, 0), (0, v.number("batch_axis", 1)))
    return [v.dims(0)]


TABLE: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(LONE, lone),
    **dict.fromkeys(FIRST, _lone_first),
    **dict.fromkeys(("Conv", "FusedConv"), conv),
    "ConvTranspose": _conv_transpose,
    **dict.fromkeys(("MatMul", "FusedMatMul"), matmul),
    **dict.fromkeys(("Gemm", "FusedGemm"), _gemm),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _channel_norm),
    "GroupNormalization": _group_norm,
    **dict.fromkeys(LAYER_NORMS, _layer_norm),
    "LSTM": partial(_recurrent, gates=4),
    "GRU": partial(_recurrent, gates=3),
    "RNN": partial(_recurrent, gates=1),
    "OneHot": _one_hot,
    "Einsum": _einsum,
    "Det": _square,
    "Inverse": _square,
    "ReverseSequence": _reverse_sequence,
}
