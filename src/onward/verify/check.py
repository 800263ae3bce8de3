"""Checks a converted model against ONNX Runtime on the original file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from onward.errors import OnwardError, UnsupportedError
from onward.model import Model
from onward.verify.compare import Error, Outputs, compare, differences, measure
from onward.verify.data import Inputs, input_sets
from onward.verify.noise import jittered

SETS = 2
"""How many sets of inputs, of different sizes where the model has dynamic ones, are tried."""
JITTERS = 2

Run = Callable[[Inputs], Outputs]
Candidate = Callable[[Inputs, Iterable[str]], Outputs]
"""Runs the converted model: inputs and the names of outputs to outputs."""


@dataclass
class Reference:
    """What ONNX Runtime says of a model: inputs, outputs, and how far off it is when it rounds differently."""

    model: Model
    inputs: list[Inputs] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    noise: dict[str, Error] = field(default_factory=dict)

    def add_noise(self, run: Run) -> None:
        """Take into account another run of the original that ought to give the same."""
        for inputs, outputs in zip(self.inputs, self.outputs, strict=True):
            for name, error in measure(outputs, run(inputs)).items():
                self.noise[name] = self.noise.get(name, Error()) | error


@dataclass(frozen=True)
class Check:
    """The outcome of a comparison."""

    error: Error
    noise: Error
    """The original's own."""
    sets: int
    differences: list[str]


def session(model: Model | bytes, *, optimize: bool) -> Run:
    """The original model on ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    source: Any = model
    if isinstance(model, Model):
        source = str(model.path) if model.path is not None else model.to_proto().SerializeToString()
    try:
        found = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UnsupportedError(f"ONNX Runtime cannot run the original: {_brief(error)}") from error
    names = [output.name for output in found.get_outputs()]
    return lambda inputs: dict(zip(names, found.run(None, inputs), strict=True))


def reference(model: Model, seed: int = 0) -> Reference:
    """Run the original on generated inputs, with ONNX Runtime's optimisations on and off."""
    made = Reference(model)
    optimized, plain = session(model, optimize=True), session(model, optimize=False)
    try:
        for inputs in itertools.islice(input_sets(model, seed), SETS):
            made.outputs.append(optimized(inputs))
            made.inputs.append(inputs)
        made.add_noise(plain)
    except OnwardError:
        raise
    except Exception as error:
        raise UnsupportedError(f"ONNX Runtime cannot run the original: {_brief(error)}") from error
    return made


def check(against: Reference, run: Candidate) -> Check:
    """Compare a converted model with the reference.

    A model that amplifies rounding, as quantised ones do, is given the tolerance it needs: where the two differ, the
    noise is measured once more, on copies of the original whose intermediate results are off by one unit in the
    last place.
    """
    actual = [run(inputs, list(expected)) for inputs, expected in zip(against.inputs, against.outputs, strict=True)]
    outcome = _compare(against, actual)
    if outcome.differences and _add_jitter(against):
        return _compare(against, actual)
    return outcome


def _compare(against: Reference, actual: list[Outputs]) -> Check:
    error = Error()
    found_differences: list[str] = []
    for expected, found in zip(against.outputs, actual, strict=True):
        error = reduce(or_, measure(expected, found).values(), error)
        found_differences += differences(compare(expected, found, against.noise))
    return Check(error, reduce(or_, against.noise.values(), Error()), len(actual), found_differences)


def _add_jitter(against: Reference) -> bool:
    """Whether copies of the model, off by one unit in the last place, could be made and run."""
    try:
        proto = against.model.to_proto()
        for seed in range(JITTERS):
            against.add_noise(session(jittered(proto, seed).SerializeToString(), optimize=False))
    except Exception:  # a model too large for one file, or one that does not bear the change
        return False
    return True


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
