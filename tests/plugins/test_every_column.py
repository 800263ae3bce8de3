"""One object says what a custom op is; every part of Onward agrees with it. Six ops, four of packages in the wild."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onward
from onward import runners, training
from onward.model import Model
from onward.plugins import CustomOp
from onward.plugins.check import check, function_of
from onward.plugins.table import find
from onward.plugins.trial import Trial, model_of, trial

QONNX = "qonnx.custom_op.general"
OPS = [
    f"{QONNX}::Quant",
    f"{QONNX}::BipolarQuant",
    f"{QONNX}::Trunc",
    "ai.onnx.contrib::Inverse",
    "my.lab::SolveSPD",
    "my.lab::FancyGelu",
]
TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
BACKENDS = ("torch", "tensorflow", "keras", "jax")


@pytest.fixture(autouse=True)
def _known(lab: Any) -> None:
    """The plugins are loaded."""


def known(key: str) -> CustomOp:
    op = find(key, 1)
    assert op is not None
    return op


def function(op: CustomOp, framework: str) -> Callable[..., Any]:
    """What computes the op in a framework, as a user of it might have written it."""
    if framework in op.sources:
        return function_of(op, framework)
    import tensorflow as tf
    import torch

    sigmoid = torch.sigmoid if framework == "torch" else tf.sigmoid
    return lambda x, alpha: x * sigmoid(alpha * x)


def sample(op: CustomOp) -> tuple[Trial, dict[str, Any]]:
    given = trial(op)
    return given, op.keywords(given.attributes)


@pytest.mark.parametrize("key", OPS)
def test_every_way_of_saying_it_is_the_same(key: str) -> None:
    found = {finding.what: finding for finding in check([known(key)], gradients=False)}
    assert [str(finding) for finding in found.values() if finding.ok is False] == []
    source = "numpy" if known(key).reference else "onnxruntime"
    for backend in BACKENDS:
        assert found[f"{source} ↔ {backend}"].ok
    if source == "numpy":
        assert found["numpy ↔ onnxruntime"].ok and found["inference"].ok


@pytest.mark.parametrize("key", OPS)
def test_the_gradient(key: str) -> None:
    """By finite differences, or where it is straight through by design, that of PyTorch."""
    op = known(key)
    if op.reference is None:  # a body: that of the reference evaluator, in double precision
        given = trial(op)
        model = training.gradient(model_of(op, given), of="y", wrt=["x"])
        grad = runners.prepare("onnxruntime", model)(dict(given.inputs))["x.grad"]
        x, step = given.inputs["x"].astype(np.float64), 1e-6
        ends = [moved / (1 + np.exp(-1.702 * moved)) for moved in (x + step, x - step)]
        np.testing.assert_allclose(grad, (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-5)
        return
    found = {finding.what: finding for finding in check([op], gradients=True)}
    wanted = ["gradient ↔ torch", *([] if op.straight_through else ["gradient ↔ finite differences"])]
    assert [what for what in wanted if not found[what].ok] == []


@pytest.fixture(scope="module")
def library() -> Any:
    import torch

    return torch.library.Library("onward_custom", "FRAGMENT")


@pytest.mark.parametrize("key", OPS)
def test_from_pytorch(key: str, library: Any) -> None:
    import torch

    op, name = known(key), key.partition("::")[2].lower()
    given, keywords = sample(op)
    tensors = [f"Tensor {formal.name}" for formal in op.inputs]
    others = [f"{TYPES[one.kind]} {one.name}" for one in op.attributes]
    library.define(f"{name}({', '.join([*tensors, *others])}) -> Tensor")
    own, count = function(op, "torch"), len(op.inputs)
    names = [one.name for one in op.attributes]
    library.impl(
        name,
        lambda *args: own(*args[:count], **dict(zip(names, args[count:], strict=True))),
        "CompositeExplicitAutograd",
    )
    op.from_torch(f"onward_custom::{name}")
    called = getattr(torch.ops.onward_custom, name)

    class Net(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return called(*inputs, *keywords.values()) * 2

    arrays = tuple(torch.from_numpy(np.array(array)) for array in given.inputs.values())
    model = onward.from_torch(Net(), arrays, dynamic_batch=False, input_names=list(given.inputs))
    node = next(node for node in model.ir.graph if node.domain == op.domain)
    assert (node.op_type, len(node.inputs)) == (op.name, count)


@pytest.mark.parametrize("key", OPS)
def test_from_tensorflow(key: str) -> None:
    """A function that says what it implements; attributes are in the same words."""
    import tensorflow as tf

    op = known(key)
    given, keywords = sample(op)
    fields = {bool: "b", int: "i", float: "f", str: "s"}
    said = [f'attr {{ key: "{k}" value {{ {fields[type(v)]}: {_spelled(v)} }} }}' for k, v in keywords.items()]
    own = function(op, "tensorflow")
    whole = tf.function(
        lambda *inputs: own(*inputs, **keywords), experimental_implements=f'name: "{key}" {" ".join(said)}'
    )
    specs = [tf.TensorSpec(array.shape, array.dtype, name=name) for name, array in given.inputs.items()]
    model = onward.from_tensorflow(tf.function(lambda *inputs: whole(*inputs) * 2.0, input_signature=specs))
    assert [node.op_type for node in model.ir.graph if node.domain == op.domain] == [op.name]


def _spelled(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def test_an_op_of_tensorflow_itself_by_its_name() -> None:
    """NextAfter has a kernel in TensorFlow, and no rule of ours."""
    import tensorflow as tf

    op = CustomOp("my.lab::NextAfter", inputs="x:T towards:T")
    op.numpy(lambda x, towards: np.nextafter(x, towards))
    op.infer(lambda x, towards: x)
    op.from_tensorflow("NextAfter")
    spec = tf.TensorSpec([3], tf.float32)
    model = onward.from_tensorflow(
        tf.function(lambda x, y: tf.raw_ops.NextAfter(x1=x, x2=y), input_signature=[spec] * 2)
    )
    assert ("my.lab", "NextAfter") in [(node.domain, node.op_type) for node in model.ir.graph]


def layered(key: str, **attributes: Any) -> Model:
    """Two linear layers, the weight of the first of which goes through a custom op."""
    rng = np.random.default_rng(0)
    op = known(key)
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["batch", 6]))
    graph = ir.Graph([x], [], nodes=[], opset_imports={"": 20, op.domain: op.version}, name="net")
    model = ir.Model(graph, ir_version=10)
    from onward.graph.build import Builder

    build = Builder(model)

    def weight(name: str, *shape: int) -> Any:
        value = ir.Value(name=name, const_value=ir.tensor(rng.normal(size=shape).astype(np.float32) * 0.4, name=name))
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(shape)
        graph.register_initializer(value)
        return build.tensor(value)

    first = weight("first.weight", 6, 6)
    settings = [np.asarray(n, np.float32) for n in ((0.05, 0, 4) if op.name == "Quant" else (0.2,))]
    settings = [] if op.name == "Inverse" else settings
    hidden = build.Tanh(build.tensor(x) @ op(build, first, *settings, **attributes))
    out = hidden @ weight("head.weight", 6, 2)
    out.value.name = "logits"
    graph.outputs.append(out.value)
    return Model(model)


@pytest.mark.parametrize(
    ("key", "attributes"),
    [
        (f"{QONNX}::Quant", {"signed": True, "narrow": False, "rounding_mode": "ROUND"}),
        (f"{QONNX}::BipolarQuant", {}),
        ("ai.onnx.contrib::Inverse", {}),
    ],
)
def test_training_on_onnx_runtime(key: str, attributes: dict[str, Any]) -> None:
    trainer = training.Trainer(
        training.prepare(layered(key, **attributes), loss="cross_entropy", optimizer=training.AdamW(lr=2e-2))
    )
    rng = np.random.default_rng(1)
    x = rng.normal(size=(32, 6)).astype(np.float32)
    batch = {"x": x, "labels": (x[:, 0] > x[:, 1]).astype(np.int64)}
    losses = [trainer.step(batch) for _ in range(100)]
    assert np.mean(losses[-10:]) < 0.8 * losses[0]


def test_training_a_module_of_pytorch_with_dropout(library: Any) -> None:
    """It goes through PyTorch's older exporter, which is told of the op as well."""
    import torch

    op = CustomOp("my.lab::Scale", attributes={"by": 1.0})
    op.infer(lambda x, *, by: x)
    op.numpy(lambda x, *, by: x * x.dtype.type(by))
    op.vjp(lambda c, g, x, *, by: g * by)
    library.define("scale(Tensor x, float by) -> Tensor")
    library.impl("scale", lambda x, by: x * by, "CompositeExplicitAutograd")
    op.from_torch("onward_custom::scale")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.dropout = torch.nn.Linear(4, 2), torch.nn.Dropout(0.2)

        def forward(self, x: Any) -> Any:
            return torch.ops.onward_custom.scale(self.linear(self.dropout(x)), 3.0)

    torch.manual_seed(3)
    trained = onward.from_torch(Net(), torch.randn(8, 4), "cross_entropy", training.AdamW(lr=0.05), input_names=["x"])
    trainer, x = training.Trainer(trained), np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    batch = {"x": x, "labels": (x[:, 0] < x[:, 1]).astype(np.int64)}
    losses = [trainer.step(batch) for _ in range(60)]
    assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:5])


def test_quantised_numbers_by_hand() -> None:
    """Steps of 0.5 in three bits, -4 to 3: what is half-way goes to the even one, what is outside to the ends."""
    x, scale, zero, bits = (np.asarray(v, np.float32) for v in ([-9, -0.75, -0.25, 0.25, 0.8, 9], 0.5, 0, 3))
    how = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
    assert known(f"{QONNX}::Quant").run([x, scale, zero, bits], how)[0].tolist() == [-2, -1, 0, 0, 1, 1.5]
    assert known(f"{QONNX}::Quant").run([x, scale, zero, bits], how | {"signed": 0})[0].tolist() == [0, 0, 0, 0, 1, 3.5]
    assert known(f"{QONNX}::BipolarQuant").run([x, scale], {})[0].tolist() == [-0.5, -0.5, -0.5, 0.5, 0.5, 0.5]
    number = np.asarray([7.5, -1], np.float32)
    eight, five = np.asarray(8, np.float32), np.asarray(5, np.float32)
    found = known(f"{QONNX}::Trunc").run([number, scale, zero, eight, five], {"rounding_mode": "FLOOR"})[0]
    assert found.tolist() == [0.5, -0.5]
