"""Gradients of activation functions."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_op

X = np.random.default_rng(1).uniform(-4, 4, (3, 4))
PLAIN = ["Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "HardSwish", "Mish"]
WITH_ATTRIBUTES: list[tuple[str, dict[str, Any]]] = [
    ("LeakyRelu", {"alpha": 0.1}),
    ("ThresholdedRelu", {"alpha": 0.7}),
    ("Elu", {"alpha": 1.3}),
    ("Selu", {}),
    ("Celu", {"alpha": 1.7}),
    ("HardSigmoid", {"alpha": 0.25, "beta": 0.4}),
    ("Shrink", {"bias": 0.3, "lambd": 1.1}),
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Softmax", {"axis": 0}),
    ("Softmax", {}),
    ("LogSoftmax", {"axis": -1}),
]


@pytest.mark.parametrize("op", PLAIN)
def test_plain(op: str) -> None:
    check_op(op, {"x": X}, opset=22)


@pytest.mark.parametrize(("op", "attributes"), WITH_ATTRIBUTES)
def test_with_attributes(op: str, attributes: dict[str, Any]) -> None:
    check_op(op, {"x": X}, opset=22, **attributes)


def test_swish() -> None:
    check_op("Swish", {"x": X}, opset=24, alpha=1.2)


def test_prelu() -> None:
    check_op("PRelu", {"x": X, "slope": np.asarray([0.1, 0.2, 0.3, 0.4])})
