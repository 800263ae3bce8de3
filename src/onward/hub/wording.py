"""What every reader of untrusted protobuf needs: safe text, and messages that fit on one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onward.errors import InvalidModelError, UnsupportedError

_LONGEST = 80


def quote(name: object) -> str:
    """A name from a file, printable and short whatever the file says."""
    quoted = repr(name)
    return quoted if len(quoted) <= _LONGEST else f"{quoted[: _LONGEST - 4]}…{quoted[-1]}"


def text(value: Any, where: str) -> str:
    """`value` as it is: protobuf hands out bytes in place of a string that is not UTF-8."""
    if not isinstance(value, str):
        raise InvalidModelError(f"{where}: {quote(value)} is not valid UTF-8 text")
    return value


def optional_text(value: Any, where: str) -> str | None:
    return text(value, where) or None


def all_text(message: Any, where: str) -> None:
    """Check every string of a message that is going to be kept as it is."""
    for field, value in message.ListFields():
        items = value if field.is_repeated else [value]
        for item in items:
            if field.type == field.TYPE_STRING:
                text(item, where)
            elif field.type == field.TYPE_MESSAGE:
                all_text(item, where)


def node_label(node: onnx.NodeProto) -> str:
    """How messages name a node: by its name, or else by what it produces."""
    name = node.name or next(iter(node.output), "")
    return f"node {quote(name)} ({node.op_type})"


def known(message: Any, where: str) -> None:
    """Refuse fields that this version of ONNX does not define, for they would be lost."""
    unknown = UnknownFieldSet(message)
    if len(unknown):
        number = next(iter(unknown)).field_number
        kind = type(message).__name__
        raise UnsupportedError(f"{where}: field {number} of {kind} is not known to onnx {onnx.__version__}")


def string_map(entries: Iterable[onnx.StringStringEntryProto], where: str) -> dict[str, str] | None:
    """Key-value entries as a dictionary; None when there are none."""
    result: dict[str, str] = {}
    for entry in entries:
        key, value = text(entry.key, where), text(entry.value, where)
        if result.setdefault(key, value) != value:
            raise InvalidModelError(f"{where}: the key {quote(key)} is given two values")
    return result or None


def write_map(entries: Any, mapping: Mapping[str, str] | None) -> None:
    for key, value in (mapping or {}).items():
        entries.add(key=key, value=value)
