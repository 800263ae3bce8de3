"""Training in a file: written, checked, read back, and read from others' files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from stepping import steps
from training_models import BATCHES, model, optimizer_model

from onward.errors import InvalidModelError, OnwardError
from onward.spec.training import TRAINING
from onward.training.info.check import check
from onward.training.info.preview_ops import OnnxAdam
from onward.training.info.read import load
from onward.training.info.write import to_model
from onward.training.recipe.adapters import lora
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import CrossEntropy, KLDivergence, Penalty, Term
from onward.training.recipe.optimizers import SGD, Adagrad, AdamW
from onward.training.recipe.schedules import Cosine, Warmup
from onward.training.trainable import Trainable, prepare

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def normalised() -> onnx.ModelProto:
    """Conv, BatchNormalization, Dropout with a ratio of 0, Gemm: training differs from inference."""
    weights = {
        "conv.w": RNG.standard_normal((4, 1, 3)),
        "bn.scale": np.ones(4),
        "bn.bias": np.zeros(4),
        "bn.mean": np.zeros(4),
        "bn.var": np.ones(4),
        "fc.w": RNG.standard_normal((16, 3)),
        "ratio": np.array(0.0),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["u"]),
        helper.make_node("Conv", ["u", "conv.w"], ["c"], pads=[1, 1]),
        helper.make_node("BatchNormalization", ["c", "bn.scale", "bn.bias", "bn.mean", "bn.var"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Dropout", ["r", "ratio"], ["d"]),
        helper.make_node("Flatten", ["d"], ["f"]),
        helper.make_node("MatMul", ["f", "fc.w"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    tensors = [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()]
    tensors.append(numpy_helper.from_array(np.array([1]), "axis"))
    graph = helper.make_graph(nodes, "normalised", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def wide() -> onnx.ModelProto:
    """Weights that are too large to be copied about."""
    weights = {"first": RNG.standard_normal((4, 6000)), "second": RNG.standard_normal((6000, 3)) / 80}
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["p"]),
        helper.make_node("Tanh", ["p"], ["t"]),
        helper.make_node("MatMul", ["t", "second"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "wide", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


CASES: dict[str, Callable[[], Trainable]] = {
    "plain": lambda: prepare(model()),
    "large": lambda: prepare(wide(), optimizer=OnnxAdam(lr=0.01)),
    "large, a part": lambda: prepare(wide(), trainable=["second"]),
    "statistics": lambda: prepare(normalised(), optimizer=SGD(momentum=0.9)),
    "a part": lambda: prepare(model(), trainable=["b.*"], optimizer="lamb"),
    "groups": lambda: prepare(
        model(), groups=[Group("a.*", lr=0.5)], no_decay="vectors", clip_norm=0.1, clip_value=0.2, accumulate=2
    ),
    "averages": lambda: prepare(model(), optimizer="sgd", average=0.9, schedule=Warmup(3, Cosine(9))),
    "penalties": lambda: prepare(model(), penalties=[Penalty(0.1)], train_mode=False),
    "adapters": lambda: prepare(model(), lora=lora(2), trainable="b.bias"),
    "a model as optimizer": lambda: prepare(model(), optimizer=optimizer_model()),
    "the standard's optimizer": lambda: prepare(model(), optimizer=OnnxAdam(epsilon=1e-3, weight_decay=0.1)),
    "a dampened one": lambda: prepare(
        model(), optimizer=SGD(momentum=0.9, dampening=0.5, weight_decay=0.1), groups=[Group("a.*", lr=0.5)]
    ),
    "Adagrad": lambda: prepare(model(), optimizer=Adagrad(lr_decay=0.1)),
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_read_back_trains_the_same(name: str, symbolic: bool, tmp_path: Path) -> None:
    """After two steps, from the file, and from a file of the file."""
    _, made = steps(CASES[name](), BATCHES[:2])
    expected, end = steps(made, BATCHES)
    for turn in range(2):
        path = tmp_path / f"{turn}.onnx"
        made.save(path, symbolic=symbolic)
        assert check(path) == []
        onnx.checker.check_model(onnx.load(path), full_check=True)
        made = load(path)
        found, after = steps(made, BATCHES)
        assert found == expected
        for one, other in ((after.parameters, end.parameters), (after.state, end.state), (after.buffers, end.buffers)):
            assert list(one) == list(other)
            for key, array in one.items():
                np.testing.assert_array_equal(array, other[key])
        for attribute in ("step", "rules", "clip_norm", "accumulate", "schedule", "labels", "uniform"):
            assert getattr(after, attribute) == getattr(end, attribute)
        assert after.optimizer.states == end.optimizer.states


def operators(graph: onnx.GraphProto) -> set[str]:
    return {node.op_type for node in graph.node if node.domain == TRAINING}


def test_symbolic_files_have_the_ops_of_the_standard() -> None:
    for name, expected in (
        ("a dampened one", "Momentum"),
        ("Adagrad", "Adagrad"),
        ("the standard's optimizer", "Adam"),
    ):
        (info,) = to_model(CASES[name](), symbolic=True).training_info
        assert operators(info.algorithm) == {"Gradient", expected}
    (info,) = to_model(CASES["plain"](), symbolic=True).training_info
    assert operators(info.algorithm) == {"Gradient"}  # its Adam adds epsilon elsewhere
    (info,) = to_model(CASES["plain"]()).training_info
    assert operators(info.algorithm) == set()


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", ["statistics", "adapters"])
def test_the_file_is_an_inference_model(name: str, symbolic: bool, tmp_path: Path) -> None:
    _, made = steps(CASES[name](), BATCHES, lr=0.5)
    made.save(tmp_path / "trainable.onnx", symbolic=symbolic)
    session = onnxruntime.InferenceSession(tmp_path / "trainable.onnx")
    assert [value.name for value in session.get_inputs()] == ["x"]
    given = onnx.ModelProto()
    given.CopyFrom(normalised() if name == "statistics" else model())
    weights = {**made.weights(made.parameters), **made.buffers}
    for tensor in given.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    expected = onnxruntime.InferenceSession(given.SerializeToString()).run(None, {"x": BATCHES[0]["x"]})
    np.testing.assert_allclose(session.run(None, {"x": BATCHES[0]["x"]})[0], expected[0], rtol=1e-5, atol=1e-6)


def test_the_algorithm_makes_a_step_by_itself() -> None:
    """As the standard says: inference graph and algorithm as one model, then what is bound."""
    made = prepare(normalised(), optimizer=AdamW(lr=0.1))
    file = to_model(made).to_proto()
    (info,) = file.training_info
    expected, end = steps(made, BATCHES)
    whole = onnx.ModelProto()
    whole.CopyFrom(file)
    del whole.training_info[:]
    for part in ("node", "initializer", "input", "output", "value_info"):
        getattr(whole.graph, part).extend(getattr(info.algorithm, part))
    losses = []
    for batch in BATCHES:
        session = onnxruntime.InferenceSession(whole.SerializeToString())
        names = [value.name for value in session.get_outputs()]
        found = dict(zip(names, session.run(None, {**batch, "onward.lr": np.array(0.1, np.float32)}), strict=True))
        losses.append(float(found["onward.loss"]))
        for entry in info.update_binding:
            tensor = next(tensor for tensor in whole.graph.initializer if tensor.name == entry.key)
            tensor.CopyFrom(numpy_helper.from_array(found[entry.value], entry.key))
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    after = {tensor.name: numpy_helper.to_array(tensor) for tensor in whole.graph.initializer}
    for name, array in {**end.parameters, **end.buffers}.items():
        np.testing.assert_allclose(after[name], array, rtol=1e-5, atol=1e-6)
    assert after["onward.step"] == len(BATCHES)


def test_symbolic_files_draw_once(tmp_path: Path) -> None:
    """What is dropped in a step is dropped in its gradient as well."""
    made = prepare(normalised())
    made.save(tmp_path / "symbolic.onnx", symbolic=True)
    again = load(tmp_path / "symbolic.onnx")
    assert [node.op_type for node in again.gradients.graph].count("Dropout") == 1


def test_training_starts_from_scratch(tmp_path: Path) -> None:
    _, made = steps(prepare(normalised(), average=0.5), BATCHES)
    made.save(tmp_path / "scratch.onnx", scratch=True)
    assert check(tmp_path / "scratch.onnx") == []
    again = load(tmp_path / "scratch.onnx", initialize=True)
    assert again.step == 0
    assert all(not array.any() for name, array in again.state.items() if not name.endswith(".average"))
    np.testing.assert_array_equal(again.buffers["bn.var"], np.ones(4))
    np.testing.assert_array_equal(again.buffers["bn.mean"], np.zeros(4))
    np.testing.assert_array_equal(again.parameters["bn.scale"], np.ones(4))
    fresh = again.parameters["fc.w"]
    assert 0 < np.abs(fresh).max() <= 0.25
    assert not np.array_equal(fresh, made.parameters["fc.w"])
    np.testing.assert_array_equal(again.average()["fc.w"], fresh)
    made.save(tmp_path / "again.onnx")
    kept = load(tmp_path / "again.onnx", initialize=True)
    assert kept.step == 0
    np.testing.assert_array_equal(kept.parameters["fc.w"], made.parameters["fc.w"])


def test_other_training_info_is_kept(tmp_path: Path) -> None:
    first = to_model(prepare(model(21), trainable=["a.*"]))
    second = to_model(prepare(first, trainable=["b.*"], optimizer="sgd"))
    second.save(tmp_path / "two.onnx")
    assert check(tmp_path / "two.onnx") == []
    file = onnx.load(tmp_path / "two.onnx")
    assert len(file.training_info) == 2
    assert file.training_info[0] == first.training_info[0]
    made = load(tmp_path / "two.onnx")
    assert list(made.parameters) == ["b.weight", "b.bias"]
    assert len(made.original.training_info) == 1
    before = load(tmp_path / "two.onnx", index=0)
    assert list(before.parameters) == ["a.weight", "a.bias"]
    assert steps(before, BATCHES)[0] == steps(load(first), BATCHES)[0]
    before.save(tmp_path / "turned.onnx")
    assert list(load(tmp_path / "turned.onnx").parameters) == ["a.weight", "a.bias"]
    assert list(load(tmp_path / "turned.onnx", index=0).parameters) == ["b.weight", "b.bias"]
    with pytest.raises(OnwardError, match="no training info 2; there are 2"):
        load(tmp_path / "two.onnx", index=2)


def edit(change: Callable[[onnx.TrainingInfoProto], Any]) -> onnx.ModelProto:
    file = to_model(prepare(model(), optimizer="sgd")).to_proto()
    change(file.training_info[0])
    return file


def bind(field: str, key: str, value: str) -> Callable[[onnx.TrainingInfoProto], Any]:
    return lambda info: getattr(info, field).add(key=key, value=value)


def rebind(index: int, value: str) -> Callable[[onnx.TrainingInfoProto], Any]:
    return lambda info: setattr(info.update_binding[index], "value", value)


BROKEN: list[tuple[Callable[[onnx.TrainingInfoProto], Any], str]] = [
    (bind("update_binding", "c.weight", "onward.loss"), "update_binding: 'c.weight' is no initializer"),
    (bind("update_binding", "onward.step", "gone"), "'onward.step' is given two values"),
    (
        rebind(0, "gone"),
        "is bound to 'gone', which is no output of the algorithm",
    ),
    (
        rebind(0, "onward.loss"),
        "'a.weight' is of shape [6, 4], but 'onward.loss' of []",
    ),
    (
        rebind(-1, "onward.loss"),
        "'onward.step' is INT64, but 'onward.loss' is FLOAT",
    ),
    (bind("initialization_binding", "a.weight", "gone"), "which is no output of the initialization"),
    (lambda i: i.initialization.input.add(name="seed"), "initialization: it has an input, 'seed'"),
    (lambda i: i.algorithm.output.add(name="gone"), "no node produces its output 'gone'"),
    (lambda i: i.algorithm.initializer.add(name="a.weight", data_type=1, dims=[0]), "'a.weight' is already taken"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_the_check_finds_what_onnx_does_not(change: Any, message: str) -> None:
    file = edit(change)
    onnx.checker.check_model(file)
    try:
        problems = check(file)
    except OnwardError as error:  # what no reader could take is refused at once
        problems = [str(error)]
    assert any(message in problem for problem in problems), problems
    assert all("\n" not in problem for problem in problems)
    with pytest.raises(InvalidModelError):
        load(file)


def test_a_model_without_training_is_refused() -> None:
    with pytest.raises(OnwardError, match="no training information"):
        load(model())


def test_a_function_as_a_schedule_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match="schedule"):
        prepare(model(), schedule=lambda step: 1 / step).save(tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def others(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], state: dict[str, Array]) -> onnx.ModelProto:
    """y = x w + b, with the mean squared error and `Gradient`; `nodes` make `w2`, `b2` and the new states of them."""
    names = {"w": "w2", "b": "b2", **{name: f"{name}2" for name in state if name != "rate"}}
    loss = [
        helper.make_node("Sub", ["y", "target"], ["apart"]),
        helper.make_node("Mul", ["apart", "apart"], ["squared"]),
        helper.make_node("ReduceMean", ["squared"], ["mse"], keepdims=0),
        helper.make_node("Gradient", ["w", "b", "x"], ["dw", "db"], domain=TRAINING, xs=["w", "b"], zs=["x"], y="mse"),
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("mse", *names.values())]
    target = helper.make_tensor_value_info("target", TensorProto.FLOAT, ["n", 2])
    tensors = [numpy_helper.from_array(array, name) for name, array in state.items()]
    tensors.append(numpy_helper.from_array(np.array(1), "one"))
    algorithm = helper.make_graph([*loss, *nodes], "step", [target, *inputs], outputs, tensors)
    for value in algorithm.output:
        value.type.tensor_type.elem_type = TensorProto.INT64 if value.name == "t2" else TensorProto.FLOAT
    forward = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 3), ("y", 2))
    ]
    weights = [numpy_helper.from_array(START[name], name) for name in ("w", "b")]
    graph = helper.make_graph(forward, "linear", values[:1], values[1:], weights)
    imports = [helper.make_opsetid("", 12), helper.make_opsetid(TRAINING, 1)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=7)
    made.training_info.add(algorithm=algorithm)
    for key, value in names.items():
        made.training_info[0].update_binding.add(key=key, value=value)
    return made


START = {"w": RNG.standard_normal((3, 2)).astype(np.float32), "b": RNG.standard_normal(2).astype(np.float32)}
RATE = [helper.make_tensor_value_info("rate", TensorProto.FLOAT, [])]
PAIRS = [
    {"x": RNG.standard_normal((4, 3)).astype(np.float32), "target": RNG.standard_normal((4, 2)).astype(np.float32)}
    for _ in range(4)
]


def zeros(prefix: str) -> dict[str, Array]:
    return {f"{prefix}{name}": np.zeros_like(array) for name, array in START.items()}


def plain(name: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Mul", [f"d{name}", "rate"], [f"m{name}"]),
        helper.make_node("Sub", [name, f"m{name}"], [f"{name}2"]),
    ]


def with_momentum(name: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Add", [f"v{name}", f"d{name}"], [f"v{name}2"]),
        helper.make_node("Mul", [f"v{name}2", "rate"], [f"m{name}"]),
        helper.make_node("Cast", ["t2"], [f"c{name}"], to=TensorProto.FLOAT),
        helper.make_node("Div", [f"m{name}", f"c{name}"], [f"q{name}"]),
        helper.make_node("Sub", [name, f"q{name}"], [f"{name}2"]),
    ]


COUNT = helper.make_node("Add", ["t", "one"], ["t2"])
ADAM = helper.make_node(
    "Adam",
    ["rate", "t", "w", "b", "dw", "db", "vw", "vb", "hw", "hb"],
    ["w2", "b2", "vw2", "vb2", "hw2", "hb2"],
    domain=TRAINING,
    epsilon=1e-3,
    norm_coefficient=0.1,
)
OTHERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "plain ops": lambda: others([*plain("w"), *plain("b")], RATE, {}),
    "plain ops with states": lambda: others(
        [COUNT, *with_momentum("w"), *with_momentum("b")], RATE, {**zeros("v"), "t": np.array(0)}
    ),
    "Adam": lambda: others([ADAM, COUNT], RATE, {**zeros("v"), **zeros("h"), "t": np.array(1)}),
    "Adam with a rate of its own": lambda: others(
        [ADAM, COUNT], [], {**zeros("v"), **zeros("h"), "t": np.array(1), "rate": np.array(0.1, np.float32)}
    ),
}


def expected_curve(kind: str) -> list[float]:
    """By the formulas, in double precision."""
    now = {name: array.astype(np.float64) for name, array in START.items()}
    v, h = ({name: np.zeros(array.shape) for name, array in START.items()} for _ in range(2))
    losses = []
    for step, pair in enumerate(PAIRS, 1):
        apart = pair["x"] @ now["w"] + now["b"] - pair["target"]
        losses.append(float((apart**2).mean()))
        slope = 2 * apart / apart.size
        for name, g in (("w", pair["x"].T @ slope), ("b", slope.sum(0))):
            if kind == "plain ops":
                now[name] = now[name] - 0.1 * g
            elif kind == "plain ops with states":
                v[name] = v[name] + g
                now[name] = now[name] - 0.1 * v[name] / step
            else:
                g = g + 0.1 * now[name]
                v[name], h[name] = 0.9 * v[name] + 0.1 * g, 0.999 * h[name] + 0.001 * g * g
                rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                now[name] = now[name] - rate * v[name] / (np.sqrt(h[name]) + 1e-3)
    return losses


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_others_are_trained(name: str, tmp_path: Path) -> None:
    file = OTHERS[name]()
    assert check(file) == []
    made = load(file)
    assert made.labels == ["target"]
    assert made.uniform == name.startswith("Adam")
    losses, after = steps(made, PAIRS)
    np.testing.assert_allclose(losses, expected_curve(name), rtol=1e-4)
    if name == "Adam with a rate of its own":
        assert made.optimizer.lr == pytest.approx(0.1)
    _, half = steps(made, PAIRS[:2])
    half.save(tmp_path / "ours.onnx")
    again, _ = steps(load(tmp_path / "ours.onnx"), PAIRS[2:])
    np.testing.assert_allclose(again, losses[2:], rtol=1e-6)
    assert after.step == len(PAIRS)


def test_unclear_files_of_others_are_refused() -> None:
    file = OTHERS["plain ops"]()
    del file.training_info[0].update_binding[:]
    with pytest.raises(OnwardError, match="no update is bound to a weight"):
        load(file)
    file = to_model(prepare(model())).to_proto()
    del file.metadata_props[:]
    with pytest.raises(OnwardError, match="no Gradient node"):
        load(file)


def test_the_loss_is_said_in_words(tmp_path: Path) -> None:
    """As far as it can be: what a graph alone says is not guessed at."""
    own = [Term(CrossEntropy(0.1, weight=np.array([1.0, 2.0, 0.5])), 0.5), Term(KLDivergence("teacher"))]  # type: ignore[arg-type]
    prepare(model(), own).save(tmp_path / "own.onnx")
    said = [Term(CrossEntropy(0.1, weight=(1.0, 2.0, 0.5)), 0.5, "y"), Term(KLDivergence("teacher"), output="y")]
    assert load(tmp_path / "own.onnx").loss == said
    penalties = [Penalty(0.1), Penalty(0.2, 1, ("*",))]
    prepare(model(), own, penalties=penalties).save(tmp_path / "own.onnx")
    assert load(tmp_path / "own.onnx").loss == said
    assert load(tmp_path / "own.onnx").penalties == penalties
    made = prepare(model(), "cross_entropy", output="h")
    made.save(tmp_path / "other.onnx")
    assert made.loss is None and load(tmp_path / "other.onnx").loss is None


def test_labels_whose_name_is_taken() -> None:
    """Two losses of the same labels still share them, and the loss in words says what they are called."""
    proto = model()
    for node in proto.graph.node:
        for names in (node.input, node.output):
            names[:] = ["labels" if name == "h" else name for name in names]
    made = prepare(proto, [Term("cross_entropy"), Term("nll")])
    assert made.loss is not None and len(made.labels) == 1 and made.labels[0] != "labels"
    assert {getattr(term.loss, "labels", None) for term in made.loss} == set(made.labels)
