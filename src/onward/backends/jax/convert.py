"""ONNX → JAX: the package of source and weights, and the function made by running that very source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from onward.backends.emit.classes import no_leaf
from onward.backends.emit.expr import Call, Helper, Ref, Var, forced, lift, render, walk
from onward.backends.emit.modules.regions import split
from onward.backends.emit.modules.settings import hold_settings
from onward.backends.emit.names import class_names
from onward.backends.emit.package import Source, Trainable, assembled, choose, emit, guarded, plain
from onward.backends.emit.printing.language import wrap
from onward.backends.emit.statements import expressions
from onward.backends.emit.tree import Function, build_tree
from onward.backends.emit.weights import Tensor, Weights
from onward.backends.jax.bounded import check_rows
from onward.backends.jax.functions import STATIC, JaxWriter
from onward.backends.jax.strings import hand_over_strings
from onward.backends.jax.target import DTYPES, KEYS, TARGET
from onward.backends.jax.wide import needs_64_bits
from onward.errors import OnwardError
from onward.hub.collector import no_garbage_collection
from onward.layout.channels_last import to_channels_last
from onward.layout.roles import JAX
from onward.model import Model
from onward.passes.pipelines import canonical
from onward.registry import import_files

PARAMETERS = "The parameters: all that is trained."
CONSTANTS = "What `apply` needs besides the parameters, in the same tree: it is not trained."
RUNTIME = "onward.backends.jax.runtime"

ASKING = ("known", "listed", "number", "decode_image")
"""Helpers that tell the numbers of a tensor, or go by them."""
CHOOSING = "branch"
"""The helper that goes by a truth value, and by all its branches if that is not known and they are alike."""

IMPORTS = {
    "math": "import math",
    "Iterator": "from collections.abc import Iterator",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "np": "import numpy as np",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "Array": "from jax import Array",
    "lax": "from jax import lax",
    "load_file": "from safetensors.flax import load_file",
}


def load_rules() -> None:
    """Register the rules of every family."""
    import_files("onward.backends.jax.rules")


def generate(
    model: Model,
    trainable: Trainable = True,
    bounds: Mapping[str, int] | None = None,
    *,
    draws: bool = False,
    part: str = "",
) -> Source:
    """The JAX source of a model. `model` is left as it is. `bounds` are sizes of results, for `jax.jit`: how many there
    are of each is given after the outputs.

    With `draws`, the last argument is a key, by which the model draws what has no seed in the file. A `part` is a
    module beside the model, of which nothing is trained: its tensors are those of `<part>_constants.safetensors`.
    """
    if part:
        return _generate(model, False, None, draws, part)
    source = _generate(model, trainable, bounds, draws)
    return replace(source, checked=_generate(model, trainable, None, draws)) if bounds else source


def _generate(
    model: Model, trainable: Trainable, bounds: Mapping[str, int] | None, draws: bool, part: str = ""
) -> Source:
    load_rules()
    with no_garbage_collection():
        with guarded("bringing the model to canonical form"):
            graph = canonical(model, TARGET.rules.__contains__)
        with guarded("choosing the layout of its images"):
            to_channels_last(graph, JAX)
        carriers = {name: _carriers(model, name) for name in bounds or ()}
        sizes = {value: size for name, size in (bounds or {}).items() for value in carriers[name]}
        with guarded("choosing JAX's words for its nodes"):
            emitter, function = emit(graph, TARGET, [KEYS] if draws else [], sizes)
        for name, values in carriers.items():
            if values.isdisjoint(emitter.open):
                known = ", ".join(map(repr, dict.fromkeys(emitter.open))) or "none"
                raise OnwardError(f"bounds: there is no {name!r} whose size depends on data; there are: {known}")
        check_rows(graph.graph, list(emitter.counts))
        _mark_static(function, emitter.values())
        hand_over_strings(function, emitter.values(), list(graph.graph.outputs))
        choose(emitter.weights, trainable)
        with guarded("writing source code"):
            counts = tuple(node.outputs[0].name or "" for node in emitter.counts)
            return _source(model.name, graph, emitter.weights, function, draws, counts, part)


def _mark_static(function: Function, values: Mapping[Var, ir.Value]) -> None:
    """Arguments that are asked for their numbers and for nothing else: `jax.jit` has to know them.

    Truth values that choose elements are data all the same; one that chooses a branch is not.
    """
    found: Counter[Var] = Counter()
    choosing: set[Var] = set()
    every = [*(e for statement in function.block.body for e in expressions(statement)), *function.results]
    for part in (part for expr in every for part in walk(expr)):
        if isinstance(part, Ref):
            found[part._var] += 1
        elif isinstance(part, Call) and isinstance(part._fn, Helper) and part._fn._name in (*ASKING, CHOOSING):
            asked = forced(part._args[0])
            if isinstance(asked, Ref):
                found[asked._var] -= 1
                choosing |= {asked._var} if part._fn._name == CHOOSING else set()
    for var in function.arguments:
        if var in found and not found[var] and (var in choosing or values[var].dtype != ir.DataType.BOOL):
            var.kind = STATIC


def _carriers(model: Model, name: str) -> set[str]:
    """What a bound is for: a node or value of that name, and values with a dimension of that name."""
    values = (value for node in model.ir.graph.all_nodes() for value in node.outputs)
    dims = ((value, dim) for value in values for dim in value.shape or () if not isinstance(dim, int))
    return {name} | {value.name or "" for value, dim in dims if dim.value == name}


def _source(
    name: str, graph: ir.Model, weights: Weights, function: Function, draws: bool, counts: tuple[str, ...], part: str
) -> Source:
    """Split the computation into functions and print them."""
    tree = build_tree(weights)
    split(tree, function, in_loops=False)
    hold_settings(tree, weights)
    trained = [tensor for tensor in weights.tensors.values() if tensor.is_trained]
    fixed = [tensor for tensor in weights.tensors.values() if not tensor.is_trained]
    writer = JaxWriter(
        tree, list(weights.tensors), class_names(graph.graph), has_constants=bool(fixed), draws=draws, counts=counts
    )
    functions = writer.write(plain(name))
    warn = ["ops.warn_of_32_bits()"] if needs_64_bits(graph.graph) else []
    parts = [writer.constants(), functions]
    if not part:
        parts.append(_loader("load", "weights", PARAMETERS, trained, warn))
    if fixed:
        own = f"{part}_constants" if part else "constants"
        parts.append(_loader("load_constants", own, CONSTANTS, fixed, warn if part else []))
    text = "\n\n\n".join(parts) + "\n"
    title, about = f'"""{plain(name)}: a JAX model."""', "Functions that JAX itself does not have."
    helpers = writer.helpers | set(re.findall(r"(?<=\bops\.)\w+", "\n".join(parts[2:])))
    source = assembled(
        title, text, IMPORTS, helpers, RUNTIME, about, weights, DTYPES, qualified=True, traced=writer.traced
    )
    return replace(source, apart=True, counts=tuple(f"{name}.count" for name in counts))


def _loader(name: str, file: str, doc: str, tensors: list[Tensor], first: list[str]) -> str:
    """A function that loads a tree of tensors."""
    read = f'Path(folder) / "{file}.safetensors"'
    if any(DTYPES[tensor.dtype] in UNKNOWN for tensor in tensors):
        long = tuple(".".join(t.path) for t in tensors if t.dtype == ir.DataType.COMPLEX128)
        read = f"ops.read_tensors({read}{', ' + render(lift(long), no_leaf) if long else ''})"
    else:
        read = f"load_file({read})"
    header = f"def {name}(folder: str | Path = Path(__file__).parent) -> Params:"
    body = [f'"""{doc}"""', *first, *wrap(f"return ops.nested({read})")]
    return "\n".join([header, *("    " + line for line in body)])


UNKNOWN = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "complex128"}
"""What the package safetensors does not read into JAX's arrays."""
