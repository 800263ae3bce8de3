"""Networks that classify in int8, beside ONNX Runtime's quantizer: rows for docs/measured/bits.md."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from held_to_avx2 import is_held
from labelled import CLASSES, JUDGED, NETWORKS, SIZE, fed, judged, taught
from turns import ratios

import onward
from onward.bits.integers import quantized
from onward.bits.search import accuracy
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs
from onward.verification.compare import measure

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build/bits-int8.jsonl"
ROWS, AT_ONCE = 900, 100
"""By which the network of the digits is calibrated, all others are what it is judged by; and rows of one set."""
CALIBRATED, TIMED = 500, 16
"""Images by which the other networks are calibrated, and images of one run whose time is taken."""
MOST = 0.005
TOOLS: dict[str, dict[str, Any]] = {
    "tool": {},
    "tool, prepared": {"prepared": True},
    "tool, prepared, uint8 × int8 for each channel": {"prepared": True, "per_channel": True, "unsigned": True},
}


@dataclass(frozen=True)
class Task:
    """A network with data to calibrate on, and others to judge by."""

    model: Model
    samples: list[Inputs]
    marks: list[Any]
    tests: Callable[[], Iterator[tuple[list[Inputs], list[Any]]]]
    """Others with their marks, some at a time."""


@dataclass(frozen=True)
class Row:
    accuracy: float
    error: float
    weights: float
    time: float
    layers: str = ""
    calibrated: float = 0.0
    """The accuracy on the data that it was calibrated on."""
    agreed: float = 1.0
    """The share of rows whose class is that of the floats."""
    spread: float = 0.0
    """The standard error of the accuracy less that of the floats, which is of the same rows."""


def digits() -> Task:
    import sklearn.datasets

    data = sklearn.datasets.load_digits()
    images, labels = (data.images / 16).astype(np.float32)[:, None], data.target
    model = onward.load(ROOT / "examples/digits/digits.onnx")
    others = _sets("image", images[ROWS:], labels[ROWS:])
    return Task(model, *_sets("image", images[:ROWS], labels[:ROWS]), lambda: iter([others]))


def network(name: str) -> Task:
    model = onward.load(taught(name))
    entry = model.ir.graph.inputs[0].name or ""
    one = fed(CALIBRATED, 3)
    others = partial(map, lambda some: _sets(entry, some.images, some.labels))
    return Task(model, *_sets(entry, one.images, one.labels), lambda: others(judged()))


def _sets(name: str, images: Any, labels: Any) -> tuple[list[Inputs], list[Any]]:
    starts = range(0, len(images), AT_ONCE)
    return [{name: images[i : i + AT_ONCE]} for i in starts], [labels[i : i + AT_ONCE] for i in starts]


def by_tool(
    model: Model, samples: list[Inputs], prepared: bool = False, per_channel: bool = False, unsigned: bool = False
) -> Model:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Any:
            return next(self.rest, None)

    with tempfile.TemporaryDirectory() as folder:
        path, ready, out = (Path(folder) / f"{name}.onnx" for name in ("floats", "ready", "int8"))
        model.save(path, external_data=False)
        if prepared:
            quant_pre_process(str(path), str(ready), skip_symbolic_shape=True)
        more = {"activation_type": quantization.QuantType.QUInt8} if unsigned else {}
        quantization.quantize_static(ready if prepared else path, out, Reader(), per_channel=per_channel, **more)
        return onward.load(out.read_bytes())


def made(task: Task) -> Iterator[tuple[str, Model, str]]:
    yield "floats", task.model, ""
    whole = quantized(task.model, task.samples)
    yield "Onward", whole.model, f"{len(whole.layers)}"
    held = quantized(task.model, task.samples, labels=task.marks, most=MOST)
    left = sum(layer.is_float for layer in held.layers)
    yield f"Onward, `--max-loss {100 * MOST:g}%`", held.model, f"{len(held.layers) - left} of {len(held.layers)}"
    for name, how in TOOLS.items():
        yield name, by_tool(task.model, task.samples, **how), ""


@dataclass
class Count:
    """Of the rows that a network was judged on so far: how many there were, how many it got right, and so on."""

    rows: int = 0
    right: int = 0
    agreed: int = 0
    won: int = 0
    lost: int = 0
    """Those that it alone got right, or the floats alone."""
    errors: list[float] = field(default_factory=list)

    def add(self, expected: Outputs, found: Outputs, truth: Any) -> None:
        floats, classes = (next(iter(outputs.values())).argmax(axis=1) for outputs in (expected, found))
        self.rows += len(truth)
        self.right += int(np.sum(classes == truth))
        self.agreed += int(np.sum(classes == floats))
        self.won += int(np.sum((classes == truth) & (floats != truth)))
        self.lost += int(np.sum((classes != truth) & (floats == truth)))
        self.errors += [error.overall for error in measure(expected, found).values()]

    @property
    def spread(self) -> float:
        return float(np.sqrt(self.won + self.lost - (self.won - self.lost) ** 2 / self.rows) / self.rows)


def rows(task: Task) -> dict[str, Row]:
    found = {}
    models = list(made(task))
    runs = [prepare("onnxruntime", model) for _, model, _ in models]
    few = {name: array[:TIMED] for name, array in task.samples[0].items()}
    times = ratios([partial(each, few) for each in runs])
    counts = [Count() for _ in runs]
    for samples, truth in task.tests():
        for inputs, marks in zip(samples, truth, strict=True):
            expected = runs[0](inputs)
            for run, count in zip(runs, counts, strict=True):
                count.add(expected, run(inputs), marks)
    for (name, model, layers), run, time, count in zip(models, runs, times, counts, strict=True):
        found[name] = Row(
            count.right / count.rows,
            float(np.mean(count.errors)),
            model.nbytes / task.model.nbytes,
            time,
            layers,
            accuracy([run(inputs) for inputs in task.samples], task.marks),
            count.agreed / count.rows,
            count.spread,
        )
    return found


def tasks() -> dict[str, Callable[[], Task]]:
    return {"digits": digits} | {name: partial(network, name) for name in NETWORKS}


def lines(only: str | None = None) -> Iterator[str]:
    logging.disable(logging.WARNING)
    kept: dict[str, Any] = {}
    if KEPT.exists() and not is_held():
        kept = dict(json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines())
    yield f"The digits of `examples/digits`, calibrated on {ROWS} rows and judged on {1797 - ROWS} others, and networks"
    yield f"of `keras.applications` that `benchmarks/labelled.py` taught {CLASSES} shapes, in images of {SIZE} × {SIZE}"
    yield f"with noise: calibrated on {CALIBRATED}, and judged on {JUDGED:,} others. *As floats* is the share of those"
    yield "for which the answer is that of the floats, be it right or wrong; behind ± stands the standard error of the"
    yield "difference from the floats, of the same images; *error* is that of the outputs,"
    yield f"*time* that of a run of {TIMED} images beside the floats, of the processor."
    yield "*Tool* is `onnxruntime.quantization.quantize_static`: as it is, behind `quant_pre_process`, and as its"
    yield "documentation advises for processors with VNNI. What it writes may saturate on those without. Of Onward's"
    yield "weights, no two of a channel are large enough for that."
    yield ""
    yield "| network | | right | as floats | on the data of calibration | error | weights | time | layers in int8 |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, task in tasks().items():
        if only is not None and name != only:
            continue
        if name not in kept:
            kept[name] = {key: asdict(row) for key, row in rows(task()).items()}
            if not is_held():
                KEPT.parent.mkdir(exist_ok=True)
                with KEPT.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, kept[name]]) + "\n")
        for place, (title, cells) in enumerate(kept[name].items()):
            row = Row(**cells)
            numbers = f"{row.error:.1e} | {row.weights:.2f} | {row.time:.2f}" if place else "| 1 | 1"
            agreed = f"{100 * row.agreed:.2f} %" if place else ""
            spread = f" ± {100 * row.spread:.2f}" if place else ""
            right = f"{100 * row.accuracy:.2f}{spread} % | {agreed} | {100 * row.calibrated:.2f} %"
            yield f"| {'' if place else name} | {title} | {right} | {numbers} | {row.layers} |"
