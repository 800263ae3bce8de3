"""Trainings that a framework has no words for go on there by their graphs, as if nothing had happened."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from small_networks import NETWORKS, batches, network, onnx_of

import onward
from onward import runners
from onward.training import (
    from_tensorflow,
    load,
    to_jax_package,
    to_keras_package,
    to_tensorflow_package,
    to_torch_package,
    verify,
)
from onward.training.recipe.adapters import lora
from onward.training.recipe.optimizers import Adam
from onward.training.recipe.schedules import Cosine
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare

WRITE: dict[str, Callable[..., Path]] = {
    "torch": to_torch_package,
    "tensorflow": to_tensorflow_package,
    "keras": to_keras_package,
    "jax": to_jax_package,
}
Batches = list[dict[str, Any]]
STEPS = 9
DRAW = np.random.default_rng(0)


def feeds(name: str) -> Batches:
    return [{"x": x.numpy(), "labels": y.numpy()} for x, y in batches(name, STEPS)]


def of_jax() -> tuple[Trainable, Batches]:
    """A step of optax with a schedule, whose state has counts and trees."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    params = {"w": DRAW.standard_normal((12, 4)).astype(np.float32), "b": np.zeros(4, np.float32)}

    def apply(params: Any, x: Any) -> Any:
        return jax.numpy.tanh(x @ params["w"] + params["b"])

    def loss(params: Any, x: Any, labels: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), labels).mean()

    x, y = jax.ShapeDtypeStruct(("b", 12), "float32"), jax.ShapeDtypeStruct(("b",), "int32")
    how = optax.adamw(optax.cosine_decay_schedule(1e-2, 40))
    made = onward.from_jax(loss, x, y, params=params, optimizer=how, inference=apply)
    return made, [{"x": one["x"], "labels": one["labels"].astype(np.int32)} for one in feeds("mlp")]


def of_counts() -> tuple[Trainable, Batches]:
    """A model that reads integers which a step changes: how many there were, and the words of a key."""
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    params = {"w": DRAW.standard_normal((12, 4)).astype(np.float32)}
    state = {"count": np.array(2, np.int32), "key": np.array([3, 5], np.uint32)}

    def apply(params: Any, state: Any, x: Any) -> Any:
        known = 1 - 0.5 ** state["count"]
        return jax.numpy.tanh(x @ params["w"] / known) * (state["key"] % 4).astype("float32").sum()

    def loss(params: Any, state: Any, x: Any, labels: Any) -> Any:
        value = optax.softmax_cross_entropy_with_integer_labels(apply(params, state, x), labels).mean()
        return value, {"count": state["count"] + 1, "key": state["key"] * np.uint32(2654435761)}

    x, y = jax.ShapeDtypeStruct(("b", 12), "float32"), jax.ShapeDtypeStruct(("b",), "int32")
    how = {"params": params, "model_state": state, "optimizer": optax.sgd(0.1)}
    made = onward.from_jax(loss, x, y, **how, inference=apply)
    return made, [{"x": one["x"], "labels": one["labels"].astype(np.int32)} for one in feeds("mlp")]


def of_tensorflow() -> tuple[Trainable, Batches]:
    """A step with a GradientTape, and a momentum that it keeps itself."""
    tf = pytest.importorskip("tensorflow")
    w = tf.Variable(DRAW.standard_normal((12, 4)).astype(np.float32), name="w")
    moved = tf.Variable(np.zeros((12, 4), np.float32), name="moved", trainable=False)
    count = tf.Variable(0, dtype=tf.int64, name="count", trainable=False)

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x @ w))
        count.assign_add(1)
        moved.assign(0.9 * moved + tape.gradient(loss, w))
        w.assign_sub(0.3 * moved / tf.cast(count, tf.float32))
        return loss

    x, y = tf.TensorSpec([None, 12], name="x"), tf.TensorSpec([None], tf.int64, name="labels")
    made = from_tensorflow(step, [x, y], inference=tf.function(lambda x: x @ w), inference_signature=[x])
    return made, feeds("mlp")


