"""What modules are called with, and what it is called in the ONNX file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import onward
from onward.errors import OnwardError, UnsupportedError


@dataclass
class State:
    h: Tensor
    c: Tensor


torch.export.register_dataclass(State, serialized_type_name="onward_tests.State")


class Nested(nn.Module):
    def forward(
        self, x: Tensor, pair: tuple[Tensor, Tensor], parts: dict[str, Tensor], *, state: State, twice: bool = False
    ) -> dict[str, Any]:
        total = x + pair[0] * pair[1] + parts["left"] + (2 if twice else 1) * state.h
        return {"total": total, "rest": [state.c - parts["right"], total.sum(-1)]}


def ran(model: onward.Model, inputs: dict[str, Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {k: v.numpy() for k, v in inputs.items()}), strict=True))


def given(rows: int) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Tensor]]:
    """Arguments, keyword arguments, and the same by the names of ONNX inputs."""
    names = ["x", "pair_0", "pair_1", "parts_left", "parts_right", "state_h", "state_c"]
    flat = {name: torch.randn(rows, 4) for name in names}
    args = (flat["x"], (flat["pair_0"], flat["pair_1"]), {"left": flat["parts_left"], "right": flat["parts_right"]})
    return args, {"twice": True, "state": State(flat["state_h"], flat["state_c"])}, flat


def test_nested_and_keyword_inputs_and_named_outputs() -> None:
    args, kwargs, flat = given(3)
    model = onward.from_torch(Nested(), args, kwargs=kwargs)
    assert [value.name for value in model.ir.graph.inputs] == list(flat)
    args, kwargs, flat = given(5)
    found, wanted = ran(model, flat), Nested()(*args, **kwargs)
    assert list(found) == ["total", "rest_0", "rest_1"]
    for name, expected in zip(found, [wanted["total"], *wanted["rest"]], strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)


class Grid(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([x, x], 1) * mask.unsqueeze(-1)


def shapes(model: onward.Model) -> dict[str, list[Any]]:
    values = (*model.ir.graph.inputs, *model.ir.graph.outputs)
    return {str(v.name): [d if isinstance(d, int) else d.value for d in v.shape or ()] for v in values}


def test_open_dimensions_have_names() -> None:
    args = (torch.randn(2, 3, 4), torch.randn(2, 6))
    dynamic = {"x": {0: "batch", 1: "time"}, "mask": {0: "batch", 1: "twice"}}
    model = onward.from_torch(Grid(), args, dynamic=dynamic, output_names=["y"])
    found = shapes(model)
    assert found["x"] == ["batch", "time", 4]
    assert found["y"] == ["batch", "twice", 4]
    x, mask = torch.randn(5, 7, 4), torch.randn(5, 14)
    np.testing.assert_allclose(ran(model, {"x": x, "mask": mask})["y"], Grid()(x, mask), rtol=1e-6)


def test_only_what_is_named_is_open() -> None:
    model = onward.from_torch(nn.Linear(4, 2), torch.randn(3, 4), dynamic={}, input_names=["x"])
    assert shapes(model)["x"] == [3, 4]


def test_a_batch_of_one_is_an_example_as_well() -> None:
    model = onward.from_torch(nn.Linear(4, 2), torch.randn(1, 4))
    assert shapes(model)["input"] == ["batch", 4]


class Fixed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(3, 4) @ torch.ones(4, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dynamic": {"y": {0: "batch"}}}, "there is no input 'y'; there are x"),
        ({"dynamic": {"x": {2: "batch"}}}, "'x' has 2 axes, and no axis 2"),
        ({"dynamic": {"x": {0: "batch"}}}, "axis 0 of 'x' is always 3"),
        ({"input_names": ["a", "b"]}, "there are 1 inputs, but 2 names"),
        ({"kwargs": {"z": torch.ones(2)}}, "the module cannot be called with these inputs"),
    ],
    ids=["no such input", "no such axis", "not open", "names", "not called so"],
)
def test_bad_inputs(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OnwardError, match=words):
        onward.from_torch(Fixed(), torch.randn(3, 4), **options)


def test_programs_and_their_files(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval()
    dims = ({0: torch.export.Dim("rows")},)
    program = torch.export.export(net, (torch.randn(2, 4),), dynamic_shapes=dims)
    torch.export.save(program, tmp_path / "net.pt2")
    x = torch.randn(7, 4)
    for source in (program, tmp_path / "net.pt2", str(tmp_path / "net.pt2")):
        model = onward.from_torch(source, dynamic={"input": {0: "batch"}}, output_names=["y"])
        assert shapes(model)["input"] == ["batch", 4]
        assert set(model.ir.graph.initializers) == {"0.weight", "0.bias"}
        np.testing.assert_allclose(ran(model, {"input": x})["y"], net(x).detach(), rtol=1e-5, atol=1e-6)
    assert shapes(onward.from_torch(program))["input"] == ["input_0", 4]
    with pytest.raises(OnwardError, match="an exported program has its inputs already"):
        onward.from_torch(program, x)
    (tmp_path / "text.pt2").write_text("no program")
    with pytest.raises(OnwardError, match=r"`torch\.export\.save` did not write this file"):
        onward.from_torch(tmp_path / "text.pt2")


def test_translations_of_own_ops() -> None:
    onnxscript = pytest.importorskip("onnxscript")
    library = torch.library.Library("onward_tests", "DEF")
    library.define("halved(Tensor x) -> Tensor")
    library.impl("halved", lambda x: torch.from_numpy(x.numpy() / 2), "CPU")  # which cannot be traced
    library.impl("halved", lambda x: torch.empty_like(x), "Meta")

    class Halved(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ops.onward_tests.halved(x) + 1

    x = torch.randn(2, 3)
    with pytest.raises(UnsupportedError, match=r"there is no translation of onward_tests\.halved to ONNX"):
        onward.from_torch(Halved(), x)
    op = onnxscript.opset18

    def halved(x: Any) -> Any:
        return op.Div(x, op.Constant(value_float=2.0))

    model = onward.from_torch(Halved(), x, translations={torch.ops.onward_tests.halved.default: halved})
    (found,) = ran(model, {"x": x}).values()
    np.testing.assert_allclose(found, Halved()(x), rtol=1e-6)
