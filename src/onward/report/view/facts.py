"""What there is to say of a model beside its graph: as pairs of words, for the sections of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import onnx

from onward.model import Model
from onward.report.view.contents import Contents
from onward.report.wording import bytes_in_words, counted

MOST_BINDINGS = 200


def headline(found: Mapping[str, Any], nodes: int) -> dict[str, str]:
    """The most important, for the head of the page."""
    producer = f"{found['producer']['name']} {found['producer']['version']}".strip()
    facts = {
        "Format": found["format"],
        "Nodes": f"{nodes:,}" if nodes else "",
        "Parameters": f"{found['parameters']:,}",
        "Weights": bytes_in_words(found["size"]["weights"]),
        "Opset": opsets(found),
        "Producer": producer,
    }
    return {name: value for name, value in facts.items() if value}


def opsets(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{domain} {version}" for domain, version in found["opsets"].items())


def details(found: Mapping[str, Any]) -> dict[str, str]:
    size = found["size"]
    facts = {
        "file": found["file"] or "",
        "size of the file": "" if size["file"] is None else bytes_in_words(size["file"]),
        "external data": f"{bytes_in_words(size['external'])} in {', '.join(found['data_files'])}"
        if size["external"]
        else "",
        "graph": found["graph"],
        "about": found["doc"],
        "domain": found["domain"],
        "model version": str(found["model_version"] or ""),
        "IR version": str(found["ir_version"] or ""),
        "opset": opsets(found),
        "plugins": ", ".join(found["plugins"]),
        **{f"metadata {key}": value for key, value in found["metadata"].items()},
    }
    return {name: value for name, value in facts.items() if value}


def quantization(contents: Contents) -> dict[str, str]:
    """Which ops of quantisation there are, and what the weights are stored as."""
    ops = Counter(
        node["op"] for node in contents.nodes if node["kind"] == "quant" and not node["op"].startswith("Cast")
    )
    if not ops:
        return {}
    listed = {op: counted(count, "node") for op, count in ops.most_common()}
    stored: dict[str, list[int]] = {}
    for weight in contents.weights:
        amounts = stored.setdefault(weight["type"], [0, 0])
        amounts[0] += weight["count"]
        amounts[1] += weight["bytes"]
    rows = sorted(stored.items(), key=lambda row: -row[1][1])
    return listed | {
        f"weights in {dtype}": f"{count:,} numbers, {bytes_in_words(size)}" for dtype, (count, size) in rows
    }


def training(model: Model) -> list[dict[str, str]]:
    """Of each training info: its two graphs, and what a step writes to what."""
    return [dict(_training(info)) for info in model.training_info]


def _training(info: onnx.TrainingInfoProto) -> Iterator[tuple[str, str]]:
    for title, graph in (("initialization", info.initialization), ("algorithm", info.algorithm)):
        if graph.node or graph.initializer:
            ops = Counter(node.op_type for node in graph.node)
            most = ", ".join(f"{count} {op}" for op, count in ops.most_common(8))
            yield title, f"{counted(len(graph.node), 'node')}{f': {most}' if most else ''}"
            yield f"inputs of {title}", ", ".join(value.name for value in graph.input)
            yield f"outputs of {title}", ", ".join(value.name for value in graph.output)
    for title, bindings in (("at the start", info.initialization_binding), ("after a step", info.update_binding)):
        for binding in bindings[:MOST_BINDINGS]:
            yield f"{binding.key} {title}", f"becomes {binding.value}"
