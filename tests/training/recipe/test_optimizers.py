"""Optimizers over several steps, against torch.optim."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from onward.errors import OnwardError
from onward.model import Model
from onward.training.recipe.by_shape import Adafactor, Muon
from onward.training.recipe.optimizer_names import optimizer_named
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from onward.training.step_graphs import LEARNING_RATE, STEP, updates

Array = np.ndarray[Any, Any]
STEPS = 5
CASES: list[tuple[Optimizer, type[torch.optim.Optimizer], dict[str, Any]]] = [
    (SGD(), torch.optim.SGD, {}),
    (SGD(weight_decay=0.1), torch.optim.SGD, {"weight_decay": 0.1}),
    (SGD(momentum=0.8), torch.optim.SGD, {"momentum": 0.8}),
    (
        SGD(momentum=0.8, dampening=0.3, weight_decay=0.1),
        torch.optim.SGD,
        {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1},
    ),
    (
        SGD(momentum=0.8, nesterov=True, weight_decay=0.1),
        torch.optim.SGD,
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    ),
    (Adagrad(), torch.optim.Adagrad, {}),
    (
        Adagrad(lr_decay=0.2, eps=1e-3, weight_decay=0.1),
        torch.optim.Adagrad,
        {"lr_decay": 0.2, "eps": 1e-3, "weight_decay": 0.1},
    ),
    (RMSprop(), torch.optim.RMSprop, {}),
    (
        RMSprop(alpha=0.9, eps=1e-3, weight_decay=0.1),
        torch.optim.RMSprop,
        {"alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1},
    ),
    (RMSprop(centered=True, momentum=0.7), torch.optim.RMSprop, {"centered": True, "momentum": 0.7}),
    (Adam(), torch.optim.Adam, {}),
    (
        Adam(betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
        torch.optim.Adam,
        {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1},
    ),
    (AdamW(), torch.optim.AdamW, {}),
    (
        AdamW(betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2),
        torch.optim.AdamW,
        {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2},
    ),
]


def data(dtype: Any = np.float32) -> tuple[dict[str, Array], list[dict[str, Array]]]:
    rng = np.random.default_rng(7)
    shapes = {"a.weight": (3, 4), "b": (5,)}
    start = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    slopes = [{n: rng.standard_normal(s).astype(dtype) for n, s in shapes.items()} for _ in range(STEPS)]
    return start, slopes


def rate(step: int) -> float:
    """Changes from step to step, as a schedule's does."""
    return 0.1 / (1 + step)


def run(optimizer: Optimizer, start: dict[str, Array], slopes: list[dict[str, Array]]) -> dict[str, Array]:
    """The parameters and the state after the steps, on ONNX Runtime."""
    model, state = updates(start, optimizer)
    session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString())
    outputs = [value.name for value in session.get_outputs()]
    now: dict[str, Any] = start | state
    for step, gradients in enumerate(slopes, 1):
        feeds = now | {f"{name}.grad": g for name, g in gradients.items()}
        feeds |= {LEARNING_RATE: np.float32(rate(step)), STEP: np.int64(step)}
        wanted = {value.name for value in session.get_inputs()}
        found = session.run(None, {name: np.asarray(array) for name, array in feeds.items() if name in wanted})
        now = {name.removesuffix(".next"): array for name, array in zip(outputs, found, strict=True)}
    return now


@pytest.mark.parametrize(("optimizer", "kind", "options"), CASES, ids=lambda value: str(value)[:80])
def test_as_in_torch(optimizer: Optimizer, kind: type[torch.optim.Optimizer], options: dict[str, Any]) -> None:
    start, slopes = data()
    parameters = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in start.items()}
    reference = kind(list(parameters.values()), lr=0.1, **options)  # type: ignore[call-arg]
    for step, gradients in enumerate(slopes, 1):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[name])
        reference.param_groups[0]["lr"] = rate(step)
        reference.step()
    found = run(optimizer, start, slopes)
    assert len(found) == len(start) * (1 + len(optimizer.states))
    for name, parameter in parameters.items():
        np.testing.assert_allclose(found[name], parameter.detach().numpy(), rtol=2e-6, atol=2e-7)
        for slot in optimizer.states:
            np.testing.assert_allclose(
                found[f"{name}.{slot}"], reference.state[parameter][slot].numpy(), rtol=2e-6, atol=2e-7
            )


FACTORED: list[dict[str, Any]] = [{}, {"weight_decay": 0.1, "d": 1.5, "beta2_decay": -0.6, "eps": (1e-4, 2.0)}]


