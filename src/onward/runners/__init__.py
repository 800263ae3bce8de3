"""Anything that can execute an ONNX model, behind one small interface.

A runner is named `NAME` or `NAME:MODE`, such as `torch`, `torch:compile`, `onnxruntime:unoptimized`. A
runtime has a file here that registers it; every backend is a runner as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from onward.advice.extras import require
from onward.advice.nearest import meant
from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.plugins import find as plugins
from onward.runners.calls import Inputs, Outputs, Run, failures
from onward.runners.feeds import conform
from onward.runners.files import own_file
from onward.runners.isolate import Isolated
from onward.runners.runner import RUNNERS, Runner, register

__all__ = [
    "RUNNERS",
    "Runner",
    "find",
    "is_known",
    "isolated",
    "load_all",
    "near_runner",
    "prepare",
    "register",
    "start",
]


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
        raise UnsupportedError(f"there is no runner {kind!r}; there are {', '.join(RUNNERS)}{near_runner(kind)}")
    if mode and mode not in runner.modes and "*" not in runner.modes:
        near = meant(mode, runner.modes)
        raise UnsupportedError(f"{kind} has no mode {mode!r}; it has {', '.join(runner.modes) or 'none'}{near}")
    require(runner.package)
    return runner, mode


def near_runner(name: str) -> str:
    """The end of a message about a runner that there is not; somebody may have named a mode alone, such as tflite."""
    load_all()
    found = [(kind, RUNNERS.get(kind)) for kind in RUNNERS]
    modes = [f"{kind}:{name}" for kind, runner in found if runner is not None and name in runner.modes]
    return f"; did you mean {modes[0]}?" if modes else meant(name, RUNNERS)


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


def isolated(name: str, model: Model, *, seconds: float | None = None, memory: int | None = None) -> Isolated:
    """`model` on the named runner, in a process of its own.

    `seconds` limits the preparation and each run, `memory`, in bytes, what the process takes for itself. Going beyond
    either, like a crash, raises `RunFailure`; the next run then starts a fresh process.
    """
    runner, _ = find(name)
    path, folder = own_file(model), None
    if path is None:
        folder = tempfile.TemporaryDirectory(prefix="onward-")
        path = Path(folder.name) / "model.onnx"
        model.save(path)
    return Isolated(
        partial(_load_and_prepare, name, runner, path.absolute(), plugins.sources()),
        seconds=seconds,
        memory=memory,
        owns=folder,
    )


def _load_and_prepare(name: str, runner: Runner, path: Path, plugged: list[str]) -> tuple[Run, None]:
    """Inside the process, where a runner that a user registered, and the plugins that one named, are not known yet."""
    plugins.reload(plugged)
    if RUNNERS.get(runner.name) is None:
        RUNNERS.register(runner.name, user=True)(runner)
    return prepare(name, load(path)), None


@cache
def load_all() -> None:
    """Register the runtimes of this folder, and every backend; none of them imports its framework yet."""
    from onward.backends.backend import backends
    from onward.runners import iree, onnxruntime, openvino, reference  # noqa: F401
    from onward.runners.generated import runner_of

    for one in backends():
        register(runner_of(one))
