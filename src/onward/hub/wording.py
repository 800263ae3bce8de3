"""What every reader of untrusted protobuf needs: safe text, and messages that fit on one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onward.errors import InvalidModelError
from onward.hub.oddities import odd

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


def remark(value: Any, where: str) -> str | None:
    """What a file says for people, or nothing: where it is not UTF-8, bytes are spelled out."""
    if isinstance(value, bytes):
        odd(f"{where}: {quote(value)} is not valid UTF-8 text, and is spelled out")
        return value.decode(errors="backslashreplace")
    return value or None


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
    """Tell of fields that no version of ONNX up to this one defines: they mean nothing, and are lost."""
    unknown = UnknownFieldSet(message)
    if len(unknown):
        number = next(iter(unknown)).field_number
        kind = type(message).__name__
        odd(f"{where}: field {number} of {kind}, which onnx {onnx.__version__} does not know, is left out")


def metadata(entries: Iterable[onnx.StringStringEntryProto], where: str) -> dict[str, str] | None:
    """Remarks by their keys; of a key that is given twice, the last, as in ONNX Runtime."""
    result: dict[str, str] = {}
    for entry in entries:
        key, value = remark(entry.key, where) or "", remark(entry.value, where) or ""
        if result.get(key, value) != value:
            odd(f"{where}: the key {quote(key)} is given two values, of which the last is kept")
        result[key] = value
    return result or None


def string_map(entries: Iterable[onnx.StringStringEntryProto], where: str) -> dict[str, str] | None:
    """Entries by which something is found, as a dictionary; None when there are none."""
    result: dict[str, str] = {}
    for entry in entries:
        key, value = text(entry.key, where), text(entry.value, where)
        if result.setdefault(key, value) != value:
            raise InvalidModelError(f"{where}: the key {quote(key)} is given two values")
    return result or None


def write_map(entries: Any, mapping: Mapping[str, str] | None) -> None:
    for key, value in (mapping or {}).items():
        entries.add(key=key, value=value)
