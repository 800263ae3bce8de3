"""A generated package: from a canonical graph to statements, and from text and tensors to files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import onnx_ir as ir

from onward.advice.extras import missing_packages
from onward.backends.emit import safetensors
from onward.backends.emit.custom_ops.rules import with_plugins
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Var
from onward.backends.emit.helpers import load_runtime, sort_imports
from onward.backends.emit.modules.repeats import name_repeats
from onward.backends.emit.modules.tracing import located
from onward.backends.emit.printing.printer import drop_unread
from onward.backends.emit.scopes import align_scopes, population, repeat_views, settle_layers
from onward.backends.emit.target import Target
from onward.backends.emit.tree import Function
from onward.backends.emit.weights import Tensor, Weights
from onward.errors import ConversionError, OnwardError
from onward.gate import remember
from onward.graph.weight_names import holds_parameters, signature
from onward.writing import MANIFEST, check_unedited, new_folder, write_manifest

Trainable = bool | str | Iterable[str]
"""True: every weight that the original trains; False: none; otherwise patterns such as 'head.*'."""


@dataclass(frozen=True)
class Source:
    """A generated package: the text of its modules and its tensors by state-dict name."""

    model: str
    ops: str | None
    tensors: dict[str, Tensor]
    dtypes: Mapping[ir.DataType, str]
    """The framework's names of the dtypes that carry those of ONNX."""
    input_orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For an input that is handed over in another layout than the file's, which of its axes is at each place."""
    output_orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    casts: Mapping[str, bool] = field(default_factory=dict)
    """What is computed in another dtype than the file says, a phrase each, and whether that one holds every value."""
    advice: str = ""
    """What may help where the result turns out not to run."""
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Which lines of `model`, counted from 1, come from which node: by its `Origin` in words."""
    in_bytes: bool = False
    """Whether its numbers are rounded to 8 bits as the original's are."""
    apart: bool = False
    """Whether tensors that are not trained stand in a file of their own."""

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors that stand in a file of their own."""
        return {name: t for name, t in self.tensors.items() if self.apart and not t.is_trained}

    counts: tuple[str, ...] = ()
    """What the function gives after the outputs: numbers of results that are filled up to a bound."""
    checked: Source | None = None
    """What is run beside the original in its place, where its results have another size by design."""

    @property
    def excuse(self) -> str | None:
        """Why it may differ from the original by more than rounding explains; None where nothing allows it."""
        if self.in_bytes:
            return "8-bit arithmetic"
        return None if all(self.casts.values()) else "the casts to narrower numbers"


@contextmanager
def guarded(step: str) -> Iterator[None]:
    """Whatever goes wrong inside is an error of ours, and says in which step."""
    try:
        with missing_packages():
            yield
    except OnwardError:
        raise
    except (Exception, RecursionError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ConversionError(f"{step} failed with {problem}; this is a defect of Onward: please report it") from error


def emit(
    graph: ir.Model, target: Target, flags: Sequence[str] = (), bounds: Mapping[str, int] | None = None
) -> tuple[Emitter, Function]:
    """The statements of the whole computation, before it is split into modules.

    `flags` are further arguments, such as `training`, which rules find in `Emitter.flags`; `bounds` are for
    `Emitter.bound`.
    """
    emitter = Emitter(target)
    emitter.bounds = bounds or {}
    emitter.producer = graph.producer_name or ""
    emitter.weights.signature = signature(graph.graph)
    align_scopes(graph.graph, emitter.weights.signature)
    repeat_views(graph.graph)
    settle_layers(graph.graph, emitter.weights.signature)
    emitter.weights.population = population(graph.graph)
    is_complete = holds_parameters(emitter.weights.signature, graph.graph.initializers)
    emitter.weights.is_merged = emitter.producer == "pytorch" and not is_complete
    emitter.weights.reserve(graph.graph.initializers)
    arguments = []
    for value in graph.graph.inputs:
        if not value.is_initializer():
            var = Var(value.name or "input", _kind(value))
            emitter.bind(value, var)
            arguments.append(var)
    emitter.flags = {name: Var(name, "flag") for name in flags}
    arguments += emitter.flags.values()
    results = [*(arg._force() for arg in emitter.graph(graph.graph)), *emitter.counts.values()]
    drop_unread(emitter.block, results)
    emitter.weights.finish()
    name_repeats(emitter.block.body, results, emitter.weights)
    return emitter, Function(emitter.block, arguments, results)


def _kind(value: ir.Value) -> str:
    is_tensor = isinstance(value.type, ir.TensorType) or value.type is None
    return "tensor" if is_tensor and value.dtype != ir.DataType.STRING else "object"


def plain(name: str, longest: int = 60) -> str:
    """A name from the file, safe inside a docstring."""
    return "".join(ch for ch in name if ch.isascii() and (ch.isalnum() or ch in " ,:._-"))[:longest] or "model"


def imports(text: str, known: Mapping[str, str]) -> set[str]:
    """The imports that code needs: what is in strings, or an attribute, is not meant."""
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return {line for name, line in known.items() if re.search(rf"(?<![\w.]){name}\b", code)}


def assembled(
    title: str,
    text: str,
    known: Mapping[str, str],
    helpers: set[str],
    runtime: str,
    about: str,
    weights: Weights,
    dtypes: Mapping[ir.DataType, str],
    *,
    qualified: bool = False,
    traced: Iterable[Sequence[str]] = (),
    replaced: Iterable[str] = (),
) -> Source:
    """The package of a model's classes: `text` with its imports, of those `known`, and the helpers that it calls.

    `runtime` is where these lie, `about` says what they are. They are `qualified` where the text says `ops.resize`.
    `traced` are parts of the text in lines that know what they come from. `replaced` are packages of helpers
    that are taken in the place of those.
    """
    lines = sort_imports(imports(text, known))
    if helpers:
        lines += ["", "from . import ops" if qualified else f"from .ops import {', '.join(sorted(helpers))}"]
    definitions = with_plugins(runtime, helpers)
    for package in replaced:
        definitions = definitions.replaced(load_runtime(package))
    ops = definitions.source(helpers, about) if helpers else None
    gap = "\n\n\n" if text.startswith(("def ", "class ", "@")) else "\n\n"
    model = "\n".join([title, "", *lines]) + gap + text
    tensors = {".".join(path): tensor for path, tensor in weights.tensors.items()}
    return Source(model, ops, tensors, dtypes, lines=located(traced, model))


def choose(weights: Weights, trainable: Trainable) -> bool | list[str]:
    """Make the chosen tensors parameters; returns what of the parameters stays fixed: all, none, or by name."""
    if not isinstance(trainable, bool):
        _match(weights, trainable)
    elif not trainable:
        for tensor in weights.tensors.values():
            tensor.trained = False
        return True
    return [".".join(path) for path, tensor in weights.tensors.items() if tensor.parameter and not tensor.trained]


def _match(weights: Weights, trainable: str | Iterable[str]) -> None:
    """Train what is called by a pattern, and nothing else."""
    patterns = [trainable] if isinstance(trainable, str) else list(trainable)
    matched = set()
    for path, tensor in weights.tensors.items():
        name = ".".join(path)
        hits = {p for p in patterns if fnmatchcase(name, p) or fnmatchcase(tensor.onnx_name, p)}
        matched |= hits
        owned = path[:-1] in weights.modules
        if not owned and tensor.dtype.is_floating_point():
            tensor.parameter = tensor.parameter or bool(hits)
        tensor.trained = tensor.parameter and bool(hits)
    unmatched = [p for p in patterns if p not in matched]
    if unmatched:
        raise OnwardError(f"trainable: no weight is called {unmatched[0]!r}; `onward inspect --weights` lists them")


def _tensors(tensors: Mapping[str, Tensor], source: Source) -> Callable[[BinaryIO], object] | None:
    """What writes a file of tensors, if there are any."""
    return (lambda file: safetensors.write(file, tensors, source.dtypes)) if tensors else None


def write_package(
    source: Source,
    folder: str | os.PathLike[str],
    more: Mapping[str, Callable[[BinaryIO], object] | None] | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write model.py, weights.safetensors and, if they are needed, ops.py and constants.safetensors: all, or nothing.

    `more` are other files of the package, by name: what writes one, or None where there is none of that name now. What
    else is in the folder stays; what of these files somebody has edited does so unless it is `force`d.
    """
    constants = source.constants
    weights = {name: tensor for name, tensor in source.tensors.items() if name not in constants}
    parts: dict[str, Callable[[BinaryIO], object] | None] = {
        "model.py": lambda file: file.write(source.model.encode()),
        "ops.py": None if source.ops is None else lambda file: file.write((source.ops or "").encode()),
        "weights.safetensors": lambda file: safetensors.write(file, weights, source.dtypes),
        **({"constants.safetensors": _tensors(constants, source)} if source.apart else {}),
        **(more or {}),
    }
    check_unedited(Path(folder), [*parts, MANIFEST], force)
    with new_folder(folder, [*parts, MANIFEST]) as staged:
        for name, write in parts.items():
            if write is not None:
                with (staged / name).open("wb") as file:
                    write(file)
        write_manifest(staged)
        for text in (source.model, source.ops):
            if text is not None:
                remember(text)
    return Path(folder)
