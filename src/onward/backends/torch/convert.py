"""ONNX → PyTorch: the package of source and weights, and the module made by running that very source."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Var
from onward.backends.emit.names import class_names, scope_of
from onward.backends.emit.printer import drop_unread
from onward.backends.emit.regions import split
from onward.backends.emit.repeats import name_repeats
from onward.backends.emit.runtime import load_runtime, sort_imports
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Tensor, Weights
from onward.backends.torch import safetensors
from onward.backends.torch.as_module import as_module
from onward.backends.torch.module import ModuleWriter
from onward.backends.torch.target import TARGET
from onward.canon.pipeline import canonical
from onward.canon.walk import all_nodes
from onward.canon.weight_names import signature
from onward.errors import ConversionError, OnwardError
from onward.hub.garbage import no_garbage_collection
from onward.model import Model, load

if TYPE_CHECKING:
    import torch

Trainable = bool | str | Iterable[str]
"""True: every float weight; False: none; otherwise patterns such as 'head.*'."""

RUNTIME = "onward.backends.torch.runtime"

IMPORTS = {
    "math": "import math",
    "Any": "from typing import Any",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "Tensor": "from torch import Tensor",
    "nn": "from torch import nn",
    "TorchFunctionMode": "from torch.overrides import TorchFunctionMode",
}


@dataclass(frozen=True)
class Source:
    """A generated package: the text of its modules and its tensors by state-dict name."""

    model: str
    ops: str | None
    tensors: dict[str, Tensor]


@cache
def load_rules() -> None:
    """Import every family, so that its rules are registered; none of them needs PyTorch itself."""
    package = importlib.import_module("onward.backends.torch")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg and info.name != "load":
            importlib.import_module(f"onward.backends.torch.{info.name}")


def generate(model: Model, trainable: Trainable = True) -> Source:
    """The PyTorch source of a model. `model` is left as it is."""
    load_rules()
    with no_garbage_collection():
        return _generate(model, trainable)


def _generate(model: Model, trainable: Trainable) -> Source:
    with guarded("bringing the model to canonical form"):
        graph = canonical(model, TARGET.rules.__contains__)
    with guarded("choosing PyTorch's words for its nodes"):
        emitter, function = _emit(graph)
    freeze = _choose(emitter.weights, trainable)
    with guarded("writing source code"):
        return _source(model.name, graph, emitter.weights, function, freeze)


@contextmanager
def guarded(step: str) -> Iterator[None]:
    """Whatever goes wrong inside is an error of ours, and says in which step."""
    try:
        yield
    except OnwardError:
        raise
    except (Exception, RecursionError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ConversionError(f"{step} failed with {problem}; this is a defect of Onward: please report it") from error


def _emit(graph: ir.Model) -> tuple[Emitter, Function]:
    """The statements of the whole computation, before it is split into modules."""
    emitter = Emitter(TARGET)
    emitter.producer = graph.producer_name or ""
    emitter.weights.population = population(graph.graph)
    emitter.weights.signature = signature(graph.graph)
    emitter.weights.reserve(graph.graph.initializers)
    arguments = []
    for value in graph.graph.inputs:
        if not value.is_initializer():
            var = Var(value.name or "input", _kind(value))
            emitter.bind(value, var)
            arguments.append(var)
    results = [arg._force() for arg in emitter.graph(graph.graph)]
    drop_unread(emitter.block, results)
    emitter.weights.finish()
    name_repeats(emitter.block.body, results, emitter.weights)
    return emitter, Function(emitter.block, arguments, results)


def _source(name: str, graph: ir.Model, weights: Weights, function: Function, freeze: bool | list[str]) -> Source:
    """Split the computation into modules and print them."""
    tree = build_tree(weights)
    split(tree, function, as_module)
    writer = ModuleWriter(tree, class_names(graph.graph), weights.ties, freeze)
    text = f"{writer.write(_plain(name))}\n\n\n{LOAD}"
    if weights.ties:
        text += "    model.tie_weights()\n"
    if "nn.Embedding(" in text:
        text = text.replace('with torch.device("meta"):', 'with torch.device("meta"), Uninitialized():') + UNINITIALIZED
    lines = sort_imports(_imports(text) | {"from pathlib import Path", "from safetensors.torch import load_file"})
    ops = None
    if writer.helpers:
        ops = load_runtime(RUNTIME).source(writer.helpers, "Functions that PyTorch itself does not have.")
        lines += ["", f"from .ops import {', '.join(sorted(writer.helpers))}"]
    header = f'"""{_plain(name)}: a PyTorch model."""'
    source = "\n".join([header, "", *lines]) + f"\n\n\n{text}"
    return Source(source, ops, {".".join(p): t for p, t in weights.tensors.items()})


def _imports(text: str) -> set[str]:
    """The imports that code needs: what is in strings, or an attribute, is not meant."""
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return {line for name, line in IMPORTS.items() if re.search(rf"(?<![\w.]){name}\b", code)}


def _choose(weights: Weights, trainable: Trainable) -> bool | list[str]:
    """Make the chosen tensors parameters; returns what of the parameters stays fixed: all, none, or by name."""
    if isinstance(trainable, bool):
        return not trainable
    patterns = [trainable] if isinstance(trainable, str) else list(trainable)
    frozen, matched = [], set()
    for path, tensor in weights.tensors.items():
        name = ".".join(path)
        hits = {p for p in patterns if fnmatchcase(name, p) or fnmatchcase(tensor.onnx_name, p)}
        matched |= hits
        owned = path[:-1] in weights.modules
        if not owned and tensor.dtype.is_floating_point():
            tensor.parameter = tensor.parameter or bool(hits)
        if tensor.parameter and not hits:
            frozen.append(name)
    unmatched = [p for p in patterns if p not in matched]
    if unmatched:
        raise OnwardError(f"trainable: no weight is called {unmatched[0]!r}; `onward inspect --weights` lists them")
    return frozen


LOAD = '''def load(folder: str | Path = Path(__file__).parent) -> Model:
    """The model with its weights, ready for inference; call `train()` on it to go on training."""
    with torch.device("meta"):
        model = Model()
    fill(model, load_file(Path(folder) / "weights.safetensors"))
    return model.eval()


def fill(model: Model, tensors: dict[str, Tensor]) -> None:
    """Give each parameter and buffer its value, without copying it."""
    for name, tensor in tensors.items():
        owner, _, attribute = name.rpartition(".")
        module = model.get_submodule(owner)
        empty = getattr(module, attribute)
        if tensor.dtype != empty.dtype:
            tensor = tensor.view(empty.dtype).reshape(empty.shape)
        if attribute in module._parameters:
            tensor = nn.Parameter(tensor, empty.requires_grad)
        setattr(module, attribute, tensor)
'''

UNINITIALIZED = '''

class Uninitialized(TorchFunctionMode):
    """Leaves out the random numbers of new embeddings: without memory behind them, PyTorch loads its compiler first."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return None if function is nn.init.normal_ else function(*args, **(kwargs or {}))
