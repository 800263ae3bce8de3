"""Every variant of XGBoost and LightGBM as ONNX, by Onward and by onnxmltools; writes docs/measured/boosting.md.

python benchmarks/from_boosting.py                  all of them
python benchmarks/from_boosting.py --only dart      those whose names have the word; writes nothing

A conversion is right if what the library predicts for 300 rows, some with missing values, is among the outputs: a
prediction, or labels and probabilities, whatever they are called and in whatever shape. Onward's is also run on codes
of categories that were never seen, or are none. Times are the best of several, taken in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import onnxruntime
import xgboost as xgb
from boosting_variants import FEATURES, VARIANTS, Variant, odd_codes, predicted, rows
from machine import describe

import onward
from onward.errors import OnwardError

PAGE = Path(__file__).parent.parent / "docs/measured/boosting.md"
BEGIN, END = "<!-- written by benchmarks/from_boosting.py -->", "<!-- end of what is written -->"
CLOSE = 1e-5
"""Of the largest number: what float32 allows."""
TURNS = 5


def by_onward(variant: Variant, model: Any) -> bytes:
    convert = onward.from_xgboost if variant.library == "xgboost" else onward.from_lightgbm
    return convert(model, dtype=np.float32).to_proto().SerializeToString()


def by_onnxmltools(variant: Variant, model: Any) -> bytes:
    from onnxmltools.convert import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    convert = convert_xgboost if variant.library == "xgboost" else convert_lightgbm
    kinds = [("x", FloatTensorType([None, FEATURES]))]
    return convert(model, initial_types=kinds, target_opset=15).SerializeToString()


def outputs(data: bytes, x: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options)
    found = session.run(None, {session.get_inputs()[0].name: x})
    return [np.array([list(row.values()) for row in part]) if isinstance(part, list) else part for part in found]


def is_among(wanted: Any, found: list[Any]) -> bool:
    """Whether an array is one of those found, or a column of one."""
    columns = [part[:, -1] for part in found if part.ndim == 2]
    for part in (*found, *columns):
        if part.size != wanted.size:
            continue
        if wanted.dtype.kind in "OUbiu" or part.dtype.kind in "OU":
            if np.array_equal(part.reshape(-1).astype(str), wanted.reshape(-1).astype(str)):
                return True
        elif np.allclose(part.reshape(wanted.shape), wanted, rtol=CLOSE, atol=CLOSE * np.abs(wanted).max()):
            return True
    return False


def judged(convert: Callable[[Variant, Any], bytes], variant: Variant, model: Any, sets: list[Any]) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            data = convert(variant, model)
    except OnwardError as error:
        return f"refused: {error}"
    except Exception:
        return "refused"
    try:
        right = all(is_among(want, outputs(data, x)) for x in sets for want in predicted(model, x))
    except Exception:
        return "does not run"
    return "right" if right else "**wrong**"


def table(variants: list[Variant]) -> tuple[list[str], dict[str, Counter[str]]]:
    lines = ["| library | variant | Onward | onnxmltools |", "|---|---|---|---|"]
    counts: dict[str, Counter[str]] = {"Onward": Counter(), "onnxmltools": Counter()}
    for variant in variants:
        model, x = variant.train(), rows()
        own = [x, odd_codes(x)] if variant.is_categorical else [x]
        ours, theirs = judged(by_onward, variant, model, own), judged(by_onnxmltools, variant, model, [x])
        counts["Onward"][ours.partition(":")[0]] += 1
        counts["onnxmltools"][theirs] += 1
        title = {"xgboost": "XGBoost", "lightgbm": "LightGBM"}[variant.library]
        lines.append(f"| {title} | {variant.name} | {ours} | {theirs} |")
        print(lines[-1], flush=True)
    return lines, counts


def forests() -> dict[str, tuple[str, Any]]:
    """Models of a usual size: 300 trees of up to 63 leaves."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, FEATURES))
    y = np.sin(3 * x).sum(1)
    booster = xgb.train({"max_depth": 6, "nthread": 1}, xgb.DMatrix(x, y), 300)
    forest = lgb.train({"num_leaves": 63, "verbose": -1, "num_threads": 1}, lgb.Dataset(x, y), 300)
    return {"XGBoost": ("xgboost", booster), "LightGBM": ("lightgbm", forest)}


def best(*calls: Callable[[], Any]) -> list[float]:
    """Seconds of each, the best of several, in turns."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(TURNS):
        for times, call in zip(found, calls, strict=True):
            began = time.process_time()
            call()
            times.append(time.process_time() - began)
    return [min(times) for times in found]


def speed() -> list[str]:
    lines = [
        "| 300 trees of 63 leaves | Onward converts in | onnxmltools ÷ Onward | 1,000 rows: ONNX Runtime ÷ library |",
        "|---|--:|--:|--:|",
    ]
    for title, (library, model) in forests().items():
        ours, theirs, here, there = times(Variant(library, title, lambda: None), model)
        lines.append(f"| {title} | {ours:.2f} s | {theirs / ours:.1f} | {here / there:.2f} |")
        print(lines[-1], flush=True)
    return lines


def times(variant: Variant, model: Any) -> list[float]:
    """Seconds to convert by Onward and by onnxmltools, and to predict by ONNX Runtime and by the library."""
    x = np.random.default_rng(1).normal(size=(1000, FEATURES)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(by_onward(variant, model), options)
    converted = best(lambda: by_onward(variant, model), lambda: by_onnxmltools(variant, model))
    return converted + best(lambda: session.run(None, {"x": x}), lambda: predicted(model, x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="only variants whose names have this word; writes nothing")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    chosen = [v for v in VARIANTS if args.only is None or args.only in f"{v.library} {v.name}"]
    lines, counts = table(chosen)
    said = [f"{name}: " + ", ".join(f"{n} {what}" for what, n in found.most_common()) for name, found in counts.items()]
    print(*said, sep="\n")
    if args.only is None:
        machine = describe("xgboost", "lightgbm", "onnxmltools", "onnxruntime")
        summary = f"{len(chosen)} variants. {'. '.join(said)}."
        text = "\n".join(["", machine, "", summary, "", *lines, "", *speed(), ""])
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN, 1)
        PAGE.write_text(before + BEGIN + "\n" + text + END + rest.split(END, 1)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
