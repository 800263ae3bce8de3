"""How plugins are found and loaded, what becomes of their functions in generated code, and what errors say."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import weakref
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from plugin_state import plugins_restored

import onward
from onward import plugins, runners, training
from onward.backends.emit.custom_ops.copied import copied
from onward.cli import main
from onward.errors import MissingPackageError, OnwardError, RunFailure, UnsupportedError
from onward.plugins import CustomOp, find, table
from onward.plugins.check import check
from onward.plugins.skeleton import skeleton

SCALE = 3.0
"""A constant that a function below uses."""

PLUGIN = """
import numpy as np
from onward.plugins import CustomOp

op = CustomOp("{domain}::Twice", inputs="x:T", attributes={{"factor": 2.0}})
op.infer(lambda x, *, factor: x)


@op.numpy
def _(x, *, factor):
    return x * x.dtype.type(factor)


@op.torch
def _(x, *, factor):
    return x * factor


@op.vjp
def _(c, g, x, *, factor):
    return g * factor
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Any:
    """Ops and plugins of a test are unknown after it."""
    with plugins_restored():
        yield


def model(key: str, path: Path, weight: bool = False, **attributes: Any) -> Path:
    domain, _, name = key.partition("::")
    nodes = [helper.make_node(name, ["x"], ["h"], name="act", domain=domain, **attributes)]
    nodes.append(helper.make_node("MatMul" if weight else "Relu", ["h", "w"] if weight else ["h"], ["y"]))
    tensors = [helper.make_tensor_value_info(n, 1, ["n", 3]) for n in "xy"]
    weights = [onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")] if weight else []
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def written(folder: Path, domain: str) -> Path:
    path = folder / f"plugin_{domain.replace('.', '_')}.py"
    path.write_text(PLUGIN.format(domain=domain))
    return path


# Finding and loading


def test_an_installed_plugin_is_loaded_for_its_domain_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "tests.one")
    written(tmp_path, "tests.two")
    monkeypatch.syspath_prepend(tmp_path)
    points = tuple(EntryPoint(f"tests.{n}", f"plugin_tests_{n}", find.GROUP) for n in ("one", "two"))
    monkeypatch.setattr(find, "_installed", lambda: points)
    onward.load(model("tests.one::Twice", tmp_path / "m.onnx"))
    assert "plugin_tests_one" in find._LOADED and "plugin_tests_two" not in sys.modules


def test_a_broken_plugin_is_left_out_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(find, "_installed", lambda: (EntryPoint("tests.broken", "plugin_broken", find.GROUP),))
    with pytest.warns(UserWarning, match="plugin_broken is left out, since it cannot be loaded: division by zero"):
        onward.load(model("tests.broken::Twice", tmp_path / "m.onnx"))


@pytest.mark.parametrize("name", ["there_is_no_such_module", "nowhere/plugin.py", "json"])
def test_what_is_no_plugin(name: str) -> None:
    with pytest.raises(OnwardError, match=r"there is no plugin|json is no plugin"):
        plugins.load(name)


def test_a_model_names_no_plugin(tmp_path: Path) -> None:
    """A file beside the model, called as its domain, is not looked at."""
    (tmp_path / "tests_beside.py").write_text("raise SystemExit")
    onward.load(model("tests_beside::Twice", tmp_path / "m.onnx"))


