"""Generated source passes a linter and imports PyTorch and its company only; names in a file never become code."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from onward.backends.emit.names import MODULE_ATTRIBUTES, path_of
from onward.backends.torch.convert import Source, generate, write_package
from onward.backends.torch.load import run as execute
from onward.backends.torch.values import to_framework, to_numpy
from onward.errors import UnsupportedError
from onward.model import load
from onward.scoreboard.suite import cases, prepare

onnxruntime.set_default_logger_severity(4)
ROOT = Path(__file__).parents[3]
ALLOWED = {"torch", "numpy", "safetensors", "PIL", *sys.stdlib_module_names} - {"os", "sys", "subprocess", "pickle"}
FORBIDDEN = {"os", "sys", "eval", "exec", "compile", "open", "globals", "__import__", "__builtins__"}
FLOAT = TensorProto.FLOAT


def inspect_source(source: Source) -> None:
    """Nothing is in the text of a package because a file wanted it to be there."""
    for text in filter(None, (source.model, source.ops)):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= ALLOWED
            elif isinstance(node, ast.ImportFrom):
                assert (node.level, node.module) == (1, "ops") or (node.module or "").partition(".")[0] in ALLOWED
    for node in ast.walk(ast.parse(source.model)):
        match node:
            case ast.Name(id=name) | ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                assert name not in FORBIDDEN and len(name) < 150
            case ast.Attribute(attr=name):
                assert (not name.startswith("__") or name == "__init__") and len(name) < 150
    assert set(source.model) <= {"…", *map(chr, range(128))} and len(source.model) < 100_000


def lint(folder: Path) -> None:
    """Ruff with its own default rules, on every package below `folder` at once."""
    assert len(list(folder.glob("*/model.py"))) > 5
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--output-format=concise",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


# All sorts of models


def sample() -> dict[str, onnx.ModelProto]:
    """For each op of ONNX's suite, the first case that has it."""
    first: dict[tuple[str, str], str] = {}
    found = cases()
    for name, case in found.items():
        for node in case.model.graph.node if case.model is not None else ():
            first.setdefault((node.domain, node.op_type), name)
    return {name: found[name].model for name in sorted(set(first.values()))}


NESTED = """
<ir_version: 9, opset_import: ["": 17]>
nested (float[n, 2] x, int64 times, bool go_on, bool flag) => (float[n, 2] y, float[k, n, 2] all) {
    y, all = Loop <body = step (int64 i, bool go, float[n, 2] state) => (bool go2, float[n, 2] next, float[n, 2] out) {
        go2 = Identity (go)
        next = If (flag) <
            then_branch = up () => (float[n, 2] a) {
                b = Cast <to = 1> (i)
                a = Add (state, b)
            },
            else_branch = down () => (float[n, 2] c) { c = Neg (state) }
        >
        out = Identity (next)
    }> (times, go_on, x)
}
"""


def test_every_op_gives_clean_source(tmp_path: Path) -> None:
    models = sample()
    assert len(models) > 150
    models |= {"nested": onnx.parser.parse_model(NESTED), "digits": onnx.load(ROOT / "examples/digits/digits.onnx")}
    for name, model in models.items():
        try:
            source = generate(load(model))
        except UnsupportedError:
            continue
        inspect_source(source)
        write_package(source, tmp_path / name)
    lint(tmp_path)


# Names

NAMES = [
    '"); import os #', '"""', "'''; import os", "a\nimport os\n", "__import__('os')", "os.system('x')", "\\", "\\\n",
    "{x}", "%s", "class", "None", "lambda", "self", "torch", "nn", "F", "np", "Tensor", "Any", "Model", "load", "fill",
    "ops", "len", "match", "print", "_", "__", "__init__", "__class__", "_modules", "_private", "forward", "training",
    "weight", "parameters", "to", "type", "T_destination", "load_state_dict", "dump_patches", "call_super_init",
    "tie_weights", "float", "compile", "name", "größe", "日本", "𝐱", "\u202e", "\x7f", "a.b.c", "a/b/c", "0",
    "0.weight", "007", "9" * 5000, "1e5", ".", "..", "/", "-", " ", "x" * 10_000, "x." * 5_000, "constant", "conv",
]  # fmt: skip


