"""Compiled kernels against the graphs that they are printed from: the same bits, or almost, and never needed."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx_ir as ir
import onnxruntime
import pytest
from small_networks import batches, network, onnx_of

from onward.graph.build import Builder
from onward.graph.infer import infer
from onward.model import Model
from onward.training.native import compiler, selftest
from onward.training.native.compiler import library, loaded, wanted
from onward.training.native.driver import DOMAIN
from onward.training.native.expressions import PRELUDE
from onward.training.native.optimizer import Kernel
from onward.training.native.selftest import with_kernels
from onward.training.recipe.groups import Group
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Averaged, Clipped, Optimizer, RMSprop
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.runtime.buffers import SharedBuffer
from onward.training.runtime.trainer import Trainer
from onward.training.runtime.update import Update, stepping
from onward.training.trainable import Trainable, prepare

Array = np.ndarray[Any, Any]
needs_compiler = pytest.mark.skipif(compiler.compiler() is None, reason="there is no C compiler")


def own_optimizer() -> OnnxOptimizer:
    """Signs of gradients, as a model of a user's."""
    nodes = [
        oh.make_node("Constant", [], ["half"], value_float=0.5),
        oh.make_node("Mul", ["m", "half"], ["kept"]),
        oh.make_node("Add", ["kept", "g"], ["m_next"]),
        oh.make_node("Tanh", ["m_next"], ["move"]),
        oh.make_node("Mul", ["move", "lr"], ["scaled"]),
        oh.make_node("Sub", ["w", "scaled"], ["w_next"]),
    ]

    def tensor(name: str, dims: list[Any]) -> onnx.ValueInfoProto:
        return oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)

    inputs = [tensor("w", ["n"]), tensor("g", ["n"]), tensor("lr", []), tensor("m", ["n"])]
    graph = oh.make_graph(nodes, "own", inputs, [tensor("w_next", ["n"]), tensor("m_next", ["n"])])
    return OnnxOptimizer(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10))


def mlp(optimizer: Optimizer, **options: Any) -> Trainable:
    return prepare(onnx_of(network("mlp"), batches("mlp", 1)[0][0]), optimizer=optimizer, **options)


def stepped(made: Trainable, kernels: bool, gradients: list[Array], threads: int) -> tuple[Any, list[Array]]:
    """What made the steps, and all weights and state after them."""
    weights = SharedBuffer.of(made.parameters, np.dtype(np.float32))
    state = {
        slot: SharedBuffer.of({name: made.state[f"{name}.{slot}"] for name in made.parameters}, np.dtype(np.float32))
        for slot in made.optimizer.states
    }
    slope = weights.like()
    step = stepping(made, weights, slope, state, threads, kernels)
    for count, given in enumerate(gradients, 1):
        for view, offset in zip(slope.views.values(), slope.offsets.values(), strict=True):
            view[...] = given[offset : offset + view.size].reshape(view.shape)
        step(0.01, count)
    return step, [view for flat in (weights, *state.values()) for view in flat.views.values()]


OPTIMIZERS: list[Optimizer] = [
    SGD(weight_decay=0.1),
    SGD(momentum=0.8, dampening=0.3),
    SGD(momentum=0.8, nesterov=True),
    Adagrad(lr_decay=0.2),
    RMSprop(centered=True, momentum=0.7),
    Adam(weight_decay=0.1),
    AdamW(),
    Averaged(Clipped(AdamW(), 0.5), 0.9),
]
RANDOM = np.random.default_rng(0)
GRADIENTS = [RANDOM.normal(size=1 << 20).astype(np.float32) for _ in range(3)]
EDGES = [np.resize(np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, 3e38, 1]), 1 << 20), GRADIENTS[0]]


@needs_compiler
@pytest.mark.parametrize("gradients", [GRADIENTS, EDGES], ids=["random", "edges"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.name)
def test_optimizer_steps_are_those_of_the_graph(optimizer: Optimizer, gradients: list[Array]) -> None:
    made = mlp(optimizer)
    compiled, ours = stepped(made, True, gradients, threads=2)
    plain, expected = stepped(made, False, gradients, threads=1)
    assert isinstance(compiled, Kernel) and isinstance(plain, Update)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(ours[0], made.parameters[next(iter(made.parameters))])


@needs_compiler
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (AdamW(), {"clip_norm": 0.5}),
        (SGD(momentum=0.9), {"clip_norm": 1e9}),
        (AdamW(), {"no_decay": "vectors", "groups": [Group("2.*", lr=0.1)], "clip_norm": 1.0}),
        (own_optimizer(), {}),
    ],
    ids=["clipped", "not clipped", "groups", "own"],
)
def test_steps_by_norm_by_group_and_of_a_users_graph(optimizer: Optimizer, options: dict[str, Any]) -> None:
    made = mlp(optimizer, **options)
    compiled, ours = stepped(made, True, GRADIENTS, threads=2)
    assert isinstance(compiled, Kernel)
    _, expected = stepped(made, False, GRADIENTS, threads=1)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


