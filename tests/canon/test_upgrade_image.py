"""Upgrades of normalisations, pooling, resizing and of the removed ops, most of them on images."""

import numpy as np
import pytest
from old_files import Old, cases, check, floats, ints, upgraded

from onward.errors import UnsupportedError

X = floats(2, 3, 4, 5)
STATISTICS = [floats(3), floats(3), floats(3), abs(floats(3))]
BY_ELEMENT = [floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5), abs(floats(3, 4, 5))]


def column(v: np.ndarray) -> np.ndarray:
    return v.reshape(-1, 1, 1)


def with_statistics(x, scale, bias, mean, var):  # type: ignore[no-untyped-def]
    return column(scale) * (x - column(mean)) / np.sqrt(column(var) + np.float32(1e-5)) + column(bias)


def with_batch(x, scale, bias, mean, var):  # type: ignore[no-untyped-def]
    batch_mean, batch_var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    running = [np.float32(0.9) * old + np.float32(0.1) * new for old, new in ((mean, batch_mean), (var, batch_var))]
    saved = 1 / np.sqrt(batch_var + np.float32(1e-5))
    return with_statistics(x, scale, bias, batch_mean, batch_var), *running, batch_mean, saved


NORM = [
    Old(
        "BatchNormalization",
        1,
        [X, *STATISTICS],
        {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]},
        expect=with_statistics,
    ),
    Old("BatchNormalization", 6, [X, *STATISTICS], {"is_test": 1}, expect=with_statistics, rtol=1e-5),
    Old("BatchNormalization", 6, [X, *STATISTICS], {}, outputs=5, expect=with_batch, rtol=1e-5),
    Old("BatchNormalization", 6, [X, *STATISTICS], {}, expect=lambda *a: with_batch(*a)[0], rtol=1e-5),
    Old("BatchNormalization", 7, [X, *STATISTICS]),
    Old("BatchNormalization", 7, [X, *BY_ELEMENT], {"spatial": 0, "epsilon": 0.1}, rtol=1e-5),
    Old("BatchNormalization", 9, [X, *STATISTICS], {"epsilon": 0.1}),
    Old("BatchNormalization", 9, [X, *STATISTICS], {"momentum": 0.7}, outputs=5, rtol=1e-5),
    Old(
        "InstanceNormalization",
        1,
        [X, *STATISTICS[:2]],
        {"consumed_inputs": [0]},
        expect=lambda x, s, b: (
            column(s)
            * (x - x.mean((2, 3), keepdims=True))
            / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5).astype(np.float32)
            + column(b)
        ),
        rtol=1e-5,
    ),
    Old("GroupNormalization", 18, [floats(2, 6, 4), floats(3), floats(3)], {"num_groups": 3}, rtol=1e-5),
    Old(
        "GroupNormalization",
        18,
        [floats(2, 6, 4).astype(np.float64), floats(3).astype(np.float64), floats(3).astype(np.float64)],
        {"num_groups": 3},
        rtol=1e-12,
    ),
]

POOL = [
    Old(
        "LpPool",
        1,
        [X],
        {"kernel_shape": [2, 2], "p": 1.0},
        expect=lambda x: sum(abs(x[:, :, i : 3 + i, j : 4 + j]) for i in (0, 1) for j in (0, 1)),
        rtol=1e-5,
    ),
    Old("LpPool", 2, [X], {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]}),
    Old("GlobalLpPool", 1, [X], {}, expect=lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)), rtol=1e-5),
    Old(
        "RoiAlign",
        10,
        [X, np.array([[0, 0, 3, 3], [1, 1, 3, 2]], np.float32), ints(0, 1)],
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
    ),
    Old(
        "RoiAlign",
        10,
        [X, np.array([[0, 0, 3, 3], [1, 1, 3, 2]], np.float32), ints(0, 1)],
        {"mode": "max", "output_width": 3},
    ),
]

BIG, KERNEL = floats(1, 1, 7, 7), floats(1, 1, 3, 3)

