"""What a backend is: one description, which the CLI, coverage, runners, formats, the suite and the scoreboard read.

A backend is a folder with a `backend.py` that defines `BACKEND`. Those of Onward are found beside this file, those of
other packages by the entry point group `onward.backends`. Nothing here imports a framework: what needs one imports it
when it is called.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onward.advice.extras import PROGRAMS, is_installed, titled, to_install
from onward.advice.nearest import meant
from onward.errors import MissingPackageError, OnwardError, RunFailure
from onward.registry import import_files
from onward.writing import MANIFEST, check_unedited

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from onward.backends.emit.package import Source, Trainable
    from onward.backends.emit.target import Target
    from onward.model import Model
    from onward.runners.calls import Inputs, Outputs, Run

ROUNDING = (
    "Softmax of numbers that are equal, near 9.5e9: the last bit of one decides; what it is given is tested instead"
)
"""Why a case of ONNX's suite passes on one processor and not on another."""
GROUP = "onward.backends"
"""Of entry points: the name of a backend, and where its `BACKEND` is."""


@dataclass(frozen=True)
class Options:
    """What a user may ask of a conversion; a format says which of these it takes."""

    trainable: Trainable = True
    inputs_nhwc: Sequence[str] = ()
    outputs_nhwc: Sequence[str] = ()
    cast: str = "none"
    quantize: str | None = None
    io: str = "float32"
    """What inputs and outputs are handed over as, where the numbers between them are in 8 bits."""
    calibrate: Sequence[Inputs] | None = None
    select_tf_ops: bool = False
    out: Path | None = None
    """Where the result is written, as far as its source has to know."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """How many results there are at most, by name, where only data decide: for what is compiled for fixed sizes."""
    force: bool = False
    """Whether files are written over that somebody has edited."""
    fallback: str | None = None
    """The runtime of what the backend has no rule for: such parts stay ONNX inside the result."""
    trains: bool = False
    """Whether training goes on in it: each weight of the file stays one of its own, which a layer may not merge."""


PLAIN = Options()
NOISE = "the expected output holds rounding noise of numpy's FFT, 1.9e-7 where the exact answer, and ours, is 0"
"""Why an exact transform does not pass ONNX's cases of the inverse one."""
"""Nothing is asked for."""


@dataclass(frozen=True)
class Limit:
    """What a rule cannot do. With `dtypes`, it concerns only nodes that have an input of one of these."""

    why: str
    dtypes: frozenset[ir.DataType] = frozenset()

    def concerns(self, node: ir.Node) -> bool:
        return not self.dtypes or any(value is not None and value.dtype in self.dtypes for value in node.inputs)


def write_source(model: Model, source: Source, folder: Path, options: Options) -> Path:
    """Write a package of source code and weights."""
    from onward.backends.emit.package import write_package

    return write_package(source, folder, force=options.force)


PACKAGE = ("model.py", "ops.py", "weights.safetensors", "constants.safetensors", MANIFEST)
"""What a package of source code consists of."""


@dataclass(frozen=True)
class Format:
    """Something that a backend writes: what `onward convert --to NAME` asks for."""

    name: str
    about: str
    """One line for a list of formats."""
    generate: Callable[[Model, Options], Source]
    write: Callable[[Model, Source, Path, Options], Path] = write_source
    takes: frozenset[str] = frozenset({"trainable"})
    """The names of the options that it understands."""
    suffix: str = ""
    """Of the file that is written; '' for a folder."""
    prefix: str = ""
    """With what the name of what is written has to begin."""
    runs_source: bool = True
    """Whether the source is run beside the original before it is written; if not, what is written is."""
    trains: bool = True
    """Whether training can go on in it."""
    parts: Callable[[Path], Sequence[str]] | None = None
    """See `files`, where it is neither a single file nor a package of source code."""
    check: Callable[[Path, bool], None] | None = None
    """See `check_place`, where there is more to check than whether a package was edited."""

    remarks: Callable[[Path, Options], Sequence[str]] | None = None
    """What a user has to know of what was written, a line each."""

    def files(self, path: Path) -> Sequence[str]:
        """The names of the files, or in a folder of its parts, that it may consist of."""
        return self.parts(path) if self.parts is not None else [path.name] if self.suffix else PACKAGE

    def check_place(self, path: Path, force: bool) -> None:
        """Refuse a place that is taken by something else, or by what somebody has edited unless that is forced."""
        if self.check is not None:
            self.check(path, force)
        elif not self.suffix:
            check_unedited(path, PACKAGE, force)


