"""Small models run on ONNX Runtime and as generated code of every backend, with known and with unknown shapes."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from refusals import Watch

import onward
from onward.backends import backend
from onward.backends.emit.package import Source
from onward.backends.torch.convert import generate
from onward.errors import RunFailure, UnsupportedError
from onward.model import load
from onward.runners.calls import failures
from onward.runners.feeds import conform
from onward.scoreboard.suite import Run, forget_shapes, prepare

to_torch = partial(onward.to_torch, check=False)
"""What is compared with it is for each test to say."""

onnxruntime.set_default_logger_severity(4)
OPSET = 21
"""The newest opset for which ONNX Runtime has nearly all kernels."""

BACKENDS = [one.name for one in backend.backends() if one.is_installed and one.name != "matlab"]

NOW: list[Watch] = []
"""The test that runs."""


def reaches_check(function: FunctionType) -> bool:
    """Whether a test calls `check`, by itself or by functions of its module: it is run for each backend."""
    found, left = {function}, [function]
    while left:
        caller = left.pop()
        for called in map(caller.__globals__.get, _names(caller.__code__)):
            if called is check:
                return True
            if isinstance(called, FunctionType) and called.__module__ == function.__module__ and called not in found:
                found.add(called)
                left.append(called)
    return False


def _names(code: CodeType) -> Iterator[str]:
    """The names that code looks up, that of functions inside it too."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


TOLERANCE = {
    np.dtype(ml_dtypes.bfloat16): 1e-2,
    np.dtype(np.float16): 2e-3,
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-10,
}
"""Other dtypes must be equal."""


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def node_model(
    op: str,
    inputs: Sequence[np.ndarray | None],
    outputs: int | Sequence[str] = 1,
    *,
    fixed: Sequence[int] = (),
    opset: int = OPSET,
    domain: str = "",
    **attributes: Any,
) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """A model of one node and the inputs to feed it; those numbered in `fixed` become initializers."""
    names = ["" if x is None else f"in{i}" for i, x in enumerate(inputs)]
    results = [f"out{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    given = {n: np.asarray(x) for n, x in zip(names, inputs, strict=True) if x is not None}
    weights = {names[i] for i in fixed}
    graph = helper.make_graph(
        [node],
        op.lower(),
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in given.items()
            if n not in weights
        ],
        [onnx.ValueInfoProto(name=n) for n in results if n],
        [numpy_helper.from_array(x, n) for n, x in given.items() if n in weights],
    )
    return finish(graph, opset, [domain] if domain else []), [x for n, x in given.items() if n not in weights]


def merged(parts: Sequence[tuple[onnx.ModelProto, list[np.ndarray]]]) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """One model of many that have nothing to do with each other, as `node_model` gives them: converted faster."""
    graph = onnx.GraphProto(name="merged")
    for i, (part, _) in enumerate(parts):
        other = onnx.compose.add_prefix(part, f"c{i}_").graph
        for field in ("node", "input", "output", "initializer", "value_info"):
            getattr(graph, field).extend(getattr(other, field))
    model = helper.make_model(graph, opset_imports=parts[0][0].opset_import, ir_version=parts[0][0].ir_version)
    return model, [x for _, feeds in parts for x in feeds]


