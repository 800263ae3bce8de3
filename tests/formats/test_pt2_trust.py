"""Without trust nothing in a .pt2 file is executed, and every program that PyTorch writes is opened all the same."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onward.cli import main
from onward.errors import UntrustedError
from onward.formats.pt2 import open_pt2, read_program
from onward.formats.pt2.expressions import NotASize, checked
from onward.gate import trusting

torch = pytest.importorskip("torch")
MARK = "executed"
"""What an attack makes, in the current folder."""
CODE = f"__import__('pathlib').Path('{MARK}').touch()"
MODEL = "models/model.json"

INPUTS = {"x": np.ones((2, 4), np.float32), "target": np.ones((2, 1), np.float32)}
Parts = dict[str, bytes]


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.ModuleDict({"a-b": torch.nn.Linear(4, 3)})
        self.tied = self.inner["a-b"].weight
        self.register_buffer("scale", torch.ones(3))
        self.offset = torch.ones(3)

    def forward(self, x: Any, target: Any) -> Any:
        y = self.inner["a-b"](x) * self.scale + self.offset + self.tied.sum() * target
        return torch.cond(y.sum() > 3, lambda y: y * 2, lambda y: y + 1, (y,)), y.reshape(-1)


@pytest.fixture(scope="module")
def program() -> Any:
    batch = {0: torch.export.Dim("batch")}
    return torch.export.export(Net(), (torch.randn(5, 4), torch.ones(5, 1)), dynamic_shapes=(batch, batch))


@pytest.fixture(scope="module")
def parts(program: Any) -> Parts:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def written(parts: Parts, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(f"archive/{name}", content)
    return path


def changed(parts: Parts, change: Callable[[Any], None]) -> Parts:
    program = json.loads(parts[MODEL])
    change(program)
    return {**parts, MODEL: json.dumps(program).encode()}


def fields(part: Any, key: str) -> Iterator[dict[str, Any]]:
    """Every part of a program that has a field of that name."""
    if isinstance(part, dict):
        if key in part:
            yield part
        for value in part.values():
            yield from fields(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from fields(value, key)


def replaced(key: str, by: str, text: str = "") -> Callable[[Parts], Parts]:
    """The program with another text in the first field of that name, or in all that have the text."""

    def change(program: Any) -> None:
        found = [part for part in fields(program, key) if not text or part[key] == text]
        for part in found[: None if text else 1]:
            part[key] = by

    return lambda parts: changed(parts, change)


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path(MARK),)


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def pickled(value: Any) -> bytes:
    return pickle.dumps(value)


def payload(**change: Any) -> Callable[[Parts], Parts]:
    def attack(parts: Parts) -> Parts:
        name = "data/constants/model_constants_config.json"
        config = json.loads(parts[name])
        for entry in config["config"].values():
            entry |= change
        stored = {f"data/constants/{change.get('path_name', 'tensor_0')}": saved(Evil())}
        stored |= {f"data/constants/{change['path_name']}": pickled(Evil())} if "path_name" in change else {}
        return {**parts, **stored, name: json.dumps(config).encode()}

    return attack


ENUM = json.dumps({"__enum__": 1, "fqn": "antigravity:x", "name": "y"})
FACTORY = {"default_factory_module": "antigravity", "default_factory_name": "x", "dict_context": []}
ADD = "torch.ops.aten.add.Tensor"


def nesting(kind: str, context: Any) -> str:
    leaf = {"type": None, "context": None, "children_spec": []}
    return json.dumps([1, {"type": kind, "context": context, "children_spec": [leaf, leaf]}])


def called(target: str) -> Callable[[Parts], Parts]:
    return replaced("target", target, ADD)


EVALUATED, CALLS = "is evaluated as Python code", "which is none of the ops that only compute"
ATTACKS: dict[str, tuple[Callable[[Parts], Parts], str]] = {
    "a size that is code": (replaced("expr_str", CODE), EVALUATED),
    "code in a symbol": (replaced("expr_str", f"Symbol(str({CODE}))"), EVALUATED),
    "an attribute of a size": (replaced("expr_str", "Integer(1).__class__"), EVALUATED),
    "a size that never ends": (replaced("expr_str", "9**9**9**9**9"), EVALUATED),
    "a shift that never ends": (replaced("expr_str", "LShift(1, 99999999999999)"), EVALUATED),
    "a function of Python": (called("torch.hub.os.system"), CALLS),
    "an operator that calls": (called("_operator.methodcaller"), CALLS),
    "an op that makes files": (called("torch.ops.aten.from_file.default"), CALLS),
    "an op of TorchScript": (called("torch.ops.aten.save.default"), CALLS),
    "a kernel": (called("torch.ops.higher_order.triton_kernel_wrapper_mutation"), CALLS),
    "an input's name": (replaced("name", f"x={CODE}", "x"), "in it is code"),
    "a weight's name": (replaced("buffer_name", f'scale"), {CODE}, ("'), "in it is code"),
    "a nesting that imports": (replaced("in_spec", nesting("builtins.tuple", ENUM)), "in it is code"),
    "a nesting with a factory": (replaced("out_spec", nesting("collections.defaultdict", FACTORY)), "defaultdict"),
    "an argument's name": (replaced("forward_arg_names", f"x={CODE}"), "in it is code"),
    "compiled code": (lambda parts: {**parts, "data/aotinductor/model/x.so": b""}, "x.so in it is compiled code"),
    "a pickle in a folder": (payload(path_name="opaque_obj_0/x", use_pickle=True), "is a pickled object"),
    "a pickled object": (payload(path_name="custom_obj_0", use_pickle=True), "is a pickled object"),
    "a pickled tensor": (payload(use_pickle=True), "in it is pickled"),
    "a tensor elsewhere": (payload(path_name="x/tensor_0"), "is no part of a program"),
    "something else": (lambda parts: {**parts, "delegates/x": b""}, "'delegates/x' in it is no part of a program"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_would_be_executed_is_refused_by_name(
    name: str, parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    attack, message = ATTACKS[name]
    path = written(attack(parts), tmp_path / "model.onnx")
    with pytest.raises(UntrustedError, match="--trust opens it") as caught:
        read_program(path)
    assert message in str(caught.value)
    assert main(["convert", str(path), "--to", "onnx", "--out", "out.onnx"]) == 2
    assert message in capsys.readouterr().err
    assert not Path(MARK).exists()


def test_conditions_on_inputs_are_code_and_left_out(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def add(program: Any) -> None:
        program["guards_code"] = [f"{CODE} or True"]

    path = written(changed(parts, add), tmp_path / "net.pt2")
    opened = open_pt2(path)
    opened.run(INPUTS)
    assert not Path(MARK).exists()
    with trusting(True):
        open_pt2(path).run(INPUTS)
    assert Path(MARK).exists()  # as PyTorch does


def test_a_trusted_program_is_opened_as_pytorch_does(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(replaced("expr_str", f"{CODE} or Symbol('s77')")(parts), tmp_path / "net.pt2")
    assert main(["convert", str(path), "--to", "onnx", "--out", "out.onnx", "--trust"]) in (0, 2)
    assert Path(MARK).exists()


def test_what_pytorch_writes_is_opened(program: Any, parts: Parts, tmp_path: Path) -> None:
    path = written(parts, tmp_path / "net.pt2")
    read = read_program(path)
    x, target = torch.randn(3, 4), torch.randn(3, 1)
    for found, wanted in zip(read.module()(x, target), program.module()(x, target), strict=True):
        torch.testing.assert_close(found, wanted)
    assert read.state_dict.keys() == program.state_dict.keys()
    assert read.state_dict["tied"].data_ptr() == read.state_dict["inner.a-b.weight"].data_ptr()
    assert str(read.graph_signature) == str(program.graph_signature)
    assert len(read.range_constraints) == len(program.range_constraints)


class Loops(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops import scan, while_loop

        _, sums = scan(lambda total, row: (total + row, total * 1), torch.zeros(4), x, dim=0)
        (doubled,) = while_loop(lambda x: x.sum() < 100, lambda x: (x * 2,), (x.abs() + 1,))
        rows = (x.sum(1) > 0).nonzero()
        return sums, doubled, rows, torch.nn.functional.interpolate(x[None, None], scale_factor=0.5)


def test_loops_and_sizes_that_are_computed(tmp_path: Path) -> None:
    dims = {"x": {0: torch.export.Dim("batch", min=4, max=64)}}
    program = torch.export.export(Loops(), (torch.randn(6, 4),), dynamic_shapes=dims)
    torch.export.save(program, tmp_path / "net.pt2")
    x = torch.randn(8, 4)
    for found, wanted in zip(read_program(tmp_path / "net.pt2").module()(x), program.module()(x), strict=True):
        torch.testing.assert_close(found, wanted)


def test_files_of_older_versions(program: Any, tmp_path: Path) -> None:
    from torch._export.serde.serialize import serialize

    whole = serialize(program)
    with zipfile.ZipFile(tmp_path / "net.pt2", "w") as archive:
        archive.writestr("version", "8.0")
        archive.writestr("serialized_exported_program.json", whole.exported_program)
        archive.writestr("serialized_state_dict.pt", whole.state_dict)
        archive.writestr("serialized_constants.pt", whole.constants)
        archive.writestr("serialized_example_inputs.pt", saved(Evil()))
    x, target = torch.randn(3, 4), torch.randn(3, 1)
    torch.testing.assert_close(read_program(tmp_path / "net.pt2").module()(x, target), program.module()(x, target))
    assert not Path(MARK).exists()


@pytest.mark.parametrize(
    "text",
    [
        "s0 + 1",
        "2*s0 - (s1//2) % 3",
        "Max(1, s0)",
        "Add(Symbol('s77', positive=True, integer=True), Integer(-1))",
        "Pow(Symbol('s0', integer=True), Integer(2))",
        "FloorDiv(Symbol('u0', integer=True), Integer(2))",
        "GreaterThan(Symbol('u0', integer=True), Integer(2))",
        "Mul(Float('0.5', precision=53), ToFloat(Symbol('s0')))",
        "(s0 > 2) & (s1 < 3)",
    ],
)
def test_sizes(text: str) -> None:
    import ast

    assert ast.dump(ast.parse(checked(text))) == ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "exec('1')",
        "s0.x",
        "s0[0]",
        "lambda: 1",
        "[s0 for s0 in s1]",
        "'s0'",
        "Symbol('s0', integer=exec('1'))",
        "Symbol('exec')",
        "E1 if s0 else 2",
        "__import__",
        "S",
        "((2**64)**64)**64",
        "2**(64*64*64*64*64)",
        "1" * 400,
        "(" * 5000,
        "-" * 15000 + "1",
        17,
        None,
    ],
)
def test_what_is_no_size(text: Any) -> None:
    with pytest.raises(NotASize):
        checked(text)
