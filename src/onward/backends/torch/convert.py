"""ONNX → PyTorch: the package of source and weights, and the module made by running that very source."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.modules.regions import split
from onward.backends.emit.modules.settings import hold_settings
from onward.backends.emit.names import class_names
from onward.backends.emit.package import Source, Trainable, assembled, choose, emit, guarded, plain, write_package
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Weights
from onward.backends.torch.as_module import as_module
from onward.backends.torch.module import ModuleWriter
from onward.backends.torch.target import DTYPES, TARGET
from onward.hub.collector import no_garbage_collection
from onward.model import Model
from onward.passes.pipelines import canonical
from onward.registry import import_files

__all__ = ["Source", "Trainable", "generate", "load_rules", "write_package"]

RUNTIME = "onward.backends.torch.runtime"

IMPORTS = {
    "math": "import math",
    "OrderedDict": "from collections import OrderedDict",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "Tensor": "from torch import Tensor",
    "nn": "from torch import nn",
    "load_file": "from safetensors.torch import load_file",
    "TorchFunctionMode": "from torch.overrides import TorchFunctionMode",
}


def load_rules() -> None:
    """Register the rules of every family."""
    import_files("onward.backends.torch.rules")


def generate(model: Model, trainable: Trainable = True) -> Source:
    """The PyTorch source of a model. `model` is left as it is."""
    load_rules()
    with no_garbage_collection():
        return _generate(model, trainable)


def _generate(model: Model, trainable: Trainable) -> Source:
    with guarded("bringing the model to canonical form"):
        graph = canonical(model, TARGET.rules.__contains__)
    with guarded("choosing PyTorch's words for its nodes"):
        emitter, function = emit(graph, TARGET)
    freeze = choose(emitter.weights, trainable)
    with guarded("writing source code"):
        return _source(model.name, graph, emitter.weights, function, freeze)


def _source(name: str, graph: ir.Model, weights: Weights, function: Function, freeze: bool | list[str]) -> Source:
    """Split the computation into modules and print them."""
    tree = build_tree(weights)
    split(tree, function, as_module)
    hold_settings(tree, weights)
    constants = [".".join(p) for p, t in weights.tensors.items() if t.added] if graph.producer_name == "pytorch" else []
    writer = ModuleWriter(tree, class_names(graph.graph), ties=weights.ties, constants=constants, freeze=freeze)
    text = f"{writer.write(plain(name))}\n\n\n{LOAD}"
    if "QuantizedLinear" in writer.helpers:
        text += UNPACK
    if weights.ties:
        text += "    model.tie_weights()\n"
    if "nn.Embedding(" in text:
        text = text.replace('with torch.device("meta"):', 'with torch.device("meta"), Uninitialized():') + UNINITIALIZED
    title, about = f'"""{plain(name)}: a PyTorch model."""', "Functions that PyTorch itself does not have."
    helpers, traced = writer.helpers, writer.traced
    return assembled(title, text, IMPORTS, helpers, RUNTIME, about, weights, DTYPES, traced=traced)


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

UNPACK = """    for module in model.modules():
        if isinstance(module, QuantizedLinear):
            module.unpack()
"""
"""The last lines of `fill`, which unpack weights of a few bits."""

UNINITIALIZED = '''

class Uninitialized(TorchFunctionMode):
    """Leaves out the random numbers of new embeddings: without memory behind them, PyTorch loads its compiler first."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return None if function is nn.init.normal_ else function(*args, **(kwargs or {}))
'''
