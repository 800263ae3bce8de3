"""What each op says about the values of its inputs, see `clues`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onward.verification.data import language
from onward.verification.data.clues import Clues, Exact, Rule, Use
from onward.verification.data.linked_special import BLOCK, FRAME, PICTURE

MEMBER = 6
"""A node of a tree that asks whether a value is in a set."""


def _set(clues: Clues, use: Use, exact: Exact | None) -> None:
    """The contents are known, unless the input is only a part of what the node reads."""
    if use.direct and exact is not None:
        clues.exact = exact


def _limits(low: float, high: float) -> Rule:
    return lambda clues, use: clues.limit(low, high) if use.index == 0 else None


def _at(**rules: Callable[[Clues, Use], Any]) -> Rule:
    """A rule for each input, by its number: `_0`, `_1`."""

    def rule(clues: Clues, use: Use) -> None:
        if chosen := rules.get(f"_{use.index}"):
            chosen(clues, use)

    return rule


def _within(low: float, high: float) -> Rule:
    return lambda clues, use: clues.limit(low, high)


def _mask(clues: Clues, use: Use) -> None:
    clues.is_mask = True


def _positive(clues: Clues, use: Use) -> None:
    clues.is_positive = True


def _length(clues: Clues, use: Use) -> None:
    clues.is_length = True
    clues.longest = use.length(0, 1 if use.number("layout") else 0)


def _is(*values: Any) -> Rule:
    """Fixed contents, repeated as needed."""
    return lambda clues, use: _set(clues, use, lambda shape: np.resize(np.asarray(values), shape))


def _axes(clues: Clues, use: Use) -> None:
    """Each axis at most once."""
    _set(clues, use, lambda shape: np.arange(math.prod(shape)).reshape(shape))


def _gather(clues: Clues, use: Use) -> None:
    clues.below(use.length(0, use.number("axis")))


def _gather_nd(clues: Clues, use: Use) -> None:
    shape = use.shape(0)
    batch = use.number("batch_dims")
    indexed = use.length(1, -1)
    if shape is not None and indexed:
        clues.below(min(shape[batch : batch + indexed], default=None))


def _scatter_elements(clues: Clues, use: Use) -> None:
    """No place twice: which of two updates wins is not defined."""
    axis, size = use.number("axis"), use.length(0, use.number("axis"))
    if size is None:
        return

    def contents(shape: tuple[int, ...]) -> Any:
        along = np.arange(shape[axis])[::-1].reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])
        return np.broadcast_to(along % size, shape).copy()

    _set(clues, use, contents)
    clues.below(size)


def _scatter_nd(clues: Clues, use: Use) -> None:
    data = use.shape(0)
    if data is None:
        return

    def contents(shape: tuple[int, ...]) -> Any:
        space = data[: shape[-1]]
        places = np.arange(math.prod(shape[:-1]))[::-1] % max(math.prod(space), 1)
        return np.stack(np.unravel_index(places, space), axis=-1).reshape(shape)

    _set(clues, use, contents)


def _one_hot(clues: Clues, use: Use) -> None:
    depth = use.constant(1)
    clues.limit(0, 2 if depth is None else max(int(depth.reshape(-1)[0]) - 1, 0))


def _embed(clues: Clues, use: Use) -> None:
    tables = {0: 2, 1: 4}
    if use.index in tables:
        clues.below(use.length(tables[use.index], 0))
    clues.is_mask |= use.index == 7


def _equal(clues: Clues, use: Use) -> None:
    constant = use.constant(1 - use.index)
    if constant is not None:
        clues.choices += list(constant.reshape(-1))


def _keys(clues: Clues, use: Use) -> None:
    attributes = use.node.attributes
    for name in (
        "keys_strings",
        "cats_strings",
        "pool_strings",
        "stopwords",
        "string_vocabulary",
        "classlabels_strings",
    ):
        clues.choices += attributes.get_strings(name, ()) if use.index == 0 else ()
    for name in ("keys_int64s", "cats_int64s", "pool_int64s", "int64_vocabulary"):
        clues.choices += attributes.get_ints(name, ())
    if "keys_tensor" in attributes:
        clues.choices += list(attributes.get_tensor("keys_tensor").numpy().reshape(-1))
    clues.choices += [float(key) for key in attributes.get_floats("keys_floats", ())]


def _subtract(clues: Clues, use: Use) -> None:
    constant = use.constant(1 - use.index)
    if constant is not None and constant.size:
        clues.is_mask |= use.index == 1 and bool(np.all(constant == 1))
        clues.is_pixels |= use.index == 0 and bool(np.all(constant > 50) and np.all(constant < 200))


def _divide(clues: Clues, use: Use) -> None:
    constant = use.constant(1 - use.index)
    clues.is_positive |= use.index == 1
    clues.is_pixels |= use.index == 0 and constant is not None and constant.size == 1 and 127 <= constant.max() <= 256


def _trees(clues: Clues, use: Use) -> None:
    attributes = use.node.attributes
    splits = attributes.get_tensor("nodes_splits") if "nodes_splits" in attributes else None
    values = splits.numpy() if splits is not None else attributes.get_floats("nodes_values", ())
    features = attributes.get_ints("nodes_featureids", ())
    for feature, value in zip(features, values, strict=False):
        if np.isfinite(value):
            clues.thresholds.setdefault(feature, []).append(float(value))
    if "membership_values" in attributes and "nodes_modes" in attributes:
        sets = attributes.get_tensor("membership_values").numpy()
        owners = np.flatnonzero(attributes.get_tensor("nodes_modes").numpy() == MEMBER)
        for member, row in zip(sets, np.cumsum(np.isnan(sets)), strict=True):
            if not np.isnan(member):
                clues.thresholds.setdefault(features[owners[row]], []).append(float(member))


def _scaler(clues: Clues, use: Use) -> None:
    offset = np.asarray(use.node.attributes.get_floats("offset", (0.0,)))
    scale = np.asarray(use.node.attributes.get_floats("scale", (1.0,)))
    clues.affine = offset, np.divide(1, scale, out=np.ones_like(scale), where=scale != 0)


def _reshape(clues: Clues, use: Use) -> None:
    data = use.shape(0)

    def contents(shape: tuple[int, ...]) -> Any:
        length = math.prod(shape)
        if data is not None and length >= len(data):
            return np.array([*data, *[1] * (length - len(data))]).reshape(shape)
        kept = data[-(length - 1) :] if data is not None and length > 1 else [1] * (length - 1)
        return np.array([-1, *kept]).reshape(shape)

    _set(clues, use, contents)


def _expand(clues: Clues, use: Use) -> None:
    data = use.shape(0) or ()

    def contents(shape: tuple[int, ...]) -> Any:
        length = math.prod(shape)
        aligned = [*[1] * (length - len(data)), *(data[-length:] if length else ())]
        return np.array([size if size != 1 else 2 for size in aligned], np.int64).reshape(shape)

    _set(clues, use, contents)


def _top_k(clues: Clues, use: Use) -> None:
    clues.limit(1, use.length(0, use.number("axis", -1)) or 1)


def _split(clues: Clues, use: Use) -> None:
    total = use.length(0, use.number("axis"))

    def contents(shape: tuple[int, ...]) -> Any:
        if not shape:
            return np.asarray(2)
        whole = shape[0] if total is None else total
        return np.array([whole // shape[0] + (place < whole % shape[0]) for place in range(shape[0])])

    _set(clues, use, contents)


def _slice_start(clues: Clues, use: Use) -> None:
    clues.limit(0, 1)


def _slice_end(clues: Clues, use: Use) -> None:
    data = use.shape(0)
    clues.limit(2, max(2, min(data)) if data else 3)


def _scales(clues: Clues, use: Use) -> None:
    """Batch and channels stay as they are."""
    rank = use.rank()
    clues.is_scale = not use.direct
    _set(
        clues, use, lambda shape: np.array([1.0 if shape[0] == rank and axis < 2 else 2.0 for axis in range(shape[0])])
    )


def _target_sizes(clues: Clues, use: Use) -> None:
    data = use.shape(0)
    axes = use.numbers("axes")

    def contents(shape: tuple[int, ...]) -> Any:
        if data is None:
            return np.full(shape, 4)
        chosen = axes if len(axes) == shape[0] else range(shape[0])
        return np.array([data[axis] * (2 if axis % len(data) >= 2 else 1) for axis in chosen])

    _set(clues, use, contents)


def _resize(clues: Clues, use: Use) -> None:
    if len(use.node.inputs) == 2:
        late = 1
    elif use.index == 1:
        _set(clues, use, lambda shape: np.repeat([0.0, 1.0], shape[0] // 2))
        return
    else:
        late = 2
    if use.index == late:
        _scales(clues, use)
    elif use.index == 3:
        _target_sizes(clues, use)


def _rank_limit(clues: Clues, use: Use) -> None:
    rank = use.rank()
    clues.limit(0, None if rank is None else max(rank - 1, 0))


def _dft_axis(clues: Clues, use: Use) -> None:
    _set(clues, use, lambda shape: np.ones(shape))


def _dft_length(clues: Clues, use: Use) -> None:
    clues.limit(4, use.length(0, use.number("axis", 1)) or 8)


def _times(clues: Clues, use: Use) -> None:
    clues.limit(1, use.length(0, use.number("time_axis")) or 1)


def _batch_index(clues: Clues, use: Use) -> None:
    clues.below(use.length(0, 0))


def _rois(clues: Clues, use: Use) -> None:
    """Boxes from corner to corner, after the number of the image where there are five columns."""
    image = use.shape(0)
    scale = use.node.attributes.get_float("spatial_scale", 1.0) or 1.0

    def contents(shape: tuple[int, ...]) -> Any:
        height, width = (image[2], image[3]) if image is not None and len(image) == 4 else (8, 8)
        corners = np.array([0.1 * width, 0.2 * height, 0.8 * width, 0.9 * height]) / scale
        boxes = corners * np.linspace(0.5, 1, shape[0])[:, None]
        return np.hstack([np.zeros((shape[0], shape[1] - 4)), boxes])

    _set(clues, use, contents)


def _classes(clues: Clues, use: Use) -> None:
    clues.below(use.length(0, 1))


def _unpooled(clues: Clues, use: Use) -> None:
    _set(clues, use, lambda shape: np.arange(math.prod(shape)).reshape(shape))


def _unpooled_shape(clues: Clues, use: Use) -> None:
    data, kernel = use.shape(0), use.numbers("kernel_shape")
    strides = use.numbers("strides") or [1] * len(kernel)
    if data is not None and len(data) == len(kernel) + 2:
        sides = [(n - 1) * s + k for n, s, k in zip(data[2:], strides, kernel, strict=True)]
        _set(clues, use, lambda shape: np.array([*data[:2], *sides]))


def _grid_size(clues: Clues, use: Use) -> None:
    batch = use.length(0, 0) or 1
    _set(clues, use, lambda shape: np.array([batch, 3, 5, 6, 4][: shape[0]]))


def _features(clues: Clues, use: Use) -> None:
    clues.below(use.length(0, -1))


def _positions(clues: Clues, use: Use) -> None:
    clues.below(use.length(1, 0))


def _no_training(clues: Clues, use: Use) -> None:
    """A model that drops elements at random cannot be compared."""
    _set(clues, use, lambda shape: np.zeros(shape, bool))


def _zero_point(clues: Clues, use: Use) -> None:
    value = use.value(use.index)
    if value is not None and value.dtype is not None and value.dtype.bitwidth > 8:
        clues.limit(0, 0)
    else:
        clues.limit(0, 3)


def _clip_low(clues: Clues, use: Use) -> None:
    clues.limit(-1, 0)


def _exponent(clues: Clues, use: Use) -> None:
    clues.limit(0, 3)


def _center_crop(clues: Clues, use: Use) -> None:
    clues.limit(2, 8)


def _pads(clues: Clues, use: Use) -> None:
    """Padding with zeros on one side: no mode reaches further than the data."""
    clues.limit(0, 1)


_scale = _within(0.01, 0.1)
_step = _within(1, 2)
_recurrent = _at(_4=_length)
_branch = _at(_0=_mask)
_window = _at(_0=_within(8, 16))

CLUES: dict[str, Rule] = {
    "Gather": _at(_1=_gather),
    "GatherElements": _at(_1=_gather),
    "GatherND": _at(_1=_gather_nd),
    "ScatterElements": _at(_1=_scatter_elements),
    "Scatter": _at(_1=_scatter_elements),
    "ScatterND": _at(_1=_scatter_nd),
    "OneHot": _at(_0=_one_hot, _1=_within(3, 6), _2=_is(0, 1)),
    "EmbedLayerNormalization": _embed,
    "Equal": _equal,
    **dict.fromkeys(
        ("LabelEncoder", "CategoryMapper", "OneHotEncoder", "TfIdfVectorizer", "StringNormalizer", "DictVectorizer"),
        _keys,
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("Where", "Not", "If", "Compress"), _branch),
    "Sub": _subtract,
    "Div": _divide,
    "Mod": _at(_1=_positive),
    "Log": _positive,
    "Sqrt": _positive,
    "Reciprocal": _positive,
    "Pow": _at(_0=_positive, _1=_exponent),
    "Acos": _limits(-0.95, 0.95),
    "Asin": _limits(-0.95, 0.95),
    "Atanh": _limits(-0.95, 0.95),
    "Acosh": _limits(1, 4),
    "Bernoulli": _limits(0, 1),
    **dict.fromkeys(("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"), _trees),
    "Scaler": _scaler,
    "Reshape": _at(_1=_reshape),
    "Expand": _at(_1=_expand),
    "Tile": _at(_1=_step),
    "ConstantOfShape": _at(_0=_within(1, 4)),
    "Pad": _at(_1=_pads, _3=_axes),
    "Slice": _at(_1=_slice_start, _2=_slice_end, _3=_axes, _4=_is(1)),
    "Squeeze": _at(_1=_axes),
    "Unsqueeze": _at(_1=_axes),
    "Split": _at(_1=_split),
    "SplitToSequence": _at(_1=_split),
    "TopK": _at(_1=_top_k),
    "Resize": _resize,
    "Upsample": _at(_1=_scales),
    "CumSum": _at(_1=_rank_limit),
    "CumProd": _at(_1=_rank_limit),
    "Range": _at(_0=_within(0, 2), _1=_within(5, 10), _2=_step),
    "Loop": _at(_0=_within(1, 4), _1=_mask),
    "NonMaxSuppression": _at(
        _0=_within(0, 1), _1=_within(0, 1), _2=_within(1, 5), _3=_within(0.3, 0.7), _4=_within(0, 0.3)
    ),
    "HannWindow": _window,
    "HammingWindow": _window,
    "BlackmanWindow": _window,
    "DFT": _at(_1=_dft_length, _2=_dft_axis),
    "STFT": _at(_1=_within(4, 8), _2=_positive, _3=_is(FRAME)),
    "Col2Im": _at(_1=_is(PICTURE), _2=_is(BLOCK)),
    "MelWeightMatrix": _at(_0=_is(8), _1=_is(64), _2=_is(8192), _3=_is(0), _4=_is(4096)),
    "Trilu": _at(_1=_within(-1, 1)),
    "SequenceAt": _at(_1=_within(0, 1)),
    "SequenceErase": _at(_1=_within(0, 1)),
    "SequenceInsert": _at(_2=_within(0, 1)),
    "ReverseSequence": _at(_1=_times),
    "RoiAlign": _at(_1=_rois, _2=_batch_index),
    "MaxRoiPool": _at(_1=_rois),
    "MaxUnpool": _at(_1=_unpooled, _2=_unpooled_shape),
    "NegativeLogLikelihoodLoss": _at(_1=_classes, _2=_positive),
    "SoftmaxCrossEntropyLoss": _at(_1=_classes, _2=_positive),
    "GridSample": _at(_1=_within(-1.2, 1.2)),
    "AffineGrid": _at(_1=_grid_size),
    "CenterCropPad": _at(_1=_center_crop),
    "BitShift": _at(_1=_within(0, 3)),
    "Dropout": _at(_1=_within(0, 0.5), _2=_no_training),
    "BatchNormalization": _at(_4=_positive),
    "QuantizeLinear": _at(_1=_scale, _2=_zero_point),
    "DequantizeLinear": _at(_1=_scale, _2=_zero_point),
    "QLinearConv": _at(_1=_scale, _2=_zero_point, _4=_scale, _5=_zero_point, _6=_scale, _7=_zero_point),
    "QLinearMatMul": _at(_1=_scale, _2=_zero_point, _4=_scale, _5=_zero_point, _6=_scale, _7=_zero_point),
    "Clip": _at(_1=_clip_low, _2=_step),
    "ArrayFeatureExtractor": _at(_1=_features),
    "RotaryEmbedding": _at(_3=_positions),
    "Attention": _at(_6=_within(1, 4)),
    "TensorScatter": _at(_2=_is(0)),
    "Adam": _at(_0=_scale, _1=_within(0, 3)),
    "Adagrad": _at(_0=_scale, _1=_within(0, 3)),
    "Momentum": _at(_0=_scale, _1=_within(0, 3)),
    **{
        f"Reduce{kind}": _at(_1=_axes)
        for kind in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"]
    },
    "ReduceSum": language.summed(_at(_1=_axes)),
    **language.CLUES,
}
"""Rules for `clues.clues_of`."""
