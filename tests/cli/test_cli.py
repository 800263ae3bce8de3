"""The command line: what it writes, what it prints, and how it fails."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from bad_files import CHANGES, GRAPHS, NOT_MODELS, external
from messages import problem
from onnx import TensorProto, helper, numpy_helper
from protos import everything, small

import onward
from onward.cli import COMMANDS, main, parser
from onward.errors import OnwardError

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
Run = Callable[..., tuple[int, str, str]]


def convert(model: object, out: object, *options: str) -> list[object]:
    return ["convert", model, "--to", "torch", "--out", out, *options]


# Usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["convert", "inspect", "--version"]),
        (
            ["convert", "--help"],
            ["--to", "--out", "--trainable", "--no-verify", "exit codes: 0 done", "onward convert model.onnx"],
        ),
        (["inspect", "--help"], ["--json", "--weights", "Runs nothing", "example: onward inspect"]),
        (["--version"], ["onward 0."]),
    ],
)
def test_help(run: Run, arguments: list[str], words: list[str]) -> None:
    code, printed, errors = run(*arguments)
    assert code == 0 and not errors
    assert [word for word in words if word not in printed] == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["transmogrify"],
        ["convert", DIGITS],
        ["convert", DIGITS, "--to", "cobol", "--out", "x"],
        ["inspect"],
        ["inspect", DIGITS, "--loud"],
    ],
)
def test_wrong_usage(run: Run, arguments: list[object]) -> None:
    code, printed, errors = run(*arguments)
    assert code == 2 and not printed and errors.startswith("usage: onward")


# Convert

USE = """
import sys
sys.path.insert(0, "")
from resnet.model import load
import torch
net = load()
assert not net.training and net(torch.zeros(3, 1, 8, 8)).shape == (3, 10)
assert all(p.requires_grad for p in net.parameters()) and len(list(net.parameters())) > 10
assert [name for name in sys.modules if name.split(".")[0] in ("onward", "onnx", "onnx_ir", "onnxruntime")] == []
"""


def test_convert_writes_a_package_of_its_own(run: Run, tmp_path: Path) -> None:
    code, printed, errors = run(*convert(DIGITS, tmp_path / "resnet"))
    assert code == 0 and not printed
    assert "verified: worst error" in errors and "done:" in errors
    assert sorted(p.name for p in (tmp_path / "resnet").iterdir()) == ["model.py", "onward.json", "weights.safetensors"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_convert_writes_over_what_it_wrote(run: Run, tmp_path: Path) -> None:
    """A model without helpers replaces one with helpers: no stale ops.py is left; other files are, unmentioned."""
    onnx.save(one_node("Shrink"), tmp_path / "with_helpers.onnx")
    assert run(*convert(tmp_path / "with_helpers.onnx", tmp_path / "out", "--no-verify"))[0] == 0
    assert (tmp_path / "out/ops.py").exists()
    (tmp_path / "out/notes.txt").write_text("mine")
    code, _, errors = run(*convert(DIGITS, tmp_path / "out", "--no-verify"))
    assert code == 0 and errors.endswith("out/ (model.py, weights.safetensors, onward.json)\n")
    (tmp_path / "with_helpers.onnx").unlink()
    names = ["model.py", "notes.txt", "onward.json", "weights.safetensors"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == names
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "no scratch folder is left"


def test_what_a_user_has_edited_is_kept(run: Run, tmp_path: Path) -> None:
    """Whether Onward wrote it before or not, until it is forced; weights that were trained count as edited."""
    assert run(*convert(DIGITS, tmp_path / "out", "--no-verify"))[0] == 0
    for name in ("model.py", "weights.safetensors", "onward.json"):
        path = tmp_path / "out" / name
        written = path.read_bytes()
        path.write_bytes(b"{}")
        code, _, errors = run(*convert(DIGITS, tmp_path / "out", "--no-verify"))
        assert code == 2 and "was changed since Onward wrote it" in errors and "--force writes over it" in errors
        assert path.read_bytes() == b"{}"
        path.write_bytes(written)
    (tmp_path / "out/model.py").write_text("mine")
    with pytest.raises(OnwardError, match="force=True writes over it, another out keeps it"):
        onward.convert(DIGITS, to="torch", out=tmp_path / "out")
    assert run(*convert(DIGITS, tmp_path / "out", "--no-verify", "--force"))[0] == 0
    assert "class Model" in (tmp_path / "out/model.py").read_text()
    (tmp_path / "own").mkdir()
    (tmp_path / "own/ops.py").write_text("mine")
    assert run(*convert(DIGITS, tmp_path / "own", "--no-verify"))[0] == 2
    assert [p.name for p in (tmp_path / "own").iterdir()] == ["ops.py"]


def test_a_result_that_cannot_be_checked_has_its_own_exit_code(run: Run, tmp_path: Path) -> None:
    node = helper.make_node("RandomUniformLike", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y])), tmp_path / "random.onnx")
    code, _, errors = run(*convert(tmp_path / "random.onnx", tmp_path / "out"))
    assert code == 3 and "not verified: it draws" in errors and (tmp_path / "out/model.py").exists()
    assert run(*convert(tmp_path / "random.onnx", tmp_path / "other", "--no-verify"))[0] == 0, "as the user asked"


def test_sizes_that_only_the_user_knows(run: Run, tmp_path: Path) -> None:
    """What cannot be found out is asked for as it is typed, and then the result is verified."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1009, 97])
    shape = numpy_helper.from_array(np.array([1009, 97]), "shape")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], [shape])), tmp_path / "odd.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones(1009 * 97, np.float32))
    code, _, errors = run(*convert(tmp_path / "odd.onnx", tmp_path / "out"))
    if code == 3:
        assert "--inputs data.npz" in errors and "--dim n=16" in errors and "dims={" not in errors
    code, _, errors = run(*convert(tmp_path / "odd.onnx", tmp_path / "out", "--inputs", str(tmp_path / "data.npz")))
    assert code == 0 and "over 1 set of inputs" in errors


