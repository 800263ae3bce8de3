"""What a file says of itself beside its graph, for a part of a model and for two models that become one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.formats.dataframe.schema import KEY as COLUMNS
from onward.formats.dataframe.schema import schema_of
from onward.frontends.states import KEY as STATES
from onward.frontends.states import SUFFIX
from onward.graph.append import Renamed
from onward.graph.trained import RECORD, mark_weights, record, recorded, role
from onward.graph.walk import all_graphs
from onward.graph.weight_names import GRAPH_SIGNATURE
from onward.model import Model
from onward.training.info.combined import values_of
from onward.training.recipe.described import KEY as RECIPE
from onward.version import __version__

_TARGET = re.compile(r"target='([^']*)'")


def copy_metadata(source: Model, part: Model) -> None:
    """Let a part say of itself what the whole does, as far as it is still so; of training nothing yet."""
    old, new = source.ir, part.ir
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        setattr(new, name, getattr(old, name))
    new.device_configurations = old.device_configurations
    new.graph.doc_string = old.graph.doc_string
    new.graph.metadata_props.update(old.graph.metadata_props)
    new.metadata_props.update({k: v for k, v in old.metadata_props.items() if not k.startswith(RECIPE)})
    tidy(new)
    if (known := recorded(new)) is not None:
        record(new, known)
    part.path, part.ir_version, part.data_files = source.path, source.ir_version, list(source.data_files)


def tidy(model: ir.Model) -> None:
    """Leave out what names inputs and outputs that are gone."""
    inputs = {value.name or "" for value in model.graph.inputs}
    outputs = {value.name or "" for value in model.graph.outputs}
    if STATES in model.metadata_props:
        kept = [name for name in _states(model) if name in outputs and name.removesuffix(SUFFIX) in inputs]
        model.metadata_props.pop(STATES)
        if kept:
            model.metadata_props[STATES] = json.dumps(kept)
    if COLUMNS in model.metadata_props and not _has_columns(model, inputs, outputs):
        model.metadata_props.pop(COLUMNS)


def _states(model: ir.Model) -> list[str]:
    with suppress(ValueError, RecursionError):
        found = json.loads(model.metadata_props.get(STATES, "[]"))
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return []


def _has_columns(model: ir.Model, inputs: set[str], outputs: set[str]) -> bool:
    try:
        schema = schema_of(model)
    except InvalidModelError:
        return False
    if schema is None or not {column.tensor for column in schema.inputs} <= inputs:
        return False
    ends = schema.boundary.keys() or {column.tensor for column in schema.outputs}
    return ends <= values_of(model.graph).keys() and (bool(schema.boundary) or ends <= outputs)


def merge_metadata(first: ir.Model, second: ir.Model, renamed: Renamed, prefix: str) -> None:
    """What both say; where they say different things under one key, that of the second gets the prefix."""
    if first.producer_name != second.producer_name:
        first.producer_name, first.producer_version = "onward", __version__
    both = [text for text in dict.fromkeys((first.doc_string, second.doc_string)) if text]
    first.doc_string = "\n\n".join(both) or None
    first.device_configurations = tuple(dict.fromkeys((*first.device_configurations, *second.device_configurations)))
    has_record = recorded(first) is not None or recorded(second) is not None
    variables = _variables(first, {}) | _variables(second, renamed.values) if has_record else {}
    states = [*_states(first), *(renamed.values.get(name, name) for name in _states(second))]
    _united(first.graph.metadata_props, _signature_renamed(second.graph.metadata_props, renamed.values), prefix)
    own = {k: v for k, v in second.metadata_props.items() if k not in (RECORD, STATES) and not k.startswith(RECIPE)}
    _united(first.metadata_props, own, prefix)
    if has_record:
        first.metadata_props[RECORD] = json.dumps(variables)
    if states:
        first.metadata_props[STATES] = json.dumps(states)


def _variables(model: ir.Model, names: Mapping[str, str]) -> dict[str, bool | str]:
    """Which weights are trained: as it is written down, or as the form of the file tells."""
    known = recorded(model)
    if known is None:
        mark_weights(model)
        held = [value for graph in all_graphs(model.graph) for value in graph.initializers.values()]
        found = {value.name or "": role(value) for value in held}
        return {name: one.trained for name, one in found.items() if one is not None}  # its names are the new ones
    return {names.get(name, name): yes for name, yes in known.items()}


def _signature_renamed(metadata: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    def new(found: re.Match[str]) -> str:
        return f"target='{names.get(found[1], found[1])}'"

    return {key: _TARGET.sub(new, text) if key == GRAPH_SIGNATURE else text for key, text in metadata.items()}


def _united(metadata: dict[str, str], other: Mapping[str, str], prefix: str) -> None:
    for key, text in other.items():
        if key == GRAPH_SIGNATURE and metadata.get(key, text) != text:
            metadata[key] += f"\n{text}"
        elif metadata.setdefault(key, text) != text:
            metadata[f"{prefix}{key}"] = text
