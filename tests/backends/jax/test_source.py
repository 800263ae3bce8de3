"""Generated JAX reads as a person would have written it: pure functions, one for equal blocks, loops over lists."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

import onward
from onward.backends.emit.functions.writer import snake
from onward.backends.jax.convert import generate
from onward.backends.jax.load import run

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def converted(module: nn.Module, *inputs: Tensor) -> str:
    """The source of a module, which computes the same; the file has scopes in the names of nodes, and no classes."""
    file: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = torch.onnx.TrainingMode.PRESERVE
        options: dict[str, Any] = {"training": mode, "do_constant_folding": False, "opset_version": 17}
        torch.onnx.export(module.eval(), inputs, file, dynamo=False, **options)
    source = generate(onward.load(file.getvalue()))
    found = run(source).jitted()(*(jax.numpy.asarray(x.numpy()) for x in inputs))
    np.testing.assert_allclose(np.asarray(found), module(*inputs).detach().numpy(), rtol=1e-4, atol=1e-5)
    return source.model


def functions(text: str) -> list[str]:
    return re.findall(r"^def (\w+)", text, re.MULTILINE)


def test_the_digits() -> None:
    assert (
        generate(onward.load(DIGITS)).model
        == '''"""digits: a JAX model."""

from pathlib import Path
from typing import Any

import jax
from jax import Array, lax
from safetensors.flax import load_file

from . import ops

Params = dict[str, Any]
"""A tree of arrays: a dictionary by name, or a list where the names are numbers."""


def conv2d(p: Params, x: Array, *, stride: tuple[int, ...] = (1, 1)) -> Array:
    """stem.0, layer1.0.conv1, … layer2.1.conv2: 9 in all."""
    return lax.conv_general_dilated(
        x, p["weight"], stride, ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def batch_norm2d(p: Params, x: Array) -> Array:
    """stem.1, layer1.0.bn1, … layer2.1.bn2: 10 in all."""
    return ops.batch_norm(x, p["weight"], p["bias"], p["running_mean"], p["running_var"])


def residual_block(p: Params, x: Array, *, stride: tuple[int, ...] = (1, 1)) -> Array:
    """layer1.0, layer1.1, … layer2.1: 4 in all."""
    y = batch_norm2d(p["bn1"], conv2d(p["conv1"], x, stride=stride))
    y = conv2d(p["conv2"], jax.nn.relu(y))
    shortcut = x
    if "shortcut" in p:
        z = lax.conv_general_dilated(
            x, p["shortcut"][0]["weight"], stride, "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        shortcut = batch_norm2d(p["shortcut"][1], z)
    return jax.nn.relu(batch_norm2d(p["bn2"], y) + shortcut)


def apply(params: Params, image: Array, constants: Params) -> Array:
    """digits, converted from ONNX."""
    p = ops.merged(params, constants)
    x = conv2d(p["stem"][0], image.reshape(-1, 8, 8, 1))
    x = jax.nn.relu(batch_norm2d(p["stem"][1], x))
    x = residual_block(p["layer1"][1], residual_block(p["layer1"][0], x))
    x = residual_block(p["layer2"][0], x, stride=(2, 2))
    x = residual_block(p["layer2"][1], x).mean((1, 2))
    return x @ p["head"]["weight"].T + p["head"]["bias"]


def load(folder: str | Path = Path(__file__).parent) -> Params:
    """The parameters: all that is trained."""
    return ops.nested(load_file(Path(folder) / "weights.safetensors"))


def load_constants(folder: str | Path = Path(__file__).parent) -> Params:
    """What `apply` needs besides the parameters, in the same tree: it is not trained."""
    return ops.nested(load_file(Path(folder) / "constants.safetensors"))
'''
    )


class Block(nn.Module):
    def __init__(self, size: int, stride: int = 1, slope: float = 0.1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(size, size, 3, stride, 1)
        self.conv2 = nn.Conv2d(size, size, 3, 1, 1)
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv2(F.leaky_relu(self.conv1(x), self.slope))
        return y


class Chain(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


IMAGE = torch.arange(256, dtype=torch.float32).reshape(1, 4, 8, 8) / 256


def test_runs_of_equal_calls_are_loops() -> None:
    text = converted(Chain(*(Block(4) for _ in range(4))), IMAGE)
    assert '    for block_params in params["blocks"]:\n        x = block(block_params, x)\n' in text
    assert functions(text) == ["conv", "block", "apply", "load"]


def test_a_loop_ends_where_a_number_differs() -> None:
    text = converted(Chain(*(Block(4, 2 if i == 2 else 1) for i in range(6))), IMAGE)
    assert 'for block_params in params["blocks"][3:]:' in text
    assert 'block(params["blocks"][2], block(params["blocks"][1], x), stride=(2, 2))' in text
    assert functions(text) == ["conv", "block", "apply", "load"]


class Residual(nn.Module):
    """A block that may lack its shortcut."""

    def __init__(self, size: int, width: int, stride: int = 1, window: int | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(size, width, 3, stride, 1)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        if window is not None:
            shortcut = nn.Conv2d(size, width, window, stride, window // 2)
            self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv2(F.relu(self.conv1(x)))
        return F.relu(y + (self.shortcut(x) if hasattr(self, "shortcut") else x))


def test_a_block_without_a_part_of_its_siblings_is_of_their_function() -> None:
    blocks = [Residual(4, 4), Residual(4, 8, 2, 1), Residual(8, 8), Residual(8, 8, 1, 1), Residual(8, 8)]
    text = converted(Chain(*blocks), IMAGE)
    assert text.count("def basic_block") == 1
    assert text.count('if "shortcut" in p:') == 1
    assert 'basic_block(p["blocks"][1], x, stride=(2, 2))' in text


def test_parts_that_differ_by_numbers_of_their_own() -> None:
    text = converted(Chain(Residual(4, 4), Residual(4, 4, 1, 3), Residual(4, 4, 1, 5), Residual(4, 4)), IMAGE)
    assert text.count("def basic_block") == 1
    assert "shortcut_padding: tuple[tuple[int, ...], ...] = ((1, 1), (1, 1))" in text
    assert 'basic_block(p["blocks"][2], x, shortcut_padding=((2, 2), (2, 2)))' in text


def test_parts_that_are_not_the_same() -> None:
    text = converted(Chain(Residual(4, 4), Residual(4, 4, 1, 1), Residual(4, 4, 1, 3)), IMAGE)
    assert len([name for name in functions(text) if "block" in name]) == 2
    alike = converted(Chain(Residual(4, 4, 1, 1), Residual(4, 4, 1, 1)), IMAGE)
    assert len([name for name in functions(alike) if "block" in name]) == 1
    assert " in p:" not in alike


def test_numbers_by_which_blocks_differ_are_keywords() -> None:
    text = converted(Chain(*(Block(4, slope=0.1 * (i + 1)) for i in range(3))), IMAGE)
    assert functions(text) == ["conv", "block", "apply", "load"]
    assert "def block(p: Params, x: Array, *, slope: float) -> Array:" in text
    assert "for " not in text.partition("def apply")[2]


class Mixer(nn.Module):
    """Its modules are called as JAX, Python and helpers call something."""

    def __init__(self) -> None:
        super().__init__()
        self.jnp = nn.Linear(4, 4)
        self.lax = nn.Linear(4, 4)
        self.print = nn.LayerNorm(4)
        self.ops = nn.LayerNorm(4)
        self.params = nn.Parameter(torch.ones(4))

    def forward(self, p: Tensor) -> Tensor:
        y: Tensor = self.ops(self.lax(self.print(self.jnp(p)))) * self.params
        return y


def test_names_hide_nothing() -> None:
    text = converted(Mixer(), torch.ones(2, 4))
    assert functions(text) == ["linear", "layer_norm", "apply", "load"]
    assert 'params["params"]' in text


def test_numbers_in_names_are_lists_where_none_is_missing() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2)))
    text = converted(net, torch.ones(2, 4))
    assert 'linear(params["0"], ' in text and 'linear(params["3"][1], ' in text


def test_one_function_for_layers_that_the_file_does_not_name() -> None:
    """Weights without names: repeated blocks are found all the same."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for i in range(6):
        shapes = {f"w{i}a": (4, 4), f"w{i}b": (4,), f"w{i}c": (4, 4)}
        weights += [numpy_helper.from_array(rng.random(s).astype(np.float32), n) for n, s in shapes.items()]
        nodes.append(helper.make_node("MatMul", [x, f"w{i}a"], [f"a{i}"]))
        nodes.append(helper.make_node("Add", [f"a{i}", f"w{i}b"], [f"b{i}"]))
        nodes.append(helper.make_node("Tanh", [f"b{i}"], [f"c{i}"]))
        nodes.append(helper.make_node("MatMul", [f"c{i}", f"w{i}c"], [f"x{i}"]))
        x = f"x{i}"
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "net", sides[:1], sides[1:], weights)
    text = generate(onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))).model
    assert len(text.splitlines()) < 60


