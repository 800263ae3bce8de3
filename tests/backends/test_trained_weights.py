"""What a framework trains is a named parameter after conversion, in every backend, and nothing else is."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
import onnx
import pytest
import torch
from keras import layers as L
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import onward
from onward.training.trainable import prepare


class Scale(L.Layer):
    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        return x * self.scale


class Temperature(L.Layer):
    def build(self, shape: Any) -> None:
        self.temperature = self.add_weight(shape=(), initializer="ones", name="temperature")

    def call(self, x: Any) -> Any:
        return x * keras.ops.exp(self.temperature)


class Position(L.Layer):
    def build(self, shape: Any) -> None:
        self.position = self.add_weight(shape=shape[1:], name="position")

    def call(self, x: Any) -> Any:
        return x + self.position


def chain(shape: tuple[int, ...], *steps: Any) -> keras.Model:
    x = y = keras.Input(shape)
    for step in steps:
        y = step(y)
    return keras.Model(x, y)


def self_attention() -> keras.Model:
    x = keras.Input((8, 16))
    return keras.Model(x, L.Dense(2)(L.MultiHeadAttention(2, 16)(x, x)))


def scaled_attention() -> keras.Model:
    x = keras.Input((8, 16))
    return keras.Model(x, L.Attention(use_scale=True)([L.Dense(4)(x), L.Dense(4)(x)]))


def partly_frozen() -> keras.Model:
    first = L.Dense(4)
    model = chain((16,), first, L.Dense(3))
    first.trainable = False
    return model


def used_twice() -> keras.Model:
    dense = L.Dense(16)
    return chain((16,), dense, L.ReLU(), dense)


SERIES, IMAGE, ROW = (8, 16), (8, 8, 3), (16,)
NETS: dict[str, Callable[[], keras.Model]] = {
    "MultiHeadAttention": self_attention,
    "Attention with a scale": scaled_attention,
    "a scale": lambda: chain(ROW, L.Dense(16), Scale(), L.Dense(2)),
    "a single number": lambda: chain(ROW, L.Dense(4), Temperature()),
    "positions": lambda: chain(SERIES, Position(), L.Dense(2)),
    "LayerNormalization": lambda: chain(ROW, L.Dense(16), L.LayerNormalization(), L.Dense(2)),
    "PReLU": lambda: chain(ROW, L.Dense(16), L.PReLU(), L.Dense(2)),
    "Conv1D": lambda: chain(SERIES, L.Conv1D(4, 3), L.Dense(2)),
    "BatchNormalization": lambda: chain(IMAGE, L.Conv2D(4, 3), L.BatchNormalization(), L.Flatten(), L.Dense(2)),
    "Embedding": lambda: chain((8,), L.Embedding(11, 4), L.Dense(2)),
    "SeparableConv2D": lambda: chain(IMAGE, L.SeparableConv2D(4, 3)),
    "LSTM": lambda: chain(SERIES, L.LSTM(4), L.Dense(2)),
    "Bidirectional": lambda: chain(SERIES, L.Bidirectional(L.LSTM(4, return_sequences=True)), L.Dense(2)),
    "GRU": lambda: chain(SERIES, L.GRU(4), L.Dense(2)),
    "GRU that resets before": lambda: chain(SERIES, L.GRU(4, reset_after=False), L.Dense(2)),
    "SimpleRNN": lambda: chain(SERIES, L.SimpleRNN(4), L.Dense(2)),
    "GroupNormalization": lambda: chain((8, 8, 4), L.GroupNormalization(2)),
    "EinsumDense": lambda: chain(SERIES, L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d")),
    "a frozen layer": partly_frozen,
    "a layer used twice": used_twice,
}


def numbers(variables: Any) -> int:
    return sum(int(np.prod(tuple(variable.shape))) for variable in variables)


def in_training(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p for name, p in net.named_parameters() if p.requires_grad}


@pytest.fixture(scope="module", params=NETS.values(), ids=NETS)
def pair(request: pytest.FixtureRequest) -> tuple[keras.Model, onward.Model]:
    """A Keras model with fresh weights, biases of zeros among them, and the ONNX model, read from its bytes."""
    keras.utils.set_random_seed(0)
    model = request.param()
    return model, onward.load(onward.from_keras(model).to_proto().SerializeToString())


def test_pytorch_trains_what_keras_trains(pair: tuple[keras.Model, onward.Model]) -> None:
    model, converted = pair
    net = onward.to_torch(converted)
    assert numbers(in_training(net).values()) == numbers(model.trainable_weights)
    x = np.random.default_rng(0).random((4, *model.input_shape[1:]), np.float32)
    x = np.floor(x * 11) if any(isinstance(layer, L.Embedding) for layer in model.layers) else x
    given = torch.from_numpy(x).requires_grad_()
    np.testing.assert_allclose(net(given).detach().numpy(), np.asarray(model(x)), atol=1e-5, rtol=1e-4)
    net(given).square().sum().backward()
    assert [name for name, p in in_training(net).items() if p.grad is None] == []


def test_tensorflow_and_keras_train_what_keras_trains(pair: tuple[keras.Model, onward.Model]) -> None:
    model, converted = pair
    wanted = numbers(model.trainable_weights)
    module = onward.to_tensorflow(converted)
    assert numbers(module.trainable_variables) == wanted
    assert len({variable.name for variable in module.trainable_variables}) == len(module.trainable_variables)
    assert numbers(onward.to_keras(converted).trainable_variables) == wanted


@pytest.mark.parametrize("pair", list(NETS.values())[::4], ids=list(NETS)[::4], indirect=True)
def test_jax_trains_what_keras_trains(pair: tuple[keras.Model, onward.Model]) -> None:
    model, converted = pair
    apply, params = onward.to_jax(converted, check=False)
    assert numbers(jax.tree.leaves(params)) == numbers(model.trainable_weights)
    x = np.random.default_rng(0).random((4, *model.input_shape[1:]), np.float32)
    x = np.floor(x * 11) if any(isinstance(layer, L.Embedding) for layer in model.layers) else x

    def loss(params: Any) -> Any:
        y = apply(params, x)
        return (y**2).sum(), y

    (_, y), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    np.testing.assert_allclose(y, np.asarray(model(x)), atol=1e-5, rtol=1e-4)
    assert jax.tree.structure(gradients) == jax.tree.structure(params)


def test_names_are_those_of_keras() -> None:
    net = onward.to_torch(onward.from_keras(self_attention()))
    names = {name.partition(".")[2] for name in in_training(net)} | set(in_training(net))
    assert {"query.weight", "query_bias", "attention_output.weight", "attention_output.bias"} <= names


def test_what_is_not_trained_is_kept() -> None:
    model = NETS["BatchNormalization"]()
    net = onward.to_torch(onward.from_keras(model))
    kept = {name.rpartition(".")[2] for name in net.state_dict().keys() - in_training(net).keys()}
    assert kept == {"running_mean", "running_var", "num_batches_tracked"}
    module = onward.to_tensorflow(onward.from_keras(model))
    assert numbers(module.non_trainable_variables) == numbers(model.non_trainable_weights)


def test_the_record_is_in_the_file_and_outlives_other_opsets() -> None:
    model = partly_frozen()
    proto = onward.from_keras(model).to_proto()
    stored = json.loads(next(p.value for p in proto.metadata_props if p.key == "onward.trained"))
    assert sorted(stored.values()) == [False, False, True, True]
    later = onnx.version_converter.convert_version(proto, 22)
    assert numbers(in_training(onward.to_torch(later)).values()) == numbers(model.trainable_weights)


@pytest.mark.parametrize("text", ["", "nonsense", "[1, 2]", '{"w": "perhaps"}', "[" * 5000])
def test_a_record_that_is_none_does_no_harm(text: str) -> None:
    proto = built([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": np.ones((3, 4), np.float32)}, [2, 3])
    helper.set_model_props(proto, {"onward.trained": text})
    assert onward.to_torch(proto)(torch.ones(2, 3)).shape == (2, 4)


# PyTorch


class Language(nn.Module):
    """A table of words that is read twice, a temperature, and what is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight
        self.temperature = nn.Parameter(torch.tensor(0.5))
        self.fixed = nn.Parameter(torch.randn(16), requires_grad=False)
        self.register_buffer("table", torch.rand(16))
        self.register_buffer("hidden", torch.rand(16), persistent=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embed(words)) * self.table + self.hidden * self.fixed
        return self.head(x + torch.tensor([1.0, 2.0] * 8)) * self.temperature.exp()


