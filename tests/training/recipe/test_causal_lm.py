"""The loss of language models: transformers' own, and what becomes of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional
from transformers.loss.loss_utils import ForCausalLMLoss

from onward.errors import InvalidDataError, OnwardError
from onward.training import SGD, CausalLM, Trainer, prepare

RNG = np.random.default_rng(1)
WORDS = 7
IDS = RNG.integers(0, WORDS, (3, 5))
TABLE = RNG.standard_normal((WORDS, WORDS)).astype(np.float32)


def model(ids: str = "input_ids", dtype: int = TensorProto.INT64, more: tuple[str, ...] = ()) -> onnx.ModelProto:
    """Logits by a table: the weight of each pair of tokens."""
    inputs = [helper.make_tensor_value_info(name, dtype, ["batch", "length"]) for name in (ids, *more)]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", WORDS])
    node = helper.make_node("Gather", ["table", ids], ["logits"])
    graph = helper.make_graph([node], "words", inputs, [output], [numpy_helper.from_array(TABLE, "table")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def gradient_and_loss(loss: CausalLM, batch: dict[str, Any], given: onnx.ModelProto) -> tuple[Any, float]:
    trainer = Trainer(prepare(given, loss, SGD(lr=1.0)), kernels=False)
    found = trainer.step(batch)
    return TABLE - trainer.parameters["table"], found


@pytest.mark.parametrize("form", ["tokens", "labels", "pad", "int32"])
def test_it_is_that_of_transformers(form: str) -> None:
    labels = IDS.copy()
    batch, loss, given = {"input_ids": IDS}, CausalLM(), model()
    if form == "labels":
        labels[0, :3], labels[2, 4] = -100, -100
        batch, loss = {**batch, "labels": labels}, CausalLM(labels="labels")
    elif form == "pad":
        labels[labels == 2] = -100
        loss = CausalLM(pad=2)
    elif form == "int32":
        batch, given = {"x": IDS.astype(np.int32)}, model("x", TensorProto.INT32)
    slope, found = gradient_and_loss(loss, batch, given)
    table = torch.tensor(TABLE, requires_grad=True)
    logits = functional.embedding(torch.tensor(IDS), table)
    expected = ForCausalLMLoss(logits, torch.tensor(labels), WORDS)
    expected.backward()
    assert found == pytest.approx(expected.item(), rel=1e-6)
    np.testing.assert_allclose(slope, table.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_accuracy_is_that_of_the_next_token() -> None:
    trainer = Trainer(prepare(model(), CausalLM(pad=2), SGD()), kernels=False)
    best, following = TABLE.argmax(1)[IDS[:, :-1]], IDS[:, 1:]
    counted = following != 2
    assert trainer.evaluate({"input_ids": IDS})["accuracy"] == pytest.approx((best == following)[counted].mean())


def test_labels_of_no_token_are_refused() -> None:
    trainer = Trainer(prepare(model(), CausalLM(labels="labels"), SGD()), kernels=False)
    labels = IDS.copy()
    labels[1, 2] = -1
    with pytest.raises(InvalidDataError, match=r"'labels' at \[1, 2\] is -1, but there are 7 classes"):
        trainer.step({"input_ids": IDS, "labels": labels})


def test_tokens_that_are_not_clear_are_refused() -> None:
    with pytest.raises(OnwardError, match="which input has the tokens is not clear: the model takes 'a', 'b'"):
        prepare(model("a", more=("b",)), "causal_lm")
