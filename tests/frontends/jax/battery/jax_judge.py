"""Judges a case: the program is converted, and run by JAX and by ONNX Runtime on the same data.

What JAX computes is what it computes without `jit`, primitive by primitive. That compiles every primitive, which takes
six times as long as to compile the program once, with the optimisations left out that change results. So the compiled
program is asked first; where ONNX Runtime differs from it, JAX runs the primitives one by one, and that decides.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
from jax_cases import Case, Refusal
from jax_compare import difference
from jax_data import VARIANTS, inputs, structs
from jax_op_by_op import op_by_op

import onward
from onward.errors import UnsupportedError
from onward.runners import onnxruntime

AS_WRITTEN: dict[str, Any] = {"xla_allow_excess_precision": False, "xla_disable_hlo_passes": "algsimp"}
"""What the program says, as each function is defined: by default XLA leaves out roundings to narrow floats, and makes
NaN times False 0."""
QUICK: dict[str, Any] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
"""What runs a few times is not worth more optimisations."""
Convert = Callable[[Case], onward.Model]
Original = Callable[[Any], list[Any]]
"""What JAX makes of inputs."""


@dataclass(frozen=True)
class Verdict:
    """`same`, `refused`, `invalid` (ONNX Runtime does not load it), `wrong` or `crash`, and what about it."""

    word: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


def converted(case: Case) -> onward.Model:
    """The program as Onward converts it."""
    target, keywords = case.target()
    return onward.from_jax(target, *structs(case.specs), check=False, **keywords)


def through_stablehlo(case: Case) -> onward.Model:
    """The program as Onward converts the module of StableHLO that JAX exports."""
    function, given = jax.jit(case.original(), keep_unused=True), structs(case.specs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(jax.export.export(function)(*given).mlir_module(), encoding="utf-8")
        return onward.from_stablehlo(path, check=False)


def judge(case: Case, convert: Convert = converted, variants: tuple[str, ...] = VARIANTS) -> Verdict:
    """Convert and compare; the first variant that differs decides."""
    with settings(case.x64):
        try:
            model = convert(case)
        except UnsupportedError as error:
            return Verdict("refused", str(error))
        except Exception as error:
            return Verdict("crash", f"conversion: {type(error).__name__}: {error}")
        try:
            run = onnxruntime.prepare(model, "")
        except Exception as error:
            return Verdict("invalid", f"{type(error).__name__}: {error}")
        original = compiled(case)
        for variant in variants:
            given = inputs(case.specs, variant, case.id)
            verdict = judge_run(model, run, given, (original, partial(op_by_op, case.original())))
            if verdict.word != "same":
                return Verdict(verdict.word, f"{variant}: {verdict.detail}")
    return Verdict("same")


def judge_run(model: onward.Model, run: Callable[..., Any], given: Any, originals: Sequence[Original]) -> Verdict:
    """Inputs and outputs are matched by their order; of the originals each is asked if those before it differ."""
    names = [str(value.name) for value in model.ir.graph.inputs]
    leaves = jax.tree.leaves(given)
    if len(names) != len(leaves):
        return Verdict("wrong", f"{len(names)} inputs instead of {len(leaves)}")
    try:
        results = run(dict(zip(names, leaves, strict=True)))
    except Exception as error:
        return Verdict("crash", f"{type(error).__name__}: {error}")
    found = [np.asarray(results[str(value.name)]) for value in model.ir.graph.outputs]
    for original in originals:
        verdict = compared(original(given), found)
        if verdict.word == "same":
            break
    return verdict


def compared(wanted: list[Any], found: list[Any]) -> Verdict:
    if len(found) != len(wanted):
        return Verdict("wrong", f"{len(found)} outputs instead of {len(wanted)}")
    for i, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if (differs := difference(one, other)) is not None:
            return Verdict("wrong", f"output {i}: {differs}")
    return Verdict("same")


def built(lowered: Any) -> Any:
    """Negative padding needs the passes that are left out."""
    try:
        return lowered.compile(compiler_options=AS_WRITTEN | QUICK)
    except jax.errors.JaxRuntimeError:
        return lowered.compile(compiler_options={"xla_allow_excess_precision": False})


@lru_cache(maxsize=1)
def compiled(case: Case) -> Original:
    """What JAX itself computes, compiled once for each shape."""
    programs: dict[str, Any] = {}
    jitted = jax.jit(case.original())

    def run(given: Any) -> list[Any]:
        shapes = str(jax.tree.map(np.shape, given))
        if shapes not in programs:
            programs[shapes] = built(jitted.lower(*given))
        return [np.asarray(leaf) for leaf in jax.tree.leaves(programs[shapes](*given))]

    return run


def judge_refusal(refusal: Refusal) -> Verdict:
    """`refused` if the message has the word; a message without it is `wrong`, and so is a conversion."""
    with settings(False):
        try:
            onward.from_jax(refusal.function, *structs(refusal.specs), check=False, **refusal.keywords)
        except UnsupportedError as error:
            is_named = refusal.word.lower() in str(error).lower()
            return Verdict("refused" if is_named else "wrong", str(error))
        except Exception as error:
            return Verdict("crash", f"{type(error).__name__}: {error}")
    return Verdict("wrong", "converted")


@contextmanager
def settings(x64: bool) -> Iterator[None]:
    with warnings.catch_warnings(), jax.enable_x64(x64):
        warnings.simplefilter("ignore")
        yield
