"""The five networks the speed benchmarks convert, in plain PyTorch with random weights, and their export.

python benchmarks/models.py resnet50 --out resnet50.onnx
"""

import argparse
import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions around a shortcut; the stride sits on the 3x3."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        out_channels = 4 * channels
        self.conv1 = nn.Conv2d(in_channels, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, out_channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._layer(64, 64, blocks=3, stride=1)
        self.layer2 = self._layer(256, 128, blocks=4, stride=2)
        self.layer3 = self._layer(512, 256, blocks=6, stride=2)
        self.layer4 = self._layer(1024, 512, blocks=3, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, 1000)

    @staticmethod
    def _layer(in_channels: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
        rest = [Bottleneck(4 * channels, channels, 1) for _ in range(blocks - 1)]
        return nn.Sequential(Bottleneck(in_channels, channels, stride), *rest)

    def forward(self, image: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(image))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class ConvNormAct(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        padding = (kernel - 1) // 2
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    """Expand with 1x1, filter depthwise with 3x3, project with 1x1; a shortcut where the shape stays."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = in_channels * expand
        layers: list[nn.Module] = [] if expand == 1 else [ConvNormAct(in_channels, hidden, 1)]
        layers += [
            ConvNormAct(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        ]
        self.conv = nn.Sequential(*layers)
        self.shortcut = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    #           expand, channels, repeats, first stride
    STAGES = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        features: list[nn.Module] = [ConvNormAct(3, 32, 3, stride=2)]
        channels = 32
        for expand, out_channels, repeats, stride in self.STAGES:
            for i in range(repeats):
                features.append(InvertedResidual(channels, out_channels, stride if i == 0 else 1, expand))
                channels = out_channels
        features.append(ConvNormAct(channels, 1280, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, image: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(image), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class BertAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, width) to (batch, heads, time, width of a head)"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class BertLayer(nn.Module):
    """Post-norm, as in BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = BertAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class BertEncoder(nn.Module):
    """BERT-base: 12 layers of width 768, 12 heads, the mask of padding as an additive bias for SDPA."""

    def __init__(self, vocabulary: int = 30522, width: int = 768, layers: int = 12, positions: int = 512) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(positions, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.embedding_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.layer = nn.ModuleList(BertLayer(width, width // 64) for _ in range(layers))
        self.register_buffer("position_ids", torch.arange(positions).expand(1, -1), persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        positions = self.position_ids[:, : input_ids.shape[1]]
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x = self.dropout(self.embedding_norm(x + self.position_embeddings(positions)))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        mask = mask.expand(-1, 1, x.shape[1], -1)
        for layer in self.layer:
            x = layer(x, mask)
        return x


class GPTBlock(nn.Module):
    """Pre-norm, causal, one projection for query, key and value, as in GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.attn(self.ln_1(x)).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.ln_2(x))


class GPTDecoder(nn.Module):
    """GPT-2 small in shape: 12 layers of width 768, 12 heads, the output layer tied to the embedding."""

    def __init__(self, vocabulary: int = 50257, width: int = 768, layers: int = 12, positions: int = 1024) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(GPTBlock(width, width // 64) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.wte(input_ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class LSTMTagger(nn.Module):
    def __init__(self, vocabulary: int = 10000, embedding: int = 256, width: int = 512, tags: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, tags)

    def forward(self, tokens: Tensor) -> Tensor:
        y, _ = self.lstm(self.embedding(tokens))
        return self.head(y)


@dataclass(frozen=True)
class Network:
    build: Callable[[], nn.Module]
    inputs: Callable[[int], dict[str, Tensor]]
    """Inputs for a batch size, by the names of the parameters of `forward`."""


def _image(batch: int) -> dict[str, Tensor]:
    return {"image": torch.rand(batch, 3, 224, 224)}


def _bert_inputs(batch: int, time: int = 128) -> dict[str, Tensor]:
    lengths = torch.randint(time // 2, time + 1, (batch, 1))
    return {
        "input_ids": torch.randint(0, 30522, (batch, time)),
        "attention_mask": (torch.arange(time) < lengths).long(),
        "token_type_ids": torch.randint(0, 2, (batch, time)),
    }


NETWORKS = {
    "resnet50": Network(ResNet50, _image),
    "mobilenetv2": Network(MobileNetV2, _image),
    "bert": Network(BertEncoder, _bert_inputs),
    "gpt": Network(GPTDecoder, lambda batch: {"input_ids": torch.randint(0, 50257, (batch, 128))}),
    "lstm": Network(LSTMTagger, lambda batch: {"tokens": torch.randint(0, 10000, (batch, 128))}),
}


def _randomize_statistics(net: nn.Module) -> None:
    """Running statistics and affine weights other than 0 and 1, so that mixing them up cannot go unseen."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)
        if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.8, 1.2)
            nn.init.normal_(module.bias, std=0.1)


def build(name: str, seed: int = 0) -> nn.Module:
    """The network in eval mode; the same seed gives the same weights."""
    torch.manual_seed(seed)
    net = NETWORKS[name].build()
    _randomize_statistics(net)
    return net.eval()


def example_inputs(name: str, batch: int = 1, seed: int = 1) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return NETWORKS[name].inputs(batch)


@dataclass(frozen=True)
class Exporter:
    """A way to call `torch.onnx.export`."""

    dynamo: bool = True
    optimize: bool = True
    """False keeps each BatchNorm and every name of the `state_dict`; the older exporter knows no such thing."""
    opset: int | None = None


EXPORTERS = {
    "default": Exporter(),
    "unoptimized": Exporter(optimize=False),
    "torchscript": Exporter(dynamo=False, opset=17),
}


def export(name: str, path: str | Path, how: str = "default", net: nn.Module | None = None) -> None:
    """Writes the network, with a dynamic batch, as one file."""
    net = build(name) if net is None else net
    exporter = EXPORTERS[how]
    inputs = example_inputs(name, batch=2)
    options: dict[str, object] = {"input_names": list(inputs), "output_names": ["output"]}
    if exporter.dynamo:
        batch = torch.export.Dim("batch")
        options["dynamic_shapes"] = {key: {0: batch} for key in inputs}
        options |= {"optimize": exporter.optimize, "external_data": False, "verbose": False}
    else:
        options["dynamic_axes"] = {key: {0: "batch"} for key in [*inputs, "output"]}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net,
            tuple(inputs.values()),
            path,
            dynamo=exporter.dynamo,
            opset_version=exporter.opset,
            **options,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write one of the benchmark networks as ONNX.")
    parser.add_argument("name", choices=NETWORKS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--how", choices=EXPORTERS, default="default")
    args = parser.parse_args()
    export(args.name, args.out, args.how)
    print(f"wrote {args.out} ({args.out.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