def test_named_by_a_file_it_is_everywhere(tmp_path: Path) -> None:
    """The reference, ONNX Runtime here and in a process of its own, PyTorch, and the report."""
    path = model("tests.file::Twice", tmp_path / "m.onnx", factor=4.0)
    plugins.load(str(written(tmp_path, "tests.file")))
    found, x = onward.load(path), np.array([[-1, 0.5, 2]], np.float32)
    for runner in ("reference", "onnxruntime", "torch"):
        assert runners.prepare(runner, found)({"x": x})["y"].tolist() == [[0, 2, 8]]
    with_process = runners.isolated("onnxruntime", found)
    try:
        assert with_process({"x": x})["y"].tolist() == [[0, 2, 8]]
    finally:
        with_process.close()
    report = onward.verify(path, ["reference"])
    assert any(note.startswith("plugin: ") and "plugin_tests_file.py" in note for note in report.notes)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, plugin = model("tests.cli::Twice", tmp_path / "m.onnx"), written(tmp_path, "tests.cli")
    assert main(["plugins", "check", str(plugin), "--op", "Twice"]) == 0
    assert "✓ tests.cli::Twice  gradient ↔ finite differences: the same" in capsys.readouterr().out
    plugin.write_text(plugin.read_text().replace("return x * factor", "return x + factor"))
    assert main(["plugins", "check", str(plugin)]) == 1
    assert "✗ tests.cli::Twice  numpy ↔ torch: 'y' is off by" in capsys.readouterr().out
    assert main(["convert", str(path), "--to", "torch", "--out", str(tmp_path / "t"), "--plugin", str(plugin)]) == 1
    plugin.write_text(plugin.read_text().replace("return x + factor", "return x * factor"))
    assert main(["convert", str(path), "--to", "torch", "--out", str(tmp_path / "t"), "--plugin", str(plugin)]) == 0
    assert f"plugin: {plugin} (named)" in capsys.readouterr().err
    ops = (tmp_path / "t/ops.py").read_text()
    assert "def twice(x, *, factor):\n    return x * factor" in ops and "onward" not in ops
    assert main(["plugins", "list", "--plugin", str(plugin)]) == 0
    assert "tests.cli::Twice-1: numpy, torch, gradient" in capsys.readouterr().out


def test_numbers_that_nodes_have_to_give_differ() -> None:
    """Between equal limits nothing is left to compare; where all is zero, that is said."""
    op = CustomOp("tests.limits::Op", attributes={"low": float, "high": float})
    op.infer(lambda x, *, low, high: x)
    op.numpy(lambda x, *, low, high: (x * (high - low)).astype(x.dtype))
    op.vjp(lambda c, g, x, *, low, high: g * (high - low))
    assert [finding.ok for finding in check([op], gradients=True)] == [True]
    op.sample(lambda rng: (np.ones(3, np.float32), {"low": 1.0, "high": 1.0}))
    (found,) = check([op], gradients=True)
    assert found.ok is None and "all are zero on these data: let @op.sample give others" in found.said


def test_a_skeleton_is_a_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = model("com.acme::FancyGelu", tmp_path / "m.onnx", alpha=0.5, axes=[0, 1])
    assert main(["plugins", "new", "com.acme::FancyGelu", "--from", str(path)]) == 0
    text = capsys.readouterr().out
    (tmp_path / "fancy_gelu.py").write_text(text)
    (op,) = plugins.load(str(tmp_path / "fancy_gelu.py"))[0].ops
    assert op.types == {"T": ("float",)} and [one.name for one in op.attributes] == ["alpha", "axes"]
    assert main(["plugins", "new", "com.acme::Other", "--from", str(path)]) == 2
    assert "the model has no com.acme::Other; it has com.acme::FancyGelu" in capsys.readouterr().err
    assert 'CustomOp(\n    "a.b::C",\n    version=1,\n    inputs="x:T"' in skeleton("a.b::C")


# Errors


def test_an_op_that_nothing_knows(tmp_path: Path) -> None:
    path = model("com.acme::Unheard", tmp_path / "m.onnx")
    said = r"no plugin knows this op: `onward plugins new com\.acme::Unheard --from MODEL` prints one to fill in"
    with pytest.raises(UnsupportedError, match=said + r".*--fallback onnxruntime"):
        onward.to_torch(path)
    with pytest.raises(OnwardError, match=said):
        runners.prepare("onnxruntime", onward.load(path))
    with pytest.raises(UnsupportedError, match=rf"ONNX Runtime does not know com\.acme::Unheard.*{said}.*@op\.body"):
        onward.to_torch(path, fallback="onnxruntime")
    with pytest.raises(OnwardError, match=r"add @op\.vjp, @op\.body or op\.no_gradient\(\) to a plugin"):
        training.gradient(path, of="y", wrt=["x"])


def test_an_op_without_a_function_for_a_framework(tmp_path: Path) -> None:
    CustomOp("tests.half::Op").numpy(lambda x: x)
    with pytest.raises(
        UnsupportedError, match=r"torch has no rule for tests\.half::Op; its plugin says nothing of this"
    ):
        onward.to_torch(model("tests.half::Op", tmp_path / "m.onnx"))


