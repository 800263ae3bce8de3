"""What Flax checks when it calls a module of linen is still checked, once for parameters that are made alike."""

from __future__ import annotations

from typing import Any

import pytest

import onward
from onward.errors import OnwardError

jax = pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen")
jnp = jax.numpy
X = jax.ShapeDtypeStruct((2, 4), jnp.float32)


class Network(nn.Module):  # type: ignore[misc]
    layers: int = 3

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for i in range(self.layers):
            x = nn.DenseGeneral(4, kernel_init=nn.initializers.xavier_uniform(), name=f"layer_{i}")(x)
        shift = self.param("shift", lambda key: x.mean(0))  # made of what is computed
        return x + shift


def variables() -> dict[str, Any]:
    made: dict[str, Any] = Network().init(jax.random.key(0), jnp.ones(X.shape))
    return made


def test_a_module_is_converted() -> None:
    model = onward.from_jax((Network(), variables()), X, check=False)
    assert {"layer_2.kernel", "shift"} <= set(model.ir.graph.initializers)


@pytest.mark.parametrize(("path", "shape"), [(("layer_2", "bias"), (1,)), (("layer_0", "kernel"), (5, 4))])
def test_a_parameter_of_another_shape_is_refused_as_flax_does(path: tuple[str, str], shape: tuple[int, ...]) -> None:
    """With what it says, and with what to do."""
    given = variables()
    given["params"][path[0]][path[1]] = jnp.ones(shape)  # the bias would broadcast
    with pytest.raises(OnwardError, match=f'parameter "{path[1]}" in "/{path[0]}".*; give specs and weights with'):
        onward.from_jax((Network(), given), X, check=False)


def test_alike_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    given = jax.random.uniform

    def uniform(*args: Any, **options: Any) -> Any:
        asked.append(args)
        return given(*args, **options)

    made = variables()
    monkeypatch.setattr(jax.random, "uniform", uniform)

    def kernel_init(key: Any, shape: Any, dtype: Any) -> Any:
        return jax.random.uniform(key, shape, dtype)

    class Deep(nn.Module):  # type: ignore[misc]
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for i in range(3):
                x = nn.Dense(4, kernel_init=kernel_init, name=f"layer_{i}")(x)
            return x

    del made["params"]["shift"]
    onward.from_jax((Deep(), made), X, check=False)
    assert len(asked) == 1
