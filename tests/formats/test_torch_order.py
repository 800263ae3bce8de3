"""What `topk` leaves open in a module is settled as it is in ONNX models: both sides sort."""

from pathlib import Path

import pytest
import torch
from torch import nn

import onward
from onward.formats.torch_order import settled


class Best(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = torch.topk(x, 20, sorted=False)
        return values, places, x.topk(5, 1, False, False)[0]


def test_topk_sorts_inside_and_not_outside() -> None:
    x = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    program = torch.export.export(Best(), (x,)).module()
    before = Best()(x)
    for run in (Best(), program):
        with settled():
            values, places, least = run(x)
        assert torch.equal(values, torch.topk(x, 20)[0]) and torch.equal(places, torch.topk(x, 20)[1])
        assert torch.equal(least, torch.topk(x, 5, largest=False)[0])
    assert torch.equal(Best()(x)[0], before[0]) and not torch.equal(before[0], values)


@pytest.mark.filterwarnings("error::onward.errors.NotVerifiedWarning")
def test_an_open_order_that_shows_is_no_difference(tmp_path: Path) -> None:
    x = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    onward.from_torch(Best(), x)
    program = torch.export.export(Best(), (x,))
    onward.from_torch(program)
    torch.export.save(program, tmp_path / "net.pt2")
    done = onward.convert(tmp_path / "net.pt2", to="torch", out=tmp_path / "net")
    assert [verdict.status for verdict in done.verdicts] == ["verified", "verified"]
    done = onward.convert(Best(), to="onnx", out=tmp_path / "net.onnx", input=["x:float32[batch,50]"])
    assert done.verdicts[0].status == "verified"
