"""How fast the gradients that Onward writes are on ONNX Runtime, next to PyTorch's own kernels.

Both run in turns in one process, and the best time of each counts. A ratio of 1 is equal, a larger one faster than
PyTorch. On a busy machine, CPU time on one thread is what can be compared.

    OMP_NUM_THREADS=1 python benchmarks/gradients.py [--threads 1] [--rounds 15] [--only Conv]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import torch
import torch.nn.functional as F
from onnx_ir.passes import common

from onward.canon.defaults import fill_defaults
from onward.graph.build import Builder
from onward.graph.infer import infer
from onward.training.autodiff.reverse import several_gradients

Arrays = dict[str, np.ndarray[Any, Any]]
Torch = Callable[..., torch.Tensor]


CONSTANT = ("roi", "scales")
"""Inputs that a model has as constants."""


def derived(op_type: str, inputs: Arrays, wrt: Sequence[str], outputs: int, **attributes: Any) -> ir.Model:
    """A model of the gradients only: its inputs are those of the op and the gradient of its result."""
    values = [
        ir.Value(name=name, type=ir.TensorType(ir.DataType.from_numpy(a.dtype)), shape=ir.Shape(a.shape))
        for name, a in inputs.items()
    ]
    graph = ir.Graph(values, [], nodes=[], opset_imports={"": 21}, name=op_type)
    model = ir.Model(graph, ir_version=10)
    op = Builder(model)
    constants = {name: op.constant(inputs[name]) for name in CONSTANT if name in inputs}
    given = [constants.get(value.name or "", value) for value in values]
    y = op.many(op_type, outputs, *given, **attributes)[0].value
    y.name = "y"
    fill_defaults(model)
    infer(model)
    start = ir.Value(name="start", type=y.type, shape=y.shape)
    graph.inputs.append(start)
    found = several_gradients(op, [(y, op.tensor(start))], [v for v in values if v.name in wrt])
    for name, slope in zip(wrt, found, strict=True):
        assert slope is not None
        result = op.Identity(slope).value
        result.name = f"{name}.grad"
        graph.outputs.append(result)
    common.RemoveUnusedNodesPass()(model)
    return model


def onnxruntime_call(model: ir.Model, feeds: Arrays, threads: int) -> tuple[Callable[[], Any], list[Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(
        ir.serde.serialize_model(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for value in session.get_inputs():
        binding.bind_cpu_input(value.name, feeds[value.name])
    for value in session.get_outputs():
        binding.bind_output(value.name)
    return lambda: session.run_with_iobinding(binding), session.run(
        None, {v.name: feeds[v.name] for v in session.get_inputs()}
    )


def best_times(calls: Sequence[Callable[[], Any]], rounds: int) -> list[tuple[float, float]]:
    """The best wall time and the best CPU time of each, in turns."""
    best = [(float("inf"), float("inf"))] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            best[i] = (min(best[i][0], wall), min(best[i][1], cpu))
    return best


def compare(
    label: str,
    op_type: str,
    inputs: Arrays,
    wrt: Sequence[str],
    function: Torch,
    args: argparse.Namespace,
    *,
    outputs: int = 1,
    forward: bool = False,
    **attributes: Any,
) -> None:
    """`forward`: with the op itself, whose further outputs the gradient needs, on both sides."""
    if args.only and args.only not in label:
        return
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    for name in wrt:
        tensors[name].requires_grad_()
    y = function(*tensors.values())
    start = torch.from_numpy(np.random.default_rng(1).normal(size=tuple(y.shape)).astype(np.float32))

    def reference() -> Any:
        result = function(*tensors.values()) if forward else y
        return torch.autograd.grad(result, [tensors[name] for name in wrt], start, retain_graph=not forward)

    model = derived(op_type, inputs, wrt, outputs, **attributes)
    ours, found = onnxruntime_call(model, {**inputs, "start": start.numpy()}, args.threads)
    for name, actual, expected in zip(wrt, found, reference(), strict=True):
        error = float(np.abs(actual - expected.numpy()).max() / np.abs(expected.numpy()).max())
        assert error < 2e-3, f"{label}: {name} is off by {error:.1e}"
    (wall, cpu), (our_wall, our_cpu) = best_times([reference, ours], args.rounds)
    print(
        f"{label:58s} {wall * 1e3:9.2f} {our_wall * 1e3:9.2f} {wall / our_wall:9.2f} {cpu / our_cpu:9.2f}", flush=True
    )


CONVOLUTIONS: list[tuple[int, int, int, int, int, int, int, int]] = [
    (64, 1, 28, 32, 3, 1, 1, 0),
    (64, 32, 26, 64, 3, 1, 1, 0),
    (32, 3, 64, 64, 7, 2, 1, 3),
    (32, 64, 16, 64, 3, 1, 1, 1),
    (32, 64, 16, 128, 3, 2, 1, 1),
    (32, 128, 8, 128, 3, 1, 1, 1),
    (32, 256, 4, 256, 3, 1, 1, 1),
    (32, 512, 2, 512, 3, 1, 1, 1),
    (8, 64, 56, 64, 3, 1, 1, 1),
    (8, 256, 14, 64, 1, 1, 1, 0),
    (32, 64, 16, 128, 1, 2, 1, 0),
    (8, 96, 28, 96, 3, 1, 96, 1),
    (8, 96, 28, 96, 3, 2, 96, 1),
    (8, 128, 14, 128, 3, 1, 32, 1),
]
"""Batch, channels in, size, channels out, kernel, stride, group, padding."""


def convolutions(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    for n, c, size, o, k, s, group, p in CONVOLUTIONS:
        inputs = {
            "x": rng.normal(size=(n, c, size, size)).astype(np.float32),
            "w": rng.normal(size=(o, c // group, k, k)).astype(np.float32),
        }

        def function(x: torch.Tensor, w: torch.Tensor, s: int = s, p: int = p, group: int = group) -> torch.Tensor:
            return F.conv2d(x, w, None, s, p, 1, group)

        what = f"{n}x{c}x{size}x{size} to {o}, kernel {k}, stride {s}, group {group}"
        given = {"strides": [s, s], "pads": [p] * 4, "group": group}
        for name, label in (("w", "weights"), ("x", "input")):
            compare(f"Conv {label}: {what}", "Conv", inputs, [name], function, args, **given)


def others(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    image = rng.normal(size=(32, 64, 32, 32)).astype(np.float32)
    for k, s, p in ((2, 2, 0), (3, 2, 1)):
        compare(
            f"MaxPool, forward and back: 32x64x32x32, kernel {k}, stride {s}",
            "MaxPool",
            {"x": image},
            ["x"],
            lambda x, k=k, s=s, p=p: F.max_pool2d(x, k, s, p),
            args,
            outputs=2,
            forward=True,
            kernel_shape=[k, k],
            strides=[s, s],
            pads=[p] * 4,
        )
    compare(
        "AveragePool: 32x64x32x32, kernel 3, stride 2",
        "AveragePool",
        {"x": image},
        ["x"],
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        args,
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1] * 4,
        count_include_pad=1,
    )
    one, zero = np.ones(64, np.float32), np.zeros(64, np.float32)
    compare(
        "BatchNormalization in training, forward and back: 32x64x32x32",
        "BatchNormalization",
        {"x": image, "scale": one, "bias": zero, "mean": zero.copy(), "var": one.copy()},
        ["x", "scale", "bias"],
        lambda x, scale, bias, mean, var: F.batch_norm(x, None, None, scale, bias, True),
        args,
        outputs=3,
        forward=True,
        training_mode=1,
        momentum=0.0,
    )
    tokens = rng.normal(size=(16, 128, 256)).astype(np.float32)
    gain, shift = np.ones(256, np.float32), np.zeros(256, np.float32)
    compare(
        "LayerNormalization, forward and back: 16x128x256",
        "LayerNormalization",
        {"x": tokens, "scale": gain, "bias": shift},
        ["x", "scale", "bias"],
        lambda x, scale, bias: F.layer_norm(x, (256,), scale, bias),
        args,
        outputs=3,
        forward=True,
    )
    scales = np.asarray([1, 1, 2, 2], np.float32)
    for mode, name in (("nearest", "nearest"), ("linear", "bilinear")):
        small = {
            "x": rng.normal(size=(8, 32, 32, 32)).astype(np.float32),
            "roi": np.zeros(0, np.float32),
            "scales": scales,
        }
        compare(
            f"Resize: 8x32x32x32 doubled, {mode}",
            "Resize",
            small,
            ["x"],
            lambda x, *_, name=name: F.interpolate(x, scale_factor=2, mode=name),
            args,
            mode=mode,
            coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel",
            nearest_mode="floor",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="cases whose label contains this")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{'gradient':58s} {'PyTorch ms':>9s} {'ours ms':>9s} {'ratio':>9s} {'CPU time':>9s}")
    convolutions(args)
    others(args)


if __name__ == "__main__":
    main()