@needs_compiler
def test_a_norm_that_is_no_number_spoils_all_weights_as_in_the_graph() -> None:
    made = mlp(SGD(), clip_norm=1.0)
    for results in (stepped(made, kernels, EDGES[:1], threads=1)[1] for kernels in (True, False)):
        assert all(np.isnan(array).all() for array in results)


def test_other_optimizers_run_as_graphs() -> None:
    assert isinstance(stepped(mlp(LAMB()), True, GRADIENTS, threads=1)[0], Update)


@needs_compiler
def test_kernels_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted(None) and not wanted(False)
    monkeypatch.setenv("ONWARD_KERNELS", "0")
    assert not wanted(None) and wanted(True)


def test_nothing_is_needed_but_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compiler, selftest):
        monkeypatch.setattr(module, "compiler", lambda: None)
    trainer = Trainer(mlp(AdamW(lr=1e-2)), threads=1, kernels=True)
    x, y = batches("mlp", 1)[0]
    losses = [trainer.step({"x": x, "labels": y}) for _ in range(5)]
    assert losses[-1] < losses[0]


@needs_compiler
def test_a_source_that_does_not_compile_gives_no_library() -> None:
    assert library("int twice(int x) { return y; }") is None
    assert library("int twice(int x) { return 2 * x; }") is not None


FUNCTIONS = {"Exp": 100, "Erf": 5, "Tanh": 12, "Sigmoid": 80}


@needs_compiler
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_functions_are_exact_to_a_few_units_in_the_last_place(op_type: str) -> None:
    loop = f"for (int64_t i = 0; i < n; i++) x[i] = k_{op_type.lower()}f(x[i]);"
    made = loaded(f"{PRELUDE}\nvoid run(int64_t n, float *x) {{ {loop} }}")
    assert made is not None
    limit = FUNCTIONS[op_type]
    x = np.concatenate(
        [np.linspace(-limit, limit, 200001), np.geomspace(1e-30, limit, 5000), [0, -0.0, np.inf, -np.inf, np.nan]]
    )
    x = x.astype(np.float32)
    ours = x.copy()
    made.run(ctypes.c_int64(x.size), ours.ctypes.data_as(ctypes.c_void_p))
    node = oh.make_node(op_type, ["x"], ["y"])
    values = [oh.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [None]) for name in "xy"]
    model = oh.make_model(oh.make_graph([node], "f", values[:1], values[1:]), opset_imports=[oh.make_opsetid("", 21)])
    with np.errstate(over="ignore", invalid="ignore"):
        expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x.astype(np.float64)})[0].astype(np.float32)
    np.testing.assert_allclose(ours, expected, rtol=6e-7, atol=1e-44)


def outputs(model: ir.Model, feeds: dict[str, Array], library: Any = None, threads: int = 1) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if library is not None:
        options.register_custom_ops_library(str(library))
    session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
    names = [value.name for value in session.get_outputs()]
    given = {value.name: feeds[value.name] for value in session.get_inputs()}
    return dict(zip(names, session.run(names, given), strict=True))


def kinds(model: ir.Model) -> list[str]:
    return [node.domain or node.op_type for node in model.graph]


@needs_compiler
@pytest.mark.parametrize("spoilt", [False, True], ids=["finite", "not finite"])
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_gradients_are_those_of_the_graph(name: str, spoilt: bool) -> None:
    x, y = batches(name, 1)[0]
    made = prepare(onnx_of(network(name), x))
    found = with_kernels(made.gradients)
    assert found is not None and DOMAIN in kinds(found[0]) and DOMAIN not in kinds(made.gradients)
    assert len(kinds(found[0])) < len(kinds(made.gradients))
    data = x.numpy().copy()
    if spoilt and data.dtype == np.float32:
        data.reshape(-1)[:3] = [np.nan, np.inf, -np.inf]
    feeds = {**made.parameters, **made.buffers, "x": data, "labels": y.numpy()}
    expected, ours = outputs(made.gradients, feeds), outputs(found[0], feeds, found[1], threads=2)
    for key, array in expected.items():
        scale = np.abs(array[np.isfinite(array)]).max(initial=1e-6)
        np.testing.assert_allclose(ours[key], array, rtol=1e-5, atol=2e-6 * scale, err_msg=key)


