"""Weights that a layer would take in by their values, and those that only one branch reads, stay what they are."""

from pathlib import Path

import numpy as np
import onnx.helper as oh
import pytest
from onnx import numpy_helper, parser

from onward import training

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
X = np.abs(np.random.default_rng(0).standard_normal((4, 3))).astype(np.float32)
Y = np.ones((4, 3), np.float32)
BRANCHES = """agraph (float[N,3] x) => (float[N,3] y) {
    total = ReduceSum <keepdims = 0> (x)
    nought = Constant <value_float = 0.0> ()
    flag = Greater (total, nought)
    y = If (flag) <
        then_branch = yes () => (float[3] a) <float[3] w = {0.1, 0.2, 0.3}> { a = Add (x, w) },
        else_branch = no () => (float[3] c) <float[3] w = {0.5, 0.6, 0.7}> { c = Mul (x, w) }
    >
}"""


def losses_beside(trainable: training.Trainable, batches: list[dict[str, np.ndarray]], folder: Path) -> None:
    """The package makes the same steps as ONNX Runtime."""
    from onward.training.verification.torch import TorchPackage

    written = training.to_torch_package(trainable, folder)
    package, trainer = TorchPackage(written, []), training.Trainer(trainable, threads=1)
    for batch in batches:
        assert package.step([batch]) == pytest.approx([trainer.step(batch)], rel=1e-5)


def test_weights_that_a_branch_reads_decay_when_it_is_not_taken(tmp_path: Path) -> None:
    made = training.prepare(parser.parse_model(HEAD + BRANCHES), "mse", training.AdamW(lr=0.1))
    losses_beside(made, [{"x": sign * X, "labels": Y} for sign in (1, -1, 1, -1, 1)], tmp_path / "branches")


def test_a_table_and_its_transpose_are_trained_apart(tmp_path: Path) -> None:
    """Of a file for inference they would be one weight, as language models have it."""
    tables = {"table": np.eye(20, 6, dtype=np.float32), "head": np.eye(6, 20, dtype=np.float32)}
    nodes = [oh.make_node("Gather", ["table", "ids"], ["h"]), oh.make_node("MatMul", ["h", "head"], ["y"])]
    inputs, outputs = oh.make_tensor_value_info("ids", 7, ["n"]), oh.make_tensor_value_info("y", 1, ["n", 20])
    held = [numpy_helper.from_array(array, name) for name, array in tables.items()]
    model = oh.make_model(
        oh.make_graph(nodes, "tables", [inputs], [outputs], held),
        opset_imports=[oh.make_opsetid("", 21)],
        ir_version=10,
    )
    made = training.prepare(model, "cross_entropy", training.SGD(lr=0.5))
    assert set(made.parameters) == {"table", "head"}
    batch = {"ids": np.arange(8), "labels": np.arange(8) % 5}
    losses_beside(made, [batch] * 3, tmp_path / "tables")
