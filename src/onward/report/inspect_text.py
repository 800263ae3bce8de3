"""What a model contains, in the terminal: the facts, inputs and outputs, ops with what each backend supports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onward.report.wording import bytes_in_words, dims_in_words, printable

MOST_CATEGORIES = 6
"""Categories of a column that are shown."""
STYLES = {"exact": "green", "lowered": "green", "partial": "yellow", "unsupported": "red"}


def show(found: dict[str, Any], console: Console) -> None:
    console.print(Text(printable(found["file"] or found["format"], 1000), style="bold"), soft_wrap=True)
    console.print(_facts(found))
    rows = [
        [word, v["name"], v["type"], dims_in_words(v["shape"])]
        for word in ("input", "output")
        for v in found[word + "s"]
    ]
    if rows:
        console.print(_table(["", "name", "type", "shape"], rows))
    if found["data_processing"]:
        _show_columns(found["data_processing"], console)
    if "weights" in found:
        weights = [
            [w["name"], w["dtype"], dims_in_words(w["shape"]), bytes_in_words(w["bytes"])] for w in found["weights"]
        ]
        console.print(_table(["weight", "type", "shape", "size"], weights, right={3}))
    if found["ops"]:
        console.print(_ops(found))
    for backend, verdict in found["backends"].items():
        missing = ", ".join(verdict["unsupported"])
        words = f"no rule for {missing}; converts only if constants and shapes account for all of it"
        words = f"{backend}: {words if missing else 'every op is supported'}"
        console.print(Text(printable(words, 1000), style="red" if missing else "green"))


def _show_columns(data: dict[str, Any], console: Console) -> None:
    """The part of a model that is data processing, and its columns."""
    whose = {"pandas": "pandas", "polars": "Polars"}.get(data["library"], data["library"])
    words = f"data processing of {whose}: {data['nodes']:,} nodes"
    if data["boundary"]:
        words += f", then a model of {data['model_nodes']:,}, which takes {', '.join(data['boundary'].values())}"
    if data["needs"]:
        words += f"; needs {', '.join(data['needs'])}"
    console.print(Text(printable(words, 1000)), soft_wrap=True)
    titles = {"inputs": "in", "outputs": "between" if data["boundary"] else "out"}
    rows = [
        [title, column["name"], column["type"], column["null"] or "never", _categories(column["categories"])]
        for side, title in titles.items()
        for column in data[side]
    ]
    console.print(_table(["", "column", "type", "null", "categories"], rows))


def _categories(categories: list[Any] | None) -> str:
    shown = [str(item) for item in (categories or [])[:MOST_CATEGORIES]]
    more = len(categories or []) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _facts(found: dict[str, Any]) -> Table:
    from onward.formats.dataframe.schema import KEY as COLUMNS

    on_disk, external = found["size"]["file"], found["size"]["external"]
    nodes = sum(op["count"] for op in found["ops"])
    facts = {
        "format": found["format"] if found["format"] != "ONNX" else "",
        "graph": found["graph"],
        "about": found["doc"],
        "producer": f"{found['producer']['name']} {found['producer']['version']}".strip(),
        "opset": ", ".join(f"{domain} {version}" for domain, version in found["opsets"].items()),
        "IR version": str(found["ir_version"] or ""),
        "size": (bytes_in_words(on_disk) if on_disk is not None else "")
        + (f" and {bytes_in_words(external)} in {', '.join(found['data_files'])}" if external else ""),
        "parameters": f"{found['parameters']:,} ({bytes_in_words(found['size']['weights'])})",
        "nodes": f"{nodes:,}" if nodes else "",
        "functions": ", ".join(f"{f['domain']}::{f['name']}" for f in found["functions"]),
        "plugins": ", ".join(found["plugins"]),
        "training": f"{found['training']} training info" if found["training"] else "",
        **{f"metadata {key}": value for key, value in found["metadata"].items() if key != COLUMNS},
    }
    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        if value:
            table.add_row(Text(printable(key), style="bold"), Text(printable(value, 300)))
    return table


def _ops(found: dict[str, Any]) -> Table:
    backends = list(found["backends"])
    table = Table("op", "count", *backends)
    table.columns[1].justify = "right"
    for row in sorted(found["ops"], key=lambda row: -row["count"]):
        name = row["op"] if row["domain"] == "ai.onnx" else f"{row['domain']}::{row['op']}"
        cells = [row["support"][backend] for backend in backends]
        words = [f"{c['status']} ({c['why']})" if c["why"] else c["status"] for c in cells]
        styled = [Text(word, style=STYLES[cell["status"]]) for word, cell in zip(words, cells, strict=True)]
        table.add_row(Text(printable(name)), str(row["count"]), *styled)
    return table


def _table(titles: list[str], rows: Iterable[list[str]], right: Iterable[int] = ()) -> Table:
    table = Table(*titles)
    for column in right:
        table.columns[column].justify = "right"
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
