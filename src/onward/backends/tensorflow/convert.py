"""ONNX → TensorFlow: the package of source and weights, and the module made by running that very source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx_ir as ir

from onward.backends.emit.modules.regions import split
from onward.backends.emit.modules.settings import hold_settings
from onward.backends.emit.names import class_names
from onward.backends.emit.package import Source, Trainable, assembled, choose, emit, guarded, plain, write_package
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Weights
from onward.backends.tensorflow.kernels import TENSORFLOW as TENSORFLOW_KERNELS
from onward.backends.tensorflow.missing_kernels import Cast, Kernels, checked, compute_elsewhere
from onward.backends.tensorflow.module import ModuleWriter
from onward.backends.tensorflow.target import DTYPES, TARGET
from onward.hub.collector import no_garbage_collection
from onward.layout.channels_last import Moved, to_channels_last
from onward.layout.roles import DOMAIN, TENSORFLOW
from onward.model import Model
from onward.passes.pipelines import canonical
from onward.registry import import_files

__all__ = ["Source", "Trainable", "generate", "load_rules", "write_package"]

RUNTIME = "onward.backends.tensorflow.runtime"

IMPORTS = {
    "math": "import math",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "np": "import numpy as np",
    "tf": "import tensorflow as tf",
}

LOAD = '''def load(folder: str | Path = Path(__file__).parent) -> Model:
    """The model with its weights."""
    return Model(Weights.load(Path(folder) / "weights.safetensors"))
'''


def load_rules() -> None:
    """Register the rules of every family."""
    import_files("onward.backends.tensorflow.rules")


def has_rule(key: str) -> bool:
    """Whether TensorFlow knows an op, be it for images that are channels last."""
    return key in TARGET.rules or f"{DOMAIN}::{key}" in TARGET.rules


def channels_last(
    model: Model,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    prepare: Callable[[ir.Model], None] = lambda graph: None,
) -> tuple[ir.Model, Moved]:
    """A model as TensorFlow's rules take it: in canonical form, with its images channels last.

    `prepare` may change the graph before its layout is chosen.
    """
    with guarded("bringing the model to canonical form"):
        graph = canonical(model, has_rule)
        prepare(graph)
        return graph, to_channels_last(graph, TENSORFLOW, set(inputs_nhwc), set(outputs_nhwc))


def generate(
    model: Model,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    prepare: Callable[[ir.Model], None] = lambda graph: None,
    cast: str = "none",
    kernels: Kernels = TENSORFLOW_KERNELS,
    replaced: list[str] | None = None,
    finish: Callable[[ir.Model], None] = lambda graph: None,
) -> Source:
    """The TensorFlow source of a model, the inputs and outputs named so channels last. `model` is left as it is.

    `cast` tells what becomes of ops in dtypes that there are no kernels for, see `missing_kernels`. `replaced` are the
    packages of runtime helpers that are taken in the place of TensorFlow's; `prepare` may add to these. `finish`
    may change the graph after its layout and dtypes were chosen.
    """
    load_rules()
    policy = checked(cast)
    with no_garbage_collection():
        graph, moved = channels_last(model, inputs_nhwc, outputs_nhwc, prepare)
        with guarded("looking for kernels"):
            casts = compute_elsewhere(graph, policy, kernels)
        finish(graph)
        with guarded("choosing TensorFlow's words for its nodes"):
            emitter, function = emit(graph, TARGET, flags=("training",))
        freeze = choose(emitter.weights, trainable)
        with guarded("writing source code"):
            source = _source(model.name, graph, emitter.weights, function, freeze, casts, replaced or ())
    told = {str(made): made.wider for made in casts}
    return replace(source, input_orders=moved.inputs, output_orders=moved.outputs, casts=told)


def _source(
    name: str,
    graph: ir.Model,
    weights: Weights,
    function: Function,
    freeze: bool | list[str],
    casts: tuple[Cast, ...],
    replaced: Iterable[str],
) -> Source:
    """Split the computation into modules and print them."""
    tree = build_tree(weights)
    split(tree, function)
    hold_settings(tree, weights)
    writer = ModuleWriter(tree, class_names(graph.graph), freeze=freeze)
    text = f"{writer.write(plain(name))}\n\n\n{LOAD}"
    helpers = writer.helpers | {"Weights"}
    about = "The weights, and functions that TensorFlow itself does not have."
    title, traced = _title(name, casts), writer.traced
    return assembled(title, text, IMPORTS, helpers, RUNTIME, about, weights, DTYPES, traced=traced, replaced=replaced)


def _title(name: str, casts: tuple[Cast, ...]) -> str:
    if not casts:
        return f'"""{plain(name)}: a TensorFlow model."""'
    title = f'"""{plain(name)}: a TensorFlow model, in part computed in other dtypes than those of the original.'
    return "\n".join([title, "", *(f"- {plain(str(cast), 110)}" for cast in casts), '"""'])