def test_strings_are_constants_of_the_module() -> None:
    labels = numpy_helper.from_array(np.array(["no", "yes"], dtype=object), "labels")
    node = helper.make_node("Gather", ["labels", "i"], ["y"])
    inputs = [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])]
    graph = helper.make_graph([node], "net", inputs, outputs, [labels])
    model = onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    source = generate(model)
    assert 'LABELS = np.array(["no", "yes"], dtype=object)' in source.model
    assert run(source)(np.array([1, 0])).tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("ResidualBlock", "residual_block"),
        ("ConvBNReLU", "conv_bn_relu"),
        ("MLP", "mlp"),
        ("BatchNorm2d", "batch_norm2d"),
        ("ViTLayer", "vit_layer"),
        ("T5LayerFF", "t5_layer_ff"),
    ],
)
def test_names_of_classes_become_names_of_functions(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_a_hostile_name_stays_a_name() -> None:
    model = onnx.load(DIGITS)
    model.graph.name = 'x"""\nimport os\n"""'
    for tensor in model.graph.initializer:
        tensor.name = tensor.name.replace("head.weight", 'head"]; import os; p["weight')
    for node in model.graph.node:
        node.input[:] = [name.replace("head.weight", 'head"]; import os; p["weight') for name in node.input]
    text = generate(onward.load(model)).model
    assert not re.search(r"^\W*import os", text, re.MULTILINE)
