"""What `prepare` can be asked for, against the same in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from stepping import run, session, steps
from training_models import BATCHES, WEIGHTS, model, optimizer_model

import onward
from onward.errors import OnwardError
from onward.training.recipe.adapters import lora
from onward.training.recipe.groups import Group, Rule
from onward.training.recipe.losses import CrossEntropy, MeanSquaredError, Penalty, Term
from onward.training.recipe.optimizers import SGD, Adam, AdamW
from onward.training.recipe.schedules import Cosine, Linear, Steps, Warmup, schedule_named
from onward.training.recipe.user_models import OnnxLoss, OnnxOptimizer
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare

Array = np.ndarray[Any, Any]
Weights = dict[str, torch.nn.Parameter]


def forward(w: Weights, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(F.linear(x, w["a.weight"], w["a.bias"])) @ w["b.weight"] + w["b.bias"]


def plain_loss(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(forward(w, x), y)


def by_torch(
    optimizer: Callable[[Weights], torch.optim.Optimizer],
    loss: Callable[[Weights, torch.Tensor, torch.Tensor], torch.Tensor] = plain_loss,
    clip: Callable[[list[torch.nn.Parameter]], Any] = lambda parameters: None,
) -> tuple[list[float], dict[str, Array]]:
    w = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in WEIGHTS.items()}
    how = optimizer(w)
    losses = []
    for batch in BATCHES:
        how.zero_grad()
        value = loss(w, torch.tensor(batch["x"]), torch.tensor(batch["labels"]))
        value.backward()
        clip(list(w.values()))
        how.step()
        losses.append(float(value.detach()))
    return losses, {name: parameter.detach().numpy() for name, parameter in w.items()}


def check(made: Trainable, expected: tuple[list[float], dict[str, Array]], lr: float = 0.1) -> Trainable:
    losses, after = steps(made, BATCHES, lr)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for name, array in after.parameters.items():
        np.testing.assert_allclose(array, expected[1][name], rtol=1e-4, atol=1e-5)
    return after


def sgd(w: Weights) -> torch.optim.Optimizer:
    return torch.optim.SGD(w.values(), lr=0.1)


def test_groups_have_their_own_rate_and_decay() -> None:
    groups = [Group("b.*", lr=3.0, weight_decay=0.0), Group(("a.bias",), weight_decay=0.5)]
    made = prepare(model(), optimizer=AdamW(weight_decay=0.1), groups=groups)
    assert not made.uniform
    check(
        made,
        by_torch(
            lambda w: torch.optim.AdamW(
                [
                    {"params": [w["b.weight"], w["b.bias"]], "lr": 0.3, "weight_decay": 0.0},
                    {"params": [w["a.bias"]], "weight_decay": 0.5},
                    {"params": [w["a.weight"]]},
                ],
                lr=0.1,
                weight_decay=0.1,
            )
        ),
    )


def test_frozen_groups_are_no_parameters() -> None:
    made = prepare(model(), groups=[Group("a.*", frozen=True)])
    assert list(made.parameters) == ["b.weight", "b.bias"]
    assert made.uniform
    with pytest.raises(OnwardError, match="frozen"):
        prepare(model(), groups=[Group("*", frozen=True)])


@pytest.mark.parametrize("spared", ["vectors", ["*.bias"]])
def test_biases_are_not_decayed(spared: Any) -> None:
    made = prepare(model(), optimizer=AdamW(weight_decay=0.1), no_decay=spared)
    assert made.rules["a.bias"] == Rule(1.0, 0.0)
    assert made.rules["a.weight"] == Rule(1.0, 0.1)
    assert prepare(model(), optimizer="sgd", no_decay=spared).uniform
    with pytest.raises(OnwardError, match=r"no trained weight is called 'norm\.\*'; there are a.weight"):
        prepare(model(), no_decay=["norm.*"])


def test_gradients_are_clipped() -> None:
    made = prepare(model(), optimizer="sgd", clip_norm=0.05)
    check(made, by_torch(sgd, clip=lambda p: torch.nn.utils.clip_grad_norm_(p, 0.05)))
    wide = prepare(model(), optimizer="sgd", clip_norm=1e3)
    check(wide, by_torch(sgd))
    by_value = prepare(model(), optimizer="sgd", clip_value=0.01)
    assert by_value.uniform
    assert not made.uniform
    check(by_value, by_torch(sgd, clip=lambda p: torch.nn.utils.clip_grad_value_(p, 0.01)))


def test_weights_are_averaged() -> None:
    made = prepare(model(), optimizer="sgd", average=0.8)
    assert made.uniform
    expected = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
    now = made
    for batch in BATCHES:
        _, now = steps(now, [batch])
        expected = {name: 0.8 * array + 0.2 * now.parameters[name] for name, array in expected.items()}
    for name, array in now.average().items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)
    with pytest.raises(OnwardError, match="average"):
        prepare(model()).average()


def test_penalties() -> None:
    made = prepare(model(), optimizer="sgd", penalties=[Penalty(0.2, 1, "*.weight"), Penalty(0.3, 2, "a.bias")])

    def loss(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = (w["a.weight"].abs().sum() + w["b.weight"].abs().sum()) * 0.2
        return plain_loss(w, x, y) + first + 0.15 * (w["a.bias"] ** 2).sum()

    check(made, by_torch(sgd, loss))


def test_several_losses() -> None:
    terms = [Term("cross_entropy", 0.7), Term(MeanSquaredError(labels="x"), 0.3, "hidden")]
    given = model()
    given.graph.node.append(helper.make_node("MatMul", ["t", "a.weight"], ["hidden"]))
    given.graph.output.append(helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["n", 4]))
    made = prepare(given, terms, "sgd")
    assert made.labels == ["labels"]

    def loss(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(F.linear(x, w["a.weight"], w["a.bias"])) @ w["a.weight"]
        return 0.7 * plain_loss(w, x, y) + 0.3 * F.mse_loss(hidden, x)

    check(made, by_torch(sgd, loss))
    with pytest.raises(OnwardError, match="takes 'labels' as FLOAT, but it is INT64"):
        prepare(model(), ["cross_entropy", "mse"])


def loss_model() -> onnx.ModelProto:
    """softmax cross entropy, each class with a weight."""
    p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("labels", TensorProto.INT64, ["n"])
    out = helper.make_tensor_value_info("l", TensorProto.FLOAT, [])
    weights = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "a.weight")  # a name that the model has, too
    nodes = [helper.make_node("SoftmaxCrossEntropyLoss", ["p", "labels", "a.weight"], ["l"])]
    graph = helper.make_graph(nodes, "loss", [p, y], [out], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_model_as_a_loss() -> None:
    def loss(w: Weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(forward(w, x), y, torch.tensor([1.0, 2.0, 3.0]))

    made = prepare(model(), loss_model(), "sgd")
    assert made.parameters.keys() == WEIGHTS.keys()
    assert made.labels == ["labels"]
    check(made, by_torch(sgd, loss))
    with pytest.raises(OnwardError, match="no input 'logits'; it has p, labels"):
        prepare(model(), OnnxLoss(loss_model(), "logits"))


def test_a_model_as_an_optimizer() -> None:
    expected = by_torch(lambda w: torch.optim.SGD(w.values(), lr=0.1, momentum=0.9))
    made = prepare(model(), optimizer=optimizer_model())
    assert made.optimizer.states == ("m",)
    check(made, expected)
    assert prepare(model(), optimizer=OnnxOptimizer(optimizer_model(), by_element=True)).uniform
    with pytest.raises(OnwardError, match="no input 'g'"):
        prepare(model(), optimizer=OnnxOptimizer(loss_model()))


def test_adapters_are_trained_and_merged() -> None:
    made = prepare(model(), optimizer=SGD(), lora=lora(2, alpha=4), clip_norm=10)
    assert {name: array.shape for name, array in made.parameters.items()} == {
        "a.weight.lora_a": (4, 2),
        "a.weight.lora_b": (2, 6),
        "b.weight.lora_a": (6, 2),
        "b.weight.lora_b": (2, 3),
    }
    losses, after = steps(made, BATCHES * 3, lr=0.3)
    start, _ = steps(prepare(model(), optimizer="sgd"), BATCHES)
    assert losses[0] == pytest.approx(start[0], rel=1e-6)
    assert losses[-1] < losses[3]
    merged = after.weights(after.parameters)
    assert merged.keys() == {"a.weight", "b.weight"}
    assert np.abs(merged["a.weight"] - WEIGHTS["a.weight"]).max() > 1e-3
    given = model()
    for tensor in given.graph.initializer:
        if tensor.name in merged:
            tensor.CopyFrom(numpy_helper.from_array(merged[tensor.name], tensor.name))
    tuned = prepare(given, optimizer="sgd")
    for batch in BATCHES:
        one = run(session(tuned.gradients), {**batch, **tuned.parameters})
        other = run(session(after.gradients), {**batch, **after.parameters})
        np.testing.assert_allclose(one["onward.loss"], other["onward.loss"], rtol=1e-5)


def test_adapters_beside_other_weights() -> None:
    made = prepare(model(), trainable=["b.*"], lora=lora(2, "a.weight"))
    assert list(made.parameters) == ["a.weight.lora_a", "a.weight.lora_b", "b.weight", "b.bias"]
    with pytest.raises(OnwardError, match=r"is called c\.\*"):
        prepare(model(), lora=lora(2, "c.*"))


def test_schedules() -> None:
    assert [Steps(2, 0.5)(step) for step in range(1, 6)] == [1, 1, 0.5, 0.5, 0.25]
    assert [Linear(4, 0.2)(step) for step in (1, 3, 5, 9)] == pytest.approx([1, 0.6, 0.2, 0.2])
    assert [Cosine(4)(step) for step in (1, 3, 5, 9)] == pytest.approx([1, 0.5, 0, 0])
    assert [Warmup(4, Cosine(4))(step) for step in (1, 2, 4, 6, 8)] == pytest.approx([0.25, 0.5, 1, 0.5, 0])
    assert schedule_named("cosine", steps=4, warmup=4) == Warmup(4, Cosine(4))
    with pytest.raises(OnwardError, match="no schedule 'sine'; there are constant"):
        schedule_named("sine")
    with pytest.raises(OnwardError, match="the schedule cosine needs the option 'steps'"):
        schedule_named("cosine")
    with pytest.raises(OnwardError, match="the schedule cosine has no option 'every'; it has floor, steps"):
        schedule_named("cosine", steps=4, every=2)
    with pytest.raises(OnwardError, match="steps is 'many', which is no whole number"):
        schedule_named("cosine", steps="many")


def test_public_names() -> None:
    for name in onward.training.__all__:
        assert callable(getattr(onward.training, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onward.training.nothing


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"loss": lambda prediction: prediction}, "is not a loss: give a name"),
        ({"loss": CrossEntropy}, "is not a loss: give a name"),
        ({"loss": torch.nn.MSELoss()}, r"MSELoss\(\) is not a loss: .*from_torch takes those of torch.nn"),
        ({"optimizer": AdamW}, "is not an optimizer: give a name"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], lr=0.1)}, "is not an optimizer: .*from_torch takes those"),
        ({"optimizer": SGD(lr=float("nan"))}, "the learning rate is nan"),
        ({"optimizer": SGD(lr=-0.1)}, "the learning rate is -0.1"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0: give a number above 0"),
        ({"clip_value": -1.0}, "clip_value is -1.0: give a number above 0"),
        ({"average": 1.0}, "average is 1.0"),
        ({"lora": 8}, r"lora is 8: write onward.training.lora\(rank=8\)"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(OnwardError, match=problem):
        prepare(model(), **given)


def test_schedules_of_no_steps_are_refused() -> None:
    for kind in (Steps, Linear, Cosine, Warmup):
        with pytest.raises(OnwardError, match="the number of steps has to be at least 1"):
            kind(0)


LATER = torch.optim.lr_scheduler


@pytest.mark.parametrize(
    ("schedule", "theirs"),
    [
        (Steps(3, 0.5), lambda o: LATER.StepLR(o, 3, 0.5)),
        (Linear(8, 0.25), lambda o: LATER.LinearLR(o, 1.0, 0.25, 8)),
        (Cosine(12, 0.0), lambda o: LATER.CosineAnnealingLR(o, 12)),
        (Warmup(4), lambda o: LATER.LinearLR(o, 0.25, 1.0, 3)),
    ],
    ids=["steps", "linear", "cosine", "warmup"],
)
def test_schedules_are_those_of_torch(schedule: Any, theirs: Callable[[Any], Any]) -> None:
    """In the trainer, over as many steps as it takes to get to the end."""
    parameters = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in WEIGHTS.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=0.1)
    later = theirs(optimizer)
    trainer = Trainer(prepare(model(), optimizer=Adam(lr=0.1), schedule=schedule), threads=1)
    for batch in (BATCHES * 5)[:12]:
        assert trainer.rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6)
        optimizer.zero_grad()
        loss = plain_loss(parameters, torch.tensor(batch["x"]), torch.tensor(batch["labels"]))
        loss.backward()
        optimizer.step()
        later.step()
        assert trainer.step(batch) == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.parametrize("spared", ["vectors", ["*.bias"]])
def test_decay_spares_what_torch_would_be_told_to_spare(spared: Any) -> None:
    made = prepare(model(), optimizer=AdamW(weight_decay=2.0), no_decay=spared)

    def optimizer(w: Weights) -> torch.optim.Optimizer:
        spared = {"params": [w["a.bias"], w["b.bias"]], "weight_decay": 0.0}
        return torch.optim.AdamW([spared, {"params": [w["a.weight"], w["b.weight"]]}], lr=0.1, weight_decay=2.0)

    check(made, by_torch(optimizer))


def test_averages_are_those_of_torch(tmp_path: Path) -> None:
    """And they can be saved instead of the weights."""
    trainer = Trainer(prepare(model(), optimizer=SGD(lr=0.1), average=0.9), threads=1)
    net = torch.nn.ParameterDict({name.replace(".", "_"): torch.tensor(array) for name, array in WEIGHTS.items()})
    averaged = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    averaged.update_parameters(net)  # theirs starts at the first update, ours at the start
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in BATCHES * 3:
        optimizer.zero_grad()
        own = {name: net[name.replace(".", "_")] for name in WEIGHTS}
        plain_loss(own, torch.tensor(batch["x"]), torch.tensor(batch["labels"])).backward()
        optimizer.step()
        averaged.update_parameters(net)
        trainer.step(batch)
    trainer.save(tmp_path / "average.onnx", average=True)
    saved = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "average.onnx").graph.initializer}
    for name, array in trainer.parameters.items():
        np.testing.assert_allclose(saved[name], averaged.module[name.replace(".", "_")].detach(), rtol=1e-4, atol=1e-6)
        assert np.abs(saved[name] - array).max() > 1e-4