def literal(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with its initializers as Constant nodes, whose numbers may become literals in the code."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:], copy.graph.initializer[:]
    copy.graph.node.extend(helper.make_node("Constant", [], [t.name], value=t) for t in model.graph.initializer)
    copy.graph.node.extend(model.graph.node)
    return copy


def finish(graph: onnx.GraphProto, opset: int = OPSET, domains: Sequence[str] = ()) -> onnx.ModelProto:
    """A model of a graph whose outputs need no types: they are inferred."""
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def text_model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    """A model in ONNX's textual syntax, with further initializers."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(x, n) for n, x in weights.items())
    return model


def source(model: onnx.ModelProto) -> str:
    """The generated code."""
    return generate(load(model)).model


def reference(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """What ONNX's reference implementation computes, for what ONNX Runtime has no kernel for."""
    return prepare("reference", model)(list(inputs))


def check(
    model: onnx.ModelProto,
    inputs: Sequence[Any],
    *,
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    unknown: bool = True,
    backends: Sequence[str] = (),
) -> None:
    """Compare the converted model with ONNX Runtime (or with `expected`), also with all shapes forgotten.

    On the backend that the test runs for, unless `backends` are named and it is none of these; they may have a mode,
    as in `tensorflow:function`. A refusal is right only if `refusals` lists it.
    """
    (test,) = NOW
    names = [name for name in backends or BACKENDS if name.partition(":")[0] == test.backend]
    if not names:
        return
    wanted = prepare("onnxruntime", model)(list(inputs)) if expected is None else expected
    for name in names:
        test.ran.add(name)
        ran: set[Any] = set()
        for variant in [model, forget_shapes(model)] if unknown else [model]:
            try:
                run = prepare_once(name, variant, ran)
                if run is None:
                    continue
                found = run(list(inputs))
            except (UnsupportedError, RunFailure) as error:
                if not test.expects(name, str(error)):
                    raise
            else:
                compare(found, wanted, rtol, atol)


def prepare_once(name: str, model: onnx.ModelProto, ran: set[Any]) -> Run | None:
    """As `prepare`; None for source code and weights that are among those that `ran`: they compute the same again."""
    if ":" in name:  # a mode may ask for the shapes
        return prepare(name, model)
    one, loaded = backend.backend(name), load(model)
    with failures(name):
        made = one.generate(loaded)
        if (parts := _parts(made)) in ran:
            return None
        run = one.runner(one.load(made), loaded.ir.graph)
    ran |= {parts}

    def in_order(values: list[Any]) -> list[Any]:
        names = [value.name or "" for value in loaded.ir.graph.inputs if not value.is_initializer()]
        feeds = conform(loaded.ir, dict(zip(names, values, strict=False)))
        with failures(name):
            found = run(feeds)
        return [found[value.name or ""] for value in loaded.ir.graph.outputs]

    return in_order


def _parts(made: Source) -> Any:
    """All that is executed: the texts, and the weights with all that is known of them."""
    if type(made) is not Source or made.checked is not None:
        return object()  # like no other: a model of Keras has the shapes of its inputs
    others = [getattr(made, each.name) for each in fields(made) if each.name != "tensors"]
    weights = [(name, tensor, np.asarray(tensor.read())) for name, tensor in made.tensors.items()]
    return str(others), tuple(
        (
            name,
            *(getattr(tensor, each.name) for each in fields(tensor) if each.name != "read"),
            str(data.tolist()) if data.dtype == object else data.tobytes(),
        )
        for name, tensor, data in weights
    )


def compare(found: Sequence[Any], wanted: Sequence[Any], rtol: float | None = None, atol: float | None = None) -> None:
    assert len(found) == len(wanted)
    for index, (actual, right) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(right, list):
            compare(actual, right, rtol, atol)
            continue
        right = np.asarray(right)
        if right.dtype.kind in "OU":  # strings
            actual, right = np.asarray(actual, object), right.astype(object)
        assert actual.dtype == right.dtype, f"output {index}"
        assert actual.shape == right.shape, f"output {index}"
        tolerance = TOLERANCE.get(right.dtype)
        if right.dtype.isbuiltin == 2:
            actual, right = actual.astype(np.float32), right.astype(np.float32)
        if tolerance is not None:
            np.testing.assert_allclose(
                actual, right, rtol=rtol or tolerance, atol=atol or tolerance, err_msg=f"output {index}"
            )
        else:
            np.testing.assert_array_equal(actual, right, err_msg=f"output {index}")


__all__ = [
    "check",
    "compare",
    "finish",
    "floats",
    "literal",
    "merged",
    "node_model",
    "reference",
    "source",
    "text_model",
    "to_torch",
]
