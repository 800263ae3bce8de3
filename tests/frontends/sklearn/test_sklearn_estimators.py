"""Every estimator of scikit-learn that can be given new data becomes a model that says the same, or is refused."""

import pytest
import sklearn_battery as battery

from onward.frontends.sklearn.from_skl2onnx import REFUSED


@pytest.mark.parametrize("name", battery.names())
def test_the_model_says_what_the_estimator_says(name: str) -> None:
    problem = battery.problem(name)
    if name in REFUSED:
        assert problem == f"{name} cannot be converted: {REFUSED[name]}"
    else:
        assert problem is None
