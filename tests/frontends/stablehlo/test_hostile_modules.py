"""Modules that ask for too much, or are damaged, end in one line and take neither the machine nor the process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from messages import problem

pytest.importorskip("jax")

import jax
import jax.export
import jax.numpy as jnp

import onward
from onward.cli import main
from onward.errors import InvalidModelError, OnwardError
from onward.gate import apart as other_process
from onward.gate.apart import apart

HUGE = 2**40
SUM = f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<{HUGE}xf32>, tensor<f32>) -> tensor<f32>
  %r = stablehlo.add %a, %s : tensor<f32> return %r : tensor<f32>"""
LARGE = {
    "a constant": f"%c = stablehlo.constant dense<1.0> : tensor<{HUGE}xf32>",
    "a count": f"%c = stablehlo.iota dim = 0 : tensor<{HUGE}xf32>",
    "a broadcast": f"""%o = stablehlo.constant dense<1.0> : tensor<f32>
      %b = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> tensor<{HUGE}xf32>
      %c = stablehlo.sine %b : tensor<{HUGE}xf32>""",
    "a padding": f"""%o = stablehlo.constant dense<1.0> : tensor<2xf32> %p = stablehlo.constant dense<0.0> : tensor<f32>
      %c = stablehlo.pad %o, %p, low = [{HUGE - 2}], high = [0], interior = [0]
        : (tensor<2xf32>, tensor<f32>) -> tensor<{HUGE}xf32>""",
}


def written(folder: Path, functions: str) -> Path:
    path = folder / "module.mlir"
    path.write_text(f"module {{ {functions} }}")
    return path


@pytest.mark.parametrize("what", LARGE)
def test_what_is_large_is_not_made(what: str, tmp_path: Path) -> None:
    """It is left to the model, which has a few nodes for it."""
    path = written(tmp_path, f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ {LARGE[what]} {SUM} }}")
    model = onward.from_stablehlo(path, check=False)
    assert len(model.to_proto().SerializeToString()) < 10_000


LOOP = """func.func @main(%a: tensor<f32>) -> tensor<f32> {{
  %z = stablehlo.constant dense<0> : tensor<i64> %one = stablehlo.constant dense<1> : tensor<i64>
  %n = stablehlo.constant dense<{rounds}> : tensor<i64>
  %w = stablehlo.while(%i = %z) : tensor<i64>
    cond {{ %t = stablehlo.compare {test} : (tensor<i64>, tensor<i64>) -> tensor<i1> stablehlo.return %t : tensor<i1> }}
    do {{ %j = stablehlo.add %i, %one : tensor<i64> stablehlo.return %j : tensor<i64> }}
  %f = stablehlo.convert %w : (tensor<i64>) -> tensor<f32>
  %r = stablehlo.add %a, %f : tensor<f32> return %r : tensor<f32> }}"""


@pytest.mark.parametrize("rounds, test", [(2**63 - 1, "LT, %i, %n"), (2 * 10**9, "LT, %i, %n"), (1, "EQ, %i, %i")])
def test_loops_of_constants_are_not_run(rounds: int, test: str, tmp_path: Path) -> None:
    model = onward.from_stablehlo(written(tmp_path, LOOP.format(rounds=rounds, test=test)), check=False)
    assert "Loop" in [node.op_type for node in model.ir.graph]


