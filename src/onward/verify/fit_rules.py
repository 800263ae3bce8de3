"""What each op says about the sizes of its inputs, see `fit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from onward.verify.fit import Dim, Dims, Rule, View

# fmt: off
ELEMENTWISE = (
    "Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mean", "Sum", "Mod", "BitShift", "And", "Or", "Xor", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Where", "PRelu", "StringConcat",
)
FIRST = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu",
    "Clip", "Cos", "Cosh", "CumSum", "Dropout", "Elu", "Erf", "Exp", "EyeLike", "Floor", "Gelu", "Hardmax", "HardSigmoid",
    "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "LRN",
    "MeanVarianceNormalization", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu", "FastGelu",
    "QuickGelu", "StringNormalizer", "DynamicQuantizeLinear",
)
LONE = {
    "TopK": (1,), "OneHot": (1,), "NonMaxSuppression": (2, 3, 4), "CumSum": (1,), "Trilu": (1,), "Loop": (0, 1), "If": (0,),
    "Dropout": (1, 2), "DynamicQuantizeLinear": (), "DFT": (1, 2), "STFT": (1, 3), "Range": (0, 1, 2), "Clip": (1, 2),
    "SequenceAt": (1,), "SequenceErase": (1,), "SequenceInsert": (2,), "MaxUnpool": (), "MelWeightMatrix": (0, 1, 2, 3, 4),
    "HannWindow": (0,), "HammingWindow": (0,), "BlackmanWindow": (0,), "Pad": (2,), "ConvInteger": (2, 3),
    "QLinearConv": (1, 2, 4, 6, 7), "QLinearMatMul": (1, 2, 4, 5, 6, 7), "MatMulInteger": (2, 3), "CumProd": (1,),
    "Adam": (0, 1), "Adagrad": (0, 1), "Momentum": (0, 1), "ReverseSequence": (), "Squeeze": (1,), "Unsqueeze": (1,),
}
# fmt: on
"""Inputs that are scalars, or vectors of one element."""

Shapes = Sequence[Dims | None] | None


def _elementwise(v: View) -> Shapes:
    return [v.fit.broadcast(v.dims(i) for i in range(len(v.node.inputs)))]


def _first(v: View) -> Shapes:
    return [v.dims(0)] * len(v.node.outputs)


def _conv(v: View, x: int = 0, w: int = 1, bias: int = 2) -> Shapes:
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


def _deform_conv(v: View) -> Shapes:
    kernel, groups = v.numbers("kernel_shape") or [3, 3], v.number("offset_group", 1)
    points = kernel[0] * kernel[-1] * groups
    v.equal((2, 1), 2 * points)
    v.equal((4, 1), points)
    for axis in (0, 2, 3):
        v.equal((4, axis), (2, axis))
    v.equal((2, 0), (0, 0))
    sides = [(8, 9)] * len(kernel)
    for axis, (size, padded) in enumerate(sides, 2):
        pads = v.numbers("pads") or [0] * 4
        v.equal((0, axis), padded)
        stride = (v.numbers("strides") or [1, 1])[axis - 2]
        dilation = (v.numbers("dilations") or [1, 1])[axis - 2]
        reach = dilation * (kernel[axis - 2] - 1) + 1
        v.equal((2, axis), (padded + pads[axis - 2] + pads[axis] - reach) // stride + 1)
        del size
    return _conv(v, bias=3)


def _matmul(v: View, a: int = 0, b: int = 1) -> Shapes:
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


def _transpose(v: View) -> Shapes:
    dims = v.dims(0)
    if dims is None:
        return None
    perm = v.numbers("perm") or range(len(dims))[::-1]
    return [tuple(dims[axis] for axis in perm)] if sorted(perm) == list(range(len(dims))) else None


def _concat(v: View) -> Shapes:
    shapes = [v.dims(i) for i in range(len(v.node.inputs))]
    first = shapes[0]
    if first is None or not first:
        return None
    axis = v.number("axis", 1) % len(first)
    for index in range(1, len(shapes)):
        for other in range(len(first)):
            if other != axis:
                v.equal((index, other), (0, other))
    sizes = [v.fit.size(dims[axis]) if dims is not None and len(dims) > axis else None for dims in shapes]
    total = sum(size for size in sizes if size is not None) if None not in sizes else None
    return [(*first[:axis], total, *first[axis + 1 :])]


def _axes(v: View) -> list[int] | None:
    given = v.constant(1)
    return v.numbers("axes") or (None if given is None else [int(axis) for axis in given.reshape(-1)])


def _squeeze(v: View) -> Shapes:
    dims, axes = v.dims(0), _axes(v)
    _lone(v)
    if dims is None or axes is None:
        if dims is not None and v.value(1) is not None:
            v.equal((0, 0), 1)
        return None
    gone = [axis % len(dims) for axis in axes]
    for axis in gone:
        v.equal((0, axis), 1)
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in gone)]


def _unsqueeze(v: View) -> Shapes:
    dims, axes = v.dims(0), _axes(v)
    _lone(v)
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    places = {axis % rank for axis in axes}
    rest = iter(dims)
    return [tuple(1 if axis in places else next(rest) for axis in range(rank))]


def _gather(v: View) -> Shapes:
    data, indices = v.dims(0), v.dims(1)
    if data is None or indices is None:
        return None
    axis = v.number("axis") % max(len(data), 1)
    return [(*data[:axis], *indices, *data[axis + 1 :])]


def _same_shape(v: View) -> Shapes:
    """GatherElements, ScatterElements: everything as large as the data."""
    for index in range(1, len(v.node.inputs)):
        v.fit.same(v.dims(index), v.dims(0))
    return [v.dims(1 if v.node.op_type == "GatherElements" else 0)]


def _gather_nd(v: View) -> Shapes:
    batch = v.number("batch_dims")
    v.equal((1, -1), 1)
    for axis in range(batch):
        v.equal((1, axis), (0, axis))
    return None


def _scatter_nd(v: View) -> Shapes:
    data, indices, updates = v.dims(0), v.dims(1), v.dims(2)
    if data is not None and indices is not None and updates is not None:
        picked = len(indices) - 1 + len(data) - len(updates)
        v.equal((1, -1), picked)
        for axis in range(len(indices) - 1):
            v.equal((2, axis), (1, axis))
        for axis in range(picked, len(data)):
            v.equal((2, len(indices) - 1 + axis - picked), (0, axis))
    return [data]


def _per_rank(v: View, *indices: int, times: int = 1) -> Shapes:
    """Vectors with a number for each axis of the first input."""
    rank = v.rank()
    for index in indices:
        v.equal((index, 0), None if rank is None else rank * times)
    return None


def _pad(v: View) -> Shapes:
    v.equal((2, 0), 1)
    if v.value(3) is None:
        return _per_rank(v, 1, times=2)
    axes = _constant_length(v, 3) or v.rank()
    v.equal((3, 0), axes)
    v.equal((1, 0), axes and 2 * axes)
    return None


def _constant_length(v: View, index: int) -> int | None:
    found = v.constant(index)
    return None if found is None else int(found.size)


def _slice(v: View) -> Shapes:
    lengths = [_constant_length(v, index) for index in range(1, 5)]
    length = next((n for n in lengths if n), None) or v.rank()
    for index in range(1, 5):
        v.equal((index, 0), length)
    return None


def _resize(v: View) -> Shapes:
    rank = v.rank()
    axes = len(v.numbers("axes")) or rank
    late = 1 if len(v.node.inputs) > 2 else 0
    v.equal((late, 0), axes and 2 * axes if late else axes)
    for index in range(late + 1, 4):
        v.equal((index, 0), axes)
    return [(*([None] * rank),)] if rank else None


def _reduce(v: View) -> Shapes:
    rank, axes = v.rank(), _axes(v)
    v.equal((1, 0), 1)
    dims = v.dims(0)
    if dims is None or rank is None or axes is None or not axes:
        return None
    gone = {axis % rank for axis in axes}
    if v.number("keepdims", 1):
        return [tuple(1 if axis in gone else dim for axis, dim in enumerate(dims))]
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in gone)]


def _lone(v: View) -> Shapes:
    for index in LONE.get(v.node.op_type, ()):
        v.equal((index, 0), 1)
    return None


def _lone_first(v: View) -> Shapes:
    _lone(v)
    return _first(v)


def _one_hot(v: View) -> Shapes:
    v.equal((2, 0), 2)
    return _lone(v)


def _split(v: View) -> Shapes:
    v.equal((1, 0), len(v.node.outputs))
    axis, parts = v.number("axis"), v.number("num_outputs") or len(v.node.outputs)
    dim = v.axis(0, axis)
    explicit = v.numbers("split")
    given = v.constant(1)
    explicit = explicit or ([int(size) for size in given.reshape(-1)] if given is not None else [])
    v.equal((0, axis), sum(explicit) if explicit else 2 * parts)
    dims = v.dims(0)
    if dims is None or not isinstance(dim, int | str):
        return None
    total = v.fit.size(dim)
    sizes: list[int | None] = list(explicit) if explicit else [total // parts if total else None] * parts
    place = axis % len(dims)
    return [(*dims[:place], size, *dims[place + 1 :]) for size in sizes]


def _quantize(v: View) -> Shapes:
    rank, scale = v.rank(), v.rank(1)
    v.fit.same(v.dims(2), v.dims(1))
    block = v.number("block_size")
    if rank is not None and scale == 1:
        v.equal((1, 0), (0, v.number("axis", 1)) if v.number("axis", 1) < rank else 1)
    elif rank is not None and scale == rank:
        for axis in range(rank):
            if axis == v.number("axis", 1) % rank and block:
                v.equal((1, axis), 2)
                v.equal((0, axis), 2 * block)
            else:
                v.equal((1, axis), (0, axis))
    return [v.dims(0)]


def _quantized_conv(v: View) -> Shapes:
    _lone(v)
    v.equal((4, 0), 1)
    v.equal((5, 0), (4, 0))
    return _conv(v, 0, 3, 8)


def _quantized_matmul(v: View) -> Shapes:
    _lone(v)
    return _matmul(v, 0, 3)


def _integer_conv(v: View) -> Shapes:
    _lone(v)
    return _conv(v, bias=9)


def _integer_matmul(v: View) -> Shapes:
    _lone(v)
    return _matmul(v)


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


def _loss(v: View) -> Shapes:
    """Losses over classes: the target has the input's axes except the second, the weight has an element a class."""
    v.equal((1, 0), (0, 0))
    for axis in range(2, v.rank() or 2):
        v.equal((1, axis - 1), (0, axis))
    v.equal((2, 0), (0, 1))
    return None