WORDS = torch.randint(0, 50, (2, 6), generator=torch.Generator().manual_seed(0))


def test_pytorch_to_pytorch() -> None:
    net = Language().eval()
    converted = onward.to_torch(onward.from_torch(net, (WORDS,)))
    assert set(in_training(converted)) == {"embed.weight", "norm.weight", "norm.bias", "temperature"}
    assert set(net.state_dict()) <= set(converted.state_dict()), "the tied weight has both of its names"
    assert converted.head.weight is converted.embed.weight
    converted.load_state_dict(net.state_dict(), strict=True)
    again = onward.to_torch(onward.from_torch(net, (WORDS,)))
    again.load_state_dict(converted.state_dict(), strict=True)
    torch.testing.assert_close(again(WORDS), net(WORDS), atol=1e-6, rtol=1e-6)


def test_a_step_changes_every_parameter() -> None:
    converted = onward.to_torch(onward.from_torch(Language().eval(), (WORDS,)))
    before = {name: p.detach().clone() for name, p in in_training(converted).items()}
    converted(WORDS).square().mean().backward()
    torch.optim.SGD(converted.parameters(), lr=0.1).step()
    assert [name for name, p in in_training(converted).items() if torch.equal(p, before[name])] == []


@pytest.mark.parametrize("fold", [True, False])
def test_a_file_of_the_older_exporter(fold: bool) -> None:
    """Folding stores the table a second time, transposed: it is one parameter all the same."""
    net, file = Language().eval(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (WORDS,), file, dynamo=False, do_constant_folding=fold, opset_version=17)
    converted = onward.to_torch(file.getvalue())
    assert {"embed.weight", "norm.weight", "norm.bias", "temperature"} <= set(in_training(converted))
    assert converted.head.weight is converted.embed.weight
    torch.testing.assert_close(converted(WORDS), net(WORDS), atol=1e-5, rtol=1e-5)


