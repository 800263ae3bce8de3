"""Gradients of convolutions."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_op

from onward.training.autodiff import convolution

Shape = tuple[int, ...]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def between(*shape: int, low: float, high: float = 0.9) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 1).uniform(low, high, shape)


CONVOLUTIONS: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "one axis": ((2, 2, 5), (3, 2, 3), {}),
    "three axes": ((1, 1, 3, 3, 4), (2, 1, 2, 2, 2), {"strides": [1, 2, 1]}),
    "pads": ((2, 2, 4, 4), (2, 2, 3, 3), {"pads": [1, 1, 1, 1]}),
    "uneven pads": ((1, 2, 4, 5), (2, 2, 2, 3), {"pads": [0, 1, 2, 0]}),
    "strides": ((1, 2, 6, 5), (2, 2, 3, 2), {"strides": [2, 3]}),
    "strides and pads": ((1, 2, 6, 6), (2, 2, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "dilations": ((1, 1, 6, 5), (2, 1, 2, 2), {"dilations": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    "groups": ((2, 4, 4, 3), (4, 2, 2, 2), {"group": 2}),
    "depthwise": ((2, 3, 4, 4), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "depthwise, strides": ((1, 3, 5, 5), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "depthwise, more channels": ((1, 2, 4, 3), (4, 1, 2, 2), {"group": 2}),
    "depthwise, dilations": ((2, 2, 5, 4), (2, 1, 3, 2), {"group": 2, "dilations": [1, 2], "pads": [1, 0, 0, 1]}),
    "depthwise, one axis": ((2, 2, 5), (4, 1, 2), {"group": 2, "pads": [1, 0]}),
    "pointwise": ((2, 3, 2, 3), (4, 3, 1, 1), {}),
    "pointwise, strides": ((2, 3, 3, 4), (2, 3, 1, 1), {"strides": [2, 2]}),
    "pointwise, groups": ((2, 4, 2, 2), (2, 2, 1, 1), {"group": 2}),
    "pointwise, pads": ((1, 2, 2, 2), (2, 2, 1, 1), {"pads": [1, 0, 0, 1]}),
    "same upper": ((1, 2, 5, 4), (2, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "same lower": ((1, 2, 4, 5), (2, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "valid": ((1, 2, 4), (2, 2, 2), {"auto_pad": "VALID"}),
    "many taps": ((2, 2, 6, 5), (3, 2, 5, 4), {"strides": [2, 1], "pads": [2, 1, 1, 2]}),
    "as large as the image": ((2, 2, 3, 3), (3, 2, 3, 3), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv(name: str) -> None:
    x, w, attributes = CONVOLUTIONS[name]
    check_op("Conv", {"x": normal(*x), "w": normal(*w)}, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"kernel_shape": [2, 2]}, {"auto_pad": "SAME_UPPER"}])
def test_conv_with_bias(attributes: dict[str, Any]) -> None:
    check_op("Conv", {"x": normal(2, 2, 3, 4), "w": normal(3, 2, 2, 2), "b": normal(3)}, **attributes)


FORMS: dict[str, dict[str, int]] = {
    "product a tap": {"FEW_CHANNELS": -1, "COST_OF_GATHERING": 999},
    "number by number": {"COST_OF_GATHERING": 0},
    "by rows and by sums": {"COST_OF_GATHERING": 999, "SOME_CHANNELS": 0},
    "swapped": {"MANY_TAPS": 0},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name",
    [
        *("one axis", "three axes", "pads", "uneven pads", "strides", "strides and pads", "dilations", "groups"),
        *("same upper", "pointwise", "pointwise, strides", "pointwise, pads", "as large as the image"),
    ],
)
def test_forms_for_other_sizes(form: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms that are meant for larger tensors."""
    for constant, value in FORMS[form].items():
        monkeypatch.setattr(convolution, constant, value)
    x, w, attributes = CONVOLUTIONS[name]
    check_op("Conv", {"x": normal(*x), "w": normal(*w)}, second=name in ("pads", "strides"), **attributes)


