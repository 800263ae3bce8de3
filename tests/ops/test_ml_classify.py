"""Linear models and support vector machines against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from harness import check, floats, merged, source, to_torch
from ml_models import ml_model

from onward.errors import UnsupportedError

X = floats(9, 3)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


def numbers(count: int, seed: int = 0) -> list[float]:
    return [float(v) for v in floats(count, seed=seed)]


def check_all(models: list[onnx.ModelProto], x: np.ndarray = X, tolerance: float = 2e-5) -> None:
    check(*merged([(model, [x]) for model in models]), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets: int) -> None:
    given = {"targets": targets, "coefficients": [v / 9 for v in numbers(3 * targets)]}
    check_all(
        [
            ml_model("LinearRegressor", [X], post_transform=transform, **given, **bias)
            for transform in TRANSFORMS
            for bias in [{}, {"intercepts": [0.5, 0.25, 0.75][:targets]}]
        ],
        tolerance=1e-4,
    )


def test_linear_models_of_one_row() -> None:
    row = X[0]
    check(ml_model("LinearRegressor", [row], targets=2, coefficients=numbers(6), intercepts=[1.0, 2.0]), [row])


def test_linear_models_are_linear_layers() -> None:
    code = source(ml_model("LinearRegressor", [X], targets=2, coefficients=numbers(6), intercepts=[1.0, 2.0]))
    assert "nn.Linear(3, 2)" in code


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize(
    ("rows", "names"),
    [(1, [5, 9]), (1, []), (1, ["no", "yes"]), (2, [5, 9]), (3, [0, 1, 2]), (3, ["a", "b", "c"])],
    ids=str,
)
def test_linear_classifier(rows: int, names: list[Any], dtype: Any) -> None:
    x = (X * 2).astype(dtype)
    given: dict[str, Any] = {"coefficients": [v / 3 for v in numbers(3 * rows)], "intercepts": numbers(rows, 1)}
    if names:
        given["classlabels_strings" if isinstance(names[0], str) else "classlabels_ints"] = names
    single = rows == 1 and len(names) == 2
    check_all(
        [
            ml_model("LinearClassifier", [x], 2, post_transform=transform, **given)
            for transform in TRANSFORMS
            if not (single and transform == "PROBIT")
        ],
        x,
        1e-4,
    )


def test_a_single_probit_of_two_classes_is_refused() -> None:
    given = {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.0], "classlabels_ints": [0, 1]}
    with pytest.raises(UnsupportedError, match="PROBIT"):
        to_torch(ml_model("LinearClassifier", [X], 2, post_transform="PROBIT", **given))


KERNELS = {
    "LINEAR": [0.0, 0.0, 0.0],
    "POLY": [0.25, 2.0, 3.0],
    "RBF": [0.5, 0.0, 0.0],
    "SIGMOID": [0.5, 0.125, 0.0],
}


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("kind", KERNELS)
def test_svm_regressor(kind: str, one_class: int) -> None:
    model = ml_model(
        "SVMRegressor",
        [X],
        kernel_type=kind,
        kernel_params=KERNELS[kind],
        support_vectors=numbers(12),
        coefficients=numbers(4, 1),
        rho=[0.25],
        n_supports=4,
        one_class=one_class,
    )
    check(model, [X], rtol=2e-5, atol=2e-5)


def test_svm_regressor_without_vectors() -> None:
    model = ml_model("SVMRegressor", [X], coefficients=numbers(3), rho=[0.5], kernel_params=[0.0] * 3)
    check(model, [X])


def machine(classes: int, kind: str, shares: bool, seed: int, strings: bool = False) -> dict[str, Any]:
    counts, pairs = [2, 3, 1, 2][:classes], classes * (classes - 1) // 2
    given: dict[str, Any] = {
        "kernel_type": kind,
        "kernel_params": KERNELS[kind],
        "support_vectors": numbers(3 * sum(counts), seed),
        "vectors_per_class": counts,
        "coefficients": numbers((classes - 1) * sum(counts), seed + 1),
        "rho": numbers(pairs, seed + 2),
    }
    if shares:
        given |= {"prob_a": [-abs(v) - 0.5 for v in numbers(pairs, seed + 3)], "prob_b": numbers(pairs, seed + 4)}
    key = "classlabels_strings" if strings else "classlabels_ints"
    return given | {key: ["d", "b", "c", "a"][:classes] if strings else [7, 3, 5, 1][:classes]}


@pytest.mark.parametrize("shares", [False, True], ids=["scores", "probabilities"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_svm_classifier(classes: int, shares: bool) -> None:
    check_all(
        [
            ml_model(
                "SVMClassifier", [X], 2, post_transform=transform, **machine(classes, kind, shares, seed, seed > 0)
            )
            for seed, kind in enumerate(KERNELS)
            for transform in TRANSFORMS
            if transform != "PROBIT"
        ],
        tolerance=1e-4,
    )


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_svm_classifier_with_probit(classes: int) -> None:
    """Next to a probability of 1, rounding it the other way moves its probit by a hundredth: PyTorch rounds alike."""
    models = [
        ml_model("SVMClassifier", [X], 2, post_transform="PROBIT", **machine(classes, kind, True, seed, seed > 0))
        for seed, kind in enumerate(KERNELS)
    ]
    check(*merged([(model, [X]) for model in models]), rtol=1e-4, atol=1e-4, backends=["torch"])


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_svm_classifier_input_types(dtype: Any) -> None:
    x = (X * 2).astype(dtype)
    check(ml_model("SVMClassifier", [x], 2, **machine(3, "RBF", True, 0)), [x], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_svm_classifier_without_vectors(classes: int, positive: bool) -> None:
    coefficients = [abs(v) if positive else v for v in numbers(3 * classes)]
    given = {"coefficients": coefficients, "rho": [0.25], "kernel_params": [0.0] * 3, "classlabels_ints": [4, 5, 6]}
    given["classlabels_ints"] = given["classlabels_ints"][:classes]
    check_all([ml_model("SVMClassifier", [X], 2, post_transform=t, **given) for t in TRANSFORMS[:4]])