UNCHANGED_POOL = [
    Old(op, opset, [BIG], {"kernel_shape": [2, 2], **window}, target=22)
    for op, opset in (("AveragePool", 10), ("AveragePool", 19), ("MaxPool", 10), ("LpPool", 18))
    for window in (
        {"strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1},
    )
]

UNCHANGED_OTHERS = [
    *(
        Old(
            "ConvTranspose",
            1,
            [BIG, KERNEL],
            {"strides": [2, 2], "output_shape": [14, 14], **attributes},
            target=22,
        )
        for attributes in ({}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"})
    ),
    Old("OneHot", 9, [ints(0, -1, 2, 3), ints(3), floats(2)]),
]

ROW = floats(1, 1, 3, 10)
NO_ROI, NO_SCALES = np.zeros(0, np.float32), np.zeros(0, np.float32)


def scales(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


RESIZE = [
    Old(
        "Upsample",
        1,
        [X],
        {"height_scale": 2.0, "width_scale": 3.0},
        expect=lambda x: x.repeat(2, 2).repeat(3, 3),
    ),
    Old("Upsample", 7, [ROW], {"scales": [1.0, 1.0, 1.0, 1.25]}),
    Old("Upsample", 7, [X], {"scales": [1.0, 1.0, 1.5, 2.5], "mode": "linear"}),
    Old("Upsample", 9, [X, scales(1, 1, 1.5, 2.5)], {"mode": "linear"}),
    Old("Upsample", 9, [X, scales(1, 1, 1.5, 2.5)], {"mode": "nearest"}, fixed=[1]),
    *(
        Old("Resize", 10, [ROW, scales(1, 1, *s)], {"mode": mode}, fixed=fixed)
        for s in ((2, 1.25), (0.7, 0.6), (1.5, 0.6))
        for mode in ("nearest", "linear")
        for fixed in ([1], [])
    ),
    Old("Resize", 11, [X, NO_ROI, scales(1, 1, 1.5, 0.6)], {"mode": "cubic"}, fixed=[1], rtol=1e-5),
    Old("Resize", 11, [X, NO_ROI, NO_SCALES, ints(2, 3, 7, 3)], {"mode": "linear"}, fixed=[1, 2], rtol=1e-5),
    Old("Resize", 11, [X, NO_ROI, NO_SCALES, ints(2, 3, 7, 3)], {}, rtol=1e-5),
    *(
        Old(
            "Resize",
            11,
            [ROW, NO_ROI, scales(1, 1, *s)],
            {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding},
        )
        for s in ((2, 1.25), (0.7, 0.6), (1, 3))
        for rounding in ("floor", "round_prefer_floor")
    ),
    Old(
        "Resize",
        11,
        [X, scales(0, 0, 0.2, 0.1, 1, 1, 0.7, 0.9), NO_SCALES, ints(2, 3, 3, 3)],
        {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"},
        rtol=1e-5,
    ),
    *(
        Old("GridSample", 16, [X, 1.2 * floats(2, 3, 3, 2)], {"mode": mode} if mode else {}, rtol=1e-5)
        for mode in ("", "bilinear", "nearest", "bicubic")
    ),
]

REMOVED = [
    Old("Affine", 1, [X], {"alpha": 2.0, "beta": 0.5}),
    Old("Scale", 1, [X], {"scale": 3.0}),
    Old("ScaledTanh", 1, [X], {"alpha": 2.0, "beta": 3.0}),
    Old("ParametricSoftplus", 1, [X], {"alpha": 2.0, "beta": 3.0}),
    Old("ThresholdedRelu", 1, [X], {"alpha": 0.5}),
    Old("ImageScaler", 1, [X], {"bias": [1.0, 2.0, 3.0], "scale": 2.0}),
    Old("Crop", 1, [X], {"border": [1, 0, 2, 1]}),
    Old("Crop", 1, [X], {"border": [0, 0, 0, 0]}),
    Old("Crop", 1, [X], {"border": [1, 2, 0, 0], "scale": [2, 3]}),
    Old("DynamicSlice", 1, [X, ints(1, 0), ints(3, 2), ints(3, 2)]),
    Old("DynamicSlice", 1, [X, ints(1, 0, dtype=np.int32), ints(3, 2, dtype=np.int32)]),
    Old("MeanVarianceNormalization", 1, [X], {}, rtol=1e-5),
    Old("MeanVarianceNormalization", 7, [X], {"across_channels": 1}, rtol=1e-5),
    Old("MeanVarianceNormalization", 7, [X], {"normalize_variance": 0}, rtol=1e-5),
    Old(
        "ConstantFill",
        1,
        [],
        {"shape": [2, 3], "value": 1.5},
        expect=lambda: np.full((2, 3), 1.5, np.float32),
    ),
    Old(
        "ConstantFill",
        1,
        [ints(2, 3)],
        {"input_as_shape": 1, "dtype": 7, "value": 4.0},
        expect=lambda s: np.full((2, 3), 4),
    ),
    Old("ConstantFill", 1, [X], {"extra_shape": [2]}, expect=lambda x: np.zeros((2, 3, 4, 5, 2), np.float32)),
    Old(
        "GivenTensorFill",
        1,
        [],
        {"shape": [2, 1], "values": [1.0, 2.0]},
        expect=lambda: np.array([[1], [2]], np.float32),
    ),
]


@cases([*NORM, *POOL, *UNCHANGED_POOL, *UNCHANGED_OTHERS, *RESIZE, *REMOVED])
def test_upgraded_file_computes_the_same(case: Old, shapes: bool) -> None:
    check(case, shapes)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (Old("LpPool", 1, [X], {"kernel_shape": [2, 2], "p": 1.5}), "p is 1.5"),
        (Old("BatchNormalization", 6, [X, *STATISTICS], {"is_test": 1}, outputs=3), "outside training"),
        (
            Old(
                "Resize",
                11,
                [X, NO_ROI, scales(1, 1, 2, 2)],
                {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "mode": "linear"},
            ),
            "no equivalent",
        ),
    ],
    ids=str,
)
def test_what_has_no_equivalent_is_refused(case: Old, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        upgraded(case.model(True))


def test_known_scales_need_one_resize() -> None:
    case = Old("Resize", 10, [ROW, scales(1, 1, 0.5, 0.6)], fixed=[1])
    assert [node.op_type for node in upgraded(case.model(True)).graph.node] == ["Resize"]