TRANSPOSED: dict[str, tuple[Shape, Shape, dict[str, Any]]] = {
    "one axis": ((2, 2, 3), (2, 3, 3), {}),
    "three axes": ((1, 1, 2, 2, 2), (1, 2, 2, 2, 1), {"strides": [1, 2, 1]}),
    "strides and pads": ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "uneven pads": ((1, 2, 3, 2), (2, 1, 3, 3), {"strides": [2, 1], "pads": [0, 1, 1, 0]}),
    "output padding": ((1, 2, 2, 3), (2, 2, 3, 2), {"strides": [2, 3], "output_padding": [1, 2]}),
    "dilations": ((1, 1, 3, 2), (1, 2, 2, 2), {"dilations": [2, 1], "strides": [1, 2], "pads": [1, 0, 1, 1]}),
    "groups": ((2, 4, 2, 3), (4, 2, 2, 2), {"group": 2}),
    "depthwise": ((1, 3, 3, 3), (3, 1, 2, 2), {"group": 3, "strides": [2, 2]}),
    "output shape": ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [3, 2], "output_shape": [8, 6]}),
    "longer than all windows": ((1, 1, 2, 3), (1, 1, 2, 2), {"strides": [2, 2], "output_shape": [5, 7]}),
    "same upper": ((1, 2, 3, 3), (2, 2, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "same lower": ((1, 2, 3, 3), (2, 2, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    "pointwise": ((2, 3, 2, 2), (3, 2, 1, 1), {}),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose(name: str) -> None:
    x, w, attributes = TRANSPOSED[name]
    check_op("ConvTranspose", {"x": normal(*x), "w": normal(*w)}, **attributes)


def test_conv_transpose_with_bias() -> None:
    check_op("ConvTranspose", {"x": normal(2, 2, 2, 3), "w": normal(2, 3, 2, 2), "b": normal(3)}, strides=[2, 1])


@pytest.mark.parametrize(
    ("shape", "image", "block", "attributes"),
    [
        ((1, 8, 6), [3, 4], [2, 2], {}),
        ((2, 2, 4), [5], [2], {}),
        ((1, 4, 6), [4, 5], [2, 2], {"strides": [2, 2], "pads": [0, 1, 0, 1]}),
        ((1, 4, 6), [4, 4], [2, 2], {"dilations": [2, 1]}),
    ],
)
def test_col2im(shape: Shape, image: list[int], block: list[int], attributes: dict[str, Any]) -> None:
    inputs = {"x": normal(*shape), "image": np.asarray(image), "block": np.asarray(block)}
    check_op("Col2Im", inputs, **attributes)


DEFORMED: dict[str, tuple[Shape, Shape, int, dict[str, Any]]] = {
    "plain": ((1, 1, 3, 4), (1, 1, 2, 2), 1, {}),
    "pads and strides": ((1, 1, 4, 4), (2, 1, 2, 2), 1, {"pads": [1, 0, 1, 1], "strides": [2, 2]}),
    "groups": ((2, 4, 2, 3), (2, 2, 2, 2), 2, {"group": 2, "offset_group": 2}),
    "dilations": ((1, 2, 4, 3), (1, 2, 2, 2), 1, {"dilations": [2, 1]}),
}


@pytest.mark.parametrize("name", DEFORMED)
@pytest.mark.parametrize("masked", [True, False])
def test_deform_conv(name: str, masked: bool) -> None:
    x, w, groups, attributes = DEFORMED[name]
    strides, pads, dilations = (
        attributes.get(k, d) for k, d in (("strides", [1, 1]), ("pads", [0] * 4), ("dilations", [1, 1]))
    )
    steps = [(x[2 + i] + pads[i] + pads[2 + i] - (w[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    taps = w[2] * w[3]
    inputs = {
        "x": normal(*x),
        "w": normal(*w),
        "offset": between(x[0], groups * 2 * taps, *steps, low=0.1, high=0.8),
        "bias": normal(w[0]),
    }
    if masked:
        inputs["mask"] = between(x[0], groups * taps, *steps, low=0.2)
    check_op("DeformConv", inputs, second=masked, kernel_shape=[2, 2], **attributes)
