"""What changed between consecutive versions of an op, read from the schemas of the installed onnx package."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import onnx
from onnx.defs import OpSchema


class Change(NamedTuple):
    """`kinds` is what version `since` of an op changed: attributes, inputs, outputs, types or text."""

    domain: str
    op: str
    since: int
    kinds: frozenset[str]


def changes() -> Iterator[Change]:
    """Every version of every op that changed more than adding element types."""
    history: dict[tuple[str, str], list[OpSchema]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        history[schema.domain, schema.name].append(schema)
    for (domain, op), versions in sorted(history.items()):
        versions.sort(key=lambda schema: schema.since_version)
        for old, new in pairwise(versions):
            kinds = frozenset(kind for kind, view in VIEWS.items() if view(old) != view(new))
            if _lost_types(old, new):
                kinds |= {"types"}
            if kinds:
                yield Change(domain, op, new.since_version, kinds)


def _attributes(schema: OpSchema) -> Any:
    def default(attribute: Any) -> Any:
        proto = attribute.default_value
        return onnx.helper.get_attribute_value(proto) if proto.name else None

    return {name: (a.type, a.required, default(a)) for name, a in schema.attributes.items()}


def _parameters(parameters: Any) -> Any:
    return [(p.name, p.option, p.min_arity) for p in parameters]


def _words(schema: OpSchema) -> list[str]:
    """All text of a schema without its punctuation."""
    described = [schema.attributes[name] for name in sorted(schema.attributes)]
    described += [*schema.inputs, *schema.outputs]
    text = " ".join([schema.doc, *(part.description for part in described)])
    return re.findall(r"\w+", text.lower())


def _lost_types(old: OpSchema, new: OpSchema) -> bool:
    """Whether an element type is no longer allowed; an upgrade has to look at its values."""
    pairs = [*zip(old.inputs, new.inputs, strict=False), *zip(old.outputs, new.outputs, strict=False)]
    return any(not set(before.types) <= set(after.types) for before, after in pairs)


VIEWS = {
    "attributes": _attributes,
    "inputs": lambda schema: _parameters(schema.inputs),
    "outputs": lambda schema: _parameters(schema.outputs),
    "deprecated": lambda schema: schema.deprecated,
    "text": _words,
}
