"""What PyTorch's exporter decomposes otherwise, or not at all: views after attention, ops of libraries, experts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import onward
from onward.errors import UnsupportedError
from onward.frontends.torch.torchlib import listed_once


class Attention(nn.Module):
    """With a mask that is trained, as T5 and Swin have it: its result lies otherwise in memory without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(1, 2, 6, 6))

    def forward(self, x: Tensor) -> Tensor:
        heads = x.view(x.shape[0], 6, 2, 4).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(heads, heads, heads, attn_mask=self.bias)
        return mixed.transpose(1, 2).contiguous().reshape(x.shape[0], 6, -1)


def test_views_after_attention_with_a_dynamic_batch() -> None:
    net = Attention()
    back = onward.to_torch(onward.from_torch(net, torch.randn(3, 6, 8)))
    x = torch.randn(5, 6, 8)
    torch.testing.assert_close(back(x), net(x))


@torch.library.custom_op("onward_tests::wave", mutates_args=())
def wave(x: Tensor, rate: float) -> Tensor:
    return torch.sin(x * rate)


@torch.library.custom_op("onward_tests::by_sign", mutates_args=())
def by_sign(x: Tensor) -> Tensor:
    return x * 2 if x.sum().item() > 0 else x.clone()


for op in (wave, by_sign):
    op.register_fake(lambda x, *_: torch.empty_like(x))
LIBRARY = torch.library.Library("onward_tests_plain", "DEF")
LIBRARY.define("shifted(Tensor x) -> Tensor")
LIBRARY.impl("shifted", lambda x: torch.cos(x) + 1, "CPU")
torch.library.register_fake("onward_tests_plain::shifted", torch.empty_like, lib=LIBRARY)


class Custom(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.onward_tests_plain.shifted(wave(x, 3.0))
        return y


class Undecided(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return by_sign(x)


def test_ops_of_libraries_are_traced_through_their_own_functions() -> None:
    model = onward.from_torch(Custom(), torch.randn(2, 3))
    assert {"Sin", "Cos"} <= {node.op_type for node in model.ir.graph}


def test_an_op_whose_function_cannot_be_traced_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"onward_tests\.by_sign .*`translations` takes one of your own$"):
        onward.from_torch(Undecided(), torch.randn(2, 3))


class Experts(nn.Module):
    """Each row goes to the expert that its first number names. PyTorch traces such a product in bfloat16 only."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, 8, 8, dtype=torch.bfloat16))

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[:, 0].to(torch.int64)
        order = torch.argsort(chosen, stable=True)
        counts = F.one_hot(chosen, self.weight.shape[0]).sum(0)
        mixed = torch._grouped_mm(x[order], self.weight, offs=counts.cumsum(0).to(torch.int32))
        return mixed[torch.argsort(order, stable=True)]


@pytest.mark.parametrize("count", [1, 3])
def test_experts(count: int) -> None:
    net = Experts(count)
    first, other = (torch.randn(rows, 8, dtype=torch.bfloat16) for rows in (5, 9))
    for x in (first, other):
        x[:, 0] = torch.arange(len(x)) % 2 * (count - 1)  # the expert in the middle has no row
    model = onward.from_torch(net, first, check=False)
    back = onward.to_torch(model, check=False)
    fresh = Experts(count)
    back.load_state_dict(fresh.state_dict())
    torch.testing.assert_close(back(other), torch.stack([row @ fresh.weight[int(row[0])] for row in other]))


class Conv1D(nn.Module):
    """A linear layer that stores its weight as (in, out), as GPT-2 does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(3, 5)), nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class Shared(nn.Module):
    """Reads a weight through copies of it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.aten.alias(self.table) * x + torch.ops.aten.alias(self.table.clone())


@pytest.mark.parametrize("kind", [Conv1D, Shared])
def test_a_state_dict_loads_in_the_shapes_and_names_of_the_original(kind: type[nn.Module]) -> None:
    x = torch.randn(3, 3) if kind is Conv1D else torch.randn(3, 5)
    back = onward.to_torch(onward.from_torch(kind(), x, dynamic_batch=kind is Conv1D))
    fresh = kind()
    back.load_state_dict(fresh.state_dict())
    torch.testing.assert_close(back(x), fresh(x))


def test_the_table_of_translations_is_read_once_and_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxscript import opset18 as op
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    x = torch.randn(2, 3)
    own = {torch.ops.onward_tests.by_sign.default: lambda x: op.Neg(x)}
    for _ in range(2):  # what the first one loads brings ops of its own
        onward.from_torch(Undecided(), x, translations=own, check=False)
    monkeypatch.setattr(ONNXRegistry, "from_torchlib", lambda **_: pytest.fail("it is read again"))
    assert "Sin" in {node.op_type for node in onward.from_torch(Custom(), x, check=False).ir.graph}
    with pytest.raises(UnsupportedError, match="by_sign"):
        onward.from_torch(Undecided(), x)


def test_the_dispatcher_is_asked_once_for_each_list_of_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._export import utils
    from torch.export import decomp_utils

    getattr(torch.ops, "onward_tests_a_name_that_was_looked_up")  # noqa: B009 - which makes a namespace
    wanted, ask, asked = utils._collect_all_valid_cia_ops(), utils._materialize_cpp_cia_ops, []
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", lambda: (asked.append(1), ask()))
    monkeypatch.setattr(decomp_utils, "_collect_all_valid_cia_ops", utils._collect_all_valid_cia_ops)
    with listed_once():
        assert decomp_utils._collect_all_valid_cia_ops() == wanted
    assert asked == [1]
