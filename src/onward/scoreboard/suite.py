"""ONNX's own backend test suite, run on a backend of ours: `python -m onward.scoreboard.suite torch`.

Every case is run as the suite itself does: the model is prepared once, each data set's inputs are fed, and the outputs
are compared with the suite's own comparison and the case's own tolerances.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onward import runners
from onward.backends.backend import backend as find
from onward.backends.backend import backends
from onward.backends.backend import names as backend_names
from onward.engine.jobs import RENEWED
from onward.model import load
from onward.writing import write_text

Run = Callable[[list[Any]], list[Any]]
"""Inputs, in the order of the model, to outputs, in its order."""
Prepare = Callable[[onnx.ModelProto], Run]


@dataclass(frozen=True)
class Result:
    name: str
    outcome: str  # "pass", "fail" (wrong result) or "error" (refused or crashed)
    message: str = ""


@cache
def cases() -> dict[str, Any]:
    """All 2,033 cases by name; the data of most is generated in memory."""
    from onnx.backend.test import loader

    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        found = [
            c
            for kind in ("node", "simple", "pytorch-converted", "pytorch-operator")
            for c in loader.load_model_tests(kind=kind)
        ]
        found += light_cases()
    return {c.name: c for c in found}


def light_cases() -> list[Any]:
    """The nine well-known networks, with small random weights, that the package ships."""
    from onnx.backend.test import loader

    return list(loader.load_model_tests(kind="real"))


def data_sets(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and expected outputs of a case."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [_array(v) for v in inputs], [_array(v) for v in outputs]
        return
    if case.model_dir is None:
        yield light_data(case)
        return
    model = onnx.load(Path(case.model_dir) / "model.onnx", load_external_data=False)
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield (
            [
                read_value(folder / f"input_{i}.pb", v.type)
                for i, v in enumerate(model.graph.input)
                if (folder / f"input_{i}.pb").exists()
            ],
            [read_value(folder / f"output_{i}.pb", v.type) for i, v in enumerate(model.graph.output)],
        )


def _array(value: Any) -> Any:
    """Values in the data sets of a few cases are still protobuf."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def light_path(case: Any) -> Path:
    return Path(onnx.__file__).parent.parent / str(case.url)


def light_data(case: Any) -> tuple[list[Any], list[Any]]:
    """The inputs that the suite makes up for a light model, and the outputs it ships."""
    from onnx.backend.test.runner import Runner

    path = light_path(case)
    graph = onnx.load(path).graph
    weights = {w.name for w in graph.initializer}
    inputs = [
        Runner.generate_dummy_data(v, seed=0, name=case.model_name, random=False)
        for v in graph.input
        if v.name not in weights
    ]
    outputs = [read_value(path.with_name(f"{path.stem}_output_{i}.pb"), v.type) for i, v in enumerate(graph.output)]
    return inputs, outputs


def read_value(path: Path, type_proto: onnx.TypeProto) -> Any:
    data = path.read_bytes()
    match type_proto.WhichOneof("value"):
        case "sequence_type":
            return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        case "optional_type":
            return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
        case _:
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def model_of(case: Any) -> onnx.ModelProto:
    if case.model is not None:
        return case.model
    return onnx.load(light_path(case) if case.model_dir is None else Path(case.model_dir) / "model.onnx")


def forget_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with every input dimension symbolic and no value infos."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for k, value in enumerate(copy.graph.input):
        _forget(value.type, f"d{k}")
    for value in copy.graph.output:
        _strip(value.type)
    return copy


def _forget(type_proto: onnx.TypeProto, prefix: str) -> None:
    match type_proto.WhichOneof("value"):
        case "tensor_type":
            for i, dim in enumerate(type_proto.tensor_type.shape.dim):
                dim.dim_param = f"{prefix}_{i}"
        case "sequence_type":
            _strip(type_proto.sequence_type.elem_type)
        case "optional_type":
            _forget(type_proto.optional_type.elem_type, prefix)


def _strip(type_proto: onnx.TypeProto) -> None:
    match type_proto.WhichOneof("value"):
        case "tensor_type":
            type_proto.tensor_type.ClearField("shape")
        case "sequence_type":
            _strip(type_proto.sequence_type.elem_type)
        case "optional_type":
            _strip(type_proto.optional_type.elem_type)


