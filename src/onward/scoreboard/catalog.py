"""The cases of ONNX's suite, each with the op, the family and the opset that it is counted under."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from onward.scoreboard import suite
from onward.scoreboard.exceptions import DRAWS

FAMILIES = {
    "node": "one op of ai.onnx each",
    "ml": "ops of ai.onnx.ml",
    "training": "ops of ai.onnx.preview.training",
    "simple": "small graphs",
    "pytorch-converted": "layers, as PyTorch once exported them",
    "pytorch-operator": "functions, as PyTorch once exported them",
    "light": "well-known networks",
}
SEVERAL = "(several ops)"
NETWORKS = "(whole networks)"

DOMAIN_FAMILIES = {"ai.onnx.ml": "ml", "ai.onnx.preview.training": "training"}


@dataclass(frozen=True)
class Test:
    """A case of the suite."""

    name: str
    op: str
    """`SEVERAL` where it tests no single one."""
    family: str
    opset: str
    """The version of the domain that the op is of, as 'ai.onnx 13'."""
    counted: bool
    """Not where the expected output is one random draw, which no runner can be expected to make."""


@cache
def tests() -> dict[str, Test]:
    return {name: _test(name, case, name not in DRAWS) for name, case in suite.cases().items()}


def _test(name: str, case: Any, counted: bool) -> Test:
    model = suite.model_of(case)
    opsets = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    domain = next((domain for domain in DOMAIN_FAMILIES if domain in opsets), "ai.onnx")
    family = DOMAIN_FAMILIES.get(domain, "light" if case.kind == "real" else case.kind)
    op = NETWORKS if family == "light" else _op(name, [(node.domain, node.op_type) for node in model.graph.node])
    return Test(name, op, family, f"{domain} {opsets.get(domain, 0)}", counted)


def _op(name: str, nodes: list[tuple[str, str]]) -> str:
    """The only op of the graph, or the one that the name speaks of; an expanded case is under what was expanded."""
    if (plain := re.sub(r"_expanded(_ver\d+)?$", "", name)) != name and plain in suite.cases():
        return _op(plain, [(node.domain, node.op_type) for node in suite.model_of(suite.cases()[plain]).graph.node])
    found = {_full(domain, op) for domain, op in nodes if op != "Constant"} or {_full(*node) for node in nodes}
    if len(found) == 1:
        return found.pop()
    words = re.sub(r"^test_|_", "", name).lower()
    named = [op for op in sorted(found) if op.rpartition(".")[2].lower() in words]
    return max(named, key=len, default=SEVERAL)


def _full(domain: str, op: str) -> str:
    return op if domain in ("", "ai.onnx") else f"{domain}.{op}"