@pytest.mark.parametrize("rounds", [0, 500])
def test_short_loops_of_constants_are(rounds: int, tmp_path: Path) -> None:
    model = onward.from_stablehlo(written(tmp_path, LOOP.format(rounds=rounds, test="LT, %i, %n")), check=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    assert session.run(None, {"arg0": np.asarray(1, np.float32)})[0] == rounds + 1
    assert "Loop" not in [node.op_type for node in model.ir.graph]


def called(count: int, times: int) -> str:
    """Functions, each of which calls the next as often."""
    kind = "(tensor<f32>) -> tensor<f32>"
    lines = [
        f"func.func @main(%x0: tensor<f32>) -> tensor<f32> {{ %r = call @f0(%x0) : {kind} return %r : tensor<f32> }}"
    ]
    for i in range(count):
        calls = "".join(f"%x{n + 1} = call @f{i + 1}(%x{n}) : {kind} " for n in range(times))
        lines.append(
            f"func.func private @f{i}(%x0: tensor<f32>) -> tensor<f32> {{ {calls} return %x{times} : tensor<f32> }}"
        )
    lines.append(f"func.func private @f{count}(%x0: tensor<f32>) -> tensor<f32> {{ return %x0 : tensor<f32> }}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "count, times, words", [(40, 2, "more than 1,000 operations"), (4000, 1, "recursion|operations")]
)
def test_calls(count: int, times: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONWARD_MAX_NODES", "1000")
    with pytest.raises(OnwardError, match=words):
        onward.from_stablehlo(written(tmp_path, called(count, times)), check=False)


@pytest.mark.parametrize("opening, closing", ["[]", "()", "<>", "{}"])
def test_levels(opening: str, closing: str, tmp_path: Path) -> None:
    """MLIR would crash."""
    path = written(
        tmp_path, f"func.func @main() attributes {{a = {opening * 100_000}{closing * 100_000}}} {{ return }}"
    )
    with pytest.raises(InvalidModelError, match="more than 1,000 levels of brackets"):
        onward.from_stablehlo(path)


def test_brackets_in_strings_are_no_levels(tmp_path: Path) -> None:
    said = f'{{a = "{"(" * 2000}", b = "\\22{"]" * 9}"}}'
    text = f"func.func @main(%a: tensor<f32>) -> tensor<f32> attributes {said} {{ return %a : tensor<f32> }}"
    assert onward.from_stablehlo(written(tmp_path, text), check=False).ir.graph.inputs


def artifact() -> bytes:
    found = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((3,), jnp.float32)).mlir_module_serialized
    return bytes(found)


def test_a_damaged_artifact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module.mlirbc"
    path.write_bytes(artifact()[:-100])
    assert main(["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "net.onnx")]) == 2
    assert "the artifact of StableHLO is damaged: MLIR does not read it" in problem(capsys.readouterr().err)


def test_a_reader_that_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "module.mlirbc"
    path.write_bytes(b"")
    (tmp_path / "crashing.py").write_text(
        "import os, signal\n\ndef read(path):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidModelError, match="the file is damaged: MLIR crashes on it"):
        apart(path, "crashing", "read", "the file", "MLIR")


@pytest.mark.parametrize(
    "busy, fate", [("time.monotonic() < end: time.sleep(0.1)", ""), ("True: pass", "still reading it after 1 s")]
)
def test_a_reader_has_time_of_a_processor(
    busy: str, fate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the clock, which a busy machine takes as well."""
    path = tmp_path / "module.mlirbc"
    path.write_bytes(b"")
    (tmp_path / "slow.py").write_text(
        f"import time\n\ndef read(path):\n    end = time.monotonic() + 1.5\n    while {busy}\n    return 'read'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(other_process, "SECONDS", 1.0)
    if not fate:
        assert apart(path, "slow", "read", "the file", "MLIR") == "read"
        return
    with pytest.raises(InvalidModelError, match=fate):
        apart(path, "slow", "read", "the file", "MLIR")


QUANTIZED = "tensor<2x!quant.uniform<i8:f32, 0.5:0>>"


def test_quantized_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path,
        f"""func.func @main(%a: tensor<2xf32>) -> {QUANTIZED} {{
        %q = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> {QUANTIZED} return %q : {QUANTIZED} }}""",
    )
    arguments = ["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "net.onnx"), "--timeout", "600"]
    assert main(arguments) == 2
    assert "quantized types (!quant), which have no form in ONNX" in problem(capsys.readouterr().err)


def test_a_function_without_a_body(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="the function main has no body"):
        onward.from_stablehlo(written(tmp_path, "func.func private @main(tensor<f32>) -> tensor<f32>"))
