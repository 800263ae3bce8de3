"""25 features of a credit model: pandas, Polars, a graph written by hand, and the converted function, side by side.

python benchmarks/dataframe_speed.py            1, 10,000 and 1,000,000 rows; writes docs/measured/speed-dataframes.md
python benchmarks/dataframe_speed.py --rows 7   other numbers of rows; writes nothing

All run on one thread; times are processor time, the median of runs in turn. Frames are given to pandas and Polars,
arrays to ONNX Runtime: what it takes to turn one into the other is shown apart.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "examples/credit"), str(ROOT / "tests/frontends/dataframe/battery")]

import credit_features  # noqa: E402
import credit_graph  # noqa: E402
import machine  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
from frame_compare import same  # noqa: E402
from make_data import applications  # noqa: E402

import onward  # noqa: E402

PAGE = ROOT / "docs/measured/speed-dataframes.md"
ROWS = (1, 10_000, 1_000_000)
FUNCTIONS = {
    "18 without strings": (credit_features.numbers, credit_features.polars_numbers, False),
    "25 with strings": (credit_features.features, credit_features.polars_features, True),
}
WORDS = """# Speed of data processing

25 features of a credit model, 18 of which take no strings, as a function of pandas, the same in Polars, an ONNX graph
written by hand, and the function of pandas converted. Processor time on one thread, the median of runs in turn in one
process; all compute the same. Frames are given to pandas and Polars, arrays to ONNX Runtime, which takes the masks of
the columns that have nulls, and gets the names of its outputs. Made by `benchmarks/dataframe_speed.py`."""
FLOOR, FRESH = "nothing computed", "memory not used again"
"""Measured at one row, and told below the table."""


def session(model: onnx.ModelProto, *, is_fresh: bool = False) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_mem_reuse = not is_fresh
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def in_turns(contestants: dict[str, Callable[[], Any]], rows: int) -> dict[str, float]:
    """The median processor time of each in seconds: short calls are timed many at a time."""
    calls, rounds = (50, 15) if rows < 100 else (3, 11) if rows < 100_000 else (1, 7)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, call in contestants.items():
            begin = time.process_time()
            for _ in range(calls):
                call()
            if turn:
                times[name].append((time.process_time() - begin) / calls)
    return {name: statistics.median(found) for name, found in times.items()}


def converted(function: Callable[..., Any], sample: pd.DataFrame) -> tuple[Any, float] | None:
    """The model that the function becomes and the seconds that this took, or nothing if there is no conversion yet."""
    if not hasattr(onward, "from_dataframe"):
        return None
    begin = time.process_time()
    model = onward.from_dataframe(function, sample, check=False)
    return model, time.process_time() - begin


def idle(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the same inputs and outputs that computes nothing: what a call costs by itself."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph, double = made.graph, onnx.TensorProto.DOUBLE
    fed = [value for value in graph.input if not value.name.endswith(".null")]
    of = {value.type.tensor_type.elem_type: value.name for value in fed}
    del graph.node[:]
    for output in graph.output:
        source = of.get(output.type.tensor_type.elem_type)
        given = onnx.helper.make_node("Identity" if source else "IsNaN", [source or of[double]], [output.name])
        graph.node.append(given)
    return made


def calls(own: onnxruntime.InferenceSession, fed: dict[str, Any], frame: pd.DataFrame) -> Callable[[], Any]:
    """A run on the columns that the session takes; masks are fed of columns that have nulls."""
    names = {one.name for one in own.get_inputs()} | {one.name for one in own.get_overridable_initializers()}
    given = {name: array for name, array in fed.items() if name in names and not name.endswith(".null")}
    for name in frame:
        null = frame[name].isna().to_numpy().reshape(-1, 1)
        if f"{name}.null" in names and null.any():
            given[f"{name}.null"] = null
    return partial(own.run, [one.name for one in own.get_outputs()], given)


def as_frame(outputs: list[str], arrays: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(
        {name.removeprefix("out."): array.ravel() for name, array in zip(outputs, arrays, strict=True)}
    )
    return frame.assign(age_group=frame.age_group.replace("", None)) if "age_group" in frame else frame


def check(name: str, wanted: pd.DataFrame, found: pd.DataFrame) -> None:
    """What is not the same is not timed."""
    difference = same(wanted, found)
    if difference is not None:
        raise SystemExit(f"{name} computes something else: {difference}")


def measured(title: str, rows: int) -> tuple[dict[str, float], list[str]]:
    """The times of all, by name."""
    function, polars_function, with_strings = FUNCTIONS[title]
    table = applications(max(rows, 100), seed=2)
    frame = table.head(rows).copy()
    other = pl.from_pandas(frame)
    hand = session(credit_graph.hand_written(with_strings))
    fed = credit_graph.feeds(frame, with_strings)
    wanted = function(frame)
    if len(frame) > 1:
        check("the graph", wanted, as_frame([one.name for one in hand.get_outputs()], hand.run(None, fed)))
        check("Polars", wanted, polars_function(other).to_pandas())
    contestants: dict[str, Callable[[], Any]] = {
        "pandas": partial(function, frame),
        "Polars": partial(polars_function, other),
        "by hand": calls(hand, fed, frame),
    }
    notes = [f"{len(credit_graph.hand_written(with_strings).graph.node)} nodes by hand"]
    made = converted(function, table.head(100))
    if made is not None:
        model, seconds = made
        proto = model.to_proto()
        check("the converted function", wanted, onward.run(model, frame))
        contestants["converted"] = calls(session(proto), fed, frame)
        contestants["converted, from a frame"] = partial(onward.run, model, frame)
        notes.append(f"{len(proto.graph.node)} nodes converted, in {seconds:.2f} s")
        if rows == 1:
            contestants[FLOOR] = calls(session(idle(proto)), fed, frame)
            contestants[FRESH] = calls(session(proto, is_fresh=True), fed, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = in_turns(contestants, rows)
    floor, fresh = times.pop(FLOOR, None), times.pop(FRESH, None)
    if floor and fresh:
        notes.append(
            f"at one row, a session of the same inputs and outputs that computes nothing takes {spoken(floor)}"
            f" (Polars ÷ it: {times['Polars'] / floor:.1f})"
        )
        notes.append(
            f"at one row, with `enable_mem_reuse = False`, the converted function takes {spoken(fresh)}"
            f" (pandas ÷ it: {times['pandas'] / fresh:.1f}, Polars ÷ it: {times['Polars'] / fresh:.1f})"
        )
    return times, notes


def spoken(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def lines(title: str, rows: int, times: dict[str, float]) -> list[str]:
    """A row of the table: times, then how many times as long pandas and Polars take."""
    best = [name for name in ("by hand", "converted") if name in times]
    cells = [title, f"{rows:,}", *(spoken(seconds) for seconds in times.values())]
    return cells + [f"{times[peer] / times[name]:.2f}" for name in best for peer in ("pandas", "Polars")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", help="other numbers of rows; writes nothing")
    args = parser.parse_args()
    table: list[list[str]] = []
    remarks: dict[str, None] = {}
    times: dict[str, float] = {}
    for title in FUNCTIONS:
        for rows in args.rows or ROWS:
            times, notes = measured(title, rows)
            table.append(lines(title, rows, times))
            remarks |= dict.fromkeys(f"{title}: {note}." for note in notes)
            print(*table[-1], sep=" | ")
    if "converted" not in times:
        remarks["This version of onward does not convert functions: the graph by hand is what is to be reached."] = None
    best = [name for name in ("by hand", "converted") if name in times]
    heads = ["features", "rows", *times, *(f"{peer} ÷ {name}" for name in best for peer in ("pandas", "Polars"))]
    text = "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *table])
    described = machine.describe("pandas", "polars", "onnxruntime", "numpy")
    page = f"{WORDS}\n\n{text}\n\n{chr(10).join(f'- {remark}' for remark in remarks)}\n\n{described}\n"
    print(page)
    if not args.rows:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
