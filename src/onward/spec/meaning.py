"""What a node means: one frozen dataclass for each op that has parameters, resolved once for whoever reads the node.

Rules of backends and gradients get it as `p`: `def max_pool(e, x, p: MaxPool)`. An op without parameters has none.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, Self, TypeVar

import numpy as np
import onnx_ir as ir

from onward.registry import Registry

CHANNELS_LAST = "onward.nhwc"
"""The domain of ops on images whose channels are the last axis; each means what the op of ONNX means."""


class Spec:
    """The parameters of a node. By default they are its attributes, a field each; one that is True or False by default
    is a flag."""

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        return cls(**given | {name: bool(v) for name, v in given.items() if isinstance(getattr(cls, name, None), bool)})


SPECS: Registry[type[Spec]] = Registry("meaning")
S = TypeVar("S", bound=type[Spec])


def means(*ops: str) -> Callable[[S], S]:
    """Files a dataclass as what nodes of these ops mean; outside the default domain as `domain::Op`."""

    def file(spec: S) -> S:
        SPECS.register(*ops)(spec)
        return spec

    return file


def parameters(node: ir.Node) -> dict[str, Any]:
    """The keywords that a rule gets: `p`, what the node means, or its attributes where its op has no meaning filed."""
    spec = spec_of(node)
    return attributes(node) if spec is None else {"p": spec.of(node)}


def spec_of(node: ir.Node) -> type[Spec] | None:
    load_specs()
    standard = node.domain in ("", "ai.onnx", CHANNELS_LAST)
    return SPECS.get(node.op_type if standard else f"{node.domain}::{node.op_type}")


@cache
def load_specs() -> None:
    """Import every family, so that what its ops mean is filed."""
    package = importlib.import_module("onward.spec")
    for info in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{info.name}")


def attributes(node: ir.Node) -> dict[str, Any]:
    """Attributes as plain Python values; tensors and graphs stay ir objects.

    A float is in the shortest form of its single precision, unless the node computes in double precision.
    """
    plain = {name: attr.value for name, attr in node.attributes.items()}
    if not any(v is not None and v.dtype == ir.DataType.DOUBLE for v in node.inputs):
        plain |= {name: float(str(np.float32(v))) for name, v in plain.items() if isinstance(v, float)}
    return plain


def sizes(node: ir.Node, index: int = 0) -> tuple[int | None, ...] | None:
    """The shape of an input, None for each size that is not known, or None where not even the rank is known."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.shape is None:
        return None
    return tuple(size if isinstance(size, int) else None for size in value.shape)


def rank(node: ir.Node, index: int = 0) -> int | None:
    """The number of axes of an input, as far as it is known."""
    found = sizes(node, index)
    return None if found is None else len(found)


def image_sizes(node: ir.Node) -> tuple[int | None, ...] | None:
    """The sizes of the axes of an image beside batch and channels, as far as they are known."""
    found = sizes(node)
    if found is None:
        return None
    return found[1:-1] if node.domain == CHANNELS_LAST else found[2:]