def of_others() -> tuple[Trainable, Batches]:
    """A file that somebody else wrote: `Gradient`, and an optimizer of plain ops with a state and a count."""
    domain = "ai.onnx.preview.training"
    update = [
        helper.make_node("Sub", ["y", "target"], ["apart"]),
        helper.make_node("Mul", ["apart", "apart"], ["squared"]),
        helper.make_node("ReduceMean", ["squared"], ["mse"], keepdims=0),
        helper.make_node("Gradient", ["w", "x"], ["dw"], domain=domain, xs=["w"], zs=["x"], y="mse"),
        helper.make_node("Add", ["t", "one"], ["t2"]),
        helper.make_node("Add", ["v", "dw"], ["v2"]),
        helper.make_node("Mul", ["v2", "rate"], ["m"]),
        helper.make_node("Cast", ["t2"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["m", "c"], ["q"]),
        helper.make_node("Sub", ["w", "q"], ["w2"]),
    ]
    floats = {"target": ["n", 4], "rate": []}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in floats.items()]
    kinds = {"mse": TensorProto.FLOAT, "w2": TensorProto.FLOAT, "v2": TensorProto.FLOAT, "t2": TensorProto.INT64}
    outputs = [helper.make_empty_tensor_value_info(name) for name in kinds]
    for value in outputs:
        value.type.tensor_type.elem_type = kinds[value.name]
    start = {"v": np.zeros((12, 4), np.float32), "t": np.array(0), "one": np.array(1)}
    held = [numpy_helper.from_array(array, name) for name, array in start.items()]
    algorithm = helper.make_graph(update, "step", inputs, outputs, held)
    x, y = (helper.make_tensor_value_info(k, TensorProto.FLOAT, ["n", n]) for k, n in (("x", 12), ("y", 4)))
    weight = numpy_helper.from_array(DRAW.standard_normal((12, 4)).astype(np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "linear", [x], [y], [weight])
    imports = [helper.make_opsetid("", 12), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=7)
    model.training_info.add(algorithm=algorithm)
    for key in ("w", "v", "t"):
        model.training_info[0].update_binding.add(key=key, value=f"{key}2")
    made = load(model)
    return made, [{"x": one["x"], "target": np.eye(4, dtype=np.float32)[one["labels"]]} for one in feeds("mlp")]


BY_ROWS = parser.parse_model(
    """<ir_version: 10, opset_import: ["" : 21]> agraph (float[N] w, float[N] g, float lr, float[N] v)
    => (float[N] y, float[N] v2) {
    half = Constant <value = float {0.5}> () a = Mul (v, half) v2 = Add (a, g) first = Constant <value_ints = [0]> ()
    size = ReduceL1 (v2, first) few = Constant <value = float {0.01}> () safe = Add (size, few)
    q = Div (v2, safe) m = Mul (q, lr) y = Sub (w, m) }"""
)
"""Steps are scaled along the first axis of each weight."""


def by_rows() -> tuple[Trainable, Batches]:
    """An optimizer that is about an axis of weights, which a framework has in another place."""
    how = OnnxOptimizer(BY_ROWS, lr=1e-2)
    file = onnx_of(network("cnn"), NETWORKS["cnn"].data(4))
    return prepare(file, optimizer=how, accumulate=3, average=0.9), feeds("cnn")


def gates() -> tuple[Trainable, Batches]:
    """As that, of a recurrent layer, whose gates PyTorch has in another order."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> agraph (float[6, N, 2] x) => (float[N, 4] y) {
        all, h, c = LSTM <hidden_size = 4> (x, W, R) axes = Constant <value_ints = [0]> () y = Squeeze (h, axes) }"""
    )
    shapes = {"W": (1, 16, 2), "R": (1, 16, 4)}
    arrays = [numpy_helper.from_array(DRAW.standard_normal(s).astype(np.float32), name) for name, s in shapes.items()]
    model.graph.initializer.extend(arrays)
    made = prepare(model, optimizer=OnnxOptimizer(BY_ROWS, lr=1e-2), clip_norm=0.1, schedule=Cosine(20))
    data = [{"x": one["x"].reshape(-1, 6, 2).swapaxes(0, 1).copy(), "labels": one["labels"]} for one in feeds("mlp")]
    return made, data


