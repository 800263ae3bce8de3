"""Checks a converted model against ONNX Runtime on the original file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from onward.errors import UnsupportedError
from onward.model import Model
from onward.verify.compare import Difference, Outputs, compare, measure
from onward.verify.data import Inputs, input_sets

SETS = 2
"""How many sets of inputs, of different sizes where the model has dynamic ones, are tried."""

Run = Callable[[Inputs], Outputs]


@dataclass
class Reference:
    """What ONNX Runtime says: inputs, outputs with optimisations on, and how far those off are from them."""

    inputs: list[Inputs] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    noise: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """The outcome of a comparison."""

    worst: float
    """The largest error of any output, relative to the output's own scale."""
    noise: float
    """The original's own noise: the error between two settings of ONNX Runtime."""
    sets: int
    differences: list[Difference]


def session(model: Model, *, optimize: bool) -> Run:
    """The original model on ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    source: Any = str(model.path) if model.path is not None else model.to_proto().SerializeToString()
    try:
        found = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UnsupportedError(f"ONNX Runtime cannot run the original: {reason[:200]}") from error
    names = [output.name for output in found.get_outputs()]
    return lambda inputs: dict(zip(names, found.run(None, inputs), strict=True))


def reference(model: Model, seed: int = 0) -> Reference:
    """Run the original on generated inputs, twice: what differs between the two runs is the model's own noise."""
    optimized, plain = session(model, optimize=True), session(model, optimize=False)
    made = Reference()
    for inputs in itertools.islice(input_sets(model, seed), SETS):
        outputs = optimized(inputs)
        made.inputs.append(inputs)
        made.outputs.append(outputs)
        for name, error in measure(outputs, plain(inputs)).items():
            made.noise[name] = max(error, made.noise.get(name, 0.0))
    return made


def check(against: Reference, run: Callable[[Inputs, Iterable[str]], Outputs]) -> Check:
    """Compare a converted model, run by `run(inputs, output_names)`, with the reference."""
    worst, differences = 0.0, []
    for inputs, expected in zip(against.inputs, against.outputs, strict=True):
        actual = run(inputs, expected)
        worst = max([worst, *measure(expected, actual).values()])
        differences += compare(expected, actual, against.noise)
    return Check(worst, max(against.noise.values(), default=0.0), len(against.inputs), differences)
