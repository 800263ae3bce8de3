"""Functions and modules of JAX as ONNX models."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.errors import OnwardError, UnsupportedError
from onward.frontends.jax import names
from onward.frontends.jax.finish import finished
from onward.frontends.jax.sources import Source, opened
from onward.frontends.jax.specs import abstract, struct
from onward.frontends.jax.translate import Translator
from onward.frontends.opset import brought_to, written_opset
from onward.graph.build import Tensor
from onward.hub.collector import no_garbage_collection
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Inputs, Outputs, Run

LONGEST = 500
"""Characters of what JAX says."""
RULES = "onward.frontends.jax.rules"


def converted(
    source: Any,
    specs: Sequence[Any],
    params: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    opset: int,
    places: list[str] | None = None,
) -> tuple[Model, Callable[[], Run]]:
    """The model, and what opens the function that it is of, to be run beside it; `places` are a translator's."""
    import_files(RULES)
    with no_garbage_collection():
        return _converted(source, specs, params, input_names, output_names, opset, places)


def _converted(
    source: Any,
    specs: Sequence[Any],
    params: Any,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    opset: int,
    places: list[str] | None,
) -> tuple[Model, Callable[[], Run]]:
    import jax

    found = opened(source, params)
    given = abstract(specs)
    arrays = [weight.array for weight in found.weights]
    held = [struct(array.shape, array.dtype) for array in arrays]
    try:
        closed, results = jax.make_jaxpr(found.call, return_shape=True)(held, *given)
    except OnwardError:
        raise
    except Exception as error:  # whatever the function, or the library of its layers, says to these arguments
        what = "specs and weights" if arrays else "specs"
        raise OnwardError(
            f"JAX cannot trace it with these {what}: {type(error).__name__}: {_first(error)}; "
            f"give {what} with which it runs by itself"
        ) from error
    labels = _labels(input_names, _input_names(found, given), "input")
    outputs = _labels(output_names, names.output_names(results), "output")
    translator = Translator(written_opset(opset))
    translator.places = places
    translator.model.graph.name = getattr(source, "__name__", type(source).__name__)
    if "<" in (translator.model.graph.name or ""):
        translator.model.graph.name = "model"
    translator.names = names.closed_over(found.signature if not found.weights else source)
    written(translator, found, closed, labels, outputs)
    labels = [str(value.name) for value in translator.model.graph.inputs]
    outputs = [str(value.name) for value in translator.model.graph.outputs]
    model = brought_to(opset, finished(translator))
    return model, lambda: runner(found.call, arrays, given, labels, outputs)


def written(translator: Translator, source: Source, closed: Any, labels: Sequence[str], outputs: Sequence[str]) -> None:
    """Write the nodes of a traced function, its inputs, weights and outputs."""
    variables = closed.jaxpr.invars
    count = len(source.weights)
    inputs: list[Any] = []
    own = [translator.input(name, variable.aval) for name, variable in zip(labels, variables[count:], strict=True)]
    kept = [translator.op.names.value(label) for label in outputs]
    for weight in source.weights:
        if str(weight.array.dtype).startswith("key<"):
            inputs.append(translator.constant(weight.array))
        else:
            inputs.append(translator.weight(weight.name, np.asarray(weight.array), weight.trained))
    results = translator.run(closed, [*inputs, *own])
    for label, name, result, atom in zip(outputs, kept, results, closed.jaxpr.outvars, strict=True):
        value = translator.full(result, atom.aval)
        if not isinstance(value, Tensor):
            raise UnsupportedError(
                f"output {label!r} is of complex numbers or of keys, which no model gives; return their parts"
            )
        node = value.value.producer()
        if node is None or value.value in translator.model.graph.outputs or value.value.is_graph_output():
            value = translator.op.Identity(value)
        value.value.name = name
        translator.model.graph.outputs.append(value.value)


def _first(error: Exception) -> str:
    """What an error of JAX, or of a library of layers, says before it explains itself."""
    return re.sub(r"\s*\(https?://\S+\)", "", str(error).partition("\n\n")[0])[:LONGEST].rstrip(".\n")


def _labels(given: Sequence[str] | None, own: list[str], what: str) -> list[str]:
    if given is None:
        return own
    if len(given) != len(own):
        raise OnwardError(f"{len(given)} {what}_names are given for {len(own)} {what}s: {', '.join(own)}")
    return list(given)


def _input_names(source: Source, given: Sequence[Any]) -> list[str]:
    starts = names.input_names(source.signature, len(given) + source.skip)[source.skip :]
    return names.leaf_names(starts, given)


def runner(
    call: Callable[..., Any], arrays: Sequence[Any], given: Sequence[Any], labels: Sequence[str], outputs: Sequence[str]
) -> Run:
    """Runs the original: inputs under the names of the model's, each array in its place of the trees."""
    import jax

    leaves, tree = jax.tree_util.tree_flatten(tuple(given))
    jitted = jax.jit(call)

    def run(inputs: Inputs) -> Outputs:
        filled = [jax.numpy.asarray(inputs[name], leaf.dtype) for name, leaf in zip(labels, leaves, strict=True)]
        results = jitted(list(arrays), *jax.tree_util.tree_unflatten(tree, filled))
        found = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(results)]
        return dict(zip(outputs, found, strict=True))

    return run
