"""Generated source reads as a person would have written it: classes are called after what they are, numbers by role."""

import inspect
import io
import itertools
import re
import types
import warnings
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import onward
from onward.backends.torch.convert import generate
from onward.backends.torch.load import run


def export(module: nn.Module, *inputs: Tensor, fold: bool = False) -> onnx.ModelProto:
    """As most files in the world were exported: scopes are in the names of nodes, classes are forgotten.

    With `fold`, normalisations are merged into convolutions, and those lose their names.
    """
    file = io.BytesIO()
    mode = torch.onnx.TrainingMode.EVAL if fold else torch.onnx.TrainingMode.PRESERVE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), inputs, file, dynamo=False, training=mode, do_constant_folding=fold, opset_version=17
        )
    return onnx.load_from_string(file.getvalue())


def converted(module: nn.Module, *inputs: Tensor, fold: bool = False) -> tuple[str, nn.Module]:
    """The source of a module and the module made of it, which computes the same and has the same state dict."""
    source = generate(onward.load(export(module, *inputs, fold=fold)))
    result = run(source)
    torch.testing.assert_close(result(*inputs), module(*inputs), rtol=1e-4, atol=1e-5)
    if not fold:
        result.load_state_dict(module.state_dict())
    return source.model, result


def classes(text: str) -> list[str]:
    return re.findall(r"^class (\w+)", text, re.MULTILINE)


def parameters(module: nn.Module, name: str) -> list[str]:
    """The parameters of a class of a generated module."""
    space: Any = types.SimpleNamespace(**{type(m).__name__: type(m) for m in module.modules()})
    return list(inspect.signature(getattr(space, name)).parameters)


class Conv(nn.Module):
    def __init__(self, a: int, b: int, k: int = 1, s: int = 1, g: int = 1, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.c = nn.Conv2d(a, b, k, s, k // 2, groups=g, bias=False)
        self.b = nn.BatchNorm2d(b)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.b(self.c(x)))


class Squeeze(nn.Module):
    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.p = nn.Conv2d(a, b, 1)
        self.q = nn.Conv2d(b, a, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.q(F.relu(self.p(x.mean((2, 3), keepdim=True)))))


class ByHand(Squeeze):
    """With the sigmoid of MobileNetV3 as other frameworks write it."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.clamp(self.q(F.relu(self.p(x.mean((2, 3), keepdim=True)))) * 0.3 + 0.5, 0.0, 1.0)


class Inverted(nn.Module):
    def __init__(self, a: int, h: int, k: int, s: int = 1) -> None:
        super().__init__()
        self.one = Conv(a, h, act=nn.Hardswish)
        self.two = Conv(h, h, k, s, h, act=nn.Hardswish)
        self.se = Squeeze(h, h // 4)
        self.three = Conv(h, a, act=nn.Identity)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.three(self.se(self.two(self.one(x))))


class Narrow(nn.Module):
    def __init__(self, a: int, h: int) -> None:
        super().__init__()
        self.one, self.two, self.three = nn.Conv2d(a, h, 1), nn.Conv2d(h, h, 3, padding=1), nn.Conv2d(h, a, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.three(F.relu(self.two(F.relu(self.one(x))))))


class Basic(nn.Module):
    def __init__(self, a: int, b: int, s: int) -> None:
        super().__init__()
        self.one, self.two = Conv(a, b, 3, s), Conv(b, b, 3, act=nn.Identity)
        self.down = Conv(a, b, 1, s, act=nn.Identity)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.two(self.one(x)) + self.down(x))


class Heads(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = (f(x).reshape(b, t, 2, w // 2).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = torch.softmax(q @ k.transpose(2, 3) * (w // 2) ** -0.5, dim=-1)
        return self.o((scores @ v).transpose(1, 2).reshape(b, t, w))


class Areas(nn.Module):
    """Attention between the places of an image, with convolutions for the layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.o = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)
        self.pe = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).flatten(2).chunk(3, dim=1)
        y = (v @ torch.softmax(q.transpose(1, 2) @ k, dim=-1).transpose(1, 2)).reshape(x.shape)
        return self.o(y + self.pe(v.reshape(x.shape)))


