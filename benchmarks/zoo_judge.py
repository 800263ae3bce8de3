"""What ONNX Runtime makes of a pretrained model, and whether a converter's result makes the same of it."""

import functools
import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from operator import or_
from pathlib import Path
from typing import Any

import onnx
import peers
import torch

import onward
from onward.backends.torch.values import to_framework, to_numpy
from onward.errors import OnwardError, RunFailure
from onward.runners import prepare
from onward.runners.calls import Run
from onward.runners.isolate import Isolated
from onward.verification.compare import Error, Outputs, compare, differences, measure
from onward.verification.data.sets import Inputs, input_sets
from onward.verification.noise.spread import jittered, usual_sizes

SETS = 2
"""How many sets of inputs, of different sizes where the model has dynamic ones, each model is tried on."""
JITTERS = 2
SECONDS = 1200.0
"""Time for what ONNX Runtime makes of a model, and for each converter, after which it fails."""
Converter = Callable[[Path], Run]
UNKNOWN = Error(float("nan"), float("nan"))


@dataclass
class Reference:
    """What ONNX Runtime says, and how sure it is: the noise is how far off it is without optimisations, and with
    every intermediate result off by one unit in the last place.
    """

    inputs: list[Inputs]
    outputs: list[Outputs]
    noise: dict[str, Error]


@dataclass(frozen=True)
class Result:
    verdict: str
    """'same', 'different', or 'fails'"""
    detail: str = ""
    error: Error = UNKNOWN
    seconds: float = float("nan")
    first: float = float("nan")
    """Seconds of the first run, which compiles what is compiled."""


@dataclass(frozen=True)
class Judgement:
    """Of a model, by converter."""

    noise: Error
    results: dict[str, Result]


def reference(path: Path) -> Reference:
    proto = onnx.load(path)
    model = onward.load(path)
    optimized, others = prepare("onnxruntime", model), [prepare("onnxruntime:unoptimized", model)]
    for seed in range(JITTERS):
        others.append(prepare("onnxruntime:unoptimized", onward.load(jittered(proto, seed))))
    sets = [(inputs, optimized(inputs)) for inputs in itertools.islice(input_sets(model), SETS)]
    noise = dict(usual_sizes(model, sets))
    for inputs, outputs in sets:
        for other in others:
            for name, error in measure(outputs, other(inputs), noise).items():
                noise[name] = noise.get(name, Error()) | error
    return Reference(*map(list, zip(*sets, strict=True)), noise)


def module(convert: Callable[[Path], torch.nn.Module]) -> Converter:
    """Of a converter to PyTorch: outputs go by the names and the order that the model has them in."""

    def opened(path: Path) -> Run:
        net = convert(path).eval()
        names = [output.name or "" for output in onward.load(path).ir.graph.outputs]

        def run(inputs: Inputs) -> Outputs:
            with torch.inference_mode():
                outputs = net(*(to_framework(value) for value in inputs.values()))
            values = outputs if len(names) > 1 and isinstance(outputs, list | tuple) else [outputs]
            return dict(zip(names, map(to_numpy, values), strict=True))

        return run

    return opened


def runner(name: str) -> Converter:
    """Of a runner by its name, such as `tensorflow`."""
    return lambda path: prepare(name, onward.load(path))


to_torch = functools.partial(onward.to_torch, check=False)  # it is compared here
CONVERTERS: dict[str, Converter] = {
    "torch": module(to_torch),
    "tensorflow": runner("tensorflow"),
    "tensorflow:function": runner("tensorflow:function"),
    "keras": runner("keras"),
    "jax": runner("jax"),
    "jax:jit": runner("jax:jit"),
    "onnx2torch": module(peers.onnx2torch),
    "onnx2pytorch": module(peers.onnx2pytorch),
}


def judge(path: Path, convert: Converter, against: Reference) -> Result:
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = convert(path)
            seconds = time.perf_counter() - start
            error, first = Error(), math.nan
            for inputs, expected in zip(against.inputs, against.outputs, strict=True):
                start = time.perf_counter()
                actual = run(inputs)
                first = time.perf_counter() - start if math.isnan(first) else first
                error = functools.reduce(or_, measure(expected, actual, against.noise).values(), error)
                if wrong := differences(compare(expected, actual, against.noise)):
                    return Result("different", wrong[0], error, seconds, first)
    except Exception as problem:
        return Result("fails", f"{type(problem).__name__}: {problem}")
    return Result("same", "", error, seconds, first)


def judged(path: Path, converters: dict[str, str], seconds: float = SECONDS) -> Judgement:
    """A model on each of `converters`, title to name, in a process of its own that may crash or hang."""
    try:
        process = Isolated(functools.partial(_opened, path), seconds=seconds)
    except OnwardError as problem:
        return Judgement(UNKNOWN, dict.fromkeys(converters, Result("fails", f"ONNX Runtime {problem}")))
    results = {}
    for title, name in converters.items():
        try:
            results[title] = process({"converter": name})["result"]
        except RunFailure as problem:  # the next converter gets a fresh process
            results[title] = Result("fails", str(problem))
    noise: Error = process.facts
    process.close()
    return Judgement(noise, results)


def _opened(path: Path) -> tuple[Run, Error]:
    """Inside the process: what answers the question how a converter fares, and the model's own noise."""
    truth = reference(path)

    def answer(question: dict[str, Any]) -> dict[str, Result]:
        return {"result": judge(path, CONVERTERS[question["converter"]], truth)}

    return answer, functools.reduce(or_, truth.noise.values(), Error())