def _attention(v: View) -> Shapes:
    q, kv = v.number("q_num_heads") or 3, v.number("kv_num_heads") or 3
    head = 8
    if v.rank() == 3:
        v.fix(0, None, None, q * head)
        v.fix(1, None, None, kv * head)
        v.fix(2, None, None, kv * head)
    else:
        v.fix(0, None, q, None, head)
        v.fix(1, None, kv, None, head)
        v.fix(2, None, kv, None, head)
    length = -2
    v.equal((1, 0), (0, 0))
    v.equal((2, 0), (0, 0))
    v.equal((2, length), (1, length))
    for past in (4, 5):
        v.fix(past, None, kv, 4, head)
        v.equal((past, 0), (0, 0))
    new = 4
    v.equal((1, length), new)
    v.equal((0, length), new)
    total = new + (4 if v.value(4) is not None else 0)
    mask = v.rank(3)
    if mask:
        v.equal((3, -1), total)
        v.equal((3, -2), (0, length))
        if mask > 2:
            v.equal((3, 0), (0, 0) if mask == 4 else 1)
            v.equal((3, -3), q if mask == 4 else 1)
    v.equal((6, 0), (0, 0))
    return None


def _rotary(v: View) -> Shapes:
    heads = v.number("num_heads") or 3
    head = 8
    partial_head = (v.number("rotary_embedding_dim") or head) // 2
    if v.rank() == 3:
        v.fix(0, None, None, heads * head)
    else:
        v.fix(0, None, heads, None, head)
    for index in (1, 2):
        v.equal((index, -1), partial_head)
    length = (0, 1) if v.rank() == 3 else (0, 2)
    if v.value(3) is None:
        for index in (1, 2):
            v.equal((index, 0), (0, 0))
            v.equal((index, 1), length)
    else:
        v.equal((1, 0), (2, 0))
        v.equal((1, 0), 50)
        v.equal((3, 0), (0, 0))
        v.equal((3, 1), length)
    return [v.dims(0)]


