"""Two models as one: it computes what they compute one after the other, whatever their names have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_samples import chain, trained, with_body, with_function
from graphs import model

import onward
from onward.errors import OnwardError
from onward.model import Model
from onward.training.info.check import check
from onward.training.info.read import load as load_training
from onward.training.recipe.described import recipes

X = np.array([[1.0, -4.0, 0.5], [2.0, 0.0, -1.0]], np.float32)


def run(made: Model, **feeds: Any) -> list[Any]:
    proto = made.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    return list(onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_model_behind_itself(sign: int) -> None:
    """Every name is in both, those inside bodies too, and a body captures values that are called otherwise now."""
    once = with_body()
    twice = onward.merge(once, once, {"y": "x"}, prefix="b/")
    (first,) = run(once, x=sign * X)
    np.testing.assert_array_equal(run(twice, x=sign * X)[0], run(once, x=first)[0])
    assert [value.name for value in twice.ir.graph.outputs] == ["b/y"]
    assert {"w", "b/w"} <= twice.ir.graph.initializers.keys()


def test_an_input_of_both_is_one_if_it_is_joined() -> None:
    both = onward.merge(with_body(), chain("Neg", "Exp"), {"x": "x"})
    assert [value.name for value in both.ir.graph.inputs] == ["x"]
    np.testing.assert_allclose(run(both, x=X)[1], np.exp(-X), rtol=1e-6)


def test_a_value_inside_and_inputs_that_are_left() -> None:
    second = model("g (float[n, 3] a, float[k] b, float[n, 3] c) => (float[n, 3] y) { s = Add(a, c) y = Add(s, b) }")
    both = onward.merge(with_body(), second, {"product": ["a", "c"]}, prefix="b/")
    assert [(value.name, str(value.shape)) for value in both.ir.graph.inputs] == [("x", "[n,3]"), ("b", "[k]")]
    assert [value.name for value in both.ir.graph.outputs] == ["y", "b/y"]
    w = np.array([1.0, -2.0, 3.0], np.float32)
    np.testing.assert_array_equal(run(both, x=X, b=np.ones(1, np.float32))[1], 2 * X * w + 1)


def test_sizes_of_one_name_in_two_models_are_two() -> None:
    first = model("g (float[n, k] x) => (float[n, k] y) { y = Relu(x) }")
    second = model("g (float[m, n] a, float[k] b) => (float[m, n] z) { z = Relu(a) }")
    both = onward.merge(first, second, {"y": "a"}, prefix="b/")
    assert str(both.ir.graph.outputs[0].shape) == "[n,k]"
    assert [str(value.shape) for value in both.ir.graph.inputs] == ["[n,k]", "[b/k]"]


def test_functions_of_one_name_and_other_bodies() -> None:
    """`twice` reads the same in both, and calls another `once`."""
    both = onward.merge(with_function("Relu"), with_function("Abs"), {"y": "x"}, prefix="b/")
    assert sorted(name for _, name, _ in both.ir.functions) == ["b_once", "b_twice", "once", "twice"]
    np.testing.assert_array_equal(run(both, x=X)[0], 4 * np.maximum(X, 0))
    equal = onward.merge(with_function(factor=-1.0), with_function(), {"y": "x"})
    assert sorted(name for _, name, _ in equal.ir.functions) == ["once", "twice"]


@pytest.mark.parametrize(("first", "second", "opset"), [(11, 17, 17), (11, 13, 13), (21, 9, 21)])
def test_opsets_are_brought_together(first: int, second: int, opset: int) -> None:
    """Neg means the same in all; Softmax something else before opset 13, so that it is rewritten."""
    ops = ("Neg", "Relu") if opset == 17 else ("Softmax", "Relu")
    one, other = chain(*ops, opset=first), chain(*ops, opset=second, start=5)
    both = onward.merge(one, other, {"v1": "x"})
    assert both.opset[""] == opset
    (between,) = run(one, x=X)
    np.testing.assert_allclose(run(both, x=X)[0], run(other, x=between)[0], rtol=1e-6)
    assert not any(node.metadata_props for node in both.ir.graph)


@pytest.mark.parametrize("opset", [17, 22])
def test_trainings_of_both_go_on(opset: int) -> None:
    """Also where their graphs have to be brought to another opset."""
    first, second = trained(), trained()
    text = "g (float[n, 3] x) => (float[n, 4] z) { z = Concat<axis=1>(x, one) }"
    adapter = model(text, opset, one=np.ones((2, 1), np.float32))
    first = onward.merge(first, adapter, {"y": "x"}, prefix="c/")
    both = onward.merge(first, second, {"z": "x"}, prefix="b/")
    assert check(both) == []
    assert [*recipes(both.ir.metadata_props)] == [0, 1]
    for index, names in enumerate(({"a.weight", "b.bias"}, {"b/a.weight", "b/b.bias"})):
        assert names <= load_training(both, index=index).parameters.keys()


def test_metadata_of_both() -> None:
    first, second = chain("Neg"), chain("Relu")
    first.ir.metadata_props.update({"author": "me", "same": "1"})
    second.ir.metadata_props.update({"author": "you", "same": "1", "more": "2"})
    both = onward.merge(first, second, {"v0": "x"}, prefix="b/")
    assert both.ir.metadata_props == {"author": "me", "b/author": "you", "same": "1", "more": "2"}


@pytest.mark.parametrize(
    ("second", "join", "words"),
    [
        ("float[n, 4] x", {"y": "x"}, r"'y' cannot be given to 'x': it is of shape \[n,3\], and \[n,4\] is taken"),
        ("float[n] x", {"y": "x"}, r"it is of shape \[n,3\], and \[n\] is taken"),
        ("double[n, 3] x", {"y": "x"}, "it is of type float32, and float64 is taken"),
        ("float[n, 3] x", {"z": "x"}, "the first model has no value 'z'"),
        ("float[n, 3] x", {"y": "a"}, "the second model has no input 'a'"),
        ("float[n, 3] x", {"y": ["x", "x"]}, "the input 'x' is given two values"),
        ("float[n, 3] x", {}, "nothing is joined"),
    ],
)
def test_what_does_not_fit_is_refused(second: str, join: dict[str, Any], words: str) -> None:
    other = model(f"g ({second}) => (float[n, 3] z) {{ z = Cast<to=1>(x) }}")
    with pytest.raises(OnwardError, match=words):
        onward.merge(with_body(), other, join)


def test_other_versions_of_a_domain_are_refused() -> None:
    first, second = with_function(), with_function()
    second.ir.opset_imports["local"] = 2
    with pytest.raises(OnwardError, match="version 1 of the domain 'local' and the other for 2"):
        onward.merge(first, second, {"y": "x"})


def test_the_originals_are_as_they_were() -> None:
    first, second = with_body(), with_function()
    before = [each.to_proto().SerializeToString() for each in (first, second)]
    onward.merge(first, second, {"y": "x"})
    assert [each.to_proto().SerializeToString() for each in (first, second)] == before