class Feed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(F.gelu(self.a(x)))


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.m, self.n = nn.LayerNorm(width), nn.LayerNorm(width)
        self.h, self.f = Heads(width), Feed(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.h(self.m(x))
        return x + self.f(self.n(x))


class Several(nn.Module):
    """Parts one after the other, under a name that says nothing."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.part = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.part:
            x = part(x)
        return x


IMAGE, WORDS = torch.randn(2, 8, 6, 6), torch.randn(2, 5, 8)
PATTERNS = {
    "ConvBNReLU": (Several(Conv(8, 8, 3), Conv(8, 6, 1)), IMAGE),
    "SqueezeExcite": (Several(Squeeze(8, 4), Squeeze(8, 2)), IMAGE),
    "InvertedResidual": (Several(Inverted(8, 16, 3), Inverted(8, 24, 5)), IMAGE),
    "Bottleneck": (Several(Narrow(8, 4), Narrow(8, 6)), IMAGE),
    "BasicBlock": (Several(Basic(8, 8, 1), Basic(8, 6, 2)), IMAGE),
    "Attention": (Several(Heads(8), Heads(8)), WORDS),
    "Attention of images": (Several(Areas(8), Areas(8)), IMAGE),
    "MLP": (Several(Feed(8), Feed(8)), WORDS),
    "EncoderLayer": (Several(Layer(8), Layer(8)), WORDS),
}


def test_a_sigmoid_by_hand_is_one() -> None:
    text, _ = converted(Several(ByHand(8, 4), ByHand(8, 2)), IMAGE)
    assert classes(text) == ["SqueezeExcite", "Model"]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_class_that_is_a_known_pattern_has_its_name(name: str) -> None:
    text, _ = converted(*PATTERNS[name])
    assert name.partition(" ")[0] in classes(text)


def test_numbers_that_differ_are_named_by_their_role() -> None:
    _, module = converted(Several(Inverted(8, 16, 3), Inverted(8, 24, 5)), IMAGE)
    assert parameters(module, "InvertedResidual") == ["hidden_channels", "se_channels", "kernel_size"]
    _, module = converted(Several(Narrow(8, 4), Narrow(8, 6)), IMAGE)
    assert parameters(module, "Bottleneck") == ["hidden_channels"]
    _, module = converted(Several(Basic(8, 8, 1), Basic(8, 6, 2), Basic(6, 8, 1)), IMAGE)
    assert parameters(module, "BasicBlock") == ["in_channels", "out_channels", "stride"]


def test_convolutions_that_differ_by_what_goes_without_saying_are_one_class() -> None:
    text, module = converted(Several(Conv(8, 8, 1), Conv(8, 6, 3, 2), Conv(6, 6, 5, 1, 6)), IMAGE)
    assert classes(text) == ["ConvBNReLU", "Model"]
    assert parameters(module, "ConvBNReLU") == ["in_channels", "out_channels", "kernel_size", "stride", "groups"]
    assert "ConvBNReLU(8, 6, 3, stride=2)" in text and "padding=kernel_size // 2" in text
    assert "ConvBNReLU(8, 8, 1)," in text


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 6), nn.Linear(6, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.two(torch.tanh(self.one(x)) * x.mean())


class Around(nn.Module):
    """Calls parts of a part: what it has itself is never called, and no name of a node tells of it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Module()
        self.net.first, self.net.second = Inner(), Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.net.second(self.net.first(x))


def test_modules_that_are_never_called_do_not_keep_their_parts_from_computing() -> None:
    text, module = converted(Around(), WORDS)
    inner = type(module.get_submodule("net.first"))
    assert inner is type(module.get_submodule("net.second")) and "forward" in vars(inner)
    assert text.count("    def forward") == text.count("nn.Linear(8, 6)") + 2  # of Inner, of net and of the model


def test_what_does_nothing_is_there_only_where_a_name_after_it_counts_it() -> None:
    stem = nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    head = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1))
    text, module = converted(Several(stem, head), IMAGE, fold=True)
    assert "nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU(), nn.MaxPool2d(2))" in text
    assert "nn.Sequential(nn.Conv2d(8, 8, 1), nn.Identity(), nn.ReLU(), nn.Conv2d(8, 4, 1))" in text
    assert {"part.0.0.weight", "part.1.3.weight"} <= module.state_dict().keys()


