"""PyTorch, as a backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onward.backends.backend import NOISE, PLAIN, Backend, Format, Limit, Options

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from onward.backends.emit.package import Source
    from onward.backends.emit.target import Target
    from onward.model import Model


class Torch(Backend):
    name = package = "torch"
    title = "PyTorch"
    takes_untitled = True
    modes = {"compile": "through torch.compile", "export": "through torch.export, as the exported program"}  # noqa: RUF012

    def target(self) -> Target:
        from onward.backends.torch.target import TARGET

        return TARGET

    def partial(self) -> Mapping[str, Limit]:
        from onward.backends.torch.limits import PARTIAL

        return PARTIAL

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward.backends.torch.convert import generate

        return generate(model, options.trainable)

    def formats(self) -> Sequence[Format]:
        about = f"a folder of {self.title} source code and weights"
        return [Format(self.name, about, self.generate, takes=frozenset({"trainable", "fallback"}))]

    def load(self, source: Source) -> Any:
        from onward.backends.torch.load import run

        return run(source)

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        from onward.backends.torch.values import to_framework

        return to_framework(value)

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        from onward.backends.torch.values import to_numpy

        return to_numpy(value, dtype)

    def call(self, net: Any, arguments: Sequence[Any], outputs: Sequence[str]) -> Sequence[Any]:
        import torch

        with torch.no_grad():
            return super().call(net, arguments, outputs)

    def argument_names(self, net: Any) -> list[str]:
        return super().argument_names(net.forward)

    def in_mode(self, net: Any, graph: ir.Graph, mode: str) -> Any:
        import torch

        from onward.backends.torch.exported import Exported

        return torch.compile(net) if mode == "compile" else Exported(net, graph)

    def use_threads(self, count: int) -> None:
        import torch

        torch.set_num_threads(count)

    def exceptions(self, mode: str = "", unknown_shapes: bool = False) -> Mapping[str, str]:
        return dict.fromkeys(("test_dft_inverse", "test_dft_inverse_opset19"), NOISE)


BACKEND = Torch()
