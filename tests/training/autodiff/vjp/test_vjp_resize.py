"""Gradients of resizing."""

from typing import Any

import numpy as np
import onnx
import pytest
from gradient_checks import TARGET, Arrays, check_model, run_onnxruntime, single_precision, with_target
from onnx import TensorProto, helper, numpy_helper

from onward.scoreboard.suite import forget_shapes
from onward.training.autodiff.derivatives import gradient

Shape = tuple[int, ...]


def resize_model(
    shape: Shape, given: dict[str, Any], constant: bool, **attributes: Any
) -> tuple[onnx.ModelProto, Arrays]:
    """A Resize whose scales, sizes or region are part of the model, or inputs; and the inputs."""
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    kinds = {"roi": np.float32, "scales": np.float32, "sizes": np.int64}
    arrays = {name: np.asarray(given[name], kinds[name]) for name in kinds if name in given}
    node = helper.make_node(
        "Resize", ["x", *(name if name in given else "" for name in kinds)], ["y"], name="Resize", **attributes
    )
    values = {"x": x} if constant else {"x": x, **arrays}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in values.items()
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()] if constant else []
    graph = helper.make_graph([node], "resize", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), values


def resized(shape: Shape, given: dict[str, Any], constant: bool = True, **attributes: Any) -> None:
    """Check by differences; places are to be exact in single precision."""
    check_model(*resize_model(shape, given, constant, **attributes), wrt=["x"])


def transposed(shape: Shape, given: dict[str, Any], constant: bool = True, **attributes: Any) -> None:
    """On ONNX Runtime, the gradient weighted by the input is the result weighted by the gradient's start."""
    model, inputs = resize_model(shape, given, constant, **attributes)
    model = with_target(model, inputs)
    for shaped in (model, forget_shapes(model)):
        found = run_onnxruntime(gradient(single_precision(shaped), TARGET, ["x"]).to_proto(), inputs)
        assert np.sum(found["x.grad"] * inputs["x"]) == pytest.approx(float(found[TARGET]), rel=1e-5, abs=1e-5)


SMALL = (1, 2, 3, 4)
UP, DOWN, SIZES = {"scales": [1, 1, 2, 4]}, {"scales": [1, 1, 2, 0.5]}, {"sizes": [1, 2, 6, 2]}
ODD = [{"scales": [1, 1, 2.3, 0.6]}, {"scales": [1, 1, 1.1, 1.9]}, {"sizes": [1, 2, 5, 7]}, {"sizes": [1, 2, 1, 3]}]
MODES = ["nearest", "linear", "cubic"]
COORDINATES = ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coordinates", COORDINATES[:3])
@pytest.mark.parametrize("given", [UP, SIZES], ids=["up", "sizes"])
def test_modes(mode: str, coordinates: str, given: dict[str, Any]) -> None:
    resized(SMALL, given, mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("mode", MODES)
def test_corners(mode: str) -> None:
    resized(SMALL, {"sizes": [1, 2, 5, 7]}, mode=mode, coordinate_transformation_mode="align_corners")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(mode: str) -> None:
    resized(SMALL, DOWN, mode=mode, antialias=1, exclude_outside=1, cubic_coeff_a=-0.5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("antialias", [0, 1])
def test_places_that_are_rounded(mode: str, coordinates: str, antialias: int) -> None:
    if mode == "nearest" and antialias:
        return
    for given in ODD:
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "antialias": antialias}
        transposed((1, 2, 3, 5), given, **attributes)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_ceil", "round_prefer_floor"])
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel"])
def test_whole_numbers_of_copies(rounding: str, coordinates: str) -> None:
    attributes = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    resized((2, 1, 2, 3), {"scales": [1, 1, 3, 2]}, **attributes)


@pytest.mark.parametrize(
    ("shape", "given", "attributes"),
    [
        ((2, 2, 3), {"scales": [1, 1, 4]}, {"mode": "linear"}),
        ((1, 1, 2, 2, 3), {"scales": [1, 1, 2, 1, 2]}, {"mode": "nearest"}),
        ((1, 1, 2, 2, 3), {"sizes": [1, 1, 4, 2, 6]}, {"mode": "linear"}),
        ((3, 4), {"scales": [2, 0.5]}, {"mode": "linear"}),
        (SMALL, {"sizes": [6, 8]}, {"mode": "cubic", "axes": [2, 3]}),
        (SMALL, {"sizes": [2, 6]}, {"mode": "linear", "axes": [-1, -2]}),
        (SMALL, {"scales": [1, 1, 2, 2]}, {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}),
        (SMALL, {"scales": [1, 1, 4, 2]}, {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
        (SMALL, {"sizes": [6, 9]}, {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
        (SMALL, {"sizes": [5, 8]}, {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}),
    ],
)
def test_shapes(shape: Shape, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    resized(shape, given, **attributes)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_cropping(mode: str) -> None:
    given = {"roi": [0, 0, 0.25, 0.125, 1, 1, 0.75, 1.125], "sizes": [1, 2, 5, 5]}
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
    resized(SMALL, given, mode=mode, **attributes)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_bounds(policy: str) -> None:
    for mode, sizes in (("linear", [5, 6]), ("nearest", [7, 4]), ("cubic", [2, 2])):
        transposed(SMALL, {"sizes": sizes}, mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)


@pytest.mark.parametrize("given", [UP, DOWN], ids=["up", "down"])
def test_known_when_it_runs(given: dict[str, Any]) -> None:
    resized(SMALL, given, constant=False, mode="linear")
