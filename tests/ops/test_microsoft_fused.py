"""Joined ops that ONNX Runtime's optimizer writes, against ONNX Runtime itself."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, node_model

MS = "com.microsoft"


def ms(
    op: str, *inputs: Any, outputs: Any = 1, tolerance: float = 1e-5, unknown: bool = True, **attributes: Any
) -> None:
    model, feeds = node_model(op, inputs, outputs, domain=MS, **attributes)
    check(model, feeds, rtol=tolerance, atol=tolerance, unknown=unknown)


X, B = floats(2, 5, 8), floats(8)


@pytest.mark.parametrize(
    ("op", "inputs", "given"),
    [
        ("Gelu", [X], {}),
        ("BiasGelu", [X, B], {}),
        ("FastGelu", [X], {}),
        ("FastGelu", [X, B], {}),
        ("QuickGelu", [X], {}),
        ("QuickGelu", [X], {"alpha": 1.25}),
    ],
)
def test_activations(op: str, inputs: list[np.ndarray], given: dict[str, Any]) -> None:
    ms(op, *inputs, **given)


@pytest.mark.parametrize("swap", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_fused_matmul(batch: tuple[int, ...], swap: tuple[int, int]) -> None:
    a, b = floats(*batch, 4, 5), floats(*batch, 5, 6)
    a, b = (x.swapaxes(-1, -2).copy() if s else x for x, s in zip((a, b), swap, strict=True))
    ms("FusedMatMul", a, b, transA=swap[0], transB=swap[1], alpha=0.5, unknown=False)


@pytest.mark.parametrize("swap", [(0, 0), (1, 1)])
def test_fused_matmul_with_batches_inside(swap: tuple[int, int]) -> None:
    a, b = floats(4, 2, 3, 5), floats(5, 2, 3, 6)
    if swap == (1, 1):
        a, b = floats(5, 2, 3, 4), floats(6, 2, 3, 5)
    given = {"transA": swap[0], "transB": swap[1], "transBatchA": 1, "transBatchB": 1}
    ms("FusedMatMul", a, b, unknown=False, **given)


@pytest.mark.parametrize(
    "activation",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_alpha": 0.25},
        {"activation": "Tanh"},
        {"activation": "Sigmoid"},
        {"activation": "HardSigmoid", "activation_alpha": 0.25, "activation_beta": 0.5},
    ],
    ids=lambda a: a["activation"],
)
def test_fused_gemm(activation: dict[str, Any]) -> None:
    ms("FusedGemm", floats(3, 4), floats(5, 4), floats(5), transB=1, alpha=0.5, beta=2.0, **activation)


@pytest.mark.parametrize(
    "activation",
    [
        {},
        {"activation": "Relu"},
        {"activation": "Sigmoid"},
        {"activation": "Tanh"},
        {"activation": "LeakyRelu", "activation_params": [0.25]},
        {"activation": "Clip", "activation_params": [-0.5, 0.75]},
        {"activation": "HardSigmoid", "activation_params": [0.25, 0.5]},
    ],
    ids=str,
)
@pytest.mark.parametrize("extra", [False, True])
def test_fused_conv(activation: dict[str, Any], extra: bool) -> None:
    x, w, b, z = floats(1, 4, 7, 6), floats(6, 2, 3, 3), floats(6), floats(1, 6, 4, 3)
    given = {"group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1], "kernel_shape": [3, 3], **activation}
    ms("FusedConv", x, w, b, *([z] if extra else []), **given)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_nhwc_max_pool(dtype: Any) -> None:
    x = (floats(2, 7, 6, 3) * 40).astype(np.int8).view(dtype)
    ms("NhwcMaxPool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], unknown=False)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("beta", [False, True])
def test_skip_layer_norm(beta: bool, bias: bool) -> None:
    gamma = floats(8, seed=2)
    optional = [floats(8, seed=3) if beta else None, floats(8, seed=4) if bias else None]
    while optional and optional[-1] is None:
        optional.pop()
    ms(
        "SkipLayerNormalization",
        X,
        floats(2, 5, 8, seed=1),
        gamma,
        *optional,
        outputs=["y", "", "", "sum"],
        epsilon=1e-5,
    )
    ms("SkipLayerNormalization", X, floats(5, 8, seed=1), gamma, *optional)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_norm(bias: bool) -> None:
    optional = [floats(8, seed=4)] if bias else []
    inputs = [X, floats(2, 5, 8, seed=1), floats(8, seed=2), *optional]
    ms("SkipSimplifiedLayerNormalization", *inputs, outputs=["y", "", "", "sum"], epsilon=1e-6)


def test_simplified_layer_norm() -> None:
    model, feeds = node_model("SimplifiedLayerNormalization", [X, B], ["y", "deviation"], axis=-1, epsilon=1e-6)
    check(model, feeds)


WORDS = np.array([[1, 4, 3, 0], [2, 2, 5, 1]], np.int32)
TABLES = [floats(6, 8, seed=1), floats(9, 8, seed=2), floats(2, 8, seed=3)]


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("placed", [False, True])
def test_embed_layer_norm(segments: bool, masked: bool, placed: bool) -> None:
    words, places, kinds = TABLES
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32) if masked else None
    inputs = [
        WORDS,
        (WORDS > 2).astype(np.int32) if segments else None,
        words,
        places,
        kinds if segments else None,
        floats(8, seed=4),
        floats(8, seed=5),
        mask,
        np.array([[3, 1, 2, 0], [8, 7, 6, 5]], np.int32) if placed else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    ms("EmbedLayerNormalization", *inputs, outputs=["y", "mask_index", "sum"], epsilon=1e-5)