def test_no_verify(run: Run, tmp_path: Path) -> None:
    code, _, errors = run(*convert(DIGITS, tmp_path / "out", "--no-verify"))
    assert code == 0 and "verified" not in errors


def test_without_a_place_the_result_has_the_name_of_the_model(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["convert", DIGITS, "--to", "torch", "--no-verify"]
    assert run(*command)[0] == 0 and (tmp_path / "digits/model.py").exists()
    code, _, errors = run(*command)
    assert code == 2 and "digits exists already; give --out" in errors


def test_trainable(run: Run, tmp_path: Path) -> None:
    options = ["--trainable", "head.*", "--trainable", "layer2.1.*", "--no-verify"]
    assert run(*convert(DIGITS, tmp_path / "out", *options))[0] == 0
    text = (tmp_path / "out/model.py").read_text()
    frozen = text[text.index("for name in") : text.index("requires_grad = False")]
    assert "layer1.0.conv1.weight" in frozen and "head" not in frozen and "layer2.1" not in frozen
    code, _, errors = run(*convert(DIGITS, tmp_path / "other", "--trainable", "tail.*"))
    assert code == 2 and "no weight is called 'tail.*'" in errors
    assert not (tmp_path / "other").exists()


def test_output_folder_is_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    code, _, errors = run(*convert(DIGITS, tmp_path / "out"))
    assert code == 2 and "is a file; --out names a folder" in errors
    code, _, errors = run(*convert(DIGITS, tmp_path / "out/inner"))
    assert code == 2 and "is a file; --out names a folder" in errors and errors.count("\n") == 1
    assert (tmp_path / "out").read_text() == "mine"


def test_output_folder_cannot_be_written(run: Run, tmp_path: Path) -> None:
    code, _, errors = run(*convert(DIGITS, "/proc/onward/out"))
    assert code == 2 and "cannot be written: No such file" in errors


def test_a_wrong_result_is_not_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.backends.torch.target import TARGET, F, torch

    monkeypatch.setitem(TARGET.rules._user, "Relu", lambda e, x: F.relu(x) + torch.full((), 1e-2))
    code, _, errors = run(*convert(DIGITS, tmp_path / "out"))
    assert code == 1 and "differs from onnxruntime" in problem(errors)
    assert list(tmp_path.iterdir()) == []
    code, _, errors = run(*convert(DIGITS, tmp_path / "out", "--keep"))
    assert code == 4 and "differs from onnxruntime" in errors and "kept as asked" in errors
    assert (tmp_path / "out/model.py").exists()


def test_what_onnx_runtime_cannot_run_is_verified_on_the_reference(run: Run, tmp_path: Path) -> None:
    """Such as the newest opset."""
    proto = one_node("Relu")
    proto.opset_import[0].version = onnx.defs.onnx_opset_version()
    proto.ir_version = onnx.IR_VERSION
    onnx.save(proto, tmp_path / "m.onnx")
    code, _, errors = run(*convert(tmp_path / "m.onnx", tmp_path / "out"))
    assert code == 0 and "verified: " in errors and "against reference" in errors
    code, _, errors = run(*convert(tmp_path / "m.onnx", tmp_path / "out", "--verify-on", "onnxruntime"))
    assert code == 3 and "not verified: onnxruntime: " in errors
    for name in ("report.json", "report.html"):
        more = ("--verify-on", "onnxruntime", "--report", tmp_path / name)
        assert run(*convert(tmp_path / "m.onnx", tmp_path / "out", *map(str, more)))[0] == 3
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["status"] == "failed" and found["unchecked"].startswith("onnxruntime: ")
    page = (tmp_path / "report.html").read_text()
    assert "Not verified" in page and "nothing was compared: onnxruntime: " in page
    code, _, errors = run(*convert(tmp_path / "m.onnx", tmp_path / "out", "--verify-on", "abacus"))
    assert code == 2 and "there is no runner 'abacus'" in errors


# Bad input


def changed(name: str) -> onnx.ModelProto:
    proto = small()
    CHANGES[name][0](proto)
    return proto


def refused(run: Run, path: Path, problem: str) -> None:
    """Both commands say what is wrong in one line, soon, and write nothing."""
    before = sorted(path.parent.rglob("*"))
    for arguments in (["inspect", path], ["inspect", path, "--json"], convert(path, path.parent / "out")):
        start = time.process_time()
        code, printed, errors = run(*arguments)
        assert time.process_time() - start < 5
        assert code == 2 and not printed
        assert errors.startswith("onward: ") and errors.count("\n") == 1 and len(errors) < 1100
        assert problem in errors and str(path) in errors
    assert sorted(path.parent.rglob("*")) == before


@pytest.mark.parametrize("name", NOT_MODELS)
def test_not_a_model(run: Run, name: str, tmp_path: Path) -> None:
    data, problem = NOT_MODELS[name]
    (tmp_path / "m.onnx").write_bytes(data)
    refused(run, tmp_path / "m.onnx", problem)


@pytest.mark.parametrize("name", [*GRAPHS, *CHANGES])
def test_bad_model(run: Run, name: str, tmp_path: Path) -> None:
    proto, problem = GRAPHS[name] if name in GRAPHS else (changed(name), CHANGES[name][1])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    refused(run, tmp_path / "m.onnx", problem)


def test_no_such_file(run: Run, tmp_path: Path) -> None:
    refused(run, tmp_path / "m.onnx", "does not exist")


@pytest.mark.parametrize(
    ("location", "problem"),
    [("missing.bin", "No such file"), ("../secret.bin", "outside"), ("/etc/passwd", "outside")],
)
def test_bad_external_data(run: Run, location: str, problem: str, tmp_path: Path) -> None:
    refused(run, external(tmp_path, location), problem)


def one_node(op: str, domain: str = "", **attributes: Any) -> onnx.ModelProto:
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("x", "y")]
    node = helper.make_node(op, ["x"], ["y"], name="the_node", domain=domain, **attributes)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(helper.make_graph([node], "g", *ends), opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (one_node("Mystery"), ["Mystery", "the_node"]),
        (one_node("Mystery", "unknown.example"), ["unknown.example", "Mystery", "the_node"]),
        (one_node("Relu", surprise=1), ["Relu", "the_node", "surprise"]),
        (one_node("Conv"), ["Conv", "the_node"]),
        (one_node("\x1b[31mRed\n"), ["Red", "the_node"]),
    ],
)
def test_what_cannot_be_converted_is_named(run: Run, model: onnx.ModelProto, words: list[str], tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    code, printed, errors = run(*convert(tmp_path / "m.onnx", tmp_path / "out"))
    said = problem(errors)
    assert code == 2 and not printed and said.isprintable()
    assert [word for word in words if word not in said] == []
    assert "step 2 of 4" in said
    assert not (tmp_path / "out").exists()


def test_traceback_on_request(tmp_path: Path) -> None:
    from onward import OnwardError

    with pytest.raises(OnwardError):
        main(["--traceback", "inspect", str(tmp_path / "m.onnx")])


# Inspect


def test_inspect_shows_a_model(run: Run) -> None:
    code, printed, errors = run("inspect", DIGITS)
    assert code == 0 and not errors
    for words in ("digits.onnx", "ai.onnx 20", "pytorch", "image", "batch × 1 × 8 × 8", "logits", "Conv", "exact"):
        assert words in printed
    assert "torch: every op is supported" in printed and "stem.0.weight" not in printed
    assert "stem.0.weight" in run("inspect", DIGITS, "--weights")[1]


def inspected(run: Run, path: Path, *options: str) -> dict[str, Any]:
    code, printed, errors = run("inspect", path, "--json", *options)
    assert code == 0 and not errors
    found: dict[str, Any] = json.loads(printed)
    return found


KEYS = [
    "format",
    "file", "graph", "doc", "ir_version", "opsets", "producer", "domain", "model_version", "metadata", "size",
    "data_files", "parameters", "inputs", "outputs", "ops", "functions", "plugins", "training", "data_processing",
    "backends",
]  # fmt: skip


def test_inspect_as_json(run: Run) -> None:
    found = inspected(run, DIGITS)
    page = (ROOT / "docs/reference/inspect.md").read_text()
    assert list(found) == KEYS and [key for key in [*KEYS, "weights"] if f"`{key}`" not in page] == []
    assert found["inputs"] == [
        {"name": "image", "type": "tensor(float)", "dtype": "float", "shape": ["batch", 1, 8, 8]}
    ]
    assert found["opsets"] == {"ai.onnx": 20} and found["size"]["file"] == DIGITS.stat().st_size
    proto = onnx.load(DIGITS)
    counted = sum(np.prod(w.dims, dtype=int) for w in proto.graph.initializer)
    constants = [n for n in proto.graph.node if n.op_type == "Constant"]
    assert counted <= found["parameters"] <= counted + 10 * len(constants)
    counts = {row["op"]: row["count"] for row in found["ops"]}
    assert counts["Conv"] == sum(n.op_type == "Conv" for n in proto.graph.node)
    assert found["backends"] == {
        name: {"supported": True, "unsupported": []} for name in ("jax", "matlab", "tensorflow", "torch")
    }
    weights = {w["name"]: w for w in inspected(run, DIGITS, "--weights")["weights"]}
    assert weights["head.weight"] == {"name": "head.weight", "dtype": "float", "shape": [10, 32], "bytes": 1280}


def test_inspect_takes_models_of_other_frameworks(run: Run, tmp_path: Path) -> None:
    """As the ONNX model that each becomes; nothing in a file runs."""
    lightgbm = pytest.importorskip("lightgbm")
    rows = np.random.default_rng(0).normal(size=(50, 3))
    booster = lightgbm.train({"verbose": -1, "objective": "binary"}, lightgbm.Dataset(rows, rows[:, 0] > 0), 2)
    booster.save_model(tmp_path / "trees.txt")
    found = inspected(run, tmp_path / "trees.txt")
    assert found["format"] == "LightGBM model" and found["size"]["file"] == (tmp_path / "trees.txt").stat().st_size
    assert found["inputs"][0]["shape"] == ["batch", 3]
    assert "LightGBM model" in run("inspect", tmp_path / "trees.txt")[1]
    assert inspected(run, DIGITS)["format"] == "ONNX"
    (tmp_path / "trees.pkl").write_bytes(pickle.dumps(print))
    code, _, errors = run("inspect", tmp_path / "trees.pkl")
    assert code == 2 and "--trust" in errors


def test_inspect_a_model_with_everything(run: Run, tmp_path: Path) -> None:
    """Functions, subgraphs, sequences, maps, training info, metadata."""
    proto = everything()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    found = inspected(run, tmp_path / "m.onnx")
    assert found["training"] == len(proto.training_info) > 0
    assert found["functions"] and found["metadata"]
    assert run("inspect", tmp_path / "m.onnx", "--weights")[0] == 0


def test_inspect_types_and_external_data(run: Run, tmp_path: Path) -> None:
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", None, 3])
    types = {
        "s": helper.make_sequence_type_proto(number),
        "o": helper.make_optional_type_proto(helper.make_sequence_type_proto(number)),
        "m": helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.STRING, None)),
        "u": onnx.TypeProto(),
        "r": helper.make_tensor_type_proto(TensorProto.BFLOAT16, None),
    }
    inputs = [helper.make_value_info(name, type_) for name, type_ in types.items()]
    weight = numpy_helper.from_array(np.ones((100, 100), np.float32), "w")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [100, 100])
    graph = helper.make_graph([helper.make_node("Neg", ["w"], ["y"])], "g", inputs, [output], [weight])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin")
    found = inspected(run, tmp_path / "m.onnx")
    assert {v["name"]: (v["type"], v["shape"]) for v in found["inputs"]} == {
        "s": ("sequence(tensor(float))", ["n", None, 3]),
        "o": ("optional(sequence(tensor(float)))", ["n", None, 3]),
        "m": ("map(int64, tensor(string))", None),
        "u": ("unknown", None),
        "r": ("tensor(bfloat16)", None),
    }
    assert found["size"]["external"] == found["size"]["weights"] == 40_000 and found["data_files"] == ["w.bin"]
    assert found["parameters"] == 10_000 and found["size"]["file"] == (tmp_path / "m.onnx").stat().st_size
    assert "n × ? × 3" in run("inspect", tmp_path / "m.onnx")[1]


