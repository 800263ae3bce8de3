"""A module of StableHLO, as text or as a portable artifact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir

from onward.formats import Kind, Opened, register
from onward.formats.matching import Declared
from onward.gate import opens
from onward.gate.mlir import MAGIC, text_of
from onward.runners.calls import Inputs, Outputs

FIRST = 4096
"""Bytes in which a file says what it is."""
CALLED = re.compile(r'custom_call\s+@("?)([\w.$-]+)\1|call_target_name = "([^"]*)"')
HARMLESS = re.compile(
    r"shape_assertion|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement"
    r"|stablehlo\..*|mhlo\..*|chlo\..*|lapack_\w+|ducc_fft|TopK|ApproxTopK"
)
"""Functions outside of a module that compute, and do nothing else."""


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.read(FIRST)
    if first.startswith(MAGIC):
        return b"StableHLO" in first
    return re.search(rb"^\s*module\b.*\{|^\s*func\.func\b", first, re.MULTILINE) is not None and b"\0" not in first


def dangers(path: Path) -> Iterator[str]:
    """A module computes, but for calls of functions that are none of its own: some are of Python."""
    names = {a or b for _, a, b in CALLED.findall(text_of(path))}
    for name in sorted(names):
        if not HARMLESS.fullmatch(name):
            yield f"calls {name!r}, a function outside of it"


@opens(dangers)
def open_stablehlo(path: Path) -> Opened:
    from onward.backends.jax.stablehlo_file import Module

    module = Module(path)
    takes = [Declared(side.name, ir.DataType.from_numpy(side.dtype), side.dims) for side in module.arguments]
    names = [side.name for side in module.results]

    def run(inputs: Inputs) -> Outputs:
        found = module([inputs[side.name].astype(side.dtype, copy=False) for side in module.arguments])
        return dict(zip(names, found, strict=True))

    return Opened(run, takes, names)


register(Kind("StableHLO module", ("jax",), recognise, open_stablehlo, "a module of MLIR"))