def adapted() -> tuple[Trainable, Batches]:
    return prepare(
        onnx_of(network("mlp"), NETWORKS["mlp"].data(4)), optimizer=Adam(lr=1e-2), lora=lora(2, alpha=3.0)
    ), feeds("mlp")


CASES: dict[tuple[str, str], Callable[[], tuple[Trainable, Batches]]] = {
    ("torch", "jax"): of_jax,
    ("torch", "tensorflow"): of_tensorflow,
    ("torch", "others"): of_others,
    ("torch", "gates"): gates,
    ("torch", "counts"): of_counts,
    ("jax", "counts"): of_counts,
    ("tensorflow", "counts"): of_counts,
    ("keras", "counts"): of_counts,
    ("jax", "jax"): of_jax,
    ("jax", "filters"): by_rows,
    ("tensorflow", "others"): of_others,
    ("keras", "tensorflow"): of_tensorflow,
    ("keras", "adapters"): adapted,
}


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


@pytest.mark.parametrize(("framework", "case"), CASES)
def test_it_goes_on(framework: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on ONNX Runtime, then in the package, and there again after its own checkpoint."""
    made, data = CASES[framework, case]()
    trainer, folder = Trainer(made, lr=0.05, kernels=False), tmp_path / "net"
    for batch in data[:3]:
        trainer.step(batch)
    WRITE[framework](trainer, folder)
    for part in (data[3:6], data[6:]):
        expected = [trainer.step(batch) for batch in part]
        module = imported(folder, monkeypatch)
        state, (step, _) = module.load_state(), module.load_progress()
        given = part
        if framework == "torch":
            given = [{name: module.torch.from_numpy(array) for name, array in batch.items()} for batch in part]
        start = {"start": step} if made.parameters else {}
        np.testing.assert_allclose(module.train(state, given, **start), expected, rtol=2e-5)
        assert len(set(expected)) == 3
        module.save(state, step=trainer.steps, epoch=0)
    for name, array in {**trainer.parameters, **trainer.state, **trainer.buffers}.items():
        np.testing.assert_allclose(np.asarray(state[name]), array, rtol=1e-4, atol=1e-5, err_msg=name)
    assert "its graphs, as ONNX Runtime runs them" in (folder / "README.md").read_text()
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F", str(folder)], check=True)
    check_model(framework, folder, trainer, data[0]["x"])


def check_model(framework: str, folder: Path, trainer: Trainer, x: Any) -> None:
    """The model of the package has the weights of the last step."""
    expected = next(iter(runners.prepare("onnxruntime", trainer.tuned())({"x": x}).values()))
    model = importlib.import_module(f"{folder.name}.model")
    if framework == "torch":
        found = model.load()(model.torch.from_numpy(x)).detach()
    elif framework == "jax":
        constants = [model.load_constants()] if hasattr(model, "load_constants") else []
        found = model.apply(model.load(), x, *constants)
    elif framework == "keras":
        net = model.build()
        net.load_weights(folder / "model.keras")
        found = net(x)
    else:
        found = model.load()(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


def test_it_is_proven() -> None:
    assert verify(of_others()[0], "torch", steps=3).status == "same"


CHOSEN = parser.parse_model(
    """<ir_version: 10, opset_import: ["" : 21]> agraph (float[N, 4] prediction, int64[N] labels) => (float loss) {
    none = Constant <value = int64 {0}> () is = Greater (labels, none) taken = Compress <axis = 0> (prediction, is)
    s = Mul (taken, taken) loss = ReduceMean <keepdims = 0> (s) }"""
)
"""Of rows whose number follows from the labels."""


@pytest.mark.parametrize("chosen", [False, True])
def test_a_step_without_jit_says_so(chosen: bool, tmp_path: Path) -> None:
    how = {"loss": CHOSEN} if chosen else {}
    made = prepare(onnx_of(network("cnn"), NETWORKS["cnn"].data(4)), optimizer=OnnxOptimizer(BY_ROWS, lr=1e-2), **how)
    folder = to_jax_package(made, tmp_path / "net")
    said = "`passed` runs op by op, without `jax.jit`" in (folder / "README.md").read_text()
    assert said is chosen
    assert said is not ("@jax.jit\ndef passed(" in (folder / "train.py").read_text())