def random_graph(seed: int, named: bool) -> tuple[ir.Model, dict[str, Array]]:
    """Elementwise ops, broadcasting and sums at random; what is large in it is of one shape."""
    random = np.random.default_rng(seed)
    graph = ir.Graph([], [], nodes=[], name="random", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10)
    op = Builder(model)
    sizes = {"a": 3, "b": 130, "c": 67, "d": 1}
    frame = [["a", "b", "c"], ["b", "c"], ["a", "c", "b", "d"], ["a", "b", "a", "c"]][seed % 4]
    feeds = {}
    tensors = []
    for i in range(6):
        dims = list(frame) if i < 3 else ["d" if random.random() < 0.5 else dim for dim in frame]
        dims = dims[int(random.integers(len(dims))) :] if i == 5 else dims
        shape = [sizes[dim] for dim in dims]
        declared = [dim if named and sizes[dim] > 1 else sizes[dim] for dim in dims]
        value = ir.Value(name=f"x{i}", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(declared))
        graph.inputs.append(value)
        feeds[f"x{i}"] = random.normal(size=shape).astype(np.float32)
        tensors.append(op.tensor(value))
    last = len(frame) - 1 - (frame[-1] == "d")
    for _ in range(14):
        x, y = (tensors[int(random.integers(len(tensors)))] for _ in range(2))
        kind = int(random.integers(9))
        if kind < 4:
            made = [op.Add, op.Sub, op.Mul, op.Max][kind](x, y)
        elif kind < 6:
            made = [op.Tanh, op.Sigmoid][kind - 4](x)
        elif kind == 6:
            made = op.where(x > y, x, 0.5)
        elif kind == 7 and x.rank == len(frame):
            made = op.ReduceMean(x, op.ints([last]), keepdims=1)
        elif x.rank == len(frame):
            made = op.sum(x, [[last], [0, last], [0]][int(random.integers(3))], keepdims=True) * 0.01
        else:
            made = op.Erf(x)
        tensors.append(made)
    for tensor in tensors[-3:]:
        graph.outputs.append(op.Identity(tensor).value)
    if len(frame) > 2:
        graph.outputs.append(op.sum(tensors[0] * tensors[-1], [0, 1], keepdims=False).value)
        channels = [i for i in range(len(frame)) if i not in (1,)]
        graph.outputs.append(op.sum(op.sum(tensors[1] * tensors[2], channels[1:], keepdims=False), [0], False).value)
    infer(model)
    return model, feeds


@needs_compiler
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_the_same(seed: int) -> None:
    model, feeds = random_graph(seed, named=seed % 3 == 0)
    found = with_kernels(model)
    assert found is not None
    if seed % 5 == 4:
        feeds["x0"].reshape(-1)[[0, 7, 200]] = [np.nan, np.inf, -np.inf]
    expected, ours = outputs(model, feeds), outputs(found[0], feeds, found[1], threads=1 + seed % 2)
    for key, array in expected.items():
        scale = np.abs(array[np.isfinite(array)]).max(initial=1)
        np.testing.assert_allclose(ours[key], array, rtol=1e-5, atol=2e-6 * scale, err_msg=key)


@needs_compiler
def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    model, feeds = random_graph(0, named=True)
    found = with_kernels(model)
    assert found is not None
    one, two = (outputs(found[0], feeds, found[1], threads) for threads in (1, 2))
    assert all(np.array_equal(one[key], two[key]) for key in one)


@needs_compiler
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm"])
def test_training_goes_the_same_way_with_and_without(name: str) -> None:
    data = batches(name, 10)
    made = prepare(onnx_of(network(name), data[0][0]), optimizer=AdamW(lr=1e-2))
    curves = []
    for kernels in (True, False):
        trainer = Trainer(made, threads=2, kernels=kernels)
        curves.append([trainer.step({"x": x, "labels": y}) for x, y in data])
    np.testing.assert_allclose(*curves, rtol=1e-5)
    assert curves[0][-1] != curves[0][0]
