"""Gradients of recurrent layers."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_model, single
from onnx import helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TIME, BATCH, SIZE, HIDDEN = 3, 2, 2, 2


def inputs(kind: str, *, directions: int = 1, batch_first: bool = False, optional: str = "b") -> dict[str, np.ndarray]:
    """Those of a layer; of bias, lengths, h0, c0 and peepholes those whose letter is in `optional`."""
    rng = np.random.default_rng(len(kind) + directions)
    rows = GATES[kind] * HIDDEN
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    shapes = {
        "x": (BATCH, TIME, SIZE) if batch_first else (TIME, BATCH, SIZE),
        "w": (directions, rows, SIZE),
        "r": (directions, rows, HIDDEN),
        "b": (directions, 2 * rows),
        "l": (BATCH,),
        "h": state,
        "c": state,
        "p": (directions, 3 * HIDDEN),
    }
    found = {}
    for name, shape in shapes.items():
        if name in "cp" and kind != "LSTM":
            continue
        array = rng.uniform(-0.9, 0.9, shape) if name != "l" else np.asarray([TIME, 1], np.int32)
        found[name if name in "xwr" or name in optional else f"_{name}"] = array
    return found


def check(
    kind: str,
    given: dict[str, np.ndarray],
    *,
    final_only: bool = False,
    second: bool = True,
    runtime: bool = True,
    **attributes: Any,
) -> None:
    model = single(kind, given, outputs=3 if kind == "LSTM" else 2, hidden_size=HIDDEN, **attributes)
    if final_only:
        model.graph.node[0].output[0] = ""
        del model.graph.output[0]
    present = {name: array for name, array in given.items() if not name.startswith("_")}
    check_model(model, present, second=second, runtime=runtime)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(kind: str, direction: str) -> None:
    both = direction == "bidirectional"
    check(kind, inputs(kind, directions=1 + both), direction=direction, second=not both)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_lengths_and_initial_states(kind: str, direction: str) -> None:
    given = inputs(kind, directions=1 + (direction == "bidirectional"), optional="blhc")
    check(kind, given, direction=direction, second=direction == "forward")


@pytest.mark.parametrize("kind", GATES)
def test_without_bias_the_final_state_only(kind: str) -> None:
    """The output of all steps is not asked for: the gradient asks for it."""
    check(kind, inputs(kind, optional="h"), second=False, final_only=True)


@pytest.mark.parametrize("kind", GATES)
def test_batch_first(kind: str) -> None:
    """ONNX Runtime has no kernel for this layout."""
    check(kind, inputs(kind, batch_first=True, optional="bhcl"), layout=1, runtime=False, second=False)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("optional", "asked"), [("b", "y"), ("bhc", "yhc"), ("h", "c")])
def test_gates_are_kept_where_only_other_nodes_read_an_lstm(direction: str, optional: str, asked: str) -> None:
    given = inputs("LSTM", directions=1 + (direction == "bidirectional"), optional=optional)
    model = single("LSTM", given, outputs=3, hidden_size=HIDDEN, direction=direction)
    layer = model.graph.node[0]
    for place, letter in enumerate("yhc"):
        name = layer.output[place]
        if letter in asked:
            layer.output[place] = f"{name}_inside"
            model.graph.node.append(helper.make_node("Tanh", [f"{name}_inside"], [name]))
        else:
            layer.output[place] = ""
    kept = [value for value in model.graph.output if any(value.name in node.output for node in model.graph.node)]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    present = {name: array for name, array in given.items() if not name.startswith("_")}
    check_model(model, present, second=asked == "y")


def test_reset_after() -> None:
    check("GRU", inputs("GRU", optional="bh"), linear_before_reset=1)
    check("GRU", inputs("GRU", optional="l"), linear_before_reset=1, second=False)


def test_peepholes() -> None:
    check("LSTM", inputs("LSTM", optional="bhcp"))
    check("LSTM", inputs("LSTM", directions=2, optional="blp"), direction="bidirectional", second=False)


def test_coupled_gates() -> None:
    check("LSTM", inputs("LSTM", optional="bc"), input_forget=1, second=False)
    check("LSTM", inputs("LSTM", optional="bcp"), input_forget=1, second=False)


@pytest.mark.parametrize("kind", GATES)
def test_clipping(kind: str) -> None:
    check(kind, inputs(kind, optional="bhc"), clip=0.4, second=False)


ACTIVATIONS = ["Relu", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]


@pytest.mark.parametrize("name", [*ACTIVATIONS, "Affine", "Sigmoid"])
def test_activations(name: str) -> None:
    numbers = {"activation_alpha": [0.3], "activation_beta": [0.6]} if name not in ("Relu", "Softsign") else {}
    check("RNN", inputs("RNN"), activations=[name], second=False, **numbers)


def test_activations_of_gates() -> None:
    """Alphas and betas go to those that take one, in order."""
    names, alphas, betas = ["HardSigmoid", "Softsign", "ScaledTanh"], [0.3, 1.2], [0.4, 0.8]
    given = inputs("LSTM", optional="bl")
    check("LSTM", given, activations=names, activation_alpha=alphas, activation_beta=betas, second=False)
    given = inputs("GRU", directions=2)
    names = ["Softplus", "Elu", "Sigmoid", "Affine"]
    options = {"activations": names, "activation_alpha": [0.7, 0.5], "activation_beta": [0.1]}
    check("GRU", given, direction="bidirectional", second=False, **options)
