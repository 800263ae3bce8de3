"""Layers of Keras, each with its main options, compute in ONNX what they compute in Keras."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from all_cases import CASES, REFUSED_CASES, REFUSED_CLASSES, class_of, classes  # noqa: E402
from onnx_on_keras import check  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402
from onward.exporters import from_keras  # noqa: E402

L = keras.layers
ROW = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED_CASES])
def test_the_same_is_computed(name: str) -> None:
    case = CASES[name]
    check(case.model(), *case.data, rtol=case.rtol)


@pytest.mark.parametrize("name", REFUSED_CASES)
def test_the_rest_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError):
        from_keras(CASES[name].model())


def test_every_class_is_tried_or_refused_by_name() -> None:
    assert {class_of(name) for name in CASES} | REFUSED_CLASSES.keys() == set(classes())


def test_a_sequential_model_and_what_it_is_called() -> None:
    model = keras.Sequential([keras.Input((6,), name="row"), L.Dense(4, name="first"), L.Dense(2, name="scores")])
    graph = from_keras(model).ir.graph
    assert [value.name for value in graph.inputs] == ["row"]
    assert [value.name for value in graph.outputs] == ["scores"]
    check(model, ROW)


def test_inputs_by_name() -> None:
    inputs = {"a": keras.Input((6,), name="a"), "b": keras.Input((6,), name="b")}
    model = keras.Model(inputs, {"sum": L.Add()([inputs["a"], inputs["b"]]), "a": inputs["a"]})
    graph = from_keras(model).ir.graph
    assert [value.name for value in graph.inputs] == ["a", "b"]
    assert {value.name for value in graph.outputs} == {"sum", "a"}