class Backend:
    """A framework that ONNX models become source code of. A backend overrides what differs."""

    name: str
    """As the CLI and runners call it."""
    title: str
    """As the framework is called."""
    package: str
    """What has to be installed, as it is imported."""
    distributions: tuple[str, ...] = ()
    """What its versions are known by, where that is not the name of the package."""
    modes: Mapping[str, str] = {}
    """Ways to run a generated model, beside as it is: each with one line about it. See `in_mode`."""
    is_covered = True
    """Whether it has rules of its own, and so a column in the pages about ops."""
    takes_untitled = False
    """Whether a package that does not say what it is for, nor imports a framework, is taken for one of its own."""
    sometimes: frozenset[str] = frozenset()
    """Reasons in `exceptions` that do not keep a case from passing on every processor."""

    # Rules

    def target(self) -> Target:
        """The words that its rules write with, and its rules."""
        raise NotImplementedError

    @property
    def home(self) -> str:
        """The package that it is in."""
        return type(self).__module__.rpartition(".")[0]

    def load_rules(self) -> None:
        """Register the rules of every family."""
        import_files(f"{self.home}.rules")

    def has_rule(self, op: str) -> bool:
        self.load_rules()
        return op in self.target().rules

    def partial(self) -> Mapping[str, Limit]:
        """Ops with a rule that refuses some of what ONNX allows."""
        return {}

    def unsupported(self) -> Mapping[str, str]:
        """Ops without a rule, where there is more to say than that."""
        return {}

    # Source

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        """The source code of a model."""
        raise NotImplementedError

    def load(self, source: Source) -> Any:
        """The model that a source makes, run in memory."""
        raise NotImplementedError

    def opened(self, module: ModuleType, folder: Path) -> Any:
        """The model of a package that was written, of which `module` is the model.py."""
        return module.load(folder)

    def formats(self) -> Sequence[Format]:
        """What it writes; the first is called as the backend is."""
        return [Format(self.name, f"a folder of {self.title} source code and weights", self.generate)]

    @property
    def writes_packages(self) -> bool:
        """Whether one of its formats is a folder of source code and weights."""
        return any(form.write is write_source for form in self.formats())

    # Running

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        """An array, or what ONNX has instead of one, as the framework takes it."""
        raise NotImplementedError

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        """The inverse; `dtype` is that of the file where numpy itself has none like it."""
        raise NotImplementedError

    def call(self, net: Any, arguments: Sequence[Any], outputs: Sequence[str]) -> Sequence[Any]:
        """The outputs, in this order, of a loaded model."""
        found = net(*arguments)
        return found if len(outputs) > 1 else (found,)

    def further(self, net: Any) -> Sequence[str]:
        """The names of what a loaded model gives after the outputs of its ONNX graph."""
        return ()

    def argument_names(self, net: Any) -> list[str]:
        """The names of what a loaded model takes."""
        return [name for name in inspect.signature(net).parameters if name != "training"]

    def in_mode(self, net: Any, graph: ir.Graph, mode: str) -> Any:
        """A loaded model, to be run in one of `modes`."""
        raise NotImplementedError

    def runner(self, net: Any, graph: ir.Graph) -> Run:
        """Runs a loaded model of an ONNX graph on arrays by name."""
        from onward.graph.narrow import dtype_of

        fed = [value for value in graph.inputs if not value.is_initializer()]
        further = self.further(net)
        names = [*(value.name or "" for value in graph.outputs), *further]
        dtypes = [*map(dtype_of, graph.outputs), *(None for _ in further)]

        def run(inputs: Inputs) -> Outputs:
            if replaced := inputs.keys() - {value.name for value in fed}:
                raise RunFailure(
                    f"the input {min(replaced)!r} has a default, which the generated module keeps as a weight"
                )
            arguments = [self.to_framework(inputs.get(value.name or ""), value.dtype) for value in fed]
            values = self.call(net, arguments, names)
            return {n: self.to_numpy(v, dtype) for n, v, dtype in zip(names, values, dtypes, strict=True)}

        return run

    def proof(self, net: Any, graph: ir.Graph) -> Run:
        """As `runner`, in the way in which it takes the least time to check a conversion."""
        return self.runner(net, graph)

    def prepare(self, model: Model, mode: str = "") -> Run:
        """Runs a model as generated source, in one of `modes` if one is named."""
        net = self.load(self.generate(model))
        return self.runner(self.in_mode(net, model.ir.graph, mode) if mode else net, model.ir.graph)

    def use_threads(self, count: int) -> None:
        """Let the framework use so many threads, where it has a way to be told."""

    # ONNX's suite

    def exceptions(self, mode: str = "", unknown_shapes: bool = False) -> Mapping[str, str]:
        """Cases of ONNX's suite that it does not pass as they are written, each with the reason."""
        return {}

    @property
    def is_installed(self) -> bool:
        return is_installed(self.package)


@cache
def _places() -> dict[str, str]:
    """By name, the module that defines each backend; what is installed beside Onward cannot replace its own."""
    here = importlib.import_module("onward.backends")
    others = {point.name: point.value.partition(":")[0] for point in entry_points(group=GROUP)}
    own = {
        info.name: f"{here.__name__}.{info.name}.backend"
        for info in pkgutil.iter_modules(here.__path__)
        if info.ispkg and importlib.util.find_spec(f"{here.__name__}.{info.name}.backend")
    }
    return own | {name: place for name, place in others.items() if name not in own}


@cache
def names() -> list[str]:
    """All backends that can be loaded. One of another package that cannot be is left out, with a warning."""
    return [name for name, place in _places().items() if place.startswith("onward.") or _loads(name)]


def _loads(name: str) -> bool:
    try:
        backend(name)
    except Exception as error:  # whatever the code of others raises
        message = f"the backend {name!r} of another package is left out, since it cannot be loaded: {error}"
        warnings.warn(message, stacklevel=2)
        return False
    return True


@cache
def backend(name: str) -> Backend:
    """The description of a backend."""
    places = _places()
    if name not in places:
        raise OnwardError(f"there is no backend {name!r}; there are {', '.join(places)}{meant(name, places)}")
    found: Backend = importlib.import_module(places[name]).BACKEND
    return found


def backends() -> list[Backend]:
    """The descriptions of all backends."""
    return [backend(name) for name in names()]


def formats() -> dict[str, tuple[Backend, Format]]:
    """All that can be written, by name."""
    return {form.name: (one, form) for one in backends() for form in one.formats()}


def require(one: Backend) -> None:
    """Fail with a word on how to install a framework where it is missing."""
    if not one.is_installed:
        title = titled(one.package) if one.package in PROGRAMS else one.title
        raise MissingPackageError(f"{title} is not installed: {to_install(one.package)}")
