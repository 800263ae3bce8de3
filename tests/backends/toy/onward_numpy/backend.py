"""NumPy, as a backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.backends.backend import PLAIN, Backend, Format, Limit, Options

if TYPE_CHECKING:
    import onnx_ir as ir

    from onward.backends.emit.package import Source
    from onward.backends.emit.target import Target
    from onward.model import Model


class NumPy(Backend):
    name = package = "numpy"
    title = "NumPy"

    def target(self) -> Target:
        from onward_numpy.target import TARGET

        return TARGET

    def partial(self) -> Mapping[str, Limit]:
        return {
            "BatchNormalization": Limit("not in training mode"),
            "Conv": Limit("no automatic padding of images whose size is unknown"),
        }

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward_numpy.convert import generate

        self.load_rules()
        return generate(model)

    def formats(self) -> Sequence[Format]:
        about = "a folder of NumPy source code and weights"
        return [Format(self.name, about, self.generate, takes=frozenset(), trains=False)]

    def load(self, source: Source) -> Any:
        from onward.backends.emit.execute import execute

        return execute(source).model.Model({name: tensor.read() for name, tensor in source.tensors.items()})

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        return value

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        return np.asarray(value)


BACKEND = NumPy()
