"""Is a plugin right? What it says in one way is compared with what it says in every other, on the same data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward import runners
from onward.advice.extras import is_installed
from onward.backends.backend import Backend, backends
from onward.errors import OnwardError
from onward.graph.build import Builder
from onward.model import Model
from onward.plugins.op import CustomOp
from onward.plugins.trial import Trial, model_of, trial
from onward.training.autodiff.derivatives import gradient

LARGEST = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-4, np.dtype(np.float16): 2e-2}
"""The largest error relative to the largest number, by dtype; other dtypes have to be equal."""
STEP, LARGEST_OF_DIFFERENCES = 1e-6, 2e-3
"""Of finite differences, which are taken in double precision, beside gradients in the dtype of the data."""


@dataclass(frozen=True)
class Finding:
    """One comparison."""

    op: str
    what: str
    ok: bool | None
    """None where there is nothing to compare."""
    said: str

    def __str__(self) -> str:
        return f"{'–' if self.ok is None else '✓' if self.ok else '✗'} {self.op}  {self.what}: {self.said}"


def check(ops: Sequence[CustomOp], seed: int = 0, *, gradients: bool | None = None) -> Iterator[Finding]:
    """Everything that the ops say, compared; or `gradients` alone, or all but these."""
    for op in ops:
        yield from _Check(op, seed).all(gradients)


class _Check:
    def __init__(self, op: CustomOp, seed: int) -> None:
        self.op = op
        self.name = op.key if op.version == 1 else f"{op.key}-{op.version}"
        self.trial: Trial | None = None
        self.seed = seed

    def all(self, gradients: bool | None) -> Iterator[Finding]:
        try:
            self.trial = trial(self.op, self.seed)
            self.model = model_of(self.op, self.trial)
        except Exception as error:
            yield self._finding("data", False, _line(error))
            return
        self.outputs = [value.name or "" for value in self.model.ir.graph.outputs]
        try:
            self.source, self.expected = self._reference()
        except Exception as error:
            yield self._finding("numpy" if self.op.reference else "onnxruntime", False, _line(error))
            return
        if self.expected is None:
            yield self._finding("reference", None, "nothing computes it: add @op.numpy, @op.body or op.library")
            return
        if gradients is not True:
            yield from self._values()
        if gradients is not False:
            yield from self._gradients()

    def _values(self) -> Iterator[Finding]:
        yield from self._try("inference", self._inference)
        if self.source != "onnxruntime":
            yield from self._try(f"{self.source} ↔ onnxruntime", lambda: self._same("onnxruntime"))
        for one in backends():
            yield from self._backend(one)

    def _finding(self, what: str, ok: bool | None, said: str) -> Finding:
        return Finding(self.name, what, ok, said)

    def _try(self, what: str, compare: Callable[[], tuple[bool | None, str]]) -> Iterator[Finding]:
        try:
            yield self._finding(what, *compare())
        except Exception as error:
            yield self._finding(what, False, _line(error))

    def _reference(self) -> tuple[str, list[Any] | None]:
        assert self.trial is not None
        if self.op.reference is not None:
            return "numpy", self.op.run(self.trial.arguments, self.trial.attributes)[: len(self.outputs)]
        if self.op.functions or self.op.libraries:
            return "onnxruntime", self._run("onnxruntime")
        return "", None

    def _run(self, runner: str) -> list[Any]:
        assert self.trial is not None
        found = runners.prepare(runner, self.model)(dict(self.trial.inputs))
        return [found[name] for name in self.outputs]

    def _inference(self) -> tuple[bool | None, str]:
        """What is inferred of each output, against what it is."""
        assert self.expected is not None
        node = self.model.ir.graph.node(0)
        if self.op.infers is None:
            return None, "there is no @op.infer: shapes stay unknown until it runs"
        for output, array in zip(node.outputs, self.expected, strict=True):
            real = ir.DataType.STRING if array.dtype.kind in "OUS" else ir.DataType.from_numpy(array.dtype)
            if output.dtype != real:
                return False, f"it says that {output.name!r} is {output.dtype}, and it is {real}"
            dims = None if output.shape is None else [d if isinstance(d, int) else None for d in output.shape]
            fits = dims is not None and len(dims) == array.ndim
            if dims is None or not fits or any(d not in (None, n) for d, n in zip(dims, array.shape, strict=True)):
                return False, f"it says that {output.name!r} has the shape {dims}, and it has {list(array.shape)}"
        return True, "dtypes and shapes are those of the results"

    def _same(self, runner: str) -> tuple[bool | None, str]:
        assert self.expected is not None
        return _compared(zip(self.outputs, self.expected, self._run(runner), strict=True))

    def _backend(self, one: Backend) -> Iterator[Finding]:
        says = self.op.sources.keys() | self.op.rules.keys()
        has = one.name in says or (one.name == "keras" and "tensorflow" in says) or bool(self.op.functions)
        what = f"{self.source} ↔ {one.name}"
        if not has:
            yield self._finding(what, None, f"there is no @op.{one.name}: models with it are refused there")
        elif not one.is_installed:
            yield self._finding(what, None, f"{one.title} is not installed")
        else:
            yield from self._try(what, lambda: self._same(one.name))

    # Gradients

    def _gradients(self) -> Iterator[Finding]:
        assert self.trial is not None and self.expected is not None
        if self.op.without_gradient:
            yield self._finding("gradient", None, f"there is none: {self.op.without_gradient}")
            return
        if self.op.gradient is None and not self.op.functions:
            yield self._finding("gradient", None, "there is none: add @op.vjp, @op.body or op.no_gradient()")
            return
        wrt = [name for name, array in self.trial.inputs.items() if array.dtype.kind == "f"]
        floats = [i for i, array in enumerate(self.expected) if array.dtype.kind == "f"]
        if not wrt or not floats:
            yield self._finding("gradient", None, "it has no floats on both sides")
            return
        rng = np.random.default_rng(self.seed)
        weights = {i: rng.normal(size=self.expected[i].shape) for i in floats}
        try:
            ours = self._ours(wrt, weights)
        except Exception as error:
            yield self._finding("gradient", False, _line(error))
            return
        if self.op.straight_through:
            yield self._finding("gradient", None, "straight through: finite differences do not apply")
        else:
            yield from self._try("gradient ↔ finite differences", lambda: self._differences(ours, weights))
        if "torch" in self.op.sources and is_installed("torch"):
            yield from self._try("gradient ↔ torch", lambda: self._autograd(ours, weights))

    def _ours(self, wrt: list[str], weights: dict[int, Any]) -> dict[str, Any]:
        """Derivatives of the sum of the outputs, each number weighed."""
        assert self.trial is not None
        model = Model(self.model.ir.clone())
        op = Builder(model.ir)
        outputs = list(model.ir.graph.outputs)
        parts = [
            op.sum(op.tensor(outputs[i]) * op.constant(_as(w, outputs[i])), keepdims=False) for i, w in weights.items()
        ]
        total = op.Identity(op.total(parts))
        total.value.name = "onward.total"
        model.ir.graph.outputs.append(total.value)
        derived = gradient(model, of="onward.total", wrt=wrt, zero=True)
        found = runners.prepare("onnxruntime", derived)(dict(self.trial.inputs))
        return {name: found[f"{name}.grad"] for name in wrt}

    def _differences(self, ours: dict[str, Any], weights: dict[int, Any]) -> tuple[bool | None, str]:
        assert self.trial is not None
        if self.op.reference is None:
            return None, "they need @op.numpy"
        found = {name: self._slopes(name, weights) for name in ours}
        if not any(array.any() for array in (*found.values(), *ours.values())):
            return None, "all are zero on these data: let @op.sample give others"
        pairs = ((f"{n}.grad", found[n].astype(ours[n].dtype), ours[n]) for n in ours)
        return _compared(pairs, LARGEST_OF_DIFFERENCES)

    def _slopes(self, name: str, weights: dict[int, Any]) -> np.ndarray[Any, Any]:
        """By central differences, of the reference in double precision."""
        assert self.trial is not None
        wide = {n: x.astype(np.float64) if x.dtype.kind == "f" else x for n, x in self.trial.inputs.items()}
        slopes = np.zeros(wide[name].shape)
        for place in np.ndindex(slopes.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = wide[name].copy()
                moved[place] += step
                ends.append(self._weighed({**wide, name: moved}, weights))
            slopes[place] = (ends[0] - ends[1]) / (2 * STEP)
        return slopes

    def _weighed(self, inputs: dict[str, Any], weights: dict[int, Any]) -> float:
        assert self.trial is not None and self.op.reference is not None
        names = iter(inputs)
        arguments = [None if x is None else inputs[next(names)] for x in self.trial.arguments]
        found = self.op.reference(*arguments, **self.op.keywords(self.trial.attributes))
        results = found if isinstance(found, tuple | list) else (found,)
        return float(sum((np.asarray(results[i]) * w).sum() for i, w in weights.items()))

    def _autograd(self, ours: dict[str, Any], weights: dict[int, Any]) -> tuple[bool | None, str]:
        import torch

        assert self.trial is not None
        keywords = self.op.keywords(self.trial.attributes)
        tensors = {n: torch.tensor(x, requires_grad=n in ours) for n, x in self.trial.inputs.items()}
        names = iter(tensors)
        arguments = [None if x is None else tensors[next(names)] for x in self.trial.arguments]
        found = function_of(self.op, "torch")(*arguments, **keywords)
        results = found if isinstance(found, tuple | list) else (found,)
        sum((results[i] * torch.tensor(w, dtype=results[i].dtype)).sum() for i, w in weights.items()).backward()
        theirs = {n: np.zeros_like(ours[n]) if (g := tensors[n].grad) is None else g.numpy() for n in ours}
        return _compared((f"{n}.grad", theirs[n], ours[n]) for n in ours)


def function_of(op: CustomOp, backend: str) -> Callable[..., Any]:
    """The function for a framework as generated code has it."""
    from onward.backends.emit.custom_ops.copied import copied
    from onward.backends.emit.helpers import Runtime

    made = copied(op.sources[backend], "function", f"the function of {op.key} for {backend}")
    scope: dict[str, Any] = {}
    text = Runtime(made.definitions, made.imports).source({"function"}, op.key)
    exec(compile(text, f"<{op.key}>", "exec", dont_inherit=True), scope)
    found: Callable[..., Any] = scope["function"]
    return found


def _as(weights: np.ndarray[Any, Any], value: ir.Value) -> np.ndarray[Any, Any]:
    dtype = value.dtype or ir.DataType.FLOAT
    return weights.astype(dtype.numpy())


def _compared(pairs: Any, largest: float | None = None) -> tuple[bool, str]:
    worst = 0.0
    for name, wanted, found in pairs:
        wanted, found = np.asarray(wanted), np.asarray(found)
        if wanted.shape != found.shape:
            return False, f"{name!r} has the shape {list(found.shape)}, and should have {list(wanted.shape)}"
        if wanted.dtype.kind in "OUS":
            if wanted.astype(str).tolist() != found.astype(str).tolist():
                return False, f"{name!r} differs"
            continue
        if wanted.dtype != found.dtype:
            return False, f"{name!r} is {found.dtype}, and should be {wanted.dtype}"
        if wanted.dtype.kind != "f":
            if not np.array_equal(wanted, found):
                return False, f"{name!r} differs"
            continue
        wanted, found = np.atleast_1d(wanted), np.atleast_1d(found)
        with np.errstate(all="ignore"):
            off = np.abs(wanted.astype(np.float64) - found.astype(np.float64))
        off[(wanted == found) | (np.isnan(wanted) & np.isnan(found))] = 0
        finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
        error = float(off.max(initial=0) / max(finite.max(initial=0), 1e-30)) if off.any() else 0.0
        worst = max(worst, error if np.isfinite(error) else np.inf)
        if not error <= (largest or LARGEST.get(wanted.dtype, 5e-2)):
            return False, f"{name!r} is off by {error:.1e} of its largest number"
    return True, f"the same, off by at most {worst:.1e}"


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, OnwardError) else f"{type(error).__name__}: {text}"
