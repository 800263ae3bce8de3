"""JAX, as a backend."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onward.backends.backend import PLAIN, ROUNDING, Backend, Format, Limit, Options

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from onward.backends.emit.package import Source
    from onward.backends.emit.target import Target
    from onward.model import Model
    from onward.runners.calls import Run


ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
TAKES = frozenset({"trainable", "bounds"})


class Jax(Backend):
    name = package = "jax"
    title = "JAX"
    modes = {"jit": "through jax.jit, with numbers that decide sizes as static arguments"}  # noqa: RUF012
    sometimes = frozenset({ROUNDING})

    def target(self) -> Target:
        from onward.backends.jax.target import TARGET

        return TARGET

    def partial(self) -> Mapping[str, Limit]:
        from onward.backends.jax.limits import PARTIAL

        return PARTIAL

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward.backends.jax.convert import generate

        return generate(model, options.trainable, options.bounds)

    def load(self, source: Source) -> Any:
        from onward.backends.jax.load import run

        return run(source)

    def opened(self, module: ModuleType, folder: Path) -> Any:
        from onward.backends.jax.load import opened

        return opened(module, folder)

    def formats(self) -> Sequence[Format]:
        return [
            Format(self.name, f"a folder of {self.title} source code and weights", self.generate, takes=TAKES),
            Format(
                "stablehlo",
                "a module of StableHLO: .mlir is text, .mlirbc a portable artifact",
                self.generate,
                _write_stablehlo,
                frozenset({"bounds"}),
                suffix=".mlir",
                runs_source=False,
                trains=False,
            ),
        ]

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        from onward.backends.jax.values import to_framework

        return to_framework(value, dtype)

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        from onward.backends.jax.values import to_numpy

        return to_numpy(value, dtype)

    def call(self, net: Any, arguments: Sequence[Any], outputs: Sequence[str]) -> Sequence[Any]:
        from onward.backends.jax.values import in_64_bits

        with in_64_bits():
            return super().call(net, arguments, outputs)

    def further(self, net: Any) -> Sequence[str]:
        counts: tuple[str, ...] = net.counts
        return counts

    def argument_names(self, net: Any) -> list[str]:
        return [name for name in super().argument_names(net.apply) if name not in ("params", "constants")]

    def proof(self, net: Any, graph: ir.Graph) -> Run:
        """Compiled as a whole: one by one, JAX compiles every op for every shape. What `jax.jit` refuses is not."""
        return self.runner(net.jitted_or_not(), graph)

    def in_mode(self, net: Any, graph: ir.Graph, mode: str) -> Any:
        return net.jitted()

    def use_threads(self, count: int) -> None:
        """JAX reads it when it first computes: one thread for each op, or as many as there are processors."""
        if count == 1 and ONE_THREAD not in os.environ.get("XLA_FLAGS", ""):
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()

    def exceptions(self, mode: str = "", unknown_shapes: bool = False) -> Mapping[str, str]:
        from onward.backends.jax.under_jit import UNDER_JIT

        return UNDER_JIT if mode == "jit" else {}


def _write_stablehlo(model: Model, source: Source, path: Path, options: Options) -> Path:
    from onward.backends.jax.load import run
    from onward.backends.jax.stablehlo_file import write

    return write(run(source), model.ir.graph, path)


BACKEND = Jax()
