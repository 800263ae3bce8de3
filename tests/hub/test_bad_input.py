"""Whatever is wrong with a file, its reader gets one line that names the problem, soon, and nothing else happens."""

from __future__ import annotations

import os
import pathlib
import time
import tracemalloc
from typing import Any

import pytest
from bad_files import CHANGES, GRAPHS, NOT_MODELS, external, graph
from onnx import helper
from protos import everything, small

from onward import load
from onward.errors import InvalidModelError, OnwardError, UnsupportedError


def refusal(source: Any, error: type[OnwardError] = InvalidModelError) -> str:
    """The message with which `source` is refused: one line, within five seconds, without a large allocation."""
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(error) as caught:
        load(source)
    assert time.process_time() - start < 5
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500 and message.isprintable()
    return message


# Not a model at all


@pytest.mark.parametrize("name", NOT_MODELS)
def test_not_a_model(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, problem = NOT_MODELS[name]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    assert problem in refusal(path) and problem in refusal(data)
    assert refusal(path).startswith(str(path))
    assert list(tmp_path.iterdir()) == [path], "no code ran, and nothing was written"


def test_not_a_file(tmp_path: pathlib.Path) -> None:
    assert "does not exist" in refusal(tmp_path / "missing.onnx")
    assert "folder" in refusal(tmp_path)
    assert "cannot be read" in refusal("nul\0byte.onnx")
    assert "not a file" in refusal("/dev/zero")
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "not a file" in refusal(tmp_path / "pipe.onnx")
    with (tmp_path / "huge.onnx").open("wb") as file:
        file.truncate(2**33)
    assert "2 GB" in refusal(tmp_path / "huge.onnx")


# Graphs


@pytest.mark.parametrize("name", GRAPHS)
def test_bad_graph(name: str) -> None:
    proto, problem = GRAPHS[name]
    assert problem in refusal(proto)


def test_unknown_operators_are_not_bad_input() -> None:
    proto = graph(helper.make_node("Mystery", ["x"], ["y"], domain="unknown.example"))
    assert load(proto).to_proto().graph.node == proto.graph.node


# Messages, changed in one place each


@pytest.mark.parametrize("name", CHANGES)
def test_bad_message(name: str) -> None:
    change, problem = CHANGES[name]
    proto = small()
    change(proto)
    assert problem in refusal(proto)


@pytest.mark.parametrize("depth", [10, 30, 40, 100, 1000])
def test_deep_nesting(depth: int) -> None:
    """Protobuf reads a hundred levels: three for a graph in a graph, two for a type in a type."""
    for data, levels in ((deep_graph_bytes(depth), 3), (deep_type_bytes(depth), 2)):
        if levels * depth < 97:
            assert load(data)
        else:
            assert "nested too deeply" in refusal(data)


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, as it is on disk."""
    size, encoded = len(content), bytearray()
    while size >= 128:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2]) + bytes([*encoded, size]) + content


def model_bytes(graph_content: bytes) -> bytes:
    return field(7, graph_content) + field(8, b"\x10\x11")


def deep_graph_bytes(depth: int) -> bytes:
    """Graph in attribute in node in graph …, deeper than most tools could write it."""
    content = b""
    for _ in range(depth):
        content = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, content)))
    return model_bytes(content)


def deep_type_bytes(depth: int) -> bytes:
    content = field(1, b"\x08\x01")
    for _ in range(depth):
        content = field(4, field(1, content))
    return model_bytes(field(11, field(1, b"x") + field(2, content)))


# Text that is not text


def test_names_that_are_not_utf8() -> None:
    """Strings by which something is found, replaced by bytes that are not UTF-8."""
    data = everything().SerializeToString()
    tested = 0
    for name in (b"relu", b"outer", b"custom", b"SCALE_TENSOR"):
        if name in data:
            tested += 1
            assert "not valid UTF-8" in refusal(data.replace(name, b"\xff" * len(name), 1))
    assert tested == 4


def test_names_cannot_break_the_message() -> None:
    for name in ("a\nb\x1b[31m", '"); import os #', "x" * 10_000, "\u202e"):
        refusal(graph(helper.make_node("Neg", [name], ["y"], name=name)))


def test_segments_are_refused() -> None:
    proto = small()
    proto.graph.initializer[0].segment.begin = 0
    assert "segments" in refusal(proto, UnsupportedError)


# External data


@pytest.mark.parametrize(
    ("location", "entries", "problem"),
    [
        ("missing.bin", {}, "No such file"),
        ("", {}, "not a file name"),
        (".", {}, "not a file"),
        ("a\0b", {}, "not a file name"),
        ("../secret.bin", {}, "outside the model's folder"),
        ("../model/w.bin", {}, "outside the model's folder"),
        ("sub/../../secret.bin", {}, "outside the model's folder"),
        ("..\\secret.bin", {}, "outside the model's folder"),
        ("../../../../../../../etc/passwd", {}, "outside the model's folder"),
        ("/etc/passwd", {}, "outside the model's folder"),
        ("/dev/zero", {}, "outside the model's folder"),
        ("C:\\secret.bin", {}, "outside the model's folder"),
        ("w.bin", {"offset": "4096"}, "needs bytes 4096 to 20480, but has 16384"),
        ("w.bin", {"offset": "-1"}, "offset"),
        ("w.bin", {"offset": "99999999999999999999999"}, "offset"),
        ("w.bin", {"offset": "one"}, "offset"),
        ("w.bin", {"length": "16380"}, "needs 16384 bytes, its external data has 16380"),
        ("w.bin", {"length": "99999"}, "needs 16384 bytes, its external data has 99999"),
        ("w.bin", {"length": "-16384"}, "length"),
    ],
)
def test_bad_external_data(location: str, entries: dict[str, str], problem: str, tmp_path: pathlib.Path) -> None:
    message = refusal(external(tmp_path, location, **entries))
    assert problem in message and "initializer 'weight'" in message


def test_short_and_empty_external_files(tmp_path: pathlib.Path) -> None:
    path = external(tmp_path, "w.bin")
    assert load(path)
    for size in (16383, 0):
        path.with_name("w.bin").write_bytes(bytes(size))
        assert f"but has {size}" in refusal(path)


def test_links_that_lead_outside(tmp_path: pathlib.Path) -> None:
    path = external(tmp_path, "link.bin")
    link = path.with_name("link.bin")
    link.symlink_to("w.bin")
    assert load(path), "a link inside the folder"
    for target in ("../secret.bin", tmp_path / "secret.bin", "/etc/passwd", "/dev/zero"):
        link.unlink()
        link.symlink_to(target)
        assert "leads outside the model's folder" in refusal(path)
    link.unlink()
    link.symlink_to("link.bin")
    assert "cannot be read" in refusal(path)
    path = external(tmp_path, "folder/secret.bin")
    path.with_name("folder").symlink_to("..")
    assert "leads outside the model's folder" in refusal(path)


def test_a_cache_that_links_both_files_to_one_store(tmp_path: pathlib.Path) -> None:
    path = external(tmp_path, "w.bin")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for name in ("net.onnx", "w.bin"):
        (snapshot / name).symlink_to(path.with_name(name))
    assert load(snapshot / "net.onnx")


def test_external_data_needs_a_path(tmp_path: pathlib.Path) -> None:
    assert "load the model from its path" in refusal(external(tmp_path, "w.bin").read_bytes())
