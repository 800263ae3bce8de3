"""Normalisations that libraries write as arithmetic become one node each; what is nearly one is computed as it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import onward  # noqa: E402
from onward.runners import onnxruntime  # noqa: E402

CHANNELS = 6
X = np.random.default_rng(0).standard_normal((2, 4, 5, CHANNELS)).astype(np.float32) * 2 + 1
SCALE, BIAS = (np.random.default_rng(i).uniform(0.5, 1.5, CHANNELS).astype(np.float32) for i in (1, 2))
NORMS = {"GroupNormalization", "InstanceNormalization", "LayerNormalization", "BatchNormalization"}


def found(function: Callable[..., Any], x: Any = X, **options: Any) -> list[str]:
    """The norms of the model, once it is seen to compute the same."""
    model = onward.from_jax(function, jax.ShapeDtypeStruct(("b", *x.shape[1:]), jnp.float32), check=False, **options)
    name = str(model.ir.graph.inputs[0].name)
    (result,) = onnxruntime.prepare(model, "")({name: x}).values()
    params = options.get("params")
    call = function if params is None else (lambda x: getattr(function, "apply", function)(params, x))
    np.testing.assert_allclose(result, call(jnp.asarray(x)), rtol=2e-5, atol=2e-5)
    return [node.op_type for node in model.ir.graph if node.op_type in NORMS]


@pytest.mark.parametrize(
    ("name", "wanted"), [("GroupNorm", "GroupNormalization"), ("InstanceNorm", "InstanceNormalization")]
)
@pytest.mark.parametrize(
    "options", [{}, {"use_bias": False}, {"use_scale": False}, {"use_fast_variance": False}], ids=str
)
def test_norms_of_linen(name: str, wanted: str, options: dict[str, Any]) -> None:
    nn = pytest.importorskip("flax.linen")
    net = getattr(nn, name)(**options, **({"num_groups": 3} if name == "GroupNorm" else {}))
    weights = {"scale": SCALE} if options.get("use_scale", True) else {}
    weights |= {"bias": BIAS} if options.get("use_bias", True) else {}
    assert found(net, params={"params": weights}) == [wanted]


def test_norms_of_nnx() -> None:
    nnx = pytest.importorskip("flax.nnx")
    net = nnx.GroupNorm(CHANNELS, num_groups=2, rngs=nnx.Rngs(0))
    net.scale[...], net.bias[...] = jnp.asarray(SCALE), jnp.asarray(BIAS)
    assert found(net) == ["GroupNormalization"]


@pytest.mark.parametrize("options", [{}, {"use_bias": False}, {"use_scale": False}], ids=str)
def test_groups_of_channels_alone_are_rows(options: dict[str, Any]) -> None:
    nn = pytest.importorskip("flax.linen")
    weights = {"scale": SCALE} if options.get("use_scale", True) else {}
    weights |= {"bias": BIAS} if options.get("use_bias", True) else {}
    net = nn.GroupNorm(num_groups=2, **options)
    assert found(net, x=X[:, 0, 0], params={"params": weights}) == ["LayerNormalization"]


def grouped(
    x: Any,
    axes: tuple[int, ...] = (1, 2, 4),
    ddof: int = 0,
    inside: bool = True,
    of: Callable[[Any], Any] = jnp.asarray,
    tiled: bool = False,
) -> Any:
    """Of three groups, as Flax writes it; each number of a group is repeated, or all groups are."""
    apart = x.reshape(*x.shape[:3], 3, 2)

    def spread(y: Any) -> Any:
        if tiled:
            y = jnp.swapaxes(y, 3, 4)
        return jnp.broadcast_to(y, (*y.shape[:3], *((2, 3) if tiled else (3, 2)))).reshape(*y.shape[:3], CHANNELS)

    mean = spread(apart.mean(axes, keepdims=True))
    variance = spread(of(apart).var(axes, keepdims=True, ddof=ddof))
    root = jnp.sqrt(variance + 1e-3) if inside else jnp.sqrt(variance) + 1e-3
    return (x - mean) / root * SCALE + BIAS


@pytest.mark.parametrize(
    ("case", "options", "wanted"),
    [
        ("groups", {}, ["GroupNormalization"]),
        ("groups that are tiled", {"tiled": True}, []),
        ("one axis less", {"axes": (2, 4)}, []),
        ("over the batch", {"axes": (0, 1, 2, 4)}, []),
        ("each place by itself", {"axes": (4,)}, []),
        ("unbiased", {"ddof": 1}, []),
        ("added to the root", {"inside": False}, []),
        ("the variance of something else", {"of": jnp.tanh}, []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_nearly_a_norm_of_groups(case: str, options: dict[str, Any], wanted: list[str]) -> None:
    assert found(lambda x: grouped(x, **options)) == wanted
