"""The table of custom ops that are known, by domain and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from onward.registry import forget_schemas

if TYPE_CHECKING:
    from onward.plugins.op import CustomOp

_OPS: dict[str, dict[int, CustomOp]] = {}
"""By key, `my.lab::SolveSPD`, the versions."""


def file(op: CustomOp) -> None:
    """Make an op known, here and to the onnx package; one of the same name and version gives way.

    The reference evaluator of onnx is imported first: it takes no two domains with an op of one name when it is.
    """
    import onnx.reference.op_run

    for domain, schema in zip(op.domains, op.schemas, strict=True):
        versions = _OPS.setdefault(f"{domain}::{op.name}", {})
        if op.version in versions:
            onnx.defs.deregister_schema(op.name, op.version, domain)
        onnx.defs.register_schema(schema)
        versions[op.version] = op
    forget_schemas()


def forget(op: CustomOp) -> None:
    """Make an op unknown again."""
    for domain in op.domains:
        versions = _OPS.get(f"{domain}::{op.name}", {})
        if versions.get(op.version) is op:
            onnx.defs.deregister_schema(op.name, op.version, domain)
            del versions[op.version]
    forget_schemas()


def find(key: str, version: int | None = None) -> CustomOp | None:
    """The op by its key: of that version or the last before it; the newest where none is asked for."""
    versions = _OPS.get(key)
    if not versions:
        return None
    fitting = [number for number in versions if version is None or number <= version]
    return versions[max(fitting)] if fitting else None


def versions(key: str) -> list[CustomOp]:
    """The op by its key, in all of its versions."""
    return list(_OPS.get(key, {}).values())


def ops() -> list[CustomOp]:
    """All that are known, each once."""
    return list(dict.fromkeys(op for versions in _OPS.values() for op in versions.values()))
