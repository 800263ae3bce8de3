"""Equal layers of linen are traced once, and nothing that differs is taken for equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import onward

jax = pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen")
layers = pytest.importorskip("onward.frontends.jax.layers")
jnp = jax.numpy
X = jax.ShapeDtypeStruct((2, 3, 4), jnp.float32)


class Deep(nn.Module):  # type: ignore[misc]
    """Four layers, each of which gets its number."""

    layer: Callable[[int], Any]

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for i in range(4):
            x = self.layer(i)(x)
        return x


def agree(module: Any) -> onward.Model:
    """Converts a module with weights of chance, and compares."""
    x = np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    tree = jax.eval_shape(module.init, jax.random.key(0), X)
    keys = iter(jax.random.split(jax.random.key(1), 99))
    variables = jax.tree.map(lambda leaf: jax.random.uniform(next(keys), leaf.shape, leaf.dtype), tree)
    model = onward.from_jax((module, variables), X, check=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(found, module.apply(variables, x), rtol=1e-4, atol=1e-5)
    return model


CALLS: list[int] = []


def attention(*args: Any, **options: Any) -> Any:
    CALLS.append(len(args))
    return nn.dot_product_attention(*args, **options)


def test_equal_layers_are_traced_once() -> None:
    made = Deep(lambda i: nn.MultiHeadDotProductAttention(2, attention_fn=attention, name=f"layer_{i}"))
    variables = made.init(jax.random.key(0), jnp.ones(X.shape))
    CALLS.clear()
    onward.from_jax((made, variables), X, check=False)
    assert len(CALLS) == 1


def test_names_are_those_of_each_layer() -> None:
    model = agree(Deep(lambda i: nn.MultiHeadDotProductAttention(2, name=f"layer_{i}")))
    names = [node.name for node in model.ir.graph if node.op_type == "MatMul"]
    assert {name.rpartition("/")[0] for name in names} >= {f"Deep/layer_{i}/query" for i in range(4)}
    assert {f"layer_{i}.value.kernel" for i in range(4)} <= set(model.ir.graph.initializers)


def scaled(by: float) -> Callable[[int], Any]:
    return lambda i: nn.LayerNorm(epsilon=by if i == 2 else 1e-6)


class Numbered(nn.Dense):  # type: ignore[misc]
    """Looks at its name."""

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) * float(self.name[-1])


@pytest.mark.parametrize(
    "layer",
    [
        scaled(0.5),
        lambda i: nn.Dense(4, use_bias=i != 2),
        lambda i: nn.Dense(4, dot_general=lambda *a, **k: jax.lax.dot_general(*a, **k) * float(i)),
        lambda i: Numbered(4, name=f"layer_{i}"),
        lambda i: lambda x: nn.MultiHeadDotProductAttention(2)(x, x[:, i % 3 :]),
        lambda i: lambda x: nn.MultiHeadDotProductAttention(2)(x, x * i),
    ],
)
def test_layers_that_differ_are_traced_apart(layer: Callable[[int], Any]) -> None:
    agree(Deep(layer))


def test_what_others_take_in_is_theirs() -> None:
    def doubled(i: int) -> Any:
        def intercept(call: Any, args: Any, options: Any, _: Any) -> Any:
            return call(*args, **options) * (i + 1.0)

        def called(x: Any) -> Any:
            with nn.intercept_methods(intercept):
                return nn.Dense(4)(x)

        return called

    agree(Deep(doubled))


def test_an_error_is_of_the_layer_in_its_place() -> None:
    def wrong(i: int) -> Any:
        return lambda x: nn.Dense(4, name=f"layer_{i}")(x[..., :3] if i == 2 else x)

    variables = Deep(lambda i: nn.Dense(4, name=f"layer_{i}")).init(jax.random.key(0), jnp.ones(X.shape))
    with pytest.raises(Exception, match='"/layer_2"'):
        onward.from_jax((Deep(wrong), variables), X, check=False)


def test_numbers_of_two_types_are_not_the_same() -> None:
    values = [1, 1.0, True, -0.0, 0.0, (1,), [1], (1.0,), None]
    assert len({repr(layers.same(value)) for value in values}) == len(values)
    assert layers.same(1) != layers.same(1.0) and layers.same(0.0) != layers.same(-0.0)
    with pytest.raises(layers.Unknown):
        layers.same(np.ones(1))
