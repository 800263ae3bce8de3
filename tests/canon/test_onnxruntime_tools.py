"""Files that ONNX Runtime's quantizer and transformer optimizer write, converted and compared with ONNX Runtime."""

import collections
import contextlib
import io
import logging
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from torch import Tensor, nn

from onward import to_torch
from onward.model import load
from onward.runners.onnxruntime import UNOPTIMIZED, session

onnxruntime.set_default_logger_severity(4)

IMAGES = np.random.default_rng(0).standard_normal((4, 3, 12, 12)).astype(np.float32)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Vision(nn.Module):
    """Most of what the quantizer has an op for."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.conv3 = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2), nn.Conv2d(16, 16, 1)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.norm(self.conv1(x))))
        x = F.leaky_relu(self.conv2(x), 0.1)
        y = torch.sigmoid(self.conv3(x))
        x = torch.cat([x * y + x, y], 1)[:, :16]
        return torch.softmax(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


HIDDEN, HEADS, WORDS = 32, 4, 50


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.dense = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, places, _ = x.shape
        q, k, v = (
            f(x).view(batch, places, HEADS, HIDDEN // HEADS).permute(0, 2, 1, 3)
            for f in (self.query, self.key, self.value)
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS) + mask
        y = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        return self.norm(self.dense(y.view(batch, places, HIDDEN)) + x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = SelfAttention(), nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        return self.norm(self.down(F.gelu(self.up(x))) + x)


class Encoder(nn.Module):
    """A small BERT, written as the optimizer looks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.place, self.kind = (
            nn.Embedding(WORDS, HIDDEN),
            nn.Embedding(16, HIDDEN),
            nn.Embedding(2, HIDDEN),
        )
        self.norm, self.blocks = nn.LayerNorm(HIDDEN), nn.ModuleList(Block() for _ in range(2))
        self.pool = nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("places", torch.arange(16)[None])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -10000.0
        place = self.place(self.places[:, : input_ids.shape[1]])
        x = self.norm(self.word(input_ids) + self.kind(token_type_ids) + place)
        for block in self.blocks:
            x = block(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


def export(net: nn.Module, inputs: dict[str, Tensor], path: Path, opset: int = 17, axes: Any = None) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net.eval(),
            tuple(inputs.values()),
            str(path),
            dynamo=False,
            opset_version=opset,
            input_names=list(inputs),
            dynamic_axes={name: axes or {0: "batch"} for name in inputs},
        )


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def randomized(net: nn.Module) -> nn.Module:
    """With norms that differ from each other, or the optimizer shares them."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return net


def ops_of(path: Path) -> collections.Counter[str]:
    return collections.Counter(node.op_type for node in onnx.load(path).graph.node)


def check(path: Path, feeds: dict[str, np.ndarray], tolerance: float = 1e-5) -> None:
    """Without optimization, which for quantized models is another computation."""
    wanted = session(load(path), UNOPTIMIZED, threads=1).run(None, feeds)
    with torch.no_grad():
        found = to_torch(path)(*(torch.from_numpy(x) for x in feeds.values()))
    for actual, right in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
        np.testing.assert_allclose(actual.numpy(), right, rtol=tolerance, atol=tolerance)


class Images(CalibrationDataReader):
    def __init__(self) -> None:
        self.batches: Iterator[dict[str, np.ndarray]] = iter([{"x": IMAGES}, {"x": IMAGES * 1.5}])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.batches, None)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("activation", [QuantType.QUInt8, QuantType.QInt8], ids=str)
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator], ids=str)
def test_static_quantization(tmp_path: Path, form: QuantFormat, activation: QuantType, channels: bool) -> None:
    export(randomized(Vision()), {"x": torch.from_numpy(IMAGES)}, tmp_path / "m.onnx")
    quantize_static(
        tmp_path / "m.onnx",
        tmp_path / "q.onnx",
        Images(),
        quant_format=form,
        per_channel=channels,
        activation_type=activation,
        weight_type=QuantType.QInt8,
    )
    if form == QuantFormat.QOperator:
        assert {"QLinearConv", "QLinearAdd", "QLinearConcat", "QGemm"} <= ops_of(tmp_path / "q.onnx").keys()
    check(tmp_path / "q.onnx", {"x": IMAGES})


def test_dynamic_quantization(tmp_path: Path) -> None:
    export(randomized(Vision()), {"x": torch.from_numpy(IMAGES)}, tmp_path / "m.onnx")
    quantize_dynamic(tmp_path / "m.onnx", tmp_path / "q.onnx")
    assert {"ConvInteger", "MatMulInteger"} <= ops_of(tmp_path / "q.onnx").keys()
    check(tmp_path / "q.onnx", {"x": IMAGES})


def test_dynamic_quantization_of_an_lstm(tmp_path: Path) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), nn.Linear(32, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.lstm(x)[0])

    x = torch.randn(2, 7, 8)
    export(Tagger(), {"x": x}, tmp_path / "m.onnx")
    quantize_dynamic(tmp_path / "m.onnx", tmp_path / "q.onnx")
    assert ops_of(tmp_path / "q.onnx")["DynamicQuantizeLSTM"] == 2
    check(tmp_path / "q.onnx", {"x": x.numpy()})


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_block_quantization(tmp_path: Path, bits: int, symmetric: bool) -> None:
    x = torch.randn(3, 5, 72)
    export(nn.Sequential(nn.Linear(72, 128), nn.ReLU(), nn.Linear(128, 32)), {"x": x}, tmp_path / "m.onnx")
    quantizer = MatMulNBitsQuantizer(onnx.load(tmp_path / "m.onnx"), bits=bits, block_size=32, is_symmetric=symmetric)
    quantizer.process()
    quantizer.model.save_model_to_file(str(tmp_path / "q.onnx"))
    assert ops_of(tmp_path / "q.onnx")["MatMulNBits"] == 2
    check(tmp_path / "q.onnx", {"x": x.numpy()})


def tokens() -> dict[str, Tensor]:
    ids = torch.randint(0, WORDS, (2, 7))
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (ids > 20).long()}


@pytest.fixture(params=[False, True], ids=["Attention", "MultiHeadAttention"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    export(randomized(Encoder()), tokens(), tmp_path / "m.onnx", opset=14, axes={0: "batch", 1: "places"})
    options = FusionOptions("bert")
    options.use_multi_head_attention = request.param
    given = {"num_heads": HEADS, "hidden_size": HIDDEN, "optimization_options": options, "opt_level": 0}
    model = optimizer.optimize_model(str(tmp_path / "m.onnx"), model_type="bert", **given)
    model.save_model_to_file(str(tmp_path / "o.onnx"))
    ops = ops_of(tmp_path / "o.onnx")
    assert ops["MultiHeadAttention" if request.param else "Attention"] == 2
    assert {"EmbedLayerNormalization", "SkipLayerNormalization", "BiasGelu"} <= ops.keys()
    return tmp_path / "o.onnx"


def test_optimized_transformer(encoder: Path) -> None:
    check(encoder, {name: x.numpy() for name, x in tokens().items()})


def test_quantized_optimized_transformer(encoder: Path) -> None:
    path = encoder.with_name("q.onnx")
    quantize_dynamic(encoder, path, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    assert "QEmbedLayerNormalization" in ops_of(path)
    check(path, {name: x.numpy() for name, x in tokens().items()})


def test_graph_saved_by_onnxruntime(tmp_path: Path) -> None:
    export(randomized(Encoder()), tokens(), tmp_path / "m.onnx", opset=14, axes={0: "batch", 1: "places"})
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), options)
    assert {"FusedMatMul", "BiasGelu"} <= ops_of(tmp_path / "o.onnx").keys()
    check(tmp_path / "o.onnx", {name: x.numpy() for name, x in tokens().items()})
