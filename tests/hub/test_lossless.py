"""What is loaded and saved is still the same model, down to the last field."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import onnx
import onnx.backend.test.loader
import pytest
from google.protobuf.descriptor import Descriptor
from protos import everything, same

from onward import load


def through(model: onnx.ModelProto, tmp_path: pathlib.Path, **options: Any) -> onnx.ModelProto:
    """Load → save → load → to_proto."""
    path = tmp_path / "copy.onnx"
    load(model).save(path, **options)
    return load(path).to_proto()


def suite_cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnx.backend.test.loader.load_model_tests(kind="node")


def test_the_node_suite_is_lossless(tmp_path: pathlib.Path) -> None:
    cases = suite_cases()
    assert len(cases) > 1800
    for case in cases:
        before = onnx.ModelProto()
        before.CopyFrom(case.model)
        same(before, through(case.model, tmp_path))


SUITE = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


@pytest.mark.parametrize("kind", sorted(folder.name for folder in SUITE.iterdir() if folder.is_dir()))
def test_the_shipped_models_are_lossless(kind: str, tmp_path: pathlib.Path) -> None:
    for path in (SUITE / kind).rglob("*.onnx"):
        load(path).save(tmp_path / "copy.onnx")
        same(onnx.load(path, load_external_data=False), onnx.load(tmp_path / "copy.onnx"), path.parent)


def all_fields(descriptor: Descriptor, found: set[str]) -> set[str]:
    for field in descriptor.fields:
        if field.full_name not in found:
            found.add(field.full_name)
            if field.message_type:
                all_fields(field.message_type, found)
    return found


def used_fields(message: Any, found: set[str]) -> set[str]:
    for field, value in message.ListFields():
        found.add(field.full_name)
        if field.message_type:
            for item in value if field.is_repeated else [value]:
                used_fields(item, found)
    return found


ELSEWHERE = {
    "onnx.TensorProto.external_data": "tested with files",
    "onnx.TensorProto.data_location": "tested with files",
    "onnx.TensorProto.segment": "refused",
    "onnx.TensorProto.Segment.begin": "refused",
    "onnx.TensorProto.Segment.end": "refused",
}


def test_everything_is_everything() -> None:
    missing = all_fields(onnx.ModelProto.DESCRIPTOR, set()) - used_fields(everything(), set())
    assert missing == ELSEWHERE.keys()


@pytest.mark.parametrize("external", [False, True])
def test_every_field_is_kept(external: bool, tmp_path: pathlib.Path) -> None:
    same(everything(), through(everything(), tmp_path, external_data=external))
