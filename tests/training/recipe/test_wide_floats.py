"""Weights of 16 bits are trained as float32, and a tuned model takes and gives what the original does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from training_models import WEIGHTS

import onward
from onward import training
from onward.cli import main
from onward.errors import OnwardError, UnsupportedError
from onward.training.recipe.wide_floats import RECORD, in_float32

Array = np.ndarray[Any, Any]
X = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
BATCH = {"x": X, "labels": np.random.default_rng(4).standard_normal((5, 3)).astype(np.float32)}
FLOAT16, BFLOAT16, FLOAT = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT
HALVES = {FLOAT16: np.dtype(np.float16), BFLOAT16: np.dtype(ml_dtypes.bfloat16)}


def weights(dtype: int) -> list[onnx.TensorProto]:
    kind = HALVES[dtype]
    return [
        helper.make_tensor(n, dtype, a.shape, a.astype(kind).view(np.uint16).tobytes(), raw=True)
        for n, a in WEIGHTS.items()
    ]


def of(nodes: str, dtype: int, tensors: list[onnx.TensorProto], functions: str = "") -> onnx.ModelProto:
    kind = {FLOAT: "float", FLOAT16: "float16", BFLOAT16: "bfloat16"}[dtype]
    text = f"""<ir_version: 9, opset_import: ["": 21, "own": 1]>
        g ({kind}[n, 4] x) => ({kind}[n, 3] y) {{ {nodes} }} {functions}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(tensors)
    return proto


NETWORK = "h = Gemm<transB = 1>(x, {a}, {b}) t = Tanh(h) p = MatMul(t, {c}) y = Add(p, {d})"


def computing(dtype: int) -> onnx.ModelProto:
    names = dict(zip("abcd", (f'"{name}"' for name in WEIGHTS), strict=True))
    text = NETWORK.format(**{k: v.strip('"').replace(".", "_") for k, v in names.items()})
    tensors = weights(dtype)
    for tensor in tensors:
        tensor.name = tensor.name.replace(".", "_")
    return of(text, dtype, tensors)


def storing(dtype: int) -> onnx.ModelProto:
    """As files of TensorFlow Lite become: float32 but for weights, each with a Cast behind it."""
    proto = computing(dtype)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = FLOAT
    casts = [helper.make_node("Cast", [t.name], [f"{t.name}_read"], to=FLOAT) for t in proto.graph.initializer]
    for node in proto.graph.node:
        node.input[:] = [f"{n}_read" if any(t.name == n for t in proto.graph.initializer) else n for n in node.input]
    nodes = [*casts, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return proto


def wide(proto: onnx.ModelProto) -> onnx.ModelProto:
    """What a person would write down in float32."""
    made = computing(FLOAT16)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = FLOAT
    for tensor, given in zip(made.graph.initializer, proto.graph.initializer, strict=True):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(given).astype(np.float32), given.name))
    return made