@pytest.mark.parametrize("options", FACTORED, ids=["plain", "options"])
def test_adafactor_is_that_of_torch(options: dict[str, Any]) -> None:
    """Of matrices, filters and vectors, whose states are of other shapes."""
    start, slopes = data()
    rng = np.random.default_rng(8)
    start["c"] = rng.standard_normal((2, 3, 4)).astype(np.float32) * 0.1
    slopes = [{**each, "c": rng.standard_normal((2, 3, 4)).astype(np.float32)} for each in slopes]
    parameters = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in start.items()}
    reference = torch.optim.Adafactor(list(parameters.values()), lr=0.1, **options)
    for step, gradients in enumerate(slopes, 1):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[name])
        reference.param_groups[0]["lr"] = rate(step)
        reference.step()
    found = run(Adafactor(**options), start, slopes)
    assert len(found) == 3 + 2 + 1 + 2
    for name, parameter in parameters.items():
        np.testing.assert_allclose(found[name], parameter.detach().numpy(), rtol=5e-6, atol=5e-7)
        for slot, array in reference.state[parameter].items():
            if slot != "step":
                np.testing.assert_allclose(found[f"{name}.{slot}"], array.numpy(), rtol=5e-6, atol=5e-7)


@pytest.mark.parametrize("adjusted", ["original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_is_that_of_torch_but_for_its_rounding(adjusted: Any, nesterov: bool) -> None:
    """PyTorch computes in bfloat16 on the way: three digits are all that can be seen. Vectors go by AdamW."""
    rng = np.random.default_rng(7)
    start = {"wide": rng.standard_normal((3, 5)), "tall": rng.standard_normal((6, 2)), "b": rng.standard_normal(4)}
    start = {name: array.astype(np.float32) for name, array in start.items()}
    slopes = [{n: rng.standard_normal(w.shape).astype(np.float32) for n, w in start.items()} for _ in range(STEPS)]
    parameters = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in start.items()}
    matrices = [parameters["wide"], parameters["tall"]]
    references: list[Any] = [
        torch.optim.Muon(matrices, adjust_lr_fn=adjusted, nesterov=nesterov),
        torch.optim.AdamW([parameters["b"]], weight_decay=0.1),
    ]
    for step, gradients in enumerate(slopes, 1):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[name])
        for reference in references:
            reference.param_groups[0]["lr"] = rate(step)
            reference.step()
    found = run(Muon(adjust_lr_fn=adjusted, nesterov=nesterov), start, slopes)
    assert len(found) == 3 + 2 + 2
    np.testing.assert_allclose(found["b"], parameters["b"].detach().numpy(), rtol=2e-6, atol=2e-7)
    for name in ("wide", "tall"):
        np.testing.assert_allclose(found[name], parameters[name].detach().numpy(), rtol=0.02, atol=0.01)
        buffer = references[0].state[parameters[name]]["momentum_buffer"].numpy()
        np.testing.assert_allclose(found[f"{name}.momentum_buffer"], buffer, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("kind", [SGD, Adagrad, RMSprop, Adam, AdamW])
def test_defaults_are_those_of_torch(kind: Any) -> None:
    defaults = getattr(torch.optim, kind.__name__)([torch.nn.Parameter(torch.zeros(1))]).defaults
    ours = kind()
    for name in ("lr", "betas", "eps", "alpha", "momentum", "dampening", "nesterov", "lr_decay", "weight_decay"):
        assert hasattr(ours, name) == (name in defaults)
        assert not hasattr(ours, name) or getattr(ours, name) == pytest.approx(defaults[name])


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_lamb_by_its_formula(decay: float) -> None:
    start, slopes = data()
    found = run(LAMB(betas=(0.8, 0.95), eps=1e-3, weight_decay=decay), start, slopes)
    for name, w in start.items():
        w, mean, square = w.astype(np.float64), np.zeros(w.shape), np.zeros(w.shape)
        for step, gradients in enumerate(slopes, 1):
            g = gradients[name].astype(np.float64)
            mean, square = 0.8 * mean + 0.2 * g, 0.95 * square + 0.05 * g * g
            move = (mean / (1 - 0.8**step)) / (np.sqrt(square / (1 - 0.95**step)) + 1e-3) + decay * w
            w = w - rate(step) * np.linalg.norm(w) / np.linalg.norm(move) * move
        np.testing.assert_allclose(found[name], w, rtol=1e-5, atol=1e-6)


def test_lamb_moves_weights_that_are_zero() -> None:
    found = run(LAMB(), {"w": np.zeros(3, np.float32)}, [{"w": np.array([1, -2, 0], np.float32)}])
    np.testing.assert_allclose(found["w"], [-rate(1), rate(1), 0], rtol=1e-4)


def test_where_elements_depend_on_each_other() -> None:
    for name in ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw"):
        assert optimizer_named(name).by_element
    for name in ("lamb", "adafactor", "muon"):
        assert not optimizer_named(name).by_element


def test_errors_name_what_there_is() -> None:
    with pytest.raises(OnwardError, match="no optimizer 'lion'; there are sgd"):
        optimizer_named("lion")
    with pytest.raises(OnwardError, match="sgd has no option 'beta'"):
        optimizer_named("momentum", beta=1)
    with pytest.raises(OnwardError, match="nesterov"):
        optimizer_named("sgd", nesterov=True)
