"""The ONNX file of a command, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.model import Model


def write(model: Model, remarks: list[str], out: Path) -> None:
    """Write it, and tell its inputs and outputs, what it is without, and where it is."""
    from rich.console import Console
    from rich.markup import escape

    from onward.editing.diff import typed
    from onward.model import load
    from onward.report.wording import counted, printable
    from onward.writing import make_folder, refusals

    with refusals(out):
        make_folder(out.parent)
    model.save(out)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    graph = model.ir.graph
    for part, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            if not value.is_initializer():
                console.print(escape(printable(f"{part} {value.name}: {typed(value)}", 300)))
    for remark in remarks:
        console.print(f"[yellow]note:[/] {escape(printable(remark, 1000))}")
    beside = "".join(f", and beside it {path.name}" for path in load(out).data_files)
    nodes = counted(len(graph), "node")
    console.print(f"[green]done:[/] {escape(f'{out} ({nodes}){beside}')}")
