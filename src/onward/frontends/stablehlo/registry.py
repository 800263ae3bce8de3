"""Rules of the reader: an op of StableHLO as calls of JAX.

A rule is called with the reader, the op, and the values of its operands, and gives one value or a list of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.registry import Registry

Rule = Callable[..., Any]
RULES: Registry[Rule] = Registry("op of StableHLO")
rule = RULES.register
OUTSIDE: Registry[Rule] = Registry("function outside of a module")
outside = OUTSIDE.register
"""Files a rule for calls of a function that the module does not have itself, by its name."""