def _grid_sample(v: View) -> Shapes:
    v.equal((1, 0), (0, 0))
    v.equal((1, -1), None if (rank := v.rank()) is None else rank - 2)
    return None


def _boxes(v: View) -> Shapes:
    _lone(v)
    v.equal((0, 2), 4)
    v.equal((1, 0), (0, 0))
    v.equal((1, 2), (0, 1))
    return None


def _regions(v: View) -> Shapes:
    v.equal((1, 1), 4 if v.node.op_type == "RoiAlign" else 5)
    v.equal((2, 0), (1, 0))
    return None


def _reverse_sequence(v: View) -> Shapes:
    v.equal((1, 0), (0, v.number("batch_axis", 1)))
    return [v.dims(0)]


def _optimizer(v: View) -> Shapes:
    """Rate, count, and then groups of tensors of one shape: parameters, gradients, moments."""
    _lone(v)
    groups = {"Adam": 4, "Adagrad": 3, "Momentum": 3}[v.node.op_type]
    count = (len(v.node.inputs) - 2) // groups
    for index in range(2 + count, len(v.node.inputs)):
        v.fit.same(v.dims(index), v.dims(2 + (index - 2) % max(count, 1)))
    return None


def _unpool(v: View) -> Shapes:
    v.fit.same(v.dims(1), v.dims(0))
    v.equal((2, 0), v.rank())
    return None


