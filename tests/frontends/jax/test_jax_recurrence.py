"""Scans that are recurrent layers become one node each; those that are nearly so stay scans, and are right too."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import onward  # noqa: E402
from onward.runners import onnxruntime  # noqa: E402
from onward.training.autodiff.derivatives import gradient  # noqa: E402

UNITS, FEATURES = 4, 3
LAYERS = {"LSTM", "GRU", "RNN"}
Cell = Callable[[dict[str, Any], Any, Any], Any]


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


WEIGHTS = {
    "w": drawn(FEATURES, 4 * UNITS),
    "r": drawn(UNITS, 4 * UNITS),
    "b": drawn(4 * UNITS),
    "hn": drawn(UNITS),
}


def gates(p: dict[str, Any], x: Any, h: Any, count: int) -> list[Any]:
    size = count * UNITS
    return list(jnp.split(x @ p["w"][:, :size] + h @ p["r"][:, :size] + p["b"][:size], count, -1))


def lstm(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = gates(p, x, h, 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru(p: dict[str, Any], h: Any, x: Any, mix: Callable[[Any, Any, Any], Any]) -> Any:
    z, r = map(jax.nn.sigmoid, gates(p, x, h, 2))
    last = slice(2 * UNITS, 3 * UNITS)
    n = jnp.tanh(x @ p["w"][:, last] + p["b"][last] + r * (h @ p["r"][:, last] + p["hn"]))
    return mix(z, h, n)


def gru_before(p: dict[str, Any], h: Any, x: Any) -> Any:
    z, r = map(jax.nn.sigmoid, gates(p, x, h, 2))
    last = slice(2 * UNITS, 3 * UNITS)
    n = jnp.tanh(x @ p["w"][:, last] + (r * h) @ p["r"][:, last] + p["b"][last])
    return z * h + (1 - z) * n


def simple(p: dict[str, Any], h: Any, x: Any, activation: Callable[[Any], Any] = jnp.tanh) -> Any:
    return activation(gates(p, x, h, 1)[0])


CELLS: dict[str, tuple[str, Cell]] = {
    "lstm": ("LSTM", lstm),
    "gru": ("GRU", lambda p, h, x: gru(p, h, x, lambda z, h, n: z * h + (1 - z) * n)),
    "gru, a gate that lets in": ("GRU", lambda p, h, x: gru(p, h, x, lambda z, h, n: (1 - z) * h + z * n)),
    "gru, a step to the state": ("GRU", lambda p, h, x: gru(p, h, x, lambda z, h, n: n + z * (h - n))),
    "gru, a step from the state": ("GRU", lambda p, h, x: gru(p, h, x, lambda z, h, n: h + z * (n - h))),
    "gru, reset before": ("GRU", gru_before),
    "simple": ("RNN", simple),
    "relu": ("RNN", lambda p, h, x: simple(p, h, x, jax.nn.relu)),
}


def peephole(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = gates(p, x, h, 4)
    c = jax.nn.sigmoid(f + p["hn"] * c) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def normed(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = gates(p, x, h, 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c - c.mean(-1, keepdims=True)), c


def coupled(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    _, f, g, o = gates(p, x, h, 4)
    f = jax.nn.sigmoid(f)
    c = f * c + (1 - f) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def other_gate(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = gates(p, x, h, 4)
    c = jnp.tanh(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def older_cell(p: dict[str, Any], state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = gates(p, x, h, 4)
    new = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), new


def of_each_row(p: dict[str, Any], h: Any, x: Any) -> Any:
    return jnp.tanh(gates(p, x, h, 1)[0] + jnp.asarray(drawn(2, 1)))


NEARLY: dict[str, Cell] = {
    "peephole": peephole,
    "norm inside": normed,
    "coupled gates": coupled,
    "another activation of one gate": other_gate,
    "the state before": older_cell,
    "gru, two gates that mix": lambda p, h, x: gru(p, h, x, lambda z, h, n: z * h + (1 - z * z) * n),
    "gru, less than one": lambda p, h, x: gru(p, h, x, lambda z, h, n: z * h + (0.9 - z) * n),
    "gru, the wrong way round": lambda p, h, x: gru(p, h, x, lambda z, h, n: n + z * (n - h)),
    "residual": lambda p, h, x: simple(p, h, x) + h,
    "an activation that ONNX lacks": lambda p, h, x: simple(p, h, x, jnp.sin),
    "a number for each row": of_each_row,
}
HAS_CELL = {"lstm", "peephole", "norm inside", "coupled gates", "another activation of one gate", "the state before"}


def unrolled(name: str, cell: Cell, reverse: bool = False) -> Callable[..., Any]:
    """All states and the last one, from zeros, or from states that are given."""

    def function(params: Any, xs: Any, *states: Any) -> Any:
        zero = jnp.zeros((*xs.shape[1:-1], UNITS))
        first = (states or (zero, zero)) if name in HAS_CELL else states[0] if states else zero

        def step(state: Any, x: Any) -> Any:
            new = cell(params, state, x)
            return new, new[0] if name in HAS_CELL else new

        return lax.scan(step, first, xs, reverse=reverse)

    return function


def spec(*shape: int | str) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def converted(function: Callable[..., Any], *specs: Any) -> onward.Model:
    model: onward.Model = onward.from_jax(function, *specs, params=WEIGHTS, check=False)
    return model


def compare(model: onward.Model, function: Callable[..., Any], *data: Any) -> None:
    names = [str(value.name) for value in model.ir.graph.inputs]
    found = onnxruntime.prepare(model, "")(dict(zip(names, data, strict=True))).values()
    with jax.disable_jit(False):
        wanted = jax.tree.leaves(function(WEIGHTS, *map(jnp.asarray, data)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def kinds(model: onward.Model) -> list[str]:
    return [node.op_type for node in model.ir.graph]


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_one_node_at_any_length(name: str) -> None:
    kind, cell = CELLS[name]
    function = unrolled(name, cell)
    model = converted(function, spec("t", "b", FEATURES))
    assert [op for op in kinds(model) if op in {*LAYERS, "Scan", "Loop"}] == [kind]
    for sizes in ((1, 1), (5, 2), (8, 3)):
        compare(model, function, drawn(*sizes, FEATURES))


@pytest.mark.parametrize("name", ["lstm", "gru", "simple"])
def test_from_the_end_and_from_states(name: str) -> None:
    kind, cell = CELLS[name]
    function = unrolled(name, cell, reverse=True)
    count = 2 if name in HAS_CELL else 1
    model = converted(function, spec(5, "b", FEATURES), *[spec("b", UNITS)] * count)
    assert kinds(model).count(kind) == 1
    assert "Scan" not in kinds(model)
    compare(model, function, drawn(5, 3, FEATURES), *(drawn(3, UNITS) * (i + 1) for i in range(count)))


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_one_example_without_a_batch(name: str) -> None:
    kind, cell = CELLS[name]
    function = unrolled(name, cell)
    model = converted(function, spec("t", FEATURES))
    assert kinds(model).count(kind) == 1
    assert "Scan" not in kinds(model)
    compare(model, function, drawn(6, FEATURES))


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_a_cell_stays_a_scan(name: str) -> None:
    function = unrolled(name, NEARLY[name])
    model = converted(function, spec(4, 2, FEATURES))
    assert "Scan" in kinds(model)
    assert not LAYERS & set(kinds(model))
    compare(model, function, drawn(4, 2, FEATURES))


def test_states_that_a_step_is_spread_over_stay_a_scan() -> None:
    """All rows of a batch read one series; ONNX wants one for each."""
    _, cell = CELLS["simple"]

    def function(params: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (cell(params, h, x),) * 2, jnp.zeros((2, UNITS)), xs)

    model = converted(function, spec(5, FEATURES))
    assert "Scan" in kinds(model)
    compare(model, function, drawn(5, FEATURES))


def test_what_cells_show_beside_their_output_stays_a_scan() -> None:
    def function(params: Any, xs: Any) -> Any:
        zero = jnp.zeros((2, UNITS))
        return lax.scan(lambda state, x: (new := lstm(params, state, x), new[1]), (zero, zero), xs)[1]

    model = converted(function, spec(5, 2, FEATURES))
    assert "Scan" in kinds(model)
    compare(model, function, drawn(5, 2, FEATURES))


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_both_directions_of_flax_are_one_node(kind: str, time_major: bool) -> None:
    nn = pytest.importorskip("flax.linen")
    cell = {"LSTM": nn.OptimizedLSTMCell, "GRU": nn.GRUCell, "RNN": nn.SimpleCell}[kind]
    net = nn.Bidirectional(*(nn.RNN(cell(UNITS)) for _ in range(2)), time_major=time_major)
    shapes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((2, 3, FEATURES)))
    params = jax.tree.map(lambda leaf: jnp.asarray(drawn(*leaf.shape)), shapes)
    model = onward.from_jax(net, spec("s", "t", FEATURES), params=params, check=False)
    assert kinds(model).count(kind) == (2 if time_major else 1)
    assert "Scan" not in kinds(model)
    for sizes in ((2, 3), (5, 4)):
        xs = drawn(*sizes, FEATURES)
        (found,) = onnxruntime.prepare(model, "")({str(model.ir.graph.inputs[0].name): xs}).values()
        np.testing.assert_allclose(found, net.apply(params, xs), rtol=2e-5, atol=2e-6)


def test_weights_stay_weights() -> None:
    """Those of a cell that is used twice are the same; a bias and a first state of zeros are trained too."""
    params = {"cell": WEIGHTS | {"b": np.zeros(4 * UNITS, np.float32)}, "first": np.zeros((1, UNITS), np.float32)}

    def function(p: Any, xs: Any) -> Any:
        state = (jnp.broadcast_to(p["first"], (2, UNITS)), jnp.zeros((2, UNITS)))
        step = lambda state, x: (new := lstm(p["cell"], state, x), new[0])  # noqa: E731
        _, one = lax.scan(step, state, xs)
        return lax.scan(step, state, one[..., :FEATURES])[1]

    model = onward.from_jax(function, spec(5, 2, FEATURES), params=params, check=False)
    nodes = [node for node in model.ir.graph if node.op_type == "LSTM"]
    assert len(nodes) == 2
    assert all(a is b for a, b in zip(*(node.inputs[1:4] for node in nodes), strict=True))
    trained = json.loads(model.ir.metadata_props["onward.trained"])
    assert {str(value.name) for value in nodes[0].inputs[1:4] if value is not None} <= {
        n for n in trained if trained[n]
    }
    assert trained["first"] is True


def test_gradients_go_through_the_node() -> None:
    """They are JAX's own, in the order that ONNX has the gates in."""

    def loss(p: Any, xs: Any) -> Any:
        return (unrolled("lstm", lstm)(p, xs)[1] ** 2).sum()

    xs = drawn(5, 2, FEATURES)
    model = converted(loss, spec(5, 2, FEATURES))
    assert kinds(model).count("LSTM") == 1
    (name,) = (str(value.name) for value in model.ir.graph.outputs)
    found = onnxruntime.prepare(gradient(model, name, ["w", "r", "b"]), "")({"xs": xs})
    wanted = jax.grad(loss)(WEIGHTS, xs)
    for weight in "wrb":
        i, f, g, o = np.split(np.asarray(wanted[weight]), 4, -1)
        rows = np.concatenate([i, o, f, g], -1).T[None]
        own = found[f"{weight}.grad"][..., : rows.shape[-1]]  # of a bias ONNX has two, one of them zeros
        np.testing.assert_allclose(own, rows, rtol=1e-4, atol=1e-5)
