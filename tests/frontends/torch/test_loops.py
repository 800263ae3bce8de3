"""Loops over an open length: those of a library that are known become scans, others are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onward
from onward.errors import OnwardError
from onward.runners.onnxruntime import prepare

SIZES = {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}
JAMBA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_experts": 1,
    "mamba_d_state": 4,
}


@pytest.mark.parametrize(("name", "sizes"), [("MambaForCausalLM", SIZES), ("JambaForCausalLM", JAMBA)])
def test_a_state_space_model_takes_texts_of_any_length(name: str, sizes: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    net = kind(kind.config_class(**sizes, use_cache=False)).eval()
    opened = {"input_ids": {0: "batch", 1: "length"}}
    model = onward.from_torch(net, kwargs={"input_ids": torch.randint(1, 31, (2, 7))}, dynamic=opened)
    assert model.ir.graph.inputs[0].shape == ("batch", "length")
    back = onward.to_torch(model)
    back.load_state_dict(net.state_dict())
    for size in ((3, 12), (1, 2)):
        text = torch.randint(1, 31, size)
        with torch.no_grad():
            wanted = net(text).logits.numpy()
            np.testing.assert_allclose(back(text).numpy(), wanted, atol=1e-5)
        found = prepare(model, "")({"input_ids": text.numpy()})
        np.testing.assert_allclose(next(iter(found.values())), wanted, atol=1e-5)


def test_the_scan_is_what_the_library_computes() -> None:
    mamba = pytest.importorskip("transformers.models.mamba.modeling_mamba")
    from onward.frontends.torch.loops import mamba_selective_scan

    draw = torch.Generator().manual_seed(0)
    x, dt, z = torch.randn(3, 2, 5, 7, generator=draw)
    a, d, bias = -torch.rand(5, 4, generator=draw), torch.randn(5, generator=draw), torch.randn(5, generator=draw)
    b, c = torch.randn(2, 2, 4, 7, generator=draw)
    for dtype in (torch.float32, torch.bfloat16):
        given = [part.to(dtype) for part in (x, dt)]
        how = {"D": d, "z": z.to(dtype), "delta_bias": bias, "delta_softplus": True, "return_last_state": True}
        wanted = mamba.mamba_selective_scan(*given, a, b.to(dtype), c.to(dtype), **how)
        found = mamba_selective_scan(*given, a, b.to(dtype), c.to(dtype), **how)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other)


class Summed(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        total = torch.zeros_like(pair[1][:, 0])
        for step in range(pair[1].shape[1]):
            total = torch.tanh(total + pair[1][:, step])
        return total


def test_another_loop_says_which_axis_it_fixes_and_what_to_do() -> None:
    pair = (torch.zeros(2, 3), torch.zeros(2, 5))
    with pytest.raises(OnwardError, match=r"axis 1 of 'pair_1' is always 5.*loop in Python; leave it out of `dynamic`"):
        onward.from_torch(Summed(), (pair,), dynamic={"pair_1": {1: "length"}})
