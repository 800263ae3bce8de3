"""NaN, infinities, subnormals, overflow and empty tensors on every runtime; writes docs/measured/special-values.md.

python benchmarks/special_values.py                 all of them
python benchmarks/special_values.py --only MaxPool  those whose ops have the pattern; writes nothing

Each runtime has a process of its own, which is started anew when a case ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "ops"))

import machine  # noqa: E402
import numpy as np  # noqa: E402
from harness import node_model  # noqa: E402
from special_words import BEGIN, SECTIONS  # noqa: E402
from tf_models import section  # noqa: E402

from onward.scoreboard.suite import prepare  # noqa: E402

PAGE = ROOT / "docs/measured/special-values.md"
RUNNERS = {
    "onnxruntime": "ONNX Runtime",
    "reference": "onnx reference",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
}
NAN, INF, LANES = np.nan, np.inf, 33
SUBNORMAL = 1e-40


@dataclass(frozen=True)
class Case:
    """A model of one node, what it is fed, and what is told of its results."""

    section: str
    op: str
    what: str
    standard: str
    inputs: Sequence[Any]
    outputs: int = 1
    attributes: dict[str, Any] | None = None
    tell: Callable[[list[Any]], str] | None = None
    opset: int = 21


def f32(*numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.float32)


def i32(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int32)


def many(number: float) -> np.ndarray[Any, Any]:
    """As often as fills the lanes of a processor."""
    return np.full(16, number, np.float32)


def spelled(value: Any) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, np.integer):
        return str(int(value))
    number = float(value)
    word = f"{number:.0f}" if number.is_integer() and abs(number) < 1e6 else f"{number:.3g}"
    return {"nan": "NaN", "inf": "∞", "-inf": "-∞"}.get(word, word)


def listed(results: list[Any]) -> str:
    """All numbers; one, where they are equal; the shape, where there are none."""
    found = np.asarray(results[0])
    if not found.size:
        return "shape " + "×".join(map(str, found.shape))
    words = [spelled(value) for value in found.ravel()]
    if len(set(words)) == 1:
        return words[0]
    return ", ".join(words) if len(words) <= 9 else " or ".join(sorted(set(words)))


def shape(results: list[Any]) -> str:
    return "shape " + "×".join(map(str, np.asarray(results[0]).shape))


def count(results: list[Any]) -> str:
    number = np.asarray(results[0]).size
    return f"{number} value{'s' * (number != 1)}"


def how_often(results: list[Any]) -> str:
    """In how many rows, of which each has NaN in another place, the result is NaN."""
    found = int(np.isnan(np.asarray(results[0], np.float64)).sum())
    return {0: "a number", LANES: "NaN"}.get(found, f"NaN in {found} of {LANES} places")


def is_its_place(results: list[Any]) -> str:
    found = Counter((np.asarray(results[0]).ravel() == np.arange(LANES)).tolist())[True]
    return {LANES: "of NaN", 0: "of a number"}.get(found, f"of NaN in {found} of {LANES} places")


def nan_at_each_place() -> np.ndarray[Any, Any]:
    rows = np.tile(np.linspace(-1, 1, LANES, dtype=np.float32), (LANES, 1))
    np.fill_diagonal(rows, NAN)
    return rows


def cases(only: str) -> list[Case]:
    rows, axis = nan_at_each_place(), np.array([1])
    windows = rows.reshape(LANES, 1, LANES)
    grid = np.zeros((1, 1, 3, 2), np.float32)
    grid[0, 0, :, 0] = [NAN, INF, -INF]
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    order, large, whole, empty = "order", "kernels", "integers", "empty"
    silent = "silent"
    half = np.random.default_rng(0).standard_normal((1, 1, 8, 8)).astype(np.float16)
    holed = half.copy()
    holed[..., 0, 0] = NAN
    table = [
        *(
            Case(order, op, f"over {LANES} numbers", silent, [rows, axis], tell=how_often)
            for op in ("ReduceMax", "ReduceMin")
        ),
        *(
            Case(
                order, op, f"over {LANES} numbers: the index", silent, [rows], attributes={"axis": 1}, tell=is_its_place
            )
            for op in ("ArgMax", "ArgMin")
        ),
        Case(order, "TopK", "the 2 largest of 1, NaN, 3, 2", silent, [f32(1, NAN, 3, 2), np.array([2])], 2),
        Case(
            order,
            "TopK",
            "the 2 smallest of 1, NaN, 3, 2",
            silent,
            [f32(1, NAN, 3, 2), np.array([2])],
            2,
            {"largest": 0},
        ),
        Case(
            order,
            "MaxPool",
            f"of {LANES} numbers",
            silent,
            [windows],
            attributes={"kernel_shape": [LANES]},
            tell=how_often,
        ),
        Case(order, "GlobalMaxPool", f"of {LANES} numbers", silent, [windows], tell=how_often),
        Case(order, "Hardmax", "1, NaN, 3", "1 at the first maximum", [f32(1, NAN, 3)]),
        Case(order, "Max", "1 with NaN, NaN with 1", silent, [f32(1, NAN), f32(NAN, 1)]),
        Case(order, "Min", "1 with NaN, NaN with 1", silent, [f32(1, NAN), f32(NAN, 1)]),
        Case(order, "Clip", "-5, 5 with min = NaN", "Min(max, Max(x, min))", [f32(-5, 5), np.float32(NAN)]),
        Case(order, "Clip", "-5, 5 with max = NaN", "Min(max, Max(x, min))", [f32(-5, 5), None, np.float32(NAN)]),
        Case(
            order,
            "ScatterElements",
            "max of 1 and NaN, of NaN and 1",
            silent,
            [f32(1, NAN), np.array([0, 1]), f32(NAN, 1)],
            1,
            {"reduction": "max"},
        ),
        Case(
            order,
            "ScatterND",
            "max of 1 and NaN, of NaN and 1",
            silent,
            [f32(1, NAN), np.array([[0], [1]]), f32(NAN, 1)],
            1,
            {"reduction": "max"},
        ),
        Case(order, "Unique", "NaN, 1, NaN", silent, [f32(NAN, 1, NAN)], tell=count),
        Case(order, "GridSample", "x = NaN, ∞, -∞; zeros outside", "0 for ±∞", [image, grid]),
        Case(order, "GridSample", "the same, border outside", silent, [image, grid], 1, {"padding_mode": "border"}),
        Case(order, "Sign", "NaN", silent, [f32(NAN)]),
        Case(order, "Sign", "NaN in float16", silent, [np.array([NAN], np.float16)]),
        Case(large, "Softmax", "NaN, 1, 2", "exp(x) / sum: NaN", [f32(NAN, 1, 2)]),
        Case(
            large,
            "Attention",
            "float16, NaN in the first query",
            "NaN in its row",
            [holed, half, half],
            opset=23,
            tell=lambda r: listed([np.asarray(r[0])[0, 0, 0]]),
        ),
        Case(large, "Gelu", "∞, 16 times", "x / 2 · (1 + erf(x/√2)): ∞", [many(INF)]),
        Case(large, "Gelu", "3e38, 16 times", "the same: 3e38", [many(3e38)]),
        Case(large, "Sigmoid", "-50", "1 / (1 + exp(-x)): 1.93e-22", [f32(-50)]),
        Case(
            large,
            "MaxPool",
            "of -∞ alone, one axis",
            "the maximum: -∞",
            [np.full((1, 1, 4), -INF, np.float32)],
            1,
            {"kernel_shape": [2]},
        ),
        Case(
            large,
            "MaxPool",
            "of -∞ alone, two axes, padded",
            "the maximum: -∞",
            [np.full((1, 1, 4, 4), -INF, np.float32)],
            1,
            {"kernel_shape": [2, 2], "pads": [1] * 4},
        ),
        Case(large, "Mean", "65504 and 65504 in float16", "65504", [np.array([65504], np.float16)] * 2),
        Case(large, "ReduceMean", "65504, 8 times in float16", "65504", [np.full(8, 65504, np.float16)]),
        Case(large, "Mul", f"{SUBNORMAL}, 16 times, by 1e10", "1e-30", [many(SUBNORMAL), f32(1e10)]),
        Case(large, "Greater", f"{SUBNORMAL}, 16 times, > 0", "true", [many(SUBNORMAL), f32(0)]),
        Case(large, "Sqrt", f"{SUBNORMAL}, 16 times", "1e-20", [many(SUBNORMAL)]),
        Case(large, "Sign", f"{SUBNORMAL}, 16 times", "1", [many(SUBNORMAL)]),
        Case(large, "Div", f"0 / {SUBNORMAL}, 16 times", "0", [many(0), f32(SUBNORMAL)]),
        Case(whole, "Div", "1 / 0 in int32", silent, [i32(1), i32(0)]),
        Case(whole, "Mod", "1 mod 0 in int32", silent, [i32(1), i32(0)]),
        Case(whole, "Div", "-2147483648 / -1 in int32", silent, [i32(-(2**31)), i32(-1)]),
        Case(whole, "Pow", "2147483647 ² in int32", silent, [i32(2**31 - 1), i32(2)]),
        Case(whole, "ReduceSum", "2147483647 + 1 in int32", silent, [i32(2**31 - 1, 1)]),
        *(
            Case(
                whole, "Cast", f"NaN, ∞, -∞, 1e10 to {name}", "undefined", [f32(NAN, INF, -INF, 1e10)], 1, {"to": code}
            )
            for name, code in (("int32", 6), ("uint8", 2))
        ),
        Case(whole, "Cast", "-1, 300 to uint8", "undefined", [f32(-1, 300)], 1, {"to": 2}),
        Case(whole, "QuantizeLinear", "NaN to int8", silent, [f32(NAN), np.float32(0.1), np.int8(0)]),
        Case(
            whole,
            "QuantizeLinear",
            "∞, -∞ to int8",
            "saturates: 127, -128",
            [f32(INF, -INF), np.float32(0.1), np.int8(0)],
        ),
        Case(empty, "ReduceMean", "of nothing", "undefined", [np.zeros((2, 0), np.float32), axis]),
        Case(empty, "ReduceMean", "of no integers", "undefined", [np.zeros((2, 0), np.int32), axis]),
        Case(empty, "ArgMax", "of nothing", silent, [np.zeros((2, 0), np.float32)], 1, {"axis": 1}),
        Case(
            empty,
            "Conv",
            "batch 0, from 2 channels to 4",
            "shape 0×4×3×3",
            [np.zeros((0, 2, 5, 5), np.float32), np.ones((4, 2, 3, 3), np.float32)],
            tell=shape,
        ),
        Case(
            empty,
            "MaxPool",
            "no channels",
            "shape 2×0×2×2",
            [np.zeros((2, 0, 4, 4), np.float32)],
            1,
            {"kernel_shape": [2, 2], "strides": [2, 2]},
            shape,
        ),
        Case(
            empty,
            "Resize",
            "no channels",
            "shape 2×0×8×8",
            [np.zeros((2, 0, 4, 4), np.float32), None, f32(1, 1, 2, 2)],
            tell=shape,
        ),
        Case(empty, "DFT", "batch 0", "shape 0×8×2", [np.zeros((0, 8, 1), np.float32)], tell=shape),
    ]
    return [case for case in table if re.search(only, case.op)]


def told(case: Case, runner: str) -> str:
    model, feeds = node_model(
        case.op, case.inputs, case.outputs, fixed=_fixed(case), opset=case.opset, **(case.attributes or {})
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return (case.tell or listed)(prepare(runner, model)(list(feeds)))
    except Exception as error:
        missing = ("implementation", "Unsupported", "No registered")
        return "no kernel" if any(word in str(error) for word in missing) else "error"


def _fixed(case: Case) -> list[int]:
    """What a file holds: axes, scales, filters."""
    return (
        [1]
        if case.op in ("ReduceMax", "ReduceMin", "ReduceMean", "Conv") and len(case.inputs) > 1
        else [2]
        if case.op == "Resize"
        else []
    )


def run(runner: str, first: int, only: str) -> None:
    """A line of JSON a case, from one on."""
    for case in cases(only)[first:]:
        print(json.dumps(told(case, runner)), flush=True)


def results(runner: str, only: str) -> list[str]:
    """What a runtime makes of each case, in a process of its own."""
    wanted = len(cases(only))
    found: list[str] = []
    while len(found) < wanted:
        command = [sys.executable, __file__, "--run", runner, "--first", str(len(found)), "--only", only]
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        found += [json.loads(line) for line in lines]
        if len(found) < wanted:
            found.append("ends the process")
    return found


def page(only: str) -> str:
    table = cases(only)
    columns = [results(runner, only) for runner in RUNNERS]
    parts = [BEGIN]
    for name, (title, words) in SECTIONS.items():
        rows = [
            [f"`{case.op}`", case.what, case.standard, *(column[i] for column in columns)]
            for i, case in enumerate(table)
            if case.section == name
        ]
        parts.append(
            section(title, textwrap.fill(words, 118), ["op", "case", "the standard", *RUNNERS.values()], rows)
            if rows
            else ""
        )
    described = machine.describe("onnx", "onnxruntime", "torch", "tensorflow-cpu", "keras")
    return "\n\n".join(filter(None, parts)) + f"\n\n{described}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", default="", help="a regular expression for ops; writes nothing")
    parser.add_argument("--run", choices=RUNNERS, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.run, args.first, args.only)
        return
    text = page(args.only)
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
