"""Made-up inputs of language models: what counts words, masks them, and remembers them fits together."""

from typing import Any

import numpy as np
import pytest
from decoders import decoder
from graphs import model, weight

from onward.model import load
from onward.verification.data.sets import data_sets


@pytest.mark.parametrize("given", [{}, {"positions": True}, {"int8_cache": True}, {"packed": True}], ids=str)
def test_a_step_and_a_prompt(given: dict[str, Any]) -> None:
    step, prompt, *_ = (made.inputs for made in data_sets(load(decoder(1, **given))))
    assert step["input_ids"].shape[1] == 1 and step["past_key_values.0.key"].shape[2] > 1
    assert prompt["input_ids"].shape[1] > 1 and prompt["past_key_values.0.key"].shape[2] == 0
    for inputs in (step, prompt):
        mask, past, ids = (inputs[name] for name in ("attention_mask", "past_key_values.0.value", "input_ids"))
        assert mask.all() and mask.shape[1] == past.shape[2] + ids.shape[1]
        if "positions" in given:
            assert (inputs["position_ids"] == np.arange(past.shape[2], mask.shape[1])).all()


def test_a_cache_with_more_room_is_empty_behind_the_words() -> None:
    for made in data_sets(load(decoder(1, room=40)), regimes=("random",)):
        past = made.inputs["past_key_values.0.key"]
        earlier = made.inputs["attention_mask"].shape[1] - made.inputs["input_ids"].shape[1]
        assert past.shape[2] == 40 and past[:, :, :earlier].all() and not past[:, :, earlier:].any()


@pytest.mark.parametrize("room", [None, 40])
def test_lengths_that_are_inputs(room: int | None) -> None:
    for made in data_sets(load(decoder(1, counted=False, room=room)), regimes=("random",)):
        total, new = int(made.inputs["total_sequence_length"]), made.inputs["input_ids"].shape[1]
        assert (made.inputs["seqlens_k"] == total - 1).all()
        assert total <= room if room else total == new + made.inputs["past_key_values.0.key"].shape[2]


ATTENTION = """g (int64[B,S] ids, int64[B,T] attention_mask, float[B,1,P,4] past)
    => (float[B,1,S,4] y, float[B,1,T,4] present) {
    x = Gather <axis: int = 0> (table, ids)
    one = Constant <value_ints: ints = [1]> ()
    k = Unsqueeze (x, one)
    present = Concat <axis: int = 2> (past, k)
    turned = Transpose <perm: ints = [0, 1, 3, 2]> (present)
    scores = MatMul (k, turned)
    axes = Constant <value_ints: ints = [1, 2]> ()
    wide = Unsqueeze (attention_mask, axes)
    seen = Cast <to: int = 9> (wide)
    low = Constant <value_float: float = -1e9> ()
    masked = Where (seen, scores, low)
    shares = Softmax <axis: int = -1> (masked)
    y = MatMul (shares, present)
}"""


@pytest.mark.parametrize("total", ["T", "P + S"], ids=["by its uses", "by its name"])
def test_standard_ops_say_as_much(total: str) -> None:
    proto = model(ATTENTION, table=weight(16, 4)).to_proto()
    for value, axis in ((proto.graph.input[1], 1), (proto.graph.output[1], 2)):
        value.type.tensor_type.shape.dim[axis].dim_param = total
    net = load(proto)
    step, prompt, *_ = (made.inputs for made in data_sets(net))
    assert step["ids"].shape[1] == 1 and prompt["past"].shape[2] == 0
    for inputs in (step, prompt):
        assert inputs["attention_mask"].shape[1] == inputs["past"].shape[2] + inputs["ids"].shape[1]
        assert (np.diff(inputs["attention_mask"]) <= 0).all() and inputs["attention_mask"][:, 0].all()