def _affine_grid(v: View) -> Shapes:
    flat = v.size(0, 1) != 3
    v.fix(0, None, 2 if flat else 3, 3 if flat else 4)
    v.equal((1, 0), 4 if flat else 5)
    return None


def _columns_to_image(v: View) -> Shapes:
    v.equal((1, 0), 2)
    v.equal((2, 0), (1, 0))
    return None


def _trees(v: View) -> Shapes:
    features = v.numbers("nodes_featureids")
    v.equal((0, 1), max(features) + 1 if features else None)
    return None


def _scaler(v: View) -> Shapes:
    length = max(len(v.node.attributes.get_floats(key, ())) for key in ("offset", "scale"))
    v.equal((0, -1), length if length > 1 else None)
    return [v.dims(0)]


def _imputer(v: View) -> Shapes:
    lengths = [
        len(v.node.attributes.get_floats("imputed_value_floats", ())),
        len(v.node.attributes.get_ints("imputed_value_int64s", ())),
    ]
    v.equal((0, -1), length if (length := max(lengths)) > 1 else None)
    return [v.dims(0)]


def _linear(v: View) -> Shapes:
    coefficients = len(v.node.attributes.get_floats("coefficients", ()))
    targets = v.number("targets") or len(v.node.attributes.get_floats("intercepts", ())) or 1
    v.equal((0, -1), coefficients // targets or None)
    return None


def _support_vectors(v: View) -> Shapes:
    vectors = v.number("n_supports") or sum(v.numbers("vectors_per_class"))
    values = len(v.node.attributes.get_floats("support_vectors", ()))
    v.equal((0, -1), values // vectors if vectors else None)
    return None


def _vectorizer(v: View) -> Shapes:
    for index, size in enumerate(v.numbers("inputdimensions")):
        v.equal((index, -1), size)
        v.equal((index, 0), (0, 0))
    return None


def _embed(v: View) -> Shapes:
    v.fit.same(v.dims(1), v.dims(0))
    v.fit.same(v.dims(7), v.dims(0))
    return None


RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(LONE, _lone),
    **dict.fromkeys(FIRST, _lone_first),
}
TABLE: dict[Rule | Callable[[View], Shapes], str] = {
    _conv: "Conv FusedConv NhwcFusedConv",
    _conv_transpose: "ConvTranspose",
    _deform_conv: "DeformConv",
    _matmul: "MatMul FusedMatMul",
    _gemm: "Gemm FusedGemm",
    _channel_norm: "BatchNormalization InstanceNormalization",
    _group_norm: "GroupNormalization",
    _layer_norm: "LayerNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization",
    partial(_recurrent, gates=4): "LSTM",
    partial(_recurrent, gates=3): "GRU",
    partial(_recurrent, gates=1): "RNN",
    _transpose: "Transpose",
    _concat: "Concat",
    _squeeze: "Squeeze",
    _unsqueeze: "Unsqueeze",
    _gather: "Gather",
    _same_shape: "GatherElements ScatterElements Scatter",
    _gather_nd: "GatherND",
    _scatter_nd: "ScatterND",
    partial(_per_rank, *(1,)): "Tile Upsample",
    _pad: "Pad",
    _slice: "Slice",
    _resize: "Resize",
    _reduce: (
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    _one_hot: "OneHot",
    _split: "Split",
    _quantize: "QuantizeLinear DequantizeLinear",
    _quantized_conv: "QLinearConv",
    _quantized_matmul: "QLinearMatMul",
    _integer_conv: "ConvInteger",
    _integer_matmul: "MatMulInteger",
    _einsum: "Einsum",
    _square: "Det Inverse",
    _loss: "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    _attention: "Attention",
    _rotary: "RotaryEmbedding",
    _grid_sample: "GridSample",
    _boxes: "NonMaxSuppression",
    _regions: "RoiAlign MaxRoiPool",
    _reverse_sequence: "ReverseSequence",
    _optimizer: "Adam Adagrad Momentum",
    _unpool: "MaxUnpool",
    _affine_grid: "AffineGrid",
    _columns_to_image: "Col2Im",
    _trees: "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    _scaler: "Scaler",
    _imputer: "Imputer",
    _linear: "LinearClassifier LinearRegressor",
    _support_vectors: "SVMClassifier SVMRegressor",
    _vectorizer: "FeatureVectorizer",
    _embed: "EmbedLayerNormalization",
}
for _rule, _names in TABLE.items():
    RULES.update(dict.fromkeys(_names.split(), _rule))
