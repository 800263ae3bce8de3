"""MATLAB and GNU Octave, as a backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.backends.backend import PLAIN, ROUNDING, Backend, Format, Limit, Options
from onward.errors import RunFailure

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from onward.backends.emit.package import Source
    from onward.backends.emit.target import Target
    from onward.model import Model
    from onward.runners.calls import Inputs, Outputs, Run


class Matlab(Backend):
    name = "matlab"
    title = "MATLAB"
    package = "octave"
    sometimes = frozenset({ROUNDING})

    def target(self) -> Target:
        from onward.backends.matlab.target import TARGET

        return TARGET

    def partial(self) -> Mapping[str, Limit]:
        from onward.backends.matlab.limits import PARTIAL

        return PARTIAL

    def unsupported(self) -> Mapping[str, str]:
        from onward.backends.matlab.limits import UNSUPPORTED

        return UNSUPPORTED

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward.backends.matlab.convert import generate

        return generate(model, options.out)

    def load(self, source: Source) -> Any:
        from onward.backends.matlab.package import MatlabSource
        from onward.backends.matlab.run import in_memory

        assert isinstance(source, MatlabSource)
        return in_memory(source)

    def formats(self) -> Sequence[Format]:
        return [
            Format(
                self.name,
                "a package folder of MATLAB source, such as +net, that runs in MATLAB and GNU Octave",
                self.generate,
                _write,
                frozenset(),
                prefix="+",
                trains=False,
                parts=_parts,
                check=_check,
            )
        ]

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        from onward.backends.matlab.values import to_octave

        return to_octave(value, dtype)

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        return value

    def argument_names(self, net: Any) -> list[str]:
        return [side.name for side in net.inputs]

    def runner(self, net: Any, graph: ir.Graph) -> Run:
        fed = [value for value in graph.inputs if not value.is_initializer()]
        names = [value.name or "" for value in graph.outputs]

        def run(inputs: Inputs) -> Outputs:
            if replaced := inputs.keys() - {value.name for value in fed}:
                raise RunFailure(
                    f"the input {min(replaced)!r} has a default, which the generated function keeps as a parameter"
                )
            found = net.values([inputs.get(value.name or "") for value in fed])
            return dict(zip(names, found, strict=True))

        return run

    def use_threads(self, count: int) -> None:
        from onward.backends.matlab.octave.process import use_threads

        use_threads(count)

    def exceptions(self, mode: str = "", unknown_shapes: bool = False) -> Mapping[str, str]:
        from onward.backends.matlab.exceptions import EXCEPTIONS

        return EXCEPTIONS


def _write(model: Model, source: Source, folder: Path, options: Options) -> Path:
    from onward.backends.matlab.package import MatlabSource, write_package

    assert isinstance(source, MatlabSource)
    return write_package(source, folder, force=options.force)


def _parts(path: Path) -> Sequence[str]:
    from onward.backends.matlab.package import FILES

    return FILES


def _check(path: Path, force: bool) -> None:
    from onward.backends.matlab.package import FILES, package_name
    from onward.writing import check_unedited

    package_name(path)
    check_unedited(path, FILES, force)


BACKEND = Matlab()
