"""Numbers by which equal blocks differ are what each of them has; others stay in the code."""

import io
import warnings

import numpy as np
import onnx
import torch
from torch import Tensor, nn

import onward
from onward.backends.torch.convert import generate
from onward.backends.torch.load import run


class Scaled(nn.Module):
    def __init__(self, factor: float, offset: float) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.factor, self.offset = factor, offset

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x) * self.factor + self.offset) * 0.75


def converted(*factors: tuple[float, float]) -> tuple[str, nn.Module]:
    torch.manual_seed(0)
    net, x, file = nn.Sequential(*(Scaled(*pair) for pair in factors)).eval(), torch.randn(3, 4), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (x,), file, dynamo=False, do_constant_folding=False, opset_version=17)
    source = generate(onward.load(onnx.load_from_string(file.getvalue())))
    result = run(source)
    torch.testing.assert_close(result(x), net(x))
    result.load_state_dict(net.state_dict())
    return source.model, result


def test_what_differs_is_a_buffer_and_what_is_the_same_a_number() -> None:
    text, net = converted((0.5, 0.1), (0.25, 0.1), (2.0, 0.1))
    assert text.count("(nn.Module):") == 1 and "* self.scale + 0.1" in text and "* 0.75" in text
    np.testing.assert_allclose([float(block.scale) for block in net], [0.5, 0.25, 2.0])


def test_offsets_differ_too() -> None:
    text, net = converted((0.5, 0.25), (0.5, 0.5), (0.5, 0.75))
    assert "* 0.5 + self.offset" in text and text.count("(nn.Module):") == 1
    np.testing.assert_allclose([float(block.offset) for block in net], [0.25, 0.5, 0.75])


def test_a_block_of_its_own_has_its_numbers_in_the_code() -> None:
    text, _ = converted((0.5, 0.1))
    assert "self.scale" not in text and "* 0.5 + 0.1" in text