def test_what_a_reference_raises_ends_no_process(tmp_path: Path) -> None:
    def refuse(x: Any) -> Any:
        raise ValueError("not today")

    op = CustomOp("tests.raise::Op")
    op.numpy(refuse)
    run = runners.prepare("onnxruntime", onward.load(model("tests.raise::Op", tmp_path / "m.onnx")))
    with pytest.raises(RunFailure, match="a custom op failed with ValueError: not today"):
        run({"x": np.ones((1, 3), np.float32)})
    op.numpy(lambda x: x.astype(np.float64))
    with pytest.raises(OnwardError, match="gives float64 for 'y', where the schema says float32"):
        run({"x": np.ones((1, 3), np.float32)})


def test_what_a_reference_raises_keeps_no_session_alive(tmp_path: Path) -> None:
    """One that is still there when the process ends was seen to crash it."""

    class Held:
        pass

    seen: list[weakref.ref[Held]] = []

    def refuse(x: Any) -> Any:
        held = Held()
        seen.append(weakref.ref(held))
        raise ValueError("not today")

    CustomOp("tests.held::Op").numpy(refuse)
    run = runners.prepare("onnxruntime", onward.load(model("tests.held::Op", tmp_path / "m.onnx")))
    try:
        run({"x": np.ones((1, 3), np.float32)})
    except RunFailure as error:
        assert "not today" in str(error)
    gc.collect()
    assert seen and all(one() is None for one in seen)


def test_without_onnxruntime_extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CustomOp("tests.absent::Op").numpy(lambda x: x)
    monkeypatch.setattr("onward.advice.extras.is_installed", lambda package: package != "onnxruntime_extensions")
    with pytest.raises(MissingPackageError, match=r"pip install 'onward\[extensions\]'"):
        runners.prepare("onnxruntime", onward.load(model("tests.absent::Op", tmp_path / "m.onnx")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "Op"}, "names no custom op"),
        ({"name": "a.b::Op", "inputs": "x"}, "'x' is no input or output"),
        ({"name": "a.b::Op", "inputs": "x:floaty"}, "there is no dtype 'floaty'"),
        ({"name": "a.b::Op", "attributes": {"axes": []}}, "an empty list does not tell its type"),
        ({"name": "a.b::Op", "attributes": {"axes": object}}, "is an int, float, str, bool"),
    ],
)
def test_a_schema_that_says_nothing(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CustomOp(**arguments)


# The schema


def test_the_schema_is_known_to_onnx(tmp_path: Path) -> None:
    op = CustomOp("tests.schema::Op", attributes={"n": 2})
    op.infer(lambda x, *, n: x.like(shape=(*x.shape[:-1], n), dtype="int64"))
    op = CustomOp("tests.schema::Op", attributes={"n": 2})
    op.infer(lambda x, *, n: x.like(shape=(*x.shape[:-1], n)))
    proto = onnx.load(model("tests.schema::Op", tmp_path / "m.onnx", n=5))
    inferred = onnx.shape_inference.infer_shapes(proto).graph.value_info[0].type.tensor_type
    assert [d.dim_param or d.dim_value for d in inferred.shape.dim] == ["n", 5] and inferred.elem_type == 1
    proto.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("m", 1))
    with pytest.raises(onnx.checker.ValidationError, match="Unrecognized attribute: m"):
        onnx.checker.check_model(proto)


def test_a_plugin_that_comes_late_is_known_all_the_same(tmp_path: Path) -> None:
    """In a notebook: what was asked of a domain before its plugin was loaded is asked again."""
    path = model("tests.late::Op", tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError):
        onward.to_torch(path)
    op = CustomOp("tests.late::Op", attributes={"factor": 2.0})
    op.numpy(lambda x, *, factor: x * np.float32(factor))
    op.torch(_doubled)
    assert onward.to_torch(path)(__import__("torch").ones(1, 3)).tolist() == [[2, 2, 2]]


def _doubled(x: Any, *, factor: float) -> Any:
    return x * factor


def test_no_gradient_and_versions(tmp_path: Path) -> None:
    path = model("tests.steps::Op", tmp_path / "m.onnx", weight=True)
    op = CustomOp("tests.steps::Op")
    op.numpy(np.round)
    op.infer(lambda x: x)
    op.no_gradient()
    later = CustomOp("tests.steps::Op", version=2)
    assert table.find("tests.steps::Op", 1) is op and table.find("tests.steps::Op", 7) is later
    with pytest.raises(OnwardError, match="y does not depend on x through ops that have a derivative"):
        training.gradient(path, of="y", wrt=["x"])
    found = training.gradient(path, of="y", wrt=["w"])
    x = np.array([[0.9, 2.1, 3.2]], np.float32)
    assert runners.prepare("onnxruntime", found)({"x": x})["w.grad"].tolist() == [[1] * 3, [2] * 3, [3] * 3]


