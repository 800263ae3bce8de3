"""Anything that can execute an ONNX model, behind one small interface.

A runner is named `NAME` or `NAME:MODE`, such as `torch`, `torch:compile`, `onnxruntime:unoptimized`. Each has a file
here that registers it; a backend of another package registers its own the same way.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.model import Model
from onward.registry import Registry
from onward.runners.feeds import conform

Inputs = dict[str, Any]
"""By input name: an array, a list of arrays for a sequence, None for an optional that is left out."""
Outputs = Mapping[str, Any]
"""By output name: an array, a list for a sequence, a dict for a map, None for an empty optional."""
Run = Callable[[Inputs], Outputs]

LONGEST = 300
"""Characters of a runtime's message that are kept."""
NOISE = re.compile(
    r"(Exception from|Check '[^']*' failed at) \S+:\d+: "
    r"|\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    r"|/onnxruntime_src/\S+:\d+ .*?\) (?=[A-Z[])"
)
"""Places in a runtime's own source code, and its error codes: what comes before the words that help."""


@dataclass(frozen=True)
class Runner:
    """A way to execute models."""

    name: str
    about: str
    """One line for a list of runners."""
    package: str
    """What has to be installed, as it is imported."""
    prepare: Callable[[Model, str], Run]
    """The model, and the mode or '', to a function that runs it; raises `UnsupportedError` for what it cannot run.

    The function gets what `feeds.conform` makes of the inputs. Exceptions of the runtime need not be translated.
    """
    modes: Mapping[str, str]
    """The modes it knows, each with one line about it; any mode is let through where there is '*'."""
    start: Callable[[Model, str], Callable[[], Run]] | None = None
    """Begins on another thread what `prepare` does, where that leaves Python alone; gives what waits for it."""

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


RUNNERS: Registry[Runner] = Registry("runner")


def register(runner: Runner, *, user: bool = False) -> Runner:
    """Make a runner known by its name; one of a `user` comes before one of Onward's."""
    return RUNNERS.register(runner.name, user=user)(runner)


def is_known(name: str) -> bool:
    """Whether there is such a runner, installed or not."""
    load_all()
    return RUNNERS.get(name.partition(":")[0]) is not None


def find(name: str) -> tuple[Runner, str]:
    """The runner and mode that `name` stands for, or an error that lists what there is."""
    load_all()
    kind, _, mode = name.partition(":")
    runner = RUNNERS.get(kind)
    if runner is None:
        raise UnsupportedError(f"there is no runner {kind!r}; there are {', '.join(RUNNERS)}")
    if mode and mode not in runner.modes and "*" not in runner.modes:
        raise UnsupportedError(f"{kind} has no mode {mode!r}; it has {', '.join(runner.modes) or 'none'}")
    if not runner.installed:
        raise UnsupportedError(f"the runner {kind!r} needs the package {runner.package}, which is not installed")
    return runner, mode


def prepare(name: str, model: Model) -> Run:
    """A function that runs `model` on the named runner; both raise `RunFailure` for whatever goes wrong there."""
    runner, mode = find(name)
    return _checked(name, model, lambda: runner.prepare(model, mode))


def start(name: str, model: Model) -> Callable[[], Run]:
    """As `prepare`, which the function given ends: a runner that can begins at once, on another thread."""
    runner, mode = find(name)
    begun = None if runner.start is None else runner.start(model, mode)
    return lambda: _checked(name, model, begun or (lambda: runner.prepare(model, mode)))


def _checked(name: str, model: Model, prepared: Callable[[], Run]) -> Run:
    with failures(name):
        run = prepared()

    def checked(inputs: Inputs) -> Outputs:
        feeds = conform(model.ir, inputs)
        with failures(name):
            return run(feeds)

    return checked


@contextmanager
def failures(name: str) -> Iterator[None]:
    """Any exception of a runtime is a `RunFailure` of one line; its warnings are of no interest."""
    logged = logging.root.manager.disable
    logging.disable(max(logged, logging.WARNING))
    try:
        with raised_failures(name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logged)


@contextmanager
def raised_failures(name: str) -> Iterator[None]:
    """As `failures`, for a runtime that is quiet: a step of training would feel what silence costs."""
    try:
        yield
    except OnwardError:
        raise
    except MemoryError as error:
        raise RunFailure(f"{name}: ran out of memory") from error
    except Exception as error:
        raise RunFailure(f"{name}: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """The message, with the kind of error where it would not be understood without."""
    text = NOISE.sub("", " ".join(str(error).split()))
    if (type(error).__module__ == "builtins" and not isinstance(error, RuntimeError | ValueError)) or not text:
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def load_all() -> None:
    """Import the files of this folder, which register what they define; none of them imports its framework yet."""
    from onward.runners import keras, onnxruntime, openvino, reference, tensorflow, torch  # noqa: F401
