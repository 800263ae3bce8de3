"""Checks gradient rules: numerically in double precision, to second order, against PyTorch, and on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.backends.torch.values import to_framework, to_numpy
from onward.scoreboard.suite import forget_shapes
from onward.training.autodiff.derivatives import gradient

Arrays = dict[str, np.ndarray[Any, Any]]
STEP = 1e-5
TARGET = "onward_target"
"""A random weighting of the outputs: the scalar whose derivatives are checked."""


def single(
    op: str, inputs: Arrays, outputs: int = 1, opset: int = 21, domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """A model of one node; a name that starts with '_' is an input that is left out."""
    names = ["" if name.startswith("_") else name for name in inputs]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, domain=domain, name=op, **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
        if not name.startswith("_")
    ]
    graph = helper.make_graph([node], op, given, [helper.make_empty_tensor_value_info(name) for name in made])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def check_op(
    op: str,
    inputs: Arrays,
    *,
    wrt: Sequence[str] | None = None,
    second: bool = True,
    runtime: bool = True,
    autograd: bool = True,
    fixed: Sequence[str] = (),
    **options: Any,
) -> None:
    """Check the rule of one op at the given inputs (float64 arrays; integers and booleans have none).

    `fixed`: inputs that are constants of the model.
    """
    present = {name: array for name, array in inputs.items() if not name.startswith("_")}
    model = single(op, inputs, **options)
    for name in fixed:
        model.graph.initializer.append(numpy_helper.from_array(present.pop(name), name))
        model.graph.input.remove(next(value for value in model.graph.input if value.name == name))
    check_model(model, present, wrt=wrt, second=second, runtime=runtime, autograd=autograd)


def check_model(
    model: onnx.ModelProto,
    inputs: Arrays,
    *,
    wrt: Sequence[str] | None = None,
    second: bool = True,
    runtime: bool = True,
    autograd: bool = True,
) -> None:
    """Check the gradients of a model whose floats are double, with and without known shapes.

    `second`: the gradients of the gradients, too. `runtime`: in single precision on ONNX Runtime, too. `autograd`: also
    against PyTorch's own.
    """
    names = list(wrt) if wrt is not None else [name for name, array in inputs.items() if array.dtype == np.float64]
    scalar = with_target(model, inputs)
    numeric = differences(scalar, inputs, names, TARGET)
    traced = by_autograd(scalar, inputs, names) if autograd else {}
    for known in (True, False):
        shaped = scalar if known else forget_shapes(scalar)
        derived = gradient(shaped, TARGET, names).to_proto()
        exact = run_torch(derived, inputs)
        for name in names:
            close(exact[f"{name}.grad"], numeric[name], 1e-6, f"{name}.grad against differences, shapes known: {known}")
            if name in traced:
                close(exact[f"{name}.grad"], traced[name], 1e-9, f"{name}.grad against PyTorch, shapes known: {known}")
        if runtime:
            found = run_onnxruntime(single_precision(derived), inputs)
            for name in names:
                close(found[f"{name}.grad"], exact[f"{name}.grad"], 2e-4, f"{name}.grad on ONNX Runtime")
        if second and known:
            check_second_order(derived, inputs, names)


def check_second_order(derived: onnx.ModelProto, inputs: Arrays, names: Sequence[str]) -> None:
    """The gradients of a random weighting of the gradients, against differences."""
    combined = weighted(derived, [f"{name}.grad" for name in names], inputs, "onward_second")
    twice = gradient(combined, "onward_second", names, names="{}.second", zero=True).to_proto()
    exact = run_torch(twice, inputs)
    numeric = differences(combined, inputs, names, "onward_second")
    for name in names:
        close(exact[f"{name}.second"], numeric[name], 1e-5, f"second derivative by {name}")


def with_target(model: onnx.ModelProto, inputs: Arrays) -> onnx.ModelProto:
    results = run_torch(model, inputs)
    floats = [value.name for value in model.graph.output if results[value.name].dtype == np.float64]
    return weighted(model, floats, inputs, TARGET)


def weighted(model: onnx.ModelProto, values: Sequence[str], inputs: Arrays, name: str) -> onnx.ModelProto:
    """The model with a scalar more: the sum of the values named, each multiplied by random numbers."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    results = run_torch(model, inputs)
    rng = np.random.default_rng(5)
    terms = []
    for i, value in enumerate(values):
        weights = rng.uniform(0.5, 1.5, results[value].shape)
        made.graph.initializer.append(numpy_helper.from_array(weights, f"{name}_w{i}"))
        made.graph.node.append(helper.make_node("Mul", [value, f"{name}_w{i}"], [f"{name}_m{i}"]))
        made.graph.node.append(helper.make_node("ReduceSum", [f"{name}_m{i}"], [f"{name}_t{i}"], keepdims=0))
        terms.append(f"{name}_t{i}")
    made.graph.node.append(helper.make_node("Sum", terms, [name]))
    made.graph.output.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, []))
    return made