class Holder(nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, k, padding=k // 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def test_a_module_that_only_calls_another_one_needs_no_class() -> None:
    text, module = converted(Several(Holder(1), Holder(3)), IMAGE)
    assert classes(text) == ["Model"] and "nn.Sequential(OrderedDict(conv=nn.Conv2d(8, 8, 1)))" in text
    assert "part.1.conv.weight" in module.state_dict()


@pytest.mark.parametrize("end", [10**9, 2**31 - 1, 2**63 - 1])
def test_a_slice_that_keeps_everything_is_not_written(end: int) -> None:
    text = f"""
    <ir_version: 9, opset_import: ["": 17]>
    slices (float[n, m] x) => (float[a, b] y, float[c, d] z)
      <int64[2] first = {{0, 0}}, int64[2] second = {{0, 1}}, int64[2] last = {{{end}, {end}}}> {{
        y = Slice (x, first, last)
        z = Slice (x, second, last)
    }}
    """
    source = generate(onward.load(onnx.parser.parse_model(text))).model
    assert "return x, x[:, 1:]" in source


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, c, _, _ = x.shape
        y = torch.sigmoid(self.fc(x.mean((2, 3)))).view(b, c, 1, 1)
        return x * y.expand_as(x)


class Grid(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y, z = torch.meshgrid(torch.arange(x.shape[-2]), torch.arange(x.shape[-1]), indexing="ij")
        return x[:, :2] + torch.stack((y, z))


class Picked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows, columns = torch.arange(x.shape[2])[:, None], torch.arange(x.shape[3])[None]
        out = torch.zeros_like(x[0, 0])
        out[rows, columns] = x.sum((0, 1))
        return out


@pytest.mark.parametrize("module", [Scaled(), Grid(), Picked()], ids=["scaled", "grid", "picked"])
@pytest.mark.parametrize("size", [(6, 6), (1, 3)])
def test_what_is_broadcast_anyway_is_not_expanded_first(module: nn.Module, size: tuple[int, int]) -> None:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = {"x": {0: "b", 2: "h", 3: "w"}}
        torch.onnx.export(module, (IMAGE,), file, dynamo=False, input_names=["x"], dynamic_axes=axes, opset_version=17)
    source = generate(onward.load(onnx.load_from_string(file.getvalue())))
    x = torch.randn(3, 8, *size)
    torch.testing.assert_close(run(source)(x), module(x), rtol=1e-4, atol=1e-5)
    assert "broadcast_shapes" not in source.model and ".unbind(-1)" not in source.model


class Skipping(nn.Module):
    """Calls its parts in another order than that of their numbers, and some not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.ModuleList([Holder(1), nn.ReLU(), Holder(3), nn.ReLU(), Holder(5)])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.part[2](x + self.part[4](x * self.part[0](x)))


def test_numbered_modules_stand_in_the_order_of_their_numbers() -> None:
    text, _ = converted(Skipping(), IMAGE)
    assert text.index('"0": ') < text.index('"2": ') < text.index('"4": ')


class Residual(nn.Module):
    def __init__(self, a: int, b: int, stride: int = 1) -> None:
        super().__init__()
        self.one = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        if a != b:
            self.shortcut = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x: Tensor) -> Tensor:
        y = self.two(torch.relu(self.one(x)))
        return torch.relu(y + (self.shortcut(x) if hasattr(self, "shortcut") else x))


@pytest.mark.parametrize("order", [(4, 4, 8, 8, 16, 16), (4, 8, 8, 16)], ids=["without first", "with first"])
def test_a_part_that_some_blocks_do_without_is_an_argument(order: tuple[int, ...]) -> None:
    pairs = list(itertools.pairwise(order))
    net = nn.Sequential(*(Residual(a, b, 1 if a == b else 2) for a, b in pairs))
    text, result = converted(net, torch.randn(1, 4, 16, 16))
    assert len({type(block) for block in result}) == 1 and len(classes(text)) == 2
    assert parameters(result, classes(text)[0]) == ["in_channels", "out_channels", "stride", "shortcut"]
    assert "self.shortcut = nn.Identity() if shortcut is None else shortcut" in text
    result.load_state_dict(net.state_dict(), strict=True)
    assert {name for name, _ in result.named_parameters()} == {name for name, _ in net.named_parameters()}


class Renamed(Residual):
    """Calls the two convolutions the other way round: no part that is left out makes the same of it."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.two(torch.relu(self.one(x))))
        return torch.relu(y + self.shortcut(x))


def test_blocks_that_differ_in_more_stay_apart() -> None:
    net = nn.Sequential(Residual(4, 4), Renamed(4, 8, 2), Residual(8, 8))
    text, result = converted(net, torch.randn(1, 4, 16, 16))
    assert type(result[0]) is type(result[2]) and type(result[0]) is not type(result[1])
    assert "is None" not in text.split("def load")[0]


class Sized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).reshape(x.shape[0], x.shape[1] // 2, -1).reshape(-1, x.shape[1], 8)


def test_layers_that_differ_in_the_names_of_sizes_alone_are_one_class() -> None:
    """A file has names for the sizes of its inputs, and loses them on the way."""
    net, file = nn.Sequential(*(Sized() for _ in range(4))).eval(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch", 1: "sequence"}}}
        torch.onnx.export(net, (torch.randn(2, 4, 8),), file, dynamo=False, opset_version=17, **options)
    source = generate(onward.load(onnx.load_from_string(file.getvalue())))
    assert len(classes(source.model)) == 2
    x = torch.randn(3, 6, 8)
    torch.testing.assert_close(run(source)(x), net(x))
