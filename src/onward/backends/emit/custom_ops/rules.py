"""Custom ops of plugins in generated code: a function of the plugin is a runtime helper like any other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from onward.backends.emit.custom_ops.copied import Copied, copied
from onward.backends.emit.emitter import Emitter, Unpack
from onward.backends.emit.expr import Expr, Helper
from onward.backends.emit.helpers import Runtime, load_runtime
from onward.backends.emit.target import Rule
from onward.errors import UnsupportedError
from onward.plugins.advice import next_step
from onward.plugins.op import CustomOp
from onward.plugins.table import find, versions

_COPIED: dict[tuple[str, str], Copied] = {}
"""By the package of runtime helpers that they stand beside, and name."""


def custom_rules(backend: str, runtime: str) -> Callable[[str], Rule | None]:
    """What plugins have for the rules of a backend, by key; `runtime` is the package of its runtime helpers."""

    def rule(key: str) -> Rule | None:
        if not any(backend in op.sources or backend in op.rules for op in versions(key)):
            return None
        return lambda e, *inputs, **attributes: _written(e, key, backend, runtime, inputs, attributes)

    return rule


def _written(
    e: Emitter, key: str, backend: str, runtime: str, inputs: tuple[Expr | None, ...], attributes: dict[str, Any]
) -> Any:
    op = find(key, e.node.version)
    given = None if op is None else op.rules.get(backend)
    if op is None or (given is None and backend not in op.sources):
        raise UnsupportedError(f"{e.target.name} has no rule for version {e.node.version} of {key}{next_step(key)}")
    keywords = op.keywords(attributes)
    if given is not None:
        return given(e, *inputs, **keywords)
    call: Expr = Helper(_filed(op, backend, runtime))(*inputs, **keywords)
    if len(op.outputs) == 1 and not op.outputs[0].option:
        return call
    count = len(e.node.outputs)
    return Unpack(call if count == len(op.outputs) else call[:count])


def _filed(op: CustomOp, backend: str, runtime: str) -> str:
    """The name of the helper that a function of an op becomes, which is filed for `with_plugins`."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op.name).lower()
    parts = [name, *([f"v{op.version}"] if op.version > 1 else [])]
    if backend not in runtime.split("."):
        parts.insert(0, backend)
    elif name in load_runtime(runtime).definitions:
        parts.insert(0, re.sub(r"\W", "_", op.domain))
    name = "_".join(parts)
    _COPIED[runtime, name] = copied(op.sources[backend], name, f"the function of {op.key} for {backend}")
    return name


def with_plugins(package: str, helpers: set[str]) -> Runtime:
    """The runtime helpers of a package, and those among `helpers` that are functions of plugins."""
    runtime = load_runtime(package)
    for name in sorted(helpers - runtime.definitions.keys()):
        found = _COPIED[package, name]
        runtime = runtime.joined(found.definitions, found.imports)
    return runtime
