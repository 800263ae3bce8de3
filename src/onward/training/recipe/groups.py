"""What differs from parameter to parameter: the learning rate, weight decay, whether it is trained at all."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onward.errors import OnwardError

Array = np.ndarray[Any, np.dtype[Any]]
NoDecay = Iterable[str] | Literal["vectors"]
"""Patterns of names, or all biases and scales: tensors of fewer than two dimensions."""


@dataclass(frozen=True)
class Rule:
    """How one parameter is updated."""

    lr: float = 1.0
    """What the learning rate is multiplied by."""
    decay: float = 0.0


@dataclass(frozen=True)
class Group:
    """Parameters, by patterns of their names, for which something else holds than for the rest."""

    patterns: str | Sequence[str]
    lr: float = 1.0
    """What the learning rate is multiplied by."""
    weight_decay: float | None = None
    """None: the optimizer's."""
    frozen: bool = False

    def has(self, name: str) -> bool:
        return matches(name, self.patterns)


def matches(name: str, patterns: str | Iterable[str]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatch.fnmatchcase(name, p) for p in ([patterns] if isinstance(patterns, str) else patterns))


def exactly(name: str) -> str:
    """The pattern that fits a name and nothing else."""
    return "".join(f"[{ch}]" if ch in "*?[" else ch for ch in name)


def check_patterns(patterns: str | Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise an error that names a pattern that fits no name."""
    known = list(names)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
            raise OnwardError(f"{what}: no trained weight is called {pattern!r}; there are {', '.join(known[:8])}")


def rules(parameters: Mapping[str, Array], groups: Sequence[Group], no_decay: NoDecay, decay: float) -> dict[str, Rule]:
    """The rule of each parameter; the first group that it fits holds."""
    for group in groups:
        if not group.frozen:
            check_patterns(group.patterns, parameters, "a group")
    if no_decay != "vectors":
        no_decay = [no_decay] if isinstance(no_decay, str) else list(no_decay)
        check_patterns(no_decay, parameters, "no weight decay")
    found = {}
    for name, array in parameters.items():
        group = next((group for group in groups if group.has(name)), Group(()))
        own = decay if group.weight_decay is None else group.weight_decay
        spared = array.ndim < 2 if no_decay == "vectors" else matches(name, no_decay)
        found[name] = Rule(group.lr, 0.0 if spared else own)
    return found