def values(name: str, dtype: int, shape: list[Any] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


USUAL = {
    "image": "image", "index": "index", "scores": "scores", "labels": "labels", "kernel": "conv.weight",
    "bias": "conv.bias", "scale": "scale", "table": "table", "graph": "net", "batch": "batch", "doc": "doc",
    "conv": "conv", "add": "add", "branch": "branch", "inner": "inner", "scope": "block", "class": "Block",
    "function": "Twice", "domain": "local",
}  # fmt: skip


def named(**names: str) -> onnx.ModelProto:
    """A model that has everything that can have a name, with the given names in some of these places."""
    n = USUAL | names
    rng = np.random.default_rng(0)
    shapes = {"kernel": (4, 3, 3, 3), "bias": (4,), "scale": (4, 1, 1), "table": (10, 4)}
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n[w]) for w, s in shapes.items()]
    numbers = {"first": np.array([0]), "rest": np.array([4, -1]), "nil": np.array(0, np.float32)}
    weights += [numpy_helper.from_array(array, key) for key, array in numbers.items()]
    then = [helper.make_node("Mul", ["sum", n["scale"]], [n["inner"]], name="then/mul")]
    other = [helper.make_node("Neg", ["sum"], ["negative"])]
    node = helper.make_node
    nodes = [
        node("Conv", [n["image"], n["kernel"], n["bias"]], ["c"], name=n["conv"], pads=[1] * 4, doc_string=n["doc"]),
        node("Add", ["c", n["scale"]], ["sum"], name=n["add"], doc_string=n["doc"]),
        node("ReduceSum", ["sum"], ["total"], keepdims=0),
        node("Greater", ["total", "nil"], ["positive"]),
        node(
            "If",
            ["positive"],
            [n["branch"]],
            then_branch=helper.make_graph(then, n["graph"], [], [values(n["inner"], FLOAT, None)]),
            else_branch=helper.make_graph(other, "other", [], [values("negative", FLOAT, None)]),
        ),
        node("Shape", [n["image"]], ["sizes"]),
        node("Gather", ["sizes", "first"], ["batch_size"]),
        node("Concat", ["batch_size", "rest"], ["shape"], axis=0),
        node("Reshape", [n["branch"], "shape"], ["flat"]),
        node("ReduceMean", ["flat"], ["pooled"], axes=[2], keepdims=0),
        node(n["function"], ["pooled"], ["twice"], domain=n["domain"]),
        node("Gather", [n["table"], n["index"]], ["rows"], axis=0),
        node("Add", ["twice", "rows"], [n["scores"]]),
        node("ArgMax", [n["scores"]], [n["labels"]], axis=1, keepdims=0),
    ]
    for made in nodes[:2]:
        scopes, classes = ["", n["scope"], f"{n['scope']}.inner", ""], ["Net", f"p.{n['class']}", "p.Inner", "aten"]
        helper.set_model_props(made, {"pkg.torch.onnx.name_scopes": str(scopes)})
        made.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value=str(classes))
    graph = helper.make_graph(
        nodes,
        n["graph"],
        [values(n["image"], FLOAT, [n["batch"], 3, "h", "w"]), values(n["index"], TensorProto.INT64, [n["batch"]])],
        [values(n["scores"], FLOAT, [n["batch"], 4]), values(n["labels"], TensorProto.INT64, None)],
        weights,
        doc_string=n["doc"],
    )
    twice = [node("Add", ["a", "a"], ["b"], name=n["add"])]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function(n["domain"], n["function"], ["a"], ["b"], twice, opsets, doc_string=n["doc"])
    opsets.append(helper.make_opsetid(n["domain"], 1))
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10, producer_name=n["doc"])
    helper.set_model_props(model, {n["doc"]: n["doc"]})
    return model


FEEDS = [np.random.default_rng(1).standard_normal((2, 3, 5, 5)).astype(np.float32), np.array([3, 7])]


def places(name: str) -> Iterator[dict[str, str]]:
    """Where to put a name: as many places at once as names that must differ allow."""
    everywhere = {"graph": name, "batch": name, "doc": name, "conv": name, "add": name, "scope": name, "class": name}
    everywhere |= {"function": name, "domain": name}
    yield everywhere | {
        "image": name,
        "kernel": f"{name}.weight",
        "scale": f"deep.{name}.scale",
        "table": f"deep.{name}",
    }
    yield {"index": name, "scores": f"{name}2", "kernel": f"deep.{name}.weight", "add": f"/{name}/{name}.0/add/Add"}
    yield {"scores": name, "scale": f"{name}/scale", "conv": f"/deep/{name}/Conv", "table": f"{name}.0"}
    yield {"scale": name, "table": f"{name}.table", "bias": f"{name}.bias"}
    yield {"kernel": name, "branch": f"{name}2", "inner": f"{name}3", "labels": f"{name}4"}


