"""Parts of a model that PyTorch has no words for: they stay ONNX, and ONNX Runtime runs them."""

import functools
import re
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor


def onnx_part(part: Tensor, gradient: Tensor, results: str, inputs: list[Tensor]) -> list[Tensor]:
    """The results of a graph in ONNX's format, whose bytes are `part`; those of its derivative are `gradient`.

    `results` says the dtype and dimensions of each, such as 'float32[0.1,4]': as long as input 0 along axis 1, and 4.
    """
    found: list[Tensor] = onnx_part_op()(part, gradient, results, inputs)
    return found


@functools.cache
def onnx_part_op() -> Any:
    """The op, which torch.export, torch.compile and autograd know; one for all modules of this process."""
    name = "onward_parts::run"
    if not hasattr(torch.ops.onward_parts, "run"):
        made = torch.library.custom_op(name, run_onnx_part, mutates_args=())
        made.register_fake(fake_onnx_part)
        made.register_autograd(backward_of_onnx_part, setup_context=keep_for_onnx_part)
    return torch.ops.onward_parts.run.default


def run_onnx_part(part: Tensor, gradient: Tensor, results: str, inputs: list[Tensor]) -> list[Tensor]:
    session, names = onnx_session(part.cpu().numpy().tobytes())
    feeds = {name: x.detach().cpu().numpy() for name, x in zip(names, inputs, strict=True)}
    device = inputs[0].device if inputs else part.device
    return [torch.from_numpy(np.array(found)).to(device) for found in session.run(None, feeds)]


@functools.cache
def onnx_session(data: bytes) -> tuple[onnxruntime.InferenceSession, list[str]]:
    options = onnxruntime.SessionOptions()
    if b"ai.onnx.contrib" in data:
        import onnxruntime_extensions

        options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session, [value.name for value in session.get_inputs()]


def fake_onnx_part(part: Tensor, gradient: Tensor, results: str, inputs: list[Tensor]) -> list[Tensor]:
    """Tensors of the right sizes, for what traces a module without numbers."""
    made = []
    for dtype, dims in re.findall(r"(\w+)\[([^\]]*)\]", results):
        sizes: list[Any] = []
        for dim in filter(None, dims.split(",")):
            if dim == "?":
                sizes.append(torch.library.get_ctx().new_dynamic_size())
            elif "." in dim:
                place, axis = map(int, dim.split("."))
                sizes.append(inputs[place].shape[axis])
            else:
                sizes.append(int(dim))
        like = inputs[0] if inputs else part
        made.append(like.new_empty(sizes, dtype=getattr(torch, dtype)))
    return made


def keep_for_onnx_part(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    _, gradient, _, given = inputs
    ctx.save_for_backward(gradient, *given, *output)
    ctx.count = len(given)


def backward_of_onnx_part(ctx: Any, gradients: list[Tensor]) -> tuple[Any, ...]:
    """By the graph of the derivative: it takes the inputs and the gradient of each float result."""
    gradient, *saved = ctx.saved_tensors
    given, results = saved[: ctx.count], saved[ctx.count :]
    if not gradient.numel():
        raise RuntimeError("a part of this model runs on ONNX Runtime, and has no derivative: freeze what is before it")
    floats = [i for i, x in enumerate(given) if x.is_floating_point()]
    seeds = [g for g, result in zip(gradients, results, strict=True) if result.is_floating_point()]
    sizes = " ".join(
        f"{str(given[i].dtype).removeprefix('torch.')}[{','.join(f'{i}.{axis}' for axis in range(given[i].ndim))}]"
        for i in floats
    )
    none = torch.empty(0, dtype=torch.uint8)
    found = iter(onnx_part_op()(gradient, none, sizes, [*given, *seeds]))
    return None, None, None, [next(found) if x.is_floating_point() else None for x in given]
