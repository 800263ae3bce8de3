"""Forms that real models have and written examples have not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onward.errors import InvalidDataError
from onward.training.info.read import load
from onward.training.recipe.optimizers import SGD
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def linear(dims: list[Any], *after: onnx.NodeProto, width: int = 3) -> onnx.ModelProto:
    """A product with a weight, and nodes from `h` to `y`; nothing is said about the shape of the output."""
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["h"]), *after]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weight = numpy_helper.from_array(normal(int(dims[-1]), width), "weight")
    graph = helper.make_graph(nodes, "linear", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("shape", [(3, 1), (5, 2)])
def test_a_target_of_unknown_rank(shape: tuple[int, int]) -> None:
    """Squeeze without axes hides the rank: whatever the model gives, its target is taken."""
    model = linear(["n", 4], helper.make_node("Squeeze", ["h"], ["y"]), width=shape[1])
    trainer = Trainer(prepare(model, loss="mse", optimizer=SGD(lr=0.05)), threads=1)
    x = normal(shape[0], 4)
    batch = {"x": x, "labels": normal(*(n for n in shape if n > 1))}
    losses = [trainer.step(batch) for _ in range(10)]
    assert losses[-1] < losses[0]


def test_dimensions_that_are_called_by_a_question_mark_are_not_one() -> None:
    model = linear(["?", "?", 4], helper.make_node("Identity", ["h"], ["y"]))
    trainer = Trainer(prepare(model, loss="mse"), threads=1)
    trainer.step({"x": normal(2, 5, 4), "labels": normal(2, 5, 3)})
    named = Trainer(prepare(linear(["n", "n", 4], helper.make_node("Identity", ["h"], ["y"])), loss="mse"), threads=1)
    with pytest.raises(InvalidDataError, match="'n' is 2 in 'x', but 5 in 'x'"):
        named.step({"x": normal(2, 5, 4), "labels": normal(2, 5, 3)})


def test_normalisation_of_one_number_a_channel_keeps_its_statistics() -> None:
    """By the statistics of a single number everything would be zero, and nothing learnt."""
    names = ["scale", "bias", "mean", "var"]
    node = helper.make_node("BatchNormalization", ["h", *names], ["y"])
    for size, learns in ((1, True), (2, False)):
        model = linear([size, 4], node)
        arrays = [np.ones(3), np.zeros(3), np.zeros(3), np.ones(3)]
        model.graph.initializer.extend(
            numpy_helper.from_array(array.astype(np.float32), name) for array, name in zip(arrays, names, strict=True)
        )
        trainable = prepare(model, loss="mse", optimizer=SGD(lr=0.1), trainable=["weight"])
        assert bool(trainable.buffers) != learns
        trainer = Trainer(trainable, threads=1)
        batch = {"x": np.repeat(normal(1, 4), size, 0), "labels": normal(size, 3)}
        losses = [trainer.step(batch) for _ in range(20)]
        assert (losses[-1] < 0.5 * losses[0]) == learns


def test_a_weight_that_leads_to_another_result_is_no_parameter() -> None:
    """A loop gives two results from two weights; the loss is of one."""
    text = """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2] x) => (float[2] y, float[2] z) <float[2] w = {0.5, 0.7}, float[2] v = {0.1, 0.2}> {
        trips = Constant <value_int = 3> ()
        go = Constant <value = bool {1}> ()
        y, z = Loop (trips, go, x, x) <
            body = round (int64 i, bool on, float[2] s, float[2] t) => (bool on_, float[2] s_, float[2] t_) {
                on_ = Identity (on)
                s_ = Mul (s, w)
                t_ = Mul (t, v)
            }
        >
    }"""
    model = parser.parse_model(text)
    for output, weight in (("y", "w"), ("z", "v")):
        assert list(prepare(model, loss="mse", output=output).parameters) == [weight]


def test_weights_that_are_inputs_as_well(tmp_path: Path) -> None:
    """As files of old have them: what is trained is fed, what is not stays as it is."""
    model = linear(["n", 4], helper.make_node("Mul", ["h", "factor"], ["y"]))
    model.graph.initializer.append(numpy_helper.from_array(np.full(1, 2.0, np.float32), "factor"))
    for name, shape in (("weight", [4, 3]), ("factor", [1])):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    trainable = prepare(model, loss="mse", optimizer=SGD(lr=0.05))
    trainable.save(tmp_path / "trainable.onnx")
    batch = {"x": normal(5, 4), "labels": normal(5, 3)}
    curves = []
    for each in (trainable, load(tmp_path / "trainable.onnx")):
        trainer = Trainer(each, threads=1)
        assert trainer.inputs == ["x", "labels"] and list(trainer.parameters) == ["weight"]
        curves.append([trainer.step(batch) for _ in range(5)])
    assert curves[0] == curves[1] and curves[0][-1] < curves[0][0]


def test_ops_of_onnx_runtime_in_files_of_older_opsets(tmp_path: Path) -> None:
    """What its optimizer writes has no rule, but a definition, in the words of a newer opset than the file's."""
    model = linear(["n", 4], helper.make_node("BiasGelu", ["h", "bias"], ["y"], domain="com.microsoft"))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "bias"))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    trainer = Trainer(prepare(model, loss="mse", optimizer=SGD(lr=0.1)), threads=1)
    rng = np.random.default_rng(1)
    batch = {"x": rng.standard_normal((8, 4), np.float32), "labels": rng.standard_normal((8, 3), np.float32)}
    losses = [trainer.step(batch) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert [node.op_type for node in trainer.tuned().to_proto().graph.node] == ["MatMul", "BiasGelu"]
    trainer.continued().save(tmp_path / "later.onnx")
    assert Trainer(load(tmp_path / "later.onnx"), threads=1).step(batch) == pytest.approx(trainer.step(batch), rel=1e-6)
