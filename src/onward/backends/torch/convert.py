"""ONNX → PyTorch: the package of source and weights, and the module made by running that very source."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Var
from onward.backends.emit.names import scope_of
from onward.backends.emit.runtime import load_runtime, sort_imports
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Tensor
from onward.backends.torch.module import ModuleWriter
from onward.backends.torch.target import TARGET
from onward.canon.pipeline import canonical
from onward.model import Model, load

if TYPE_CHECKING:
    import torch

RUNTIME = "onward.backends.torch.runtime"

IMPORTS = {
    "math.": "import math",
    "Any": "from typing import Any",
    "np.": "import numpy as np",
    "torch.": "import torch",
    "F.": "import torch.nn.functional as F",
    "Tensor": "from torch import Tensor",
    "nn.": "from torch import nn",
}


@dataclass(frozen=True)
class Source:
    """A generated package: the text of its modules and its tensors by state-dict name."""

    model: str
    ops: str | None
    tensors: dict[str, Tensor]
    ties: dict[str, str]


@cache
def load_rules() -> None:
    """Import every family, so that its rules are registered."""
    package = importlib.import_module("onward.backends.torch")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg:
            importlib.import_module(f"onward.backends.torch.{info.name}")


def generate(model: Model) -> Source:
    """The PyTorch source of a model. `model` is left as it is."""
    load_rules()
    graph = canonical(model, TARGET.rules.__contains__)
    emitter = Emitter(TARGET)
    emitter.weights.population = population(graph.graph)
    arguments = []
    for value in graph.graph.inputs:
        if value.is_initializer():
            continue
        var = Var(value.name or "input", _kind(value))
        emitter.bind(value, var)
        arguments.append(var)
    results = [arg._force() for arg in emitter.graph(graph.graph)]
    tree = build_tree(emitter.weights)
    tree.forward = Function(emitter.block, arguments, results)
    writer = ModuleWriter(tree)
    writer.write(tree, "Model", f"{_plain(model.name)}, converted from ONNX.")
    body = "\n\n\n".join("\n".join(lines) for lines in writer.classes.values())
    text = f"{body}\n\n\n{LOAD}"
    imports = {line for mark, line in IMPORTS.items() if mark in text} | {
        "from pathlib import Path",
        "from safetensors.torch import load_file",
    }
    lines = sort_imports(imports)
    ops = None
    if writer.helpers:
        ops = load_runtime(RUNTIME).source(writer.helpers, "Functions that PyTorch itself does not have.")
        lines += ["", f"from .ops import {', '.join(sorted(writer.helpers))}"]
    header = f'"""{_plain(model.name)}: a PyTorch model."""'
    source = "\n".join([header, "", *lines]) + f"\n\n\n{text}"
    dotted = {".".join(p): t for p, t in emitter.weights.tensors.items()}
    ties = {".".join(a): ".".join(b) for a, b in emitter.weights.ties.items()}
    return Source(source, ops, dotted, ties)


LOAD = '''def load(folder: str | Path = Path(__file__).parent) -> Model:
    """The model with its weights, ready for inference."""
    with torch.device("meta"):
        model = Model()
    fill(model, load_file(Path(folder) / "weights.safetensors"))
    return model.eval()


def fill(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give each parameter and buffer its value, without copying it."""
    for name, tensor in tensors.items():
        owner, _, attribute = name.rpartition(".")
        module = model.get_submodule(owner)
        if attribute in module._parameters:
            tensor = nn.Parameter(tensor, module._parameters[attribute].requires_grad)
        setattr(module, attribute, tensor)
'''


def population(graph: ir.Graph) -> dict[Scope, int]:
    """How many nodes live in each scope."""
    counts: dict[Scope, int] = {}
    for node in graph.all_nodes():
        scope = scope_of(node)
        for i in range(1, len(scope) + 1):
            counts[scope[:i]] = counts.get(scope[:i], 0) + 1
    return counts


def _kind(value: ir.Value) -> str:
    is_tensor = isinstance(value.type, ir.TensorType) or value.type is None
    return "tensor" if is_tensor and value.dtype != ir.DataType.STRING else "object"


def _plain(name: str) -> str:
    """A name from the file, safe inside a docstring."""
    return "".join(ch for ch in name if ch.isascii() and (ch.isalnum() or ch in " ._-"))[:60] or "model"


def to_torch(source: Any) -> torch.nn.Module:
    """An `nn.Module` that computes what the ONNX model computes: the generated source, run in memory."""
    from onward.backends.torch.load import run

    return run(generate(load(source)))