def test_inspect_says_what_is_not_supported(run: Run, tmp_path: Path) -> None:
    onnx.save(one_node("Mystery", "unknown.example"), tmp_path / "m.onnx")
    found = inspected(run, tmp_path / "m.onnx")
    assert found["backends"]["torch"] == {"supported": False, "unsupported": ["unknown.example::Mystery"]}
    assert found["ops"][0]["support"]["torch"] == {"status": "unsupported", "why": "no rule"}
    assert "torch: no rule for unknown.example::Mystery" in run("inspect", tmp_path / "m.onnx")[1]


def test_names_cannot_break_the_table(run: Run, tmp_path: Path) -> None:
    proto = one_node("Relu")
    for name in ("\x1b[31mred", "[bold]bold[/]", "a\nb", "x" * 10_000, "[/]"):
        proto.graph.input[0].name = proto.graph.node[0].input[0] = proto.graph.name = name
        onnx.save(proto, tmp_path / "m.onnx")
        code, printed, _ = run("inspect", tmp_path / "m.onnx")
        assert code == 0 and "\x1b" not in printed and len(printed) < 10_000
        assert inspected(run, tmp_path / "m.onnx")["inputs"][0]["name"] == name


def test_nothing_more_is_printed_to_a_closed_pipe() -> None:
    command = f"{sys.executable} -m onward inspect {DIGITS} --json --weights | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "{\n" and not done.stderr


def test_a_command_is_the_same_without_the_others(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        code, alone, _ = run(name, "--help")
        with pytest.raises(SystemExit):
            parser().parse_args([name, "--help"])
        assert (code, alone) == (0, capsys.readouterr().out)
    code, _, problem = run("nonsense")
    assert code == 2 and all(name in problem for name in COMMANDS)
