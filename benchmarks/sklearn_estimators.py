"""Every estimator of scikit-learn as ONNX, by Onward and by skl2onnx.

An estimator is verified if the results of its methods, on data that it was not fitted on, are those of scikit-learn,
in float64 and in float32. `--write` puts the table into docs/measured/sklearn.md; names of estimators limit it.
"""

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import onnxruntime
import sklearn_battery as battery
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import StringTensorType
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from onward.exporters import from_sklearn
from onward.formats.sklearn import asked
from onward.formats.tables import feeds, is_frame, shortened
from onward.frontends.sklearn.convert import expected_of
from onward.frontends.sklearn.from_skl2onnx import REFUSED
from onward.verification.compare import compare, differences

PAGE = Path(__file__).parent.parent / "docs/measured/sklearn.md"
START, END = "<!-- estimators: written by benchmarks/sklearn_estimators.py -->", "<!-- end of estimators -->"
VERIFIED, DIFFERS, FAILS, MISSING = "verified", "**differs**", "fails", "no converter"


@dataclass(frozen=True)
class Row:
    name: str
    ours: str
    theirs: dict[str, str]
    """skl2onnx, by dtype."""


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ours(name: str) -> str:
    problem = battery.problem(name)
    if problem is None:
        return VERIFIED
    return f"refused: {REFUSED[name]}" if name in REFUSED else problem


def theirs(name: str, float32: bool) -> str:
    """The best that skl2onnx makes of it by its options; the shapes that its results have are left aside."""
    given = battery.case(name, float32=float32 and name in battery.OWN_PRECISION)
    sample, fresh = (shortened(battery.single(data) if float32 else data) for data in (given.sample, given.fresh))
    found = {_converted(given.estimator, sample, fresh, options) for options in OPTIONS}
    return next(word for word in (VERIFIED, DIFFERS, FAILS, MISSING) if word in found)


OPTIONS: list[dict[str, Any]] = [{}, {"zipmap": False}, {"zipmap": False, "raw_scores": True}, {"locale": "C.UTF-8"}]


OPSETS = {"": 21, "ai.onnx.ml": 3}


def _converted(estimator: Any, sample: Any, fresh: Any, options: dict[str, Any]) -> str:
    chosen = {id(estimator): options} if options else None
    labels = type(estimator).__name__.startswith("Label")
    try:
        if is_frame(sample) or sample.dtype.kind != "O":
            model = to_onnx(estimator, sample[:1], options=chosen, target_opset=OPSETS)
        else:
            types = [("X", StringTensorType([None] if labels else [None, *(sample.shape[1:] or (1,))]))]
            model = convert_sklearn(estimator, initial_types=types, options=chosen, target_opset=OPSETS)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        fed = {one.name: a for one, a in zip(session.get_inputs(), feeds(fresh).values(), strict=True)}
        found = session.run(None, {name: a if labels else a.reshape(len(a), -1) for name, a in fed.items()})
    except (MissingConverter, MissingShapeCalculator):
        return MISSING
    except Exception as error:
        return MISSING if "Unable to find a" in str(error) else FAILS
    expected = expected_of(estimator, fresh, asked(estimator))
    pairs = list(zip(expected.items(), found, strict=False))
    if any(isinstance(result, list) for _, result in pairs):
        return FAILS
    wanted = {label: values for (label, values), _ in pairs}
    return DIFFERS if differences(compare(wanted, {label: _like(r, v) for (label, v), r in pairs})) else VERIFIED


def _like(result: Any, values: Any) -> Any:
    array = np.asarray(result.toarray() if hasattr(result, "toarray") else result)
    if array.size == values.size and array.shape != values.shape:
        array = array.reshape(values.shape)
    return array.astype(values.dtype) if array.dtype.kind == values.dtype.kind else array


def measured(name: str) -> Row:
    with quiet():
        return Row(name, ours(name), {dtype: theirs(name, dtype == "float32") for dtype in ("float32", "float64")})


def forest() -> str:
    """The time to convert a forest, beside skl2onnx: CPU seconds of the best of five, in turns."""
    x, y = make_classification(2000, 20, n_informative=10, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    model = RandomForestClassifier(100, random_state=0).fit(x, y)
    best = {"skl2onnx": np.inf, "Onward": np.inf, "checked": np.inf}
    for _ in range(5):
        for who, work in {
            "skl2onnx": lambda: to_onnx(model, x[:1], options={"zipmap": False}),
            "Onward": lambda: from_sklearn(model, x, check=False),
            "checked": lambda: from_sklearn(model, x),
        }.items():
            start = time.process_time()
            work()
            best[who] = min(best[who], time.process_time() - start)
    ratio, checked = best["Onward"] / best["skl2onnx"], best["checked"] / best["skl2onnx"]
    return (
        f"A forest of 100 trees (55,000 nodes) is converted in {best['Onward']:.2f} s of CPU time: {ratio:.2f} times"
        f" skl2onnx's {best['skl2onnx']:.2f} s, and {checked:.2f} times with the check on the sample."
    )


def page(rows: list[Row]) -> str:
    verified = sum(row.ours == VERIFIED for row in rows)
    counts = {
        dtype: {word: sum(row.theirs[dtype] == word for row in rows) for word in (VERIFIED, DIFFERS, FAILS, MISSING)}
        for dtype in ("float32", "float64")
    }
    lines = [
        machine.describe("scikit-learn", "skl2onnx", "onnx", "onnxruntime"),
        "",
        f"Of {len(rows)} estimators, **{verified} are verified in both precisions**, {len(rows) - verified} refused.",
        "",
        "| skl2onnx | verified | differs | fails | no converter |",
        "|---|---|---|---|---|",
        *(f"| {dtype} | {' | '.join(map(str, found.values()))} |" for dtype, found in counts.items()),
        "",
        forest(),
        "",
        "| estimator | Onward | skl2onnx, float32 | float64 |",
        "|---|---|---|---|",
        *(f"| {row.name} | {row.ours} | {row.theirs['float32']} | {row.theirs['float64']} |" for row in rows),
    ]
    return "\n".join(lines)


def main() -> None:
    onnxruntime.set_default_logger_severity(4)
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    rows = []
    for name in names or battery.names():
        rows.append(measured(name))
        print(*(rows[-1].name, rows[-1].ours, rows[-1].theirs), flush=True)
    text = page(rows)
    if "--write" not in sys.argv:
        print(text)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
