"""Real TensorFlow Lite models, converted to ONNX and compared with the interpreter, beside tf2onnx.

python benchmarks/tflite_zoo.py --tf2onnx ENV/bin/python    all of the .csv; writes docs/measured/zoo-tflite.md
python benchmarks/tflite_zoo.py --only palm …               those with `palm` in their names; writes nothing

tf2onnx runs in an environment of its own that has TensorFlow too.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import or_
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import machine
import numpy as np
import onnxruntime
import tensorflow as tf
from zoo_fetch import Entry, entries, fetch

import onward
from onward.verification.compare import Error, Outputs, compare, differences, measure
from onward.verification.noise.spread import usual_sizes

LIST = Path(__file__).with_name("tflite_zoo.csv")
PAGE = Path(__file__).parent.parent / "docs/measured/zoo-tflite.md"
SETS = 3
SIDE = 256
"""Of an image whose size is open."""
OPSET = 18
"""The newest that tf2onnx writes."""
NOTES = """\
Who is right about a small sigmoid, on `pose_landmark_heavy.tflite`, whose second output is one of 1e-5 to 1e-6 here:
in double precision the interpreter is off by up to 1.1e-4 of it, and the converted model in ONNX Runtime by up to
1.3e-2, which is 6e-8, the last bit of 1. It is ONNX Runtime's Sigmoid that is exact to this bit and not to those of
small results, whoever wrote the file; measured by its own size (until 2026-11-17) the output was called different.
"""
Inputs = list[np.ndarray[Any, Any]]


@dataclass
class Result:
    verdict: str
    detail: str = ""
    error: Error = field(default_factory=lambda: Error(float("nan"), float("nan")))
    seconds: float = float("nan")


@dataclass
class Reference:
    """What the interpreter says, and how sure it is: the noise is how far off it is without XNNPACK's kernels, and on
    inputs that are off by one unit in the last place.
    """

    inputs: list[Inputs] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    noise: dict[str, Error] = field(default_factory=dict)
    quantized: set[str] = field(default_factory=set)


def interpreted(path: Path, inputs: Inputs, delegates: bool) -> tuple[Outputs, list[Any]]:
    """What a new interpreter gives: states begin anew."""
    kinds = tf.lite.experimental.OpResolverType
    kind = kinds.AUTO if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(str(path), experimental_op_resolver_type=kind)
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return {detail["name"]: interpreter.get_tensor(detail["index"]) for detail in details}, details


def drawn(path: Path, seed: int) -> Inputs:
    """Images and sounds between 0 and 1, and all that integers can be."""
    rng = np.random.default_rng(seed)
    made = []
    for detail in tf.lite.Interpreter(str(path)).get_input_details():
        shape = [int(n) if n > 0 else 1 if i == 0 else SIDE for i, n in enumerate(detail["shape_signature"])]
        dtype = np.dtype(detail["dtype"])
        if dtype.kind == "f":
            made.append(rng.uniform(0, 1, shape).astype(dtype))
        else:
            limits = np.iinfo(dtype) if dtype.itemsize == 1 else np.iinfo(np.uint8)
            made.append(rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype))
    return made


def _moved(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.nextafter(array, np.inf, dtype=array.dtype) if array.dtype.kind == "f" else array


def reference(path: Path) -> Reference:
    made = Reference()
    for seed in range(SETS):
        inputs = drawn(path, seed)
        outputs, details = interpreted(path, inputs, delegates=True)
        made.inputs.append(inputs)
        made.outputs.append(outputs)
        made.quantized = {detail["name"] for detail in details if detail["quantization"][0]}
        made.noise = made.noise or scales(path, outputs)
        others = [interpreted(path, [_moved(array) for array in inputs], delegates=True)[0]]
        with contextlib.suppress(RuntimeError, ValueError):  # there are ops that only XNNPACK has
            others.append(interpreted(path, inputs, delegates=False)[0])
        for other in others:
            for name, error in measure(outputs, other, made.noise, quantized=made.quantized).items():
                made.noise[name] = made.noise.get(name, Error()) | error
    return made


def scales(path: Path, outputs: Outputs) -> dict[str, Error]:
    """What each output is measured by, as `onward verify` does: a sigmoid by what it may be, however small it is."""
    try:
        model = onward.from_tflite(path, check=False)
    except onward.OnwardError:
        return {}
    names = {value.name: name for value, name in zip(model.ir.graph.outputs, outputs, strict=False)}  # then states
    named = dict(zip(names, outputs.values(), strict=True))
    return {names[name]: error for name, error in usual_sizes(model, [({}, named)]).items() if name in names}


def onward_side(path: Path, target: Path) -> None:
    onward.from_tflite(path, check=False).save(target)


def tf2onnx_side(python: str) -> Callable[[Path, Path], None]:
    def convert(path: Path, target: Path) -> None:
        options = ["--tflite", str(path), "--output", str(target), "--opset", str(OPSET)]
        done = subprocess.run([python, "-m", "tf2onnx.convert", *options], capture_output=True, text=True, check=False)
        if done.returncode or not target.exists():
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise RuntimeError(said[-1] if said else f"exit code {done.returncode}")

    return convert


def judge(path: Path, convert: Callable[[Path, Path], None], truth: Reference) -> Result:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            convert(path, Path(folder) / "net.onnx")
            seconds = time.perf_counter() - start
            session = onnxruntime.InferenceSession((Path(folder) / "net.onnx").read_bytes(), options)
        error = Error()
        for inputs, expected in zip(truth.inputs, truth.outputs, strict=True):
            feeds = {slot.name: array for slot, array in zip(session.get_inputs(), inputs, strict=True)}
            given = dict(zip(expected, session.run(None, feeds), strict=False))
            error = functools.reduce(or_, measure(expected, given, truth.noise, truth.quantized).values(), error)
            if wrong := differences(compare(expected, given, truth.noise, quantized=truth.quantized)):
                return Result("different", wrong[0], error, seconds)
    except Exception as problem:
        return Result("fails", f"{type(problem).__name__}: {problem}")
    return Result("same", "", error, seconds)


Row = tuple[Entry, Reference, dict[str, Result]]


def _both(error: Error) -> str:
    return f"{error.worst:.0e} / {error.overall:.0e}"


def _one_line(text: str, width: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def page(rows: list[Row]) -> str:
    sides = list(rows[0][2])
    counts = ", ".join(f"{who} {sum(results[who].verdict == 'same' for *_, results in rows)}" for who in sides)
    lines = [
        "# Real TensorFlow Lite models to ONNX",
        "",
        f"{len(rows)} files as published in packages on PyPI and npm, converted to ONNX and run on {SETS} sets of",
        f"inputs. Agree with TensorFlow Lite's interpreter on every output: **{counts}**.",
        "",
        "*Error*, worst of all outputs: of a single element, |difference| / (|expected| + rms of the output) /",
        "overall, rms of the difference / rms of the output; an output that is far smaller than it may be, such as a",
        "sigmoid that is nearly zero everywhere, is measured by a hundredth of that. *Own noise* is the same between",
        "the interpreter with and without XNNPACK's kernels, and on inputs off by one unit in the last place; the",
        "tolerance follows it. An element of a quantised output may be off by a step. Made by",
        "`benchmarks/tflite_zoo.py`.",
        "",
        machine.describe("onward", "tensorflow-cpu", "onnxruntime")
        + (" · tf2onnx 1.17.0" if "tf2onnx" in sides else ""),
        "",
        NOTES,
        "| model | package | task | own noise | error | " + " | ".join(sides) + " |",
        "|---|---|---|---|---|" + "---|" * len(sides),
    ]
    for entry, truth, results in rows:
        verdicts = " | ".join(result.verdict for result in results.values())
        noise = _both(functools.reduce(or_, truth.noise.values()))
        cells = f"{Path(entry.name).name} | {entry.package} | {entry.task} | {noise}"
        lines.append(f"| {cells} | {_both(results['onward'].error)} | {verdicts} |")
    lines += ["", "## What stops each", ""]
    for entry, _, results in rows:
        for who, result in results.items():
            if result.verdict != "same":
                lines.append(f"- `{entry.name}`, {who}: {_one_line(result.detail)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="parts of model names")
    parser.add_argument("--tf2onnx", metavar="PYTHON", help="of the environment that has tf2onnx")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [e for e in entries(LIST) if not args.only or any(part in e.name for part in args.only)]
    if failures := fetch(chosen):
        sys.exit("\n".join(f"{name}: {reason}" for name, reason in failures.items()))
    sides = {"onward": onward_side} | ({"tf2onnx": tf2onnx_side(args.tf2onnx)} if args.tf2onnx else {})
    rows: list[Row] = []
    for entry in chosen:
        truth = reference(entry.path)
        results = {who: judge(entry.path, convert, truth) for who, convert in sides.items()}
        rows.append((entry, truth, results))
        print(
            entry.name,
            *(f"{who}: {r.verdict} {_both(r.error)} {r.detail[:200]}" for who, r in results.items()),
            flush=True,
        )
    if not args.only and args.tf2onnx:
        PAGE.write_text(page(rows), encoding="utf-8")
        print(f"wrote {PAGE}")
    sys.exit(any(results["onward"].verdict != "same" for *_, results in rows))


if __name__ == "__main__":
    main()
