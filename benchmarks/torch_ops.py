"""Ops of PyTorch to ONNX: `torch.onnx.export` alone, and `onward.from_torch`, each checked on ONNX Runtime.

python benchmarks/torch_ops.py [NAME]... [--page docs/measured/torch-ops.md]

The calls are those of tests/frontends/torch/op_cases.py. With --page, the table is written as Markdown.
"""

import argparse
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import onward
from onward.errors import OnwardError

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/frontends/torch"))

from op_cases import LINALG, OPS

Array = np.ndarray[Any, np.dtype[Any]]
RIGHT, WRONG, REFUSED, CRASHED = "right", "**wrong**", "refused", "fails"


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


def alone(net: nn.Module, args: tuple[Tensor, ...]) -> bytes:
    program = torch.onnx.export(net, args, verbose=False, optimize=False)
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


def ours(net: nn.Module, args: tuple[Tensor, ...]) -> bytes:
    return bytes(onward.from_torch(net, args, dynamic_batch=False, check=False).to_proto().SerializeToString())


def judged(export: Callable[[nn.Module, tuple[Tensor, ...]], bytes], function: Any, args: tuple[Tensor, ...]) -> str:
    wanted = [leaf.numpy() for leaf in pytree.tree_leaves(function(*args))]
    try:
        session = onnxruntime.InferenceSession(export(Call(function), args))
        names = [given.name for given in session.get_inputs()]
        found = session.run(None, dict(zip(names, (arg.numpy() for arg in args), strict=True)))
    except OnwardError:
        return REFUSED
    except Exception:
        return CRASHED
    return RIGHT if len(found) == len(wanted) and all(map(same, found, wanted)) else WRONG


def same(found: Array, wanted: Array) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    return bool(np.allclose(found, wanted, rtol=2e-5, atol=2e-6, equal_nan=True))


def page(rows: dict[str, dict[str, tuple[str, str]]]) -> str:
    lines = ["# Ops of PyTorch", "", "Written by `benchmarks/torch_ops.py --page docs/measured/torch-ops.md`.", ""]
    for title, found in rows.items():
        lines += [
            f"## {title}",
            "",
            summary(found),
            "",
            "| call | `torch.onnx` alone | `onward.from_torch` |",
            "|---|---|---|",
        ]
        differing = {name: pair for name, pair in found.items() if pair != (RIGHT, RIGHT)}
        lines += [f"| {name} | {theirs} | {own} |" for name, (theirs, own) in differing.items()]
        both = ", ".join(name for name in found if name not in differing)
        lines += ["", f"Right in both: {both}.", ""]
    return "\n".join([*lines, machine.describe("onward", "torch", "onnxscript", "onnxruntime"), ""])


def summary(found: dict[str, tuple[str, str]]) -> str:
    theirs, own = ([pair[side] for pair in found.values()] for side in (0, 1))
    lacking = [pair[1] for pair in found.values() if pair[0] != RIGHT]
    return (
        f"Of {len(found)} calls, `torch.onnx` alone gets {theirs.count(RIGHT)} right and {theirs.count(WRONG)} wrong; "
        f"`onward.from_torch` gets {own.count(RIGHT)} right and {own.count(WRONG)} wrong: {lacking.count(RIGHT)} of "
        f"the {len(lacking)} that were not right, and refuses {own.count(REFUSED)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    onnxruntime.set_default_logger_severity(4)
    rows: dict[str, dict[str, tuple[str, str]]] = {}
    for title, cases in (("Ops", OPS), ("Linear algebra", LINALG)):
        rows[title] = {}
        for name, (function, inputs) in cases.items():
            if not args.names or name in args.names:
                rows[title][name] = judged(alone, function, inputs), judged(ours, function, inputs)
                print(name, *rows[title][name], flush=True)
        print(summary(rows[title]))
    if args.page is not None:
        args.page.write_text(page(rows))
    sys.exit(any(own == WRONG for found in rows.values() for _, own in found.values()))


if __name__ == "__main__":
    main()