def run(model: Any, x: Array = X) -> Array:
    session = onnxruntime.InferenceSession(
        model if isinstance(model, str) else model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def saved(trainer: training.Trainer, path: Path, **how: bool) -> onnx.ModelProto:
    trainer.save(path, **how)
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(path)


def held(proto: onnx.ModelProto) -> dict[str, int]:
    return {tensor.name: tensor.data_type for tensor in proto.graph.initializer}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("made", [storing, computing])
def test_training_is_that_of_the_model_in_float32(made: Any, dtype: int) -> None:
    """So small a rate changes no weight of 16 bits."""
    given = made(dtype)
    how = training.SGD(lr=1e-6)
    trainers = [training.Trainer(training.prepare(m, "mse", how), kernels=False) for m in (given, wide(given))]
    losses = [[trainer.step(BATCH) for _ in range(3)] for trainer in trainers]
    assert losses[0] == losses[1]
    first, second = (trainer.parameters for trainer in trainers)
    start = {tensor.name: numpy_helper.to_array(tensor).astype(np.float32) for tensor in given.graph.initializer}
    assert first.keys() == second.keys() == start.keys()
    for name, array in first.items():
        assert array.dtype == np.float32 and np.array_equal(array, second[name])
        assert (array != start[name]).any() and np.array_equal(
            array.astype(HALVES[dtype]).astype(np.float32), start[name]
        )


@pytest.mark.parametrize("dtype", HALVES)
def test_what_was_only_stored_so_is_the_same_model(dtype: int, tmp_path: Path) -> None:
    given = storing(dtype)
    trainer = training.Trainer(training.prepare(given, "mse", "sgd"), kernels=False)
    tuned, narrow = (
        saved(trainer, tmp_path / "tuned.onnx"),
        saved(trainer, tmp_path / "narrow.onnx", narrow_weights=True),
    )
    assert (
        set(held(tuned).values()) == {FLOAT}
        and held(narrow) == held(given)
        and held(tuned).keys() == held(given).keys()
    )
    assert not any(node.op_type == "Cast" for node in tuned.graph.node)
    for model in (tuned, narrow):
        assert np.array_equal(run(model), run(given))
    trainer.step(BATCH)
    changed = [run(saved(trainer, tmp_path / "m.onnx", narrow_weights=narrow)) for narrow in (False, True)]
    assert not np.array_equal(changed[0], run(given)) and np.abs(changed[0] - changed[1]).max() < 0.05


@pytest.mark.parametrize("made", [storing, computing])
def test_adapters_are_merged_in_float32(made: Any, tmp_path: Path) -> None:
    trainer = training.Trainer(training.prepare(made(FLOAT16), "mse", "adamw", lora=training.lora(2)), kernels=False)
    assert {name: array.dtype for name, array in trainer.parameters.items()} == dict.fromkeys(
        [f"{matrix}_weight.lora_{part}" for matrix in "ab" for part in "ab"], np.dtype(np.float32)
    )
    losses = [trainer.step(BATCH) for _ in range(5)]
    assert losses[-1] < losses[0]
    assert set(held(saved(trainer, tmp_path / "m.onnx", narrow_weights=True)).values()) == {FLOAT16}


def test_what_computed_so_takes_and_gives_the_same(tmp_path: Path) -> None:
    given = computing(FLOAT16)
    trainer = training.Trainer(training.prepare(given, "mse", "sgd"), kernels=False)
    onnx.save(given, tmp_path / "given.onnx")
    for how in (True, False):
        tuned = saved(trainer, tmp_path / "tuned.onnx", narrow_weights=how)
        assert [v.type.tensor_type.elem_type for v in (*tuned.graph.input, *tuned.graph.output)] == [FLOAT16, FLOAT16]
        assert set(held(tuned).values()) == {FLOAT16 if how else FLOAT}
        found = onward.verify(tmp_path / "given.onnx", tmp_path / "tuned.onnx")
        assert found.ok, str(found)
    again = training.Trainer(training.prepare(tmp_path / "tuned.onnx", "mse", "sgd"), kernels=False)
    assert again.step(BATCH) == trainer.step(BATCH), "a tuned model is trained in float32, its loss as well"


# numbers of float16 are written as their bits: 0.5, 0.25, 1, 2
FORMS = """
    k = Constant<value = float16[2] {14336, 13312}>()
    s = Shape(x) ones = ConstantOfShape<value = float16[1] {15360}>(s) a = Add(x, ones)
    wide = Cast<to = 1>(a) narrow = Cast<to = 10>(wide) h = MatMul(narrow, w)
    yes = Constant<value = bool {1}>()
    b = If(yes) <then_branch = t () => (float16[n, 3] u) { c = Constant<value = float16 {16384}>() u = Mul(h, c) },
                else_branch = e () => (float16[n, 3] v) { v = Identity(h) }>
    q = SequenceConstruct(b, h) zero = Constant<value_int = 0>() r = SequenceAt(q, zero)
    f = own.Twice<kind = 10>(r) total = ReduceSum<keepdims = 0>(k) y = Mul(f, total)
"""
TWICE = """<domain: "own", opset_import: ["": 21]> Twice <kind> (x) => (y) { i = Constant<value_int = 2>()
    two = Cast<to: int = @kind>(i) y = Mul(x, two) }"""


def test_every_place_of_a_dtype_is_widened(tmp_path: Path) -> None:
    w = numpy_helper.from_array(WEIGHTS["b.weight"][:4].astype(np.float16), "w")
    given = of(FORMS, FLOAT16, [w], TWICE)
    model = in_float32(onward.load(given))
    model.save(tmp_path / "wide.onnx")
    proto = onnx.load(tmp_path / "wide.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert "FLOAT16" not in str(proto) and "data_type: 10" not in str(proto) and "elem_type: 10" not in str(proto)
    expected = (X + 1) @ WEIGHTS["b.weight"][:4].astype(np.float16).astype(np.float32) * 2 * 2 * 0.75
    np.testing.assert_allclose(run(proto), expected, rtol=1e-5)
    assert training.Trainer(training.prepare(given, "mse", "sgd"), kernels=False).step(BATCH) > 0


def test_a_file_keeps_what_was_narrow(tmp_path: Path) -> None:
    training.prepare(computing(FLOAT16), "mse", "sgd").save(tmp_path / "t.onnx")
    trainer = training.Trainer(training.load(tmp_path / "t.onnx"), kernels=False)
    trainer.parameters["a_bias"][0] = 1e6
    narrow = saved(trainer, tmp_path / "narrow.onnx", narrow_weights=True)
    assert held(narrow) == dict.fromkeys(held(narrow), FLOAT16) | {"a_bias": FLOAT}, "too large for float16"
    assert narrow.graph.output[0].type.tensor_type.elem_type == FLOAT16


@pytest.mark.parametrize("text", ["", "[]", '{"weights": 3}', '{"weights": {"b_bias": "int4096", "?": "float16"}}'])
def test_what_a_file_says_of_that_is_not_believed(text: str, tmp_path: Path) -> None:
    model = onward.load(wide(computing(FLOAT16)))
    model.ir.metadata_props[RECORD] = text
    trainer = training.Trainer(training.prepare(model, "mse", "sgd"), kernels=False)
    assert set(held(saved(trainer, tmp_path / "m.onnx")).values()) == {FLOAT}
    if "float16" in text:
        assert set(held(saved(trainer, tmp_path / "m.onnx", narrow_weights=True)).values()) == {FLOAT}
    else:
        with pytest.raises(OnwardError, match="no weights of the model became float32"):
            trainer.save(tmp_path / "m.onnx", narrow_weights=True)


def test_what_may_mean_something_else_is_refused() -> None:
    given = of("h = MatMul(x, w) y = own.Odd(h)", FLOAT16, [helper.make_tensor("w", FLOAT16, [4, 3], [0.0] * 12)])
    with pytest.raises(UnsupportedError, match=r"Odd.*not known to mean the same"):
        in_float32(onward.load(given))


def test_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(tmp_path / name) for name in ("given.onnx", "t.onnx", "data.npz", "tuned.onnx")]
    given, trainable, data, tuned = names
    onnx.save(storing(FLOAT16), given)
    np.savez(data, **BATCH)
    assert main(["train", "prepare", given, "--loss", "mse", "--out", trainable]) == 0
    assert "4 weights of float16 became float32" in capsys.readouterr().out
    assert main(["train", "run", trainable, "--data", data, "--out", tuned, "--narrow-weights", "--quiet"]) == 0
    assert set(held(onnx.load(tuned)).values()) == {FLOAT16}
    onnx.save(wide(storing(FLOAT16)), given)
    assert main(["train", "prepare", given, "--loss", "mse", "--out", trainable]) == 0
    assert "became" not in capsys.readouterr().out
    assert main(["train", "run", trainable, "--data", data, "--out", tuned, "--narrow-weights", "--quiet"]) == 2
    assert "--float16" in capsys.readouterr().err


def test_a_module_of_16_bits_brings_its_state() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).half()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    nn.functional.mse_loss(module(torch.tensor(X).half()), torch.tensor(BATCH["labels"]).half()).backward()
    optimizer.step()
    made = training.from_torch(module, torch.tensor(X).half(), nn.MSELoss(), optimizer, input_names=["x"])
    assert {array.dtype for array in (*made.parameters.values(), *made.state.values())} == {np.dtype(np.float32)}
    assert any(array.any() for array in made.state.values())
    assert np.isfinite(training.Trainer(made, kernels=False).step(BATCH))


def test_the_record_says_what_was_what() -> None:
    made = training.prepare(computing(BFLOAT16), "mse", "sgd")
    found = json.loads(made.original.ir.metadata_props[RECORD])
    assert found == {
        "weights": dict.fromkeys((name.replace(".", "_") for name in WEIGHTS), "bfloat16"),
        "ends": {"x": "bfloat16", "y": "bfloat16"},
    }
