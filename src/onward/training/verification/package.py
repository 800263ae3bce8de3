"""What is asked of an exported training, whatever the framework: this runs in the framework's own process."""

from __future__ import annotations

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onward.runners.calls import Inputs, Outputs, Run, failures
from onward.training.export.plan import WHOLE_STATE

Array = np.ndarray[Any, np.dtype[Any]]
Batches = Sequence[Mapping[str, Array]]


class Package(ABC):
    """A package of `onward train export` that is open, in the state that its files have.

    A framework says how its objects are loaded, and how arrays are read from them. `held` has these objects by the
    names that `train.py` gives them, by which its functions are called.
    """

    def __init__(self, folder: Path, statistics: Sequence[str]) -> None:
        if str(folder.parent) not in sys.path:
            sys.path.insert(0, str(folder.parent))
        importlib.invalidate_caches()
        self.train: Any = importlib.import_module(f"{folder.name}.train")
        self.statistics = statistics
        """The names of running statistics."""
        self.made = self.train.load_progress()[0]
        self.held: dict[str, Any] = {}
        self.held = self.loaded()

    @abstractmethod
    def loaded(self) -> dict[str, Any]:
        """What `main` loads."""

    @abstractmethod
    def batch(self, arrays: Mapping[str, Array]) -> Any:
        """A batch as `main` makes it."""

    @abstractmethod
    def step(self, batches: Batches) -> list[float]:
        """One step of the optimizer; gives the loss of each batch."""

    @abstractmethod
    def passed(self, batch: Mapping[str, Array]) -> tuple[list[Array], float, dict[str, Array]]:
        """The model's outputs, the loss and the gradients of a batch; nothing is changed."""

    @abstractmethod
    def state(self) -> dict[str, Array]:
        """Weights, running statistics and `<weight>.<slot>` of the optimizer, by their names in the package."""

    def called(self, function: Callable[..., Any], **more: Any) -> Any:
        """Call a function of `train.py` with whatever it asks for."""
        given = {**self.held, **more}
        return function(**{name: given[name] for name in inspect.signature(function).parameters if name in given})


def is_whole_step(folder: Path) -> bool:
    """Whether it calls the graphs of the training."""
    return (folder / WHOLE_STATE).exists()


def opened(framework: str) -> tuple[Run, None]:
    """Answers questions about packages: `{"do": "open", …}` first, then `{"do": "step", "batches": …}` and others."""
    package: list[Package] = []

    def answer(question: Inputs) -> Outputs:
        given = dict(question)
        with failures(framework):
            what = given.pop("do")
            if what == "open":
                own = "whole_step" if is_whole_step(given["folder"]) else framework
                package[:] = [importlib.import_module(f"onward.training.verification.{own}").PACKAGE(**given)]
                return {}
            return {"answer": getattr(package[0], what)(**given)}

    return answer, None