def same(source: Source, feeds: Iterable[Any], expected: list[Any]) -> None:
    with torch.inference_mode():
        outputs = execute(source)(*map(to_framework, feeds))
    found = outputs if len(expected) > 1 else [outputs]
    for actual, right in zip(map(to_numpy, found), expected, strict=True):
        np.testing.assert_allclose(actual, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("part", range(3))
def test_names_never_become_code(part: int, tmp_path: Path) -> None:
    expected = prepare("onnxruntime", named())(FEEDS)
    for i, name in list(enumerate(NAMES))[part::3]:
        for j, where in enumerate(places(name)):
            source = generate(load(named(**where)))
            inspect_source(source)
            same(source, FEEDS, expected)
            write_package(source, tmp_path / f"{i}_{j}")
    lint(tmp_path)


def added(names: list[str]) -> onnx.ModelProto:
    """x times the first weight, plus the second, times the third, and so on."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(4).astype(np.float32), name) for name in names]
    ends = ["x input", *(f"value {i}" for i in range(len(names) - 1)), "x_input"]
    nodes = [
        helper.make_node(("Mul", "Add")[i % 2], [ends[i], name], [ends[i + 1]], name=f"{name}/op")
        for i, name in enumerate(names)
    ]
    graph = helper.make_graph(
        nodes, "g", [values(ends[0], FLOAT, ["n", 4])], [values(ends[-1], FLOAT, ["n", 4])], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize(
    "names",
    [
        ["a.b", "a_b", "a-b", "a b", "a/b", "a.b_2", "a_b_2"],
        ["w", "W", "w!", "w?", "w_", "_w", "w__"],
        ["m", "m.weight", "m.weight.weight", "m_", "m.weight_"],
        ["m.0", "m.1", "m.0.w", "m.2", "m", "m.part_0"],
        ["0.w", "1.w", "2.w", "3.w", "p0.w", "part_0.w"],
        ["training", "training_", "forward", "forward_", "Model", "Model_"],
        ["x" * 200, "x" * 201, "x" * 100, "x" * 60, "x" * 61 + "." + "y" * 300],
        [".".join("abcdefghijklmnopqrstuvwxyz"), ".".join("abcdefghijklmnopqrstuvwxy"), "a.b.c.d"],
    ],
)
def test_names_that_become_equal_stay_apart(names: list[str], tmp_path: Path) -> None:
    model = added(names)
    feeds = [np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)]
    source = generate(load(model))
    inspect_source(source)
    assert len(source.tensors) == len(names)
    same(source, feeds, prepare("onnxruntime", model)(feeds))


def test_strings_are_literals() -> None:
    """What a model holds as text is only ever text."""
    texts = [name for name in NAMES if len(name) < 1000]
    array = numpy_helper.from_array(np.array([t.encode() for t in texts], object), "texts")
    pick = helper.make_node("Gather", ["texts", "i"], ["y"])
    ends = values("i", TensorProto.INT64, ["n"]), values("y", TensorProto.STRING, ["n"])
    graph = helper.make_graph([pick], "g", [ends[0]], [ends[1]], [array])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    source = generate(load(model))
    inspect_source(source)
    found = execute(source)(torch.arange(len(texts)))
    assert list(found) == texts


def test_a_file_name_is_not_code(tmp_path: Path) -> None:
    path = tmp_path / '"""); import os #\n.onnx'
    onnx.save(added(["a.b", "c"]), path)
    inspect_source(generate(load(path)))


def test_names_are_kept_where_they_can_be() -> None:
    kept = ["_conv_stem.weight", "blocks.0._bn0.weight", "filter.weight", "input.weight", "W", "trailing_"]
    source = generate(load(added(kept)))
    assert list(source.tensors) == kept
    assert path_of("training.0.__x.class") == ("training_", "0", "x", "class_")


def test_attributes_of_modules_are_all_known() -> None:
    own = {name for name in dir(torch.nn.Module()) if not name.startswith("__")}
    assert own - MODULE_ATTRIBUTES == set()