# Functions in generated code


def _shifted(x: Any) -> Any:
    return np.abs(x) + SCALE


def _uses_others(x: Any) -> Any:
    """What it needs goes with it."""
    return Path, torch.relu(_shifted(x))  # noqa: F821


def test_what_a_function_needs_is_copied() -> None:
    found = copied(_uses_others, "op", "the function")
    assert sorted(found.definitions) == ["SCALE", "_shifted", "op"]
    assert found.definitions["SCALE"].source == "SCALE = 3.0"
    assert found.imports == {
        "Path": "from pathlib import Path",
        "torch": "import torch",
        "np": "import numpy as np",
    } | {"Any": found.imports["Any"]}


def _noted(function: Any) -> Any:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        return function(*args)

    return run


DECORATED = CustomOp("tests.decorated::Op")


@DECORATED.torch
@_noted
def _twice(x: Any) -> Any:
    return x * 2


table.forget(DECORATED)  # it is needed for its decorator alone


def test_decorators_stay_but_for_those_of_the_op() -> None:
    found = copied(DECORATED.sources["torch"], "op", "the function")
    assert found.definitions["op"].source == "@_noted\ndef op(x: Any) -> Any:\n    return x * 2"
    assert "_noted" in found.definitions and found.imports["functools"] == "import functools"


def test_a_closure_is_refused_by_name() -> None:
    factor = 2

    def function(x: Any) -> Any:
        return x * factor

    with pytest.raises(UnsupportedError, match="the function uses 'factor' of the function around it"):
        copied(function, "op", "the function")


def test_what_cannot_be_written_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="uses 'TABLE', a ndarray that cannot be written"):
        copied(_uses_a_table, "op", "the function")


TABLE = np.arange(3)


def _uses_a_table(x: Any) -> Any:
    return x + TABLE


def test_a_rule_writes_expressions(tmp_path: Path) -> None:
    """The second way, for idioms: the rule gets the emitter."""
    op = CustomOp("tests.rule::Op")
    op.numpy(lambda x: np.tanh(x))

    @op.rule("torch")
    def _(e: Any, x: Any) -> Any:
        from onward.backends.torch.target import torch

        return torch.tanh(x)

    onward.convert(model("tests.rule::Op", tmp_path / "m.onnx"), to="torch", out=tmp_path / "net")
    assert "F.relu(torch.tanh(x))" in (tmp_path / "net/model.py").read_text()


def test_text_runs_on_onnx_runtime_and_is_refused_elsewhere(tmp_path: Path) -> None:
    text = ir.Value(name="t", type=ir.TensorType(ir.DataType.STRING), shape=ir.Shape(["n"]))
    node = ir.Node("ai.onnx.contrib", "StringUpper", [text], num_outputs=1)
    node.outputs[0].name = "u"
    plugins.load("ai.onnx.contrib")
    opsets = {"": 20, "ai.onnx.contrib": 1}
    graph = ir.Graph([text], list(node.outputs), nodes=[node], opset_imports=opsets, name="g")
    onward.Model(ir.Model(graph, ir_version=10)).save(tmp_path / "m.onnx")
    loaded = onward.load(tmp_path / "m.onnx")
    from onward.graph.infer import infer

    infer(loaded.ir)
    found = runners.prepare("onnxruntime", loaded)({"t": np.array(["abc", "Ü"], object)})["u"]
    assert found.tolist() == ["ABC", "Ü"]
    with pytest.raises(UnsupportedError, match=r"torch has no rule for ai\.onnx\.contrib::StringUpper"):
        onward.to_torch(loaded)


def test_plugins_are_loaded_without_frameworks() -> None:
    """Those that come with Onward say in words of frameworks what they do not import."""
    program = (
        "import sys, onward.plugins; onward.plugins.load('qonnx.custom_op.general', 'ai.onnx.contrib');"
        "print([name for name in ('torch', 'tensorflow', 'jax', 'onnxruntime_extensions') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
