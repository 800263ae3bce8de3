"""The source of a language model reads like one: a class for its layers, weights of few bits as layers of their own."""

import re
from pathlib import Path

import pytest
import torch
from decoders import decoder
from safetensors.torch import load_file

import onward


def source_of(folder: Path, **given: object) -> str:
    done = onward.convert(decoder(4, **given), to="torch", out=folder / "net")
    assert [verdict.status for verdict in done.verdicts] == ["verified"]
    return (done.out / "model.py").read_text()


def test_layers_are_one_class_and_tables_are_buffers(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    assert len(re.findall(r"^class Layer\w*\(", source, re.MULTILINE)) <= 2  # the other one is the last norm
    assert source.count("group_query_attention(") == 1
    assert 'register_buffer("cos_cache"' in source
    assert "x, key, value = group_query_attention(" in source and "past_key, past_value, last" in source
    assert "return x + self.mlp(self.post_attention_layernorm(x)), key, value" in source
    assert "nn.Embedding(48, 32)" in source
    assert "for layer, past_key, past_value in zip(self.layers[:4], past[::2], past[1::2]):" in source
    assert "x, *present = self.model(" in source and "return self.lm_head(x), *present" in source
    assert "self.q_proj = QuantizedLinear(32, 64, bits=4, block_size=16" in source


def test_weights_of_few_bits_stay_packed_in_the_file_and_are_unpacked_once(tmp_path: Path) -> None:
    source_of(tmp_path)
    packed = load_file(tmp_path / "net/weights.safetensors")
    assert packed["model.layers.0.attn.q_proj.weight"].shape == (64, 16)
    assert packed["lm_head.zero_points"].shape == (48, 2)
    net = onward.to_torch(decoder(1), check=False)
    layer = net.get_submodule("lm_head")
    assert layer.full.shape == (48, 32) and "lm_head.full" not in net.state_dict()
    before, state = layer.full.clone(), net.state_dict()
    net.load_state_dict({**state, "lm_head.scales": 2 * state["lm_head.scales"]})
    assert torch.equal(layer.full, 2 * before)
    x = torch.randn(3, 32)
    unpacked = layer(x)
    layer.full = None
    assert torch.equal(layer(x), unpacked)


@pytest.mark.parametrize("bits", [4, None])
def test_a_bias_belongs_to_its_layer_and_the_op_is_no_part_of_its_name(bits: int | None) -> None:
    net = onward.to_torch(decoder(1, bits=bits, biased=True))
    names = {name for name, _ in net.named_parameters()}
    assert "model.layers.0.attn.q_proj.bias" in names and not any("MatMul" in n or "Add" in n for n in net.state_dict())
