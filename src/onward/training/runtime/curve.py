"""Loss curves as CSV and as a PNG image; neither needs more than numpy."""

from __future__ import annotations

import csv
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onward.writing import new_file

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH, HEIGHT = 800, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 20, 40
TICKS = 5
INK, GRID, TRAIN, SMOOTH, VAL = (60, 60, 60), (228, 228, 228), (172, 200, 230), (31, 97, 165), (214, 96, 30)
FONT = dict(
    zip(
        "0123456789.-e",
        (
            "111 101 101 101 111",
            "010 110 010 010 111",
            "111 001 111 100 111",
            "111 001 111 001 111",
            "101 101 111 001 001",
            "111 100 111 001 111",
            "111 100 111 101 111",
            "111 001 001 010 010",
            "111 101 111 101 111",
            "111 101 111 001 111",
            "000 000 000 000 010",
            "000 000 111 000 000",
            "000 111 101 110 011",
        ),
        strict=True,
    )
)
"""Numbers of 3 by 5 dots."""


def write_csv(
    path: Path, epochs: Sequence[int], losses: Sequence[float], evaluations: Sequence[Mapping[str, float]]
) -> None:
    """One line a batch."""
    after = {int(found["batch"]): found for found in evaluations}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["batch", "epoch", "loss", "val_loss", "val_accuracy"])
    for number, (epoch, loss) in enumerate(zip(epochs, losses, strict=True), 1):
        found = after.get(number, {})
        table.writerow([number, epoch, repr(loss), found.get("loss", ""), found.get("accuracy", "")])
    _write(path, text.getvalue().encode())


def write_png(path: Path, losses: Sequence[float], evaluations: Sequence[tuple[int, float]]) -> None:
    """Losses of batches in pale blue, their running mean in blue, evaluations in orange; over the number of batches."""
    _write(path, png(drawn(losses, evaluations)))


def drawn(losses: Sequence[float], evaluations: Sequence[tuple[int, float]]) -> Array:
    """The picture: height, width, three colours."""
    picture = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    values = [*losses, *(loss for _, loss in evaluations)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    high = high if high > low else low + 1.0
    last = max(len(losses), 2)

    def place(batch: float, loss: float) -> tuple[float, float]:
        x = LEFT + (batch - 1) / (last - 1) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - (loss - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    for tick in range(TICKS + 1):
        loss, batch = low + (high - low) * tick / TICKS, 1 + (last - 1) * tick / TICKS
        _, y = place(1, loss)
        x, _ = place(batch, low)
        _line(picture, (LEFT, y), (WIDTH - RIGHT, y), GRID)
        _text(picture, LEFT - 8, round(y) - 5, f"{loss:.3g}")
        _text(picture, round(x) + 12, HEIGHT - BOTTOM + 12, f"{batch:.0f}")
    _path(picture, [place(i, loss) for i, loss in enumerate(losses, 1)], TRAIN)
    _path(picture, [place(i, loss) for i, loss in enumerate(smoothed(losses), 1)], SMOOTH, 2)
    _path(picture, [place(batch, loss) for batch, loss in evaluations], VAL, 3)
    _line(picture, (LEFT, TOP), (LEFT, HEIGHT - BOTTOM), INK)
    _line(picture, (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM), INK)
    return picture


def smoothed(losses: Sequence[float]) -> list[float]:
    """A running mean over about a fiftieth of the curve, without a bias to its start."""
    keep = 1 - 1 / max(len(losses) / 50, 1)
    total = weight = 0.0
    found = []
    for loss in losses:
        total, weight = total * keep + loss, weight * keep + 1
        found.append(total / weight)
    return found


def png(picture: Array) -> bytes:
    """An image of three colours in the PNG format."""
    height, width, _ = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _path(picture: Array, points: Sequence[tuple[float, float]], colour: tuple[int, ...], width: int = 1) -> None:
    for start, end in zip(points, [*points[1:], *points[-1:]], strict=True):
        _line(picture, start, end, colour, width)


def _line(
    picture: Array, start: tuple[float, float], end: tuple[float, float], colour: tuple[int, ...], width: int = 1
) -> None:
    count = int(max(abs(end[0] - start[0]), abs(end[1] - start[1]))) + 2
    x = np.rint(np.linspace(start[0], end[0], count)).astype(int)
    y = np.rint(np.linspace(start[1], end[1], count)).astype(int)
    for dx in range(width):
        for dy in range(width):
            picture[np.clip(y + dy, 0, HEIGHT - 1), np.clip(x + dx, 0, WIDTH - 1)] = colour


def _text(picture: Array, x: int, y: int, text: str) -> None:
    """A number in dots of 2 by 2, ending at `x`."""
    left = x - 8 * len(text)
    for i, letter in enumerate(text):
        rows = FONT.get(letter, "000 000 000 000 000").split()
        for row, dots in enumerate(rows):
            for column, dot in enumerate(dots):
                if dot == "1":
                    top, start = y + 2 * row, left + 8 * i + 2 * column
                    picture[top : top + 2, start : start + 2] = INK


def _write(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)
