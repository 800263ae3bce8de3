"""Curves for TensorBoard: its event files, written without TensorFlow.

An event file is a row of records. Each is its length, a checksum of that, its bytes, and a checksum of these. The bytes
are a message of protocol buffers, `Event`, of which the fields are written here by hand.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from onward.errors import WritingError
from onward.training.runtime.callbacks import Callback

if TYPE_CHECKING:
    from onward.training.runtime.history import History
    from onward.training.runtime.trainer import Trainer

VERSION = b"brain.Event:2"
POLYNOMIAL = 0x82F63B78
"""Of CRC-32C, the lowest bit first."""
MASK = 0xA282EAD8
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
"""How protocol buffers hold a value."""


def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


TABLE = _table()


def masked_checksum(data: bytes) -> int:
    """CRC-32C, turned and shifted as records have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    parts = [length, struct.pack("<I", masked_checksum(length)), data, struct.pack("<I", masked_checksum(data))]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, kind: int, value: bytes) -> bytes:
    return _varint(number << 3 | kind) + (_varint(len(value)) if kind == BYTES else b"") + value


def event(wall_time: float, step: int = 0, scalars: dict[str, float] | None = None) -> bytes:
    """An `Event`: the version of the file where there is nothing else in it, or a summary of numbers by tag."""
    parts = [_field(1, EIGHT_BYTES, struct.pack("<d", wall_time)), _field(2, VARINT, _varint(step))]
    if scalars is None:
        return b"".join([*parts, _field(3, BYTES, VERSION)])
    values = [
        _field(1, BYTES, tag.encode()) + _field(2, FOUR_BYTES, struct.pack("<f", value))
        for tag, value in scalars.items()
    ]
    summary = b"".join(_field(1, BYTES, value) for value in values)
    return b"".join([*parts, _field(5, BYTES, summary)])


class TensorBoard(Callback):
    """Writes loss, learning rate and evaluations to a folder that `tensorboard --logdir` shows.

    A run that goes on from a checkpoint goes on in a file of its own, beside the first.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._file: BinaryIO | None = None
        self._path = self._folder

    def on_step(self, trainer: Trainer, history: History) -> None:
        rate = {"learning rate": history.rates[-1]} if history.rates else {}
        self._write(len(history.losses), {"loss/train": history.losses[-1], **rate})

    def on_epoch(self, trainer: Trainer, history: History) -> None:
        last = history.evaluations[-1] if history.evaluations else {}
        if last.get("batch") == len(history.losses):
            tags = {"loss": "loss/validation", "accuracy": "accuracy/validation"}
            self._write(len(history.losses), {tag: last[key] for key, tag in tags.items() if key in last})
        if self._file is not None:
            self._file.flush()

    def on_end(self, trainer: Trainer, history: History) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, step: int, scalars: dict[str, float]) -> None:
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                name = f"events.out.tfevents.{time.time_ns() // 10**9:010d}.{socket.gethostname()}.{os.getpid()}"
                taken = len(list(self._folder.glob(f"{name}*")))
                self._path = self._folder / f"{name}.{taken}"
                self._file = self._path.open("xb")
                self._file.write(record(event(time.time())))
            self._file.write(record(event(time.time(), step, scalars)))
        except OSError as error:
            raise WritingError(f"{self._path}: cannot be written: {error.strerror or error}") from error
