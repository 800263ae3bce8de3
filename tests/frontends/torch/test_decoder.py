"""Language models of transformers as decoders, with their cache as inputs and outputs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onward
from onward.errors import OnwardError, UnsupportedError
from onward.runners.onnxruntime import prepare

Arrays = dict[str, np.ndarray[Any, Any]]
KINDS = ("key", "value")
SMALL = {
    "vocab_size": 31,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 16,
    "pad_token_id": 0,
    "eos_token_id": None,
}


def made(name: str, **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**SMALL | more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def step(run: Any, model: onward.Model, text: torch.Tensor, mask: torch.Tensor, past: Arrays) -> tuple[Any, Arrays]:
    """The next token of each text, and the cache."""
    found = run({"input_ids": text.numpy(), "attention_mask": mask.numpy(), **past})
    return found["logits"][:, -1:].argmax(-1), {
        name: found[name.replace("past_key_values", "present")] for name in past
    }


def follow(run: Any, model: onward.Model, text: torch.Tensor, mask: torch.Tensor, steps: int) -> torch.Tensor:
    past = {
        str(value.name): np.zeros([len(text), *(n if isinstance(n, int) else 0 for n in list(value.shape)[1:])], "f4")
        for value in model.ir.graph.inputs[2:]
        if value.shape is not None
    }
    part = text
    for _ in range(steps):
        chosen, past = step(run, model, part, mask, past)
        part = torch.from_numpy(chosen)
        text, mask = torch.cat([text, part], 1), torch.cat([mask, torch.ones_like(part)], 1)
    return text


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("LlamaForCausalLM", {}),
        ("MistralForCausalLM", {"sliding_window": 3}),
        (
            "Qwen3MoeForCausalLM",
            {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "head_dim": 8},
        ),
    ],
)
def test_decoding_gives_the_tokens_of_generate(name: str, more: dict[str, Any]) -> None:
    """Of texts of which one is padded on the left, with an empty cache at first."""
    net = made(name, **more)
    model = onward.from_torch(net, cache=True)
    names = [value.name for value in model.ir.graph.inputs]
    assert names == ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"]
    assert [value.name for value in model.ir.graph.outputs] == ["logits", "present.0.key", "present.0.value"]
    text, mask = torch.randint(1, 31, (2, 4)), torch.ones(2, 4, dtype=torch.int64)
    text[0, :2], mask[0, :2] = 0, 0
    wanted = net.generate(text, attention_mask=mask, max_new_tokens=8, min_new_tokens=8, do_sample=False)
    assert torch.equal(follow(prepare(model, ""), model, text, mask, 8), wanted)
    back = onward.to_torch(model)
    back.load_state_dict(net.state_dict())

    def run(inputs: Arrays) -> Arrays:
        found = back(*(torch.from_numpy(np.ascontiguousarray(inputs[str(name)])) for name in names))
        return {str(v.name): part.detach().numpy() for v, part in zip(model.ir.graph.outputs, found, strict=True)}

    assert torch.equal(follow(run, model, text, mask, 8), wanted)


BOTH_SIDES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}


@pytest.mark.parametrize(
    ("name", "more", "padded"),
    [
        ("T5ForConditionalGeneration", {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, True),
        ("BartForConditionalGeneration", BOTH_SIDES | {"max_position_embeddings": 40}, True),
        ("WhisperForConditionalGeneration", BOTH_SIDES | {"num_mel_bins": 4, "max_source_positions": 6}, False),
    ],
)
def test_decoding_what_is_encoded_gives_the_tokens_of_generate(name: str, more: dict[str, Any], padded: bool) -> None:
    """By two files, an encoder and a decoder; of two texts, of which one is padded, or of two sounds."""
    net = made(name, **{"decoder_start_token_id": 1} | more)
    ids = torch.tensor([[4, 5, 6, 7, 8], [9, 10, 11, 0, 0]])
    given = (
        {"input_ids": ids, "attention_mask": (ids > 0).long()} if padded else {"input_features": torch.randn(2, 4, 12)}
    )
    encoder = onward.from_torch(net.get_encoder(), kwargs=given, dynamic={name: {0: "batch"} for name in given})
    encoded = next(iter(prepare(encoder, "")({name: x.numpy() for name, x in given.items()}).values()))
    model = onward.from_torch(net, cache=True)
    names = [str(value.name) for value in model.ir.graph.inputs]
    fixed = {"input_ids", "encoder_hidden_states", *(["encoder_attention_mask"] if padded else [])}
    kinds = [f"0.{side}.{kind}" for side in ("decoder", "encoder") for kind in ("key", "value")]
    assert {*names} == fixed | {f"past_key_values.{kind}" for kind in kinds}
    assert [value.name for value in model.ir.graph.outputs] == ["logits", *(f"present.{kind}" for kind in kinds)]
    wanted = net.generate(**given, max_new_tokens=16, min_new_tokens=16, do_sample=False)[:, -16:].numpy()
    context = {"encoder_hidden_states": encoded} | (
        {"encoder_attention_mask": given["attention_mask"].numpy()} if padded else {}
    )
    assert np.array_equal(spoken(prepare(model, ""), context), wanted)
    back = onward.to_torch(model)
    back.load_state_dict(net.state_dict(), strict=False)

    def run(inputs: Arrays) -> Arrays:
        found = back(*(torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in names))
        return {str(v.name): part.detach().numpy() for v, part in zip(model.ir.graph.outputs, found, strict=True)}

    assert np.array_equal(spoken(run, context), wanted)


def spoken(run: Any, context: Arrays) -> np.ndarray[Any, Any]:
    """16 tokens for each of two texts; what is encoded goes into the cache at the first call, and stays as it is."""
    past = {f"past_key_values.0.{s}.{k}": np.zeros((2, 2, 0, 8), "f4") for s in ("decoder", "encoder") for k in KINDS}
    tokens = np.ones((2, 1), np.int64)
    length = context["encoder_hidden_states"].shape[1]
    text = []
    for _ in range(16):
        found = run({"input_ids": tokens, **context, **past})
        past = {name: found[name.replace("past_key_values", "present")] for name in past}
        assert past["past_key_values.0.encoder.key"].shape == (2, 2, length, 8)
        tokens = found["logits"][:, -1:].argmax(-1)
        text.append(tokens)
    return np.concatenate(text, 1)


def test_what_is_no_language_model_of_transformers_is_refused_without_an_import_of_it() -> None:
    code = """
import sys, torch, onward
try:
    onward.from_torch(torch.nn.Linear(2, 2), cache=True)
except onward.OnwardError as error:
    print(error, "transformers" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "cache=True takes a language model of transformers" in said and said.strip().endswith("False")


def test_inputs_follow_from_the_model() -> None:
    with pytest.raises(OnwardError, match="leave them out"):
        onward.from_torch(nn.Linear(2, 2), torch.zeros(1, 2), cache=True)


def test_a_model_without_a_cache_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="BertModel is no language model"):
        onward.from_torch(made("BertModel"), cache=True)
