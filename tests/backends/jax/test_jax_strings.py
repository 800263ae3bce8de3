"""Strings are computed by NumPy: `jax.jit` takes them as static arguments, and a node that gives some is named."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import onward
from onward.backends.jax.convert import generate
from onward.backends.jax.load import run

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
WORDS = np.array(["a", "b"], object), np.array(["a", "c"], object)


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


NUMBERS = model(
    "net (string[n] a, string[n] b, float[n] z) => (float[n] y) { e = Equal(a, b)  f = Cast<to = 1>(e)  y = Mul(f, z) }"
)
TEXT = model("net (string[n] a, string[n] b) => (string[n] y) { [joined] y = StringConcat(a, b) }")


def test_they_are_static_arguments() -> None:
    apply, params = onward.to_jax(NUMBERS, check=False)
    z = jnp.array([2.0, 3.0])
    assert apply(params, *WORDS, z).tolist() == [2, 0]
    assert jax.jit(apply, static_argnames=("a", "b"))(params, a=("a", "b"), b=("a", "c"), z=z).tolist() == [2, 0]
    gradient = jax.grad(lambda z: apply(params, ("a", "b"), ("a", "c"), z).sum())(z)
    assert gradient.tolist() == [1, 0]


def test_the_types_say_so() -> None:
    text = generate(onward.load(NUMBERS)).model
    assert "def apply(params: Params, a: Text, b: Text, z: Array) -> Array:" in text
    assert "Text = np.ndarray | str | tuple[Any, ...]" in text
    assert run(generate(onward.load(NUMBERS))).jitted().static == ("a", "b")


def test_a_node_that_gives_strings_is_named_under_jit() -> None:
    apply, params = onward.to_jax(TEXT, check=False)
    assert apply(params, *WORDS).tolist() == ["aa", "bc"]
    with pytest.raises(TypeError, match=r"StringConcat 'joined' gives strings.*without jit"):
        jax.jit(apply, static_argnums=(1, 2))(params, ("a",), ("b",))