'''


def population(graph: ir.Graph) -> dict[Scope, int]:
    """How many nodes live in each scope."""
    counts: dict[Scope, int] = {}
    for node in all_nodes(graph):
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


def to_torch(source: Any, *, trainable: Trainable = True) -> torch.nn.Module:
    """An `nn.Module` that computes what the ONNX model computes: the generated source, run in memory.

    `source` is a path, bytes, an `onnx.ModelProto` or an `onward.Model`. `trainable` chooses the parameters that a
    fine-tuning step changes, by patterns such as "head.*"; by default every float weight is one.
    """
    from onward.backends.torch.load import run

    return run(generate(load(source), trainable))


def write_package(source: Source, folder: str | os.PathLike[str]) -> Path:
    """Write model.py, weights.safetensors and, if it is needed, ops.py: all of them, or nothing."""
    folder = Path(folder)
    try:
        _write(source, folder)
    except OSError as error:
        raise OnwardError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return folder


def _write(source: Source, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        staged = Path(scratch)
        (staged / "model.py").write_text(source.model, encoding="utf-8")
        if source.ops is not None:
            (staged / "ops.py").write_text(source.ops, encoding="utf-8")
        with (staged / "weights.safetensors").open("wb") as file:
            safetensors.write(file, source.tensors)
        folder.mkdir(exist_ok=True)
        (folder / "ops.py").unlink(missing_ok=True)
        for path in staged.iterdir():
            path.replace(folder / path.name)
