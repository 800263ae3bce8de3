"""Compiled kernels against the graphs that they are printed from: the same bits, or almost, and never needed."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from networks import batches, network, onnx_of

from onward.training.embed import OnnxOptimizer
from onward.training.flat import Flat
from onward.training.groups import Group
from onward.training.kernels import compiler
from onward.training.kernels.compiler import library, loaded, wanted
from onward.training.kernels.expressions import PRELUDE
from onward.training.kernels.optimizer import Kernel
from onward.training.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Averaged, Clipped, Optimizer, RMSprop
from onward.training.trainable import Trainable, prepare
from onward.training.trainer import Trainer
from onward.training.update import Update, stepping

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
    weights = Flat.of(made.parameters, np.dtype(np.float32))
    state = {
        slot: Flat.of({name: made.state[f"{name}.{slot}"] for name in made.parameters}, np.dtype(np.float32))
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
    monkeypatch.setattr(compiler, "compiler", lambda: None)
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