# ONNX files of anyone


def built(nodes: list[onnx.NodeProto], weights: dict[str, Any], shape: list[int], **options: Any) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", options.pop("of", TensorProto.FLOAT), shape)
    y = helper.make_empty_tensor_value_info("y")
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "built", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, **options)


def test_zero_biases_stay() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "onnx::Conv_1", "onnx::Conv_2"], ["a"]),
        helper.make_node("Conv", ["a", "onnx::Conv_3"], ["y"]),
    ]
    shapes = {"onnx::Conv_1": (4, 3, 3, 3), "onnx::Conv_2": (4,), "onnx::Conv_3": (2, 4, 1, 1)}
    model = built(nodes, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, [1, 3, 8, 8])
    first, second = (m for m in onward.to_torch(model).modules() if isinstance(m, nn.Conv2d))
    assert first.bias is not None and second.bias is None
    module = onward.to_tensorflow(model)
    assert numbers(module.trainable_variables) == 4 * 27 + 4 + 8


def test_numbers_of_a_formula_are_no_parameters() -> None:
    nodes = [
        helper.make_node("Add", ["x", "eps"], ["a"]),
        helper.make_node("Mul", ["a", "block.scale"], ["b"]),
        helper.make_node("Add", ["b", "val_3"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    mask = np.array([0, -1e9, 0], np.float32)
    weights = {"eps": np.float32(1e-6), "block.scale": np.float32(2), "val_3": mask, "w": np.ones((3, 4), np.float32)}
    model = built(nodes, weights, [2, 3])
    net = onward.to_torch(model)
    assert {tuple(p.shape) for p in net.parameters()} == {(), (4, 3)}
    assert "block.scale" in in_training(net)
    assert [tuple(b.shape) for b in net.buffers()] == [(3,)] and set(dict(net.named_buffers())) <= set(net.state_dict())
    assert set(prepare(model, "mse").parameters) == {"block.scale", "w"}, "the default is the same everywhere"


@pytest.mark.parametrize("to", [onward.to_torch, onward.to_tensorflow, onward.to_keras])
def test_a_shared_weight_is_one_parameter(to: Callable[[Any], Any]) -> None:
    """The table has the name of the head, which reads it last."""
    nodes = [
        helper.make_node("Gather", ["head.weight", "x"], ["e"], name="/body/embed/Gather"),
        helper.make_node("Relu", ["e"], ["r"], name="/body/act/Relu"),
        helper.make_node("Transpose", ["head.weight"], ["t"], perm=[1, 0], name="/head/Transpose"),
        helper.make_node("MatMul", ["r", "t"], ["y"], name="/head/MatMul"),
    ]
    weights = {"head.weight": np.random.default_rng(0).random((50, 16), np.float32)}
    made = to(built(nodes, weights, [2, 6], of=TensorProto.INT64, producer_name="pytorch"))
    found = list(made.parameters()) if isinstance(made, nn.Module) else made.trainable_variables
    assert [tuple(v.shape) for v in found] == [(50, 16)]
    if isinstance(made, nn.Module):
        assert set(made.state_dict()) == {"body.embed.weight", "head.weight"}


def test_a_vector_that_two_layers_share_is_one_parameter() -> None:
    nodes = [helper.make_node("Conv", ["x", "a", "b"], ["p"]), helper.make_node("Conv", ["p", "c", "b"], ["y"])]
    rng = np.random.default_rng(0)
    weights = {
        name: rng.random(shape, np.float32) for name, shape in (("a", (4, 4, 1, 1)), ("b", 4), ("c", (4, 4, 1, 1)))
    }
    model, x = built(nodes, weights, [1, 4, 3, 3]), rng.random((1, 4, 3, 3), np.float32)
    net, module, functional = onward.to_torch(model), onward.to_tensorflow(model), onward.to_keras(model)
    wanted = net(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(np.asarray(module(x)), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(functional(x)), wanted, rtol=1e-5)
    found = [net.parameters(), module.trainable_variables, functional.trainable_variables]
    assert list(map(numbers, found)) == [36, 36, 36]


def test_statistics_are_never_shared() -> None:
    """Exporters keep one of equal vectors, be they biases or means."""
    nodes = [
        helper.make_node("BatchNormalization", ["x", "ones", "zeros", "zeros", "ones"], ["a"]),
        helper.make_node("BatchNormalization", ["a", "ones", "zeros", "zeros", "ones"], ["y"]),
    ]
    weights = {"ones": np.ones(4, np.float32), "zeros": np.zeros(4, np.float32)}
    net = onward.to_torch(built(nodes, weights, [2, 4, 3, 3])).train()
    net(torch.rand(2, 4, 3, 3))
    means = [buffer for name, buffer in net.named_buffers() if name.endswith("running_mean")]
    assert len(means) == 2 and not torch.equal(*means)
    assert all(not parameter.any() for name, parameter in net.named_parameters() if name.endswith("bias"))


def test_a_new_model_is_initialised(tmp_path: Path) -> None:
    from onward.backends.emit.execute import execute
    from onward.backends.torch.convert import generate

    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Mul", ["x", "norm.scale"], ["a"]),
        helper.make_node("Add", ["a", "position"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    shapes = {"norm.scale": (3,), "position": (2, 3), "w": (3, 4)}
    weights = {name: rng.random(shape, np.float32) + 7 for name, shape in shapes.items()}
    new = execute(generate(onward.load(built(nodes, weights, [2, 3])))).model.Model()
    assert torch.equal(new.norm.scale, torch.ones(3))
    assert 0 < new.position.abs().max() <= 2 and new(torch.ones(2, 3)).isfinite().all()
    assert all(p.abs().max() < 3 for p in new.parameters())


def test_a_function_of_tensorflow() -> None:
    import tensorflow as tf

    trained = tf.Variable(tf.ones((16, 4)), name="trained")
    shift = tf.Variable(0.5, name="shift")
    fixed = tf.Variable(tf.ones(4), trainable=False, name="fixed")
    model = onward.from_tensorflow(lambda x: (x @ trained + shift) * fixed, [tf.TensorSpec((None, 16), tf.float32)])
    net = onward.to_torch(model)
    assert numbers(in_training(net).values()) == 64 + 1
    assert "fixed" in dict(net.named_buffers()) and "fixed" in net.state_dict()
    module = onward.to_tensorflow(model)
    assert (numbers(module.trainable_variables), numbers(module.non_trainable_variables)) == (65, 4)


@pytest.mark.parametrize("to", ["torch", "onnx"])
def test_convert_says_what_is_trained(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onward.cli import main

    NETS["BatchNormalization"]().save(tmp_path / "net.keras")
    assert not main(["convert", str(tmp_path / "net.keras"), "--to", to, "--out", str(tmp_path / "made")])
    said = capsys.readouterr().err
    assert "trainable: 410 of " in said
    assert "not trained: " in said and ("running_mean (4)" in said or "moving_mean (4)" in said)