@lru_cache(maxsize=8)
def _net(written: bytes) -> torch.nn.Module:
    """The module of a model; what one check asks for again is not converted again."""
    return onward.to_torch(onnx.ModelProto.FromString(written), check=False)


def net_of(model: onnx.ModelProto) -> torch.nn.Module:
    return _net(model.SerializeToString(deterministic=True))


def differences(model: onnx.ModelProto, inputs: Arrays, names: Sequence[str], target: str) -> Arrays:
    """Derivatives by central differences."""
    net = net_of(model)
    position = [output.name for output in model.graph.output].index(target)

    def value(feeds: Arrays) -> float:
        with torch.no_grad():
            outputs = net(*(to_framework(feeds[v.name]) for v in model.graph.input))
        return float(outputs[position] if len(model.graph.output) > 1 else outputs)

    found = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors: threads that wait for each other cost more than they save
    for name in names:
        slopes = np.zeros_like(inputs[name])
        for index in np.ndindex(slopes.shape):
            ends = []
            for sign in (1, -1):
                moved = inputs[name].copy()
                moved[index] += sign * STEP
                ends.append(value({**inputs, name: moved}))
            slopes[index] = (ends[0] - ends[1]) / (2 * STEP)
        found[name] = slopes
    torch.set_num_threads(threads)
    return found


def by_autograd(model: onnx.ModelProto, inputs: Arrays, names: Sequence[str]) -> Arrays:
    """PyTorch's derivatives, of those inputs that are tensors to it."""
    net = net_of(model)
    feeds = {name: to_framework(array) for name, array in inputs.items()}
    for name in names:
        feeds[name].requires_grad_()
    outputs = net(*(feeds[value.name] for value in model.graph.input))
    target = outputs[[output.name for output in model.graph.output].index(TARGET)]
    found = torch.autograd.grad(target, [feeds[name] for name in names], allow_unused=True)
    return {name: slope.numpy() for name, slope in zip(names, found, strict=True) if slope is not None}


def run_torch(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    net = net_of(model)
    with torch.inference_mode():
        found = net(*(to_framework(inputs[v.name]) for v in model.graph.input))
    names = [output.name for output in model.graph.output]
    return dict(zip(names, map(to_numpy, found if len(names) > 1 else [found]), strict=True))


def run_onnxruntime(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {
        v.name: inputs[v.name].astype(np.float32) if inputs[v.name].dtype == np.float64 else inputs[v.name]
        for v in session.get_inputs()
    }
    return dict(zip([v.name for v in session.get_outputs()], session.run(None, feeds), strict=True))


def single_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every double a float."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _narrow(made.graph)
    return made


def _narrow(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for tensor in graph.initializer:
        _narrow_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                _narrow_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                _narrow(attribute.g)
            elif attribute.name in ("to", "dtype", "stash_type") and attribute.i == TensorProto.DOUBLE:
                attribute.i = TensorProto.FLOAT


def _narrow_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.DOUBLE:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


def close(actual: Any, expected: Any, tolerance: float, what: str) -> None:
    assert np.shape(actual) == np.shape(expected), f"{what}: shape {np.shape(actual)} instead of {np.shape(expected)}"
    scale = 1 + float(np.max(np.abs(expected), initial=0))
    error = float(np.max(np.abs(np.asarray(actual, np.float64) - expected), initial=0)) / scale
    assert error <= tolerance, f"{what}: off by {error:.1e}\n{actual}\ninstead of\n{expected}"
