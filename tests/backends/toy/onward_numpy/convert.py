"""ONNX → NumPy: a class that holds the weights by name and computes in its call."""

from __future__ import annotations

from dataclasses import dataclass

from onward.backends.emit.classes import ClassWriter
from onward.backends.emit.package import Source, assembled, emit, guarded, plain
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import TreeNode
from onward.errors import UnsupportedError
from onward.model import Model
from onward.passes.pipelines import canonical
from onward_numpy.target import DTYPES, TARGET

IMPORTS = {
    "math": "import math",
    "Any": "from typing import Any",
    "Path": "from pathlib import Path",
    "np": "import numpy as np",
    "load_file": "from safetensors.numpy import load_file",
}

LOAD = '''def load(folder: str | Path = Path(__file__).parent) -> Model:
    """The model with its weights."""
    return Model(load_file(Path(folder) / "weights.safetensors"))
'''


@dataclass
class Writer(ClassWriter):
    """Writes the one class that a model is."""

    reserved: frozenset[str] = frozenset({"self", "load", "Model", *IMPORTS})
    init_arguments: tuple[str, ...] = ("weights: dict[str, np.ndarray]",)
    init_call = "self.weights = weights"

    def access(self, node: TreeNode, path: Scope) -> str:
        return f'self.weights["{".".join(path)}"]'

    def annotation(self, kind: str) -> str:
        return "np.ndarray" if kind == "tensor" else "Any"


def generate(model: Model) -> Source:
    """The NumPy source of a model."""
    with guarded("bringing the model to canonical form"):
        graph = canonical(model, TARGET.rules.__contains__)
    with guarded("choosing NumPy's words for its nodes"):
        emitter, function = emit(graph, TARGET)
    for tensor in emitter.weights.tensors.values():
        if tensor.dtype not in DTYPES:
            raise UnsupportedError(f"{tensor.onnx_name}: NumPy has no dtype {tensor.dtype.name}")
    with guarded("writing source code"):
        writer = Writer(TreeNode((), forward=function))
        text = f"{writer.write(plain(model.name))}\n\n\n{LOAD}"
        title = f'"""{plain(model.name)}: a NumPy model."""'
        about = "Functions that NumPy itself does not have."
        runtime = "onward_numpy.runtime"
        return assembled(title, text, IMPORTS, writer.helpers, runtime, about, emitter.weights, DTYPES)
