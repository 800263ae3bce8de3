"""Upgrades of recurrent ops and of Scan, which worked on batches once."""

from typing import Any

import numpy as np
import onnx
import pytest
from old_files import Old, cases, check, floats, ints
from onnx import helper

X, W, R, B = floats(4, 2, 3), floats(1, 5, 3), floats(1, 5, 5), floats(1, 10)


def gates(weights: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([weights * (1 + i / 4) for i in range(count)], 1)


def rnn(x, w, r, b):  # type: ignore[no-untyped-def]
    h, rows = np.zeros((2, 5), np.float32), []
    for step in x:
        h = np.tanh(step @ w[0].T + h @ r[0].T + b[0, :5] + b[0, 5:])
        rows.append(h)
    return np.stack(rows)[:, None], h[None]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(x, w, r):  # type: ignore[no-untyped-def]
    (wz, wr, wh), (rz, rr, rh) = (np.split(v[0], 3) for v in (w, r))
    h, rows = np.zeros((2, 5), np.float32), []
    for step in x:
        update, reset = sigmoid(step @ wz.T + h @ rz.T), sigmoid(step @ wr.T + h @ rr.T)
        h = (1 - update) * np.tanh(step @ wh.T + (reset * h) @ rh.T) + update * h
        rows.append(h)
    return np.stack(rows)[:, None], h[None]


def lstm(x, w, r):  # type: ignore[no-untyped-def]
    h, c, rows = np.zeros((2, 5), np.float32), np.zeros((2, 5), np.float32), []
    for step in x:
        i, o, f, g = np.split(step @ w[0].T + h @ r[0].T, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.stack(rows)[:, None], h[None], c[None]


RECURRENT = [
    Old("RNN", 1, [X, W, R, B], {"hidden_size": 5, "output_sequence": 1}, outputs=2, expect=rnn, rtol=1e-5),
    Old("RNN", 7, [X, W, R, B], {"hidden_size": 5}, outputs=2),
    Old("GRU", 1, [X, gates(W, 3), gates(R, 3)], {"hidden_size": 5}, outputs=2, expect=gru, rtol=1e-5),
    Old(
        *("GRU", 3, [X, gates(W, 3), gates(R, 3)]),
        {"hidden_size": 5, "output_sequence": 1, "direction": "forward"},
        outputs=2,
        expect=gru,
        rtol=1e-5,
    ),
    Old("GRU", 7, [X, gates(W, 3), gates(R, 3)], {"hidden_size": 5}, outputs=2),
    Old(
        *("LSTM", 1, [X, gates(W, 4), gates(R, 4)]),
        {"hidden_size": 5, "output_sequence": 1},
        outputs=3,
        expect=lstm,
        rtol=1e-5,
    ),
    Old("LSTM", 7, [X, gates(W, 4), gates(R, 4)], {"hidden_size": 5}, outputs=3),
]


@cases(RECURRENT)
def test_upgraded_recurrent_op_computes_the_same(case: Old, shapes: bool) -> None:
    check(case, shapes)


def running_sum(with_state: bool = True) -> onnx.GraphProto:
    """A body that adds up its first sequence, and scans out the sum, and the second sequence doubled."""
    row = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in ("a", "b")]
    double = helper.make_node("Add", ["b", "b"], ["twice"])
    outputs = [onnx.ValueInfoProto(name="row"), onnx.ValueInfoProto(name="twice")]
    if not with_state:
        nodes = [helper.make_node("Neg", ["a"], ["row"]), double]
        return helper.make_graph(nodes, "body", row, outputs)
    state = helper.make_tensor_value_info("sum_in", onnx.TensorProto.FLOAT, [3])
    nodes = [
        helper.make_node("Add", ["sum_in", "a"], ["sum_out"]),
        helper.make_node("Identity", ["sum_out"], ["row"]),
        double,
    ]
    return helper.make_graph(nodes, "body", [state, *row], [onnx.ValueInfoProto(name="sum_out"), *outputs])


SEQUENCES = [floats(2, 4, 3), floats(2, 4, 3)]


@pytest.mark.parametrize("lengths", [None, ints(4, 2), ints(1, 4)], ids=["full", "4-2", "1-4"])
@pytest.mark.parametrize("directions", [None, [0, 1], [1, 0]], ids=str)
@pytest.mark.parametrize("with_state", [True, False], ids=["state", "stateless"])
@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "unknown"])
def test_scan_of_batches(lengths: Any, directions: Any, with_state: bool, shapes: bool) -> None:
    attributes: dict[str, Any] = {"body": running_sum(with_state), "num_scan_inputs": 2}
    if directions is not None:
        attributes["directions"] = directions
    inputs = [lengths, *([floats(2, 3)] if with_state else []), *SEQUENCES]
    check(Old("Scan", 8, inputs, attributes, outputs=2 + with_state), shapes)
