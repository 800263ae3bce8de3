"""What tests in any folder may use."""

import gc
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from browser import Browser, find
from refusals import BACKEND, is_left_out, watch

from onward.engine.store import package_version

QUICK = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_parallel_codegen_split_count=1"
)
"""Programs of tests run once: XLA need not make them fast. It reads this once, so it is said before JAX is imported."""
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()
COMPILED = tempfile.TemporaryDirectory(prefix="onward-compiled-", ignore_cleanup_errors=True)
"""What JAX compiled in this process: the same program, traced again, is not compiled again."""
os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED.name
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
"""What tests compute is small, here and in commands that they start: threads would mostly wait for one another."""

logging.getLogger().addHandler(logging.NullHandler())  # what pytest does for each test anew, if its logging is on

FRAMEWORKS = ("torch", "tensorflow", "keras", "onnx", "onnxruntime")
STARTS: dict[int, tuple[np.random.Generator, Any]] = {}


HERE = Path(__file__).parent
SLOW = frozenset((HERE / "slow.txt").read_text().split())
"""Tests whose cases take about a second or more in all, measured by `--durations`: `make check` leaves them out."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that compare generated code run once for each backend."""
    harness = sys.modules.get("harness")
    if harness is not None and harness.reaches_check(metafunc.function):
        metafunc.parametrize(BACKEND, harness.BACKENDS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-case", action="store_true", help="backends that run some cases of a test run them all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--every-case"):
        items[:] = [item for item in items if not is_left_out(item)]
    for item in items:
        if f"{item.path.relative_to(HERE).as_posix()}::{item.name.partition('[')[0]}" in SLOW:
            item.add_marker(pytest.mark.slow)


gc.disable()  # until all is imported and collected, of which nearly nothing is garbage


def pytest_collection_finish() -> None:
    """What was imported and collected stays: to look for garbage in it again and again takes a tenth of all time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 10, 10)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The versions that the tests ran on."""
    versions = [f"{name} {package_version(name)}" for name in FRAMEWORKS if find_spec(name) is not None]
    terminalreporter.write_line(", ".join(versions))


@pytest.fixture(scope="session", autouse=True)
def own_list_of_what_was_written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests write is not kept among the user's own packages, which are opened without `--trust`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def threads_of_onnx_runtime_sleep_while_they_wait() -> Iterator[None]:
    """Else each session takes a core for milliseconds after it is made, which is longer than most runs take."""
    make = onnxruntime.InferenceSession.__init__

    def make_sleeping(self: Any, model: Any, sess_options: Any = None, *others: Any, **named: Any) -> None:
        options = onnxruntime.SessionOptions() if sess_options is None else sess_options
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        make(self, model, options, *others, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnxruntime.InferenceSession, "__init__", make_sleeping)
        yield


@pytest.fixture(scope="session", autouse=True)
def ops_of_pytorch_listed_once() -> Iterator[None]:
    """Also where tests call its exporter themselves."""
    if "torch" not in sys.modules:
        yield
        return
    from onward.frontends.torch.torchlib import listed_once

    with listed_once():
        yield


@pytest.fixture(autouse=True)
def drawn_anew(request: pytest.FixtureRequest) -> None:
    """Whatever ran before it, a test draws the same numbers, of its module's generators, NumPy's and PyTorch's."""
    for drawn in vars(request.module).values():
        if isinstance(drawn, np.random.Generator):
            _, start = STARTS.setdefault(id(drawn), (drawn, drawn.bit_generator.state))
            drawn.bit_generator.state = start
    np.random.seed(0)
    if "torch" in sys.modules:
        # torch.manual_seed writes down the stack for each kind of device, and keeps it
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def own_places_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trusted file may import what lies beside it; later tests do not find it there."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(autouse=True, scope="module")
def what_jax_compiled_is_forgotten() -> Iterator[None]:
    """It keeps every program that it compiled, gigabytes over all tests.

    Until then, what it compiles is written in one context of MLIR: a new one for each op takes a third of the time.
    """
    mlir = sys.modules.get("jax._src.interpreters.mlir")
    with pytest.MonkeyPatch.context() as patch:
        if mlir is not None:
            patch.setattr(mlir, "make_ir_context", cache(mlir.make_ir_context))
        yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True)
def run_on() -> str:
    """No backend in particular, unless it is a parameter."""
    return ""


@pytest.fixture(autouse=True)
def watched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Backends refuse in tests of ops what the table of refusals lists, and nothing else."""
    harness = sys.modules.get("harness")
    if harness is None:
        yield
        return
    harness.NOW[:] = [watch(request.node)]
    yield
    harness.NOW.pop().close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser for the pages, started once."""
    program = find()
    if program is None:
        pytest.skip("no Chromium to show the pages in: apt-get install chromium")
    started = Browser(program)
    yield started
    started.close()