def run_case(case: Any, prepare: Prepare, unknown_shapes: bool = False) -> Result:
    from onnx.backend.test.runner import Runner

    try:
        model = model_of(case)
        if unknown_shapes:
            model = forget_shapes(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = prepare(model)
            for inputs, expected in data_sets(case):
                actual = run(list(inputs))
                try:
                    Runner.assert_similar_outputs(
                        *with_lengths(list(expected), list(actual)),
                        rtol=case.rtol,
                        atol=case.atol,
                        model_dir=case.model_dir,
                    )
                except AssertionError as error:
                    return Result(case.name, "fail", _brief(error))
    except Expired:
        return Result(case.name, "error", "timed out")
    except Exception as error:
        return Result(case.name, "error", f"{type(error).__name__}: {_brief(error)}")
    return Result(case.name, "pass")


def with_lengths(expected: list[Any], actual: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both outputs, with scalars inside sequences as arrays of one element: the suite's comparison takes lengths."""
    pairs = [_pair_with_lengths(wanted, found) for wanted, found in zip(expected, actual, strict=True)]
    return [wanted for wanted, _ in pairs], [found for _, found in pairs]


def _pair_with_lengths(wanted: Any, found: Any) -> tuple[Any, Any]:
    if not isinstance(wanted, list) or not isinstance(found, list) or len(wanted) != len(found):
        return wanted, found
    scalars = [isinstance(a, np.ndarray) and a.ndim == np.ndim(b) == 0 for a, b in zip(wanted, found, strict=True)]
    first, second = (
        [np.reshape(v, 1) if s else v for v, s in zip(side, scalars, strict=True)] for side in (wanted, found)
    )
    return first, second


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:300]


def prepare(runner: str, model: onnx.ModelProto) -> Run:
    """The model on a runner, such as 'torch' or 'onnxruntime:unoptimized'."""
    loaded = load(model)
    run = runners.prepare(runner, loaded)
    inputs = [value.name or "" for value in loaded.ir.graph.inputs if not value.is_initializer()]
    outputs = [value.name or "" for value in loaded.ir.graph.outputs]

    def in_order(values: list[Any]) -> list[Any]:
        found = run(dict(zip(inputs, values, strict=False)))
        return [found[name] for name in outputs]

    return in_order


CHUNK = 8
"""Cases that a process is given at once."""
LONGEST = 120
"""Seconds of processor time that a case may take: others may be busy on the machine."""


class Expired(BaseException):
    """The time of a case is over. No runtime takes it for an error of its own."""


def _worker(job: tuple[str, str, bool]) -> Result:
    name, backend, unknown = job
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.alarm(10 * LONGEST)
    try:
        return run_case(cases()[name], partial(prepare, backend), unknown)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _start() -> None:
    def expire(*_: Any) -> None:
        raise Expired

    signal.signal(signal.SIGPROF, expire)
    signal.signal(signal.SIGALRM, expire)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for one in backends():
        if one.package in sys.modules:
            one.use_threads(1)


def run(backend: str, names: Iterable[str], unknown_shapes: bool = False, jobs: int = 2) -> list[Result]:
    """Run the named cases, spread over processes."""
    work = [(name, backend, unknown_shapes) for name in names]
    if jobs <= 1:
        _start()
        return [_worker(job) for job in work]
    cases()
    with multiprocessing.get_context("fork").Pool(jobs, _start, maxtasksperchild=RENEWED // CHUNK) as pool:
        return list(pool.imap_unordered(_worker, work, chunksize=CHUNK))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m onward.scoreboard.suite", description=__doc__)
    parser.add_argument("backend", help="a runner, such as torch or onnxruntime:unoptimized")
    parser.add_argument("-k", "--match", default="", help="run the cases whose name matches this regular expression")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes (1: run here)")
    parser.add_argument("-u", "--unknown-shapes", action="store_true", help="forget all shapes first")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the source and traceback of failing cases")
    parser.add_argument("-o", "--out", type=Path, help="write the results as JSON")
    args = parser.parse_args(argv)
    runners.find(args.backend)
    names = [n for n in cases() if re.search(args.match, n)]
    results = sorted(run(args.backend, names, args.unknown_shapes, args.jobs), key=lambda r: r.name)
    for result in results:
        if result.outcome != "pass":
            print(f"{result.outcome:5} {result.name}: {result.message}")
            if args.verbose:
                _explain(result.name, args.backend, args.unknown_shapes)
    passed = sum(r.outcome == "pass" for r in results)
    print(f"{passed} of {len(results)} pass")
    if args.out:
        write_text(args.out, json.dumps([asdict(r) for r in results], indent=1))
    return 0 if passed == len(results) else 1


def _explain(name: str, backend: str, unknown: bool) -> None:
    case = cases()[name]
    model = forget_shapes(model_of(case)) if unknown else model_of(case)
    print(onnx.printer.to_text(model)[:3000])
    try:
        if (framework := backend.partition(":")[0]) in backend_names():
            print(find(framework).generate(load(model)).model)
        prepared = prepare(backend, model)
        for inputs, expected in data_sets(case):
            print("expected", expected, "actual", prepared(list(inputs)))
    except Exception:
        traceback.print_exc()


if __name__ == "__main__":
    np.set_printoptions(threshold=50)
    sys.exit(main())
