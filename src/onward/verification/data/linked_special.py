"""What ops for attention, regions, quantisation, losses and classical models say about sizes, see `linked_sizes`."""

from __future__ import annotations

from onward.verification.data.linked_layers import conv, lone, matmul
from onward.verification.data.linked_sizes import Rule, Shapes, View

BLOCK = 2
PICTURE = 6
"""The sides of blocks and images where a model takes them as inputs."""
FRAME = 16
"""The length of a frame, and of its window."""


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
    lone(v)
    v.equal((4, 0), 1)
    v.equal((5, 0), (4, 0))
    return conv(v, 0, 3, 8)


def _quantized_matmul(v: View) -> Shapes:
    lone(v)
    return matmul(v, 0, 3)


def _integer_conv(v: View) -> Shapes:
    lone(v)
    return conv(v, bias=9)


def _integer_matmul(v: View) -> Shapes:
    lone(v)
    return matmul(v)


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
    lone(v)
    v.equal((0, 2), 4)
    v.equal((1, 0), (0, 0))
    v.equal((1, 2), (0, 1))
    return None


def _regions(v: View) -> Shapes:
    v.equal((1, 1), 4 if v.node.op_type == "RoiAlign" else 5)
    v.equal((2, 0), (1, 0))
    return None


def _optimizer(v: View) -> Shapes:
    """Rate, count, and then groups of tensors of one shape: parameters, gradients, moments."""
    lone(v)
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
    """For blocks and images of the sizes that `clue_rules` gives them."""
    pads, strides, dilations = (
        v.numbers("pads") or [0] * 4,
        v.numbers("strides") or [1, 1],
        v.numbers("dilations") or [1, 1],
    )
    places = 1
    for axis in range(2):
        reach = dilations[axis] * (BLOCK - 1) + 1
        places *= (PICTURE + pads[axis] + pads[axis + 2] - reach) // strides[axis] + 1
    v.fix(0, None, 3 * BLOCK**2, places)
    v.equal((1, 0), 2)
    v.equal((2, 0), 2)
    return None


def _short_time(v: View) -> Shapes:
    v.equal((0, 2), 1)
    v.equal((1, 0), 1)
    v.equal((2, 0), FRAME)
    v.equal((3, 0), 1)
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


def _deform_conv(v: View) -> Shapes:
    kernel, groups = v.numbers("kernel_shape") or [3, 3], v.number("offset_group", 1)
    points = kernel[0] * kernel[-1] * groups
    v.equal((2, 1), 2 * points)
    v.equal((4, 1), points)
    for axis in (0, 2, 3):
        v.equal((4, axis), (2, axis))
    v.equal((2, 0), (0, 0))
    pads, strides, dilations = (
        v.numbers("pads") or [0] * 4,
        v.numbers("strides") or [1, 1],
        v.numbers("dilations") or [1, 1],
    )
    for axis in range(2):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        v.equal((0, axis + 2), side := 9 - axis)
        v.equal((2, axis + 2), (side + pads[axis] + pads[axis + 2] - reach) // strides[axis] + 1)
    return conv(v, bias=3)


TABLE: dict[str, Rule] = {
    "DeformConv": _deform_conv,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _quantize,
    "QLinearConv": _quantized_conv,
    "QLinearMatMul": _quantized_matmul,
    "ConvInteger": _integer_conv,
    "MatMulInteger": _integer_matmul,
    "NegativeLogLikelihoodLoss": _loss,
    "SoftmaxCrossEntropyLoss": _loss,
    "Attention": _attention,
    "RotaryEmbedding": _rotary,
    "GridSample": _grid_sample,
    "NonMaxSuppression": _boxes,
    "RoiAlign": _regions,
    "MaxRoiPool": _regions,
    **dict.fromkeys(("Adam", "Adagrad", "Momentum"), _optimizer),
    "MaxUnpool": _unpool,
    "AffineGrid": _affine_grid,
    "Col2Im": _columns_to_image,
    "STFT": _short_time,
    **dict.fromkeys(("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"), _trees),
    "Scaler": _scaler,
    "Imputer": _imputer,
    **dict.fromkeys(("LinearClassifier", "LinearRegressor"), _linear),
    **dict.fromkeys(("SVMClassifier", "SVMRegressor"), _support_vectors),
    "FeatureVectorizer": _vectorizer,
    "EmbedLayerNormalization": _embed,
}
