"""Recurrent layers against ONNX Runtime."""

import itertools

import numpy as np
import pytest
from harness import check, floats, node_model, source

T, B, N, H = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def inputs(kind: str, directions: int = 1, lengths: bool = False, states: bool = True, peepholes: bool = False):
    g = GATES[kind]
    found = [
        floats(T, B, N),
        floats(directions, g * H, N) / 2,
        floats(directions, g * H, H) / 2,
        floats(directions, 2 * g * H) / 2,
        np.array([5, 2, 3], np.int32) if lengths else None,
        floats(directions, B, H) if states else None,
    ]
    if kind == "LSTM":
        found += [floats(directions, B, H, seed=1) if states else None]
        found += [floats(directions, 3 * H)] if peepholes else []
    return found


DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("fixed", "lengths", "states"), list(itertools.product([False, True], repeat=3)))
def test_outputs_and_states(kind, direction, fixed, lengths, states):
    given = inputs(kind, DIRECTIONS[direction], lengths, states)
    model, feed = node_model(
        kind, given, 3 if kind == "LSTM" else 2, fixed=(1, 2, 3) if fixed else (), direction=direction, hidden_size=H
    )
    check(model, feed)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("fixed", "states"), list(itertools.product([False, True], repeat=2)))
def test_empty_sequences(kind, direction, fixed, states):
    given = inputs(kind, DIRECTIONS[direction], True, states)
    given[4] = np.array([4, 0, 3], np.int32)
    options = {"linear_before_reset": 1} if kind == "GRU" else {}
    model, feed = node_model(
        kind,
        given,
        3 if kind == "LSTM" else 2,
        fixed=(1, 2, 3) if fixed else (),
        direction=direction,
        hidden_size=H,
        **options,
    )
    check(model, feed)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("RNN", {"clip": 0.4}),
        ("GRU", {"clip": 0.4}),
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {"linear_before_reset": 1, "clip": 0.4}),
        ("LSTM", {"clip": 0.4}),
        ("LSTM", {"input_forget": 1}),
    ],
    ids=str,
)
@pytest.mark.parametrize("fixed", [(), (1, 2, 3)], ids=["inputs", "weights"])
def test_attributes(kind, attributes, fixed):
    model, feed = node_model(kind, inputs(kind), hidden_size=H, fixed=fixed, **attributes)
    check(model, feed)


@pytest.mark.parametrize("fixed", [(), (1, 2, 3, 7)])
def test_peepholes(fixed):
    model, feed = node_model("LSTM", inputs("LSTM", peepholes=True), 3, hidden_size=H, fixed=fixed)
    check(model, feed)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("Relu", None, None),
        ("Tanh", None, None),
        ("Sigmoid", None, None),
        ("Affine", 0.5, 0.1),
        ("LeakyRelu", 0.3, None),
        ("LeakyRelu", None, None),
        ("ThresholdedRelu", 0.2, None),
        ("ScaledTanh", 1.5, 0.5),
        ("HardSigmoid", 0.3, 0.6),
        ("HardSigmoid", None, None),
        ("Elu", 0.7, None),
        ("Softsign", None, None),
        ("Softplus", None, None),
    ],
)
def test_activations(name, alpha, beta):
    attributes = {}
    if alpha is not None:
        attributes["activation_alpha"] = [alpha] * 3
    if beta is not None:
        attributes["activation_beta"] = [beta] * 3
    model, feed = node_model("RNN", inputs("RNN"), 2, hidden_size=H, activations=[name], **attributes)
    check(model, feed)


def test_numbers_go_to_the_activations_that_take_them():
    model, feed = node_model(
        "LSTM",
        inputs("LSTM", 2),
        3,
        hidden_size=H,
        direction="bidirectional",
        activations=["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "ScaledTanh", "Elu"],
        activation_alpha=[0.3, 0.2, 0.8, 0.6],
        activation_beta=[0.4, 0.7],
    )
    check(model, feed)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("fixed", [False, True])
def test_batch_first_is_the_same_layer_transposed(kind, direction, fixed):
    from onward.scoreboard.suite import prepare

    given = inputs(kind, DIRECTIONS[direction])
    outputs = 3 if kind == "LSTM" else 2
    options = {"direction": direction, "hidden_size": H, "fixed": (1, 2, 3) if fixed else ()}
    model, feed = node_model(kind, given, outputs, **options)
    y, *states = prepare("onnxruntime", model)(feed)
    turned = [x.swapaxes(0, 1) if x is not None and i in (0, 5, 6) else x for i, x in enumerate(given)]
    model, feed = node_model(kind, turned, outputs, layout=1, **options)
    check(model, feed, expected=[y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in states)])


@pytest.mark.parametrize("kind", GATES)
def test_constant_weights_are_a_module(kind):
    options = {"linear_before_reset": 1} if kind == "GRU" else {}
    model, _ = node_model(kind, inputs(kind, states=False), fixed=(1, 2, 3), hidden_size=H, **options)
    assert f"nn.{kind}(4, 6)" in source(model)


def test_double_precision_and_no_bias():
    x, w, r, *_ = inputs("LSTM")
    given = [a.astype(np.float64) for a in (x, w, r)]
    model, feed = node_model("LSTM", given, 3, hidden_size=H, fixed=(1, 2))
    single, _ = node_model("LSTM", [x, w, r], 3, hidden_size=H, fixed=(1, 2))
    from onward.scoreboard.suite import prepare

    wanted = [a.astype(np.float64) for a in prepare("onnxruntime", single)([x])]
    check(model, feed, expected=wanted, rtol=1e-4, atol=1e-5)
