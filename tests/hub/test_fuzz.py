"""Valid models, damaged at random: whatever goes in, only `OnwardError` comes out."""

from __future__ import annotations

import functools
import random
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx
import onnx.backend.test.loader
import pytest
from google.protobuf.descriptor import FieldDescriptor
from protos import everything, small

from onward import load
from onward.backends.torch.convert import generate
from onward.errors import OnwardError

pytestmark = pytest.mark.filterwarnings("ignore::onward.errors.OddModelWarning")


def load_and_write(data: bytes) -> None:
    """A damaged model is refused, or it can be written, and read again as what it is."""
    written = load(data).to_proto()
    assert load(written).to_proto() == written


def convert(data: bytes) -> None:
    """A damaged model is refused, or source comes out that Python can read."""
    source = generate(load(data))
    compile(source.model, "model.py", "exec")


ENTRY_POINTS: dict[str, Callable[[bytes], object]] = {"load": load_and_write, "convert": convert}
"""What must survive any bytes."""

SUITE_MODELS = (
    "test_if_seq",
    "test_loop13_seq",
    "test_scan9_sum",
    "test_optional_get_element_optional_sequence",
    "test_string_concat",
    "test_ai_onnx_ml_tree_ensemble_set_membership",
    "test_layer_normalization_default_axis_expanded",
    "test_quantizelinear_int4",
    "test_constant",
)


@functools.cache
def models() -> list[onnx.ModelProto]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {case.name: case.model for case in onnx.backend.test.loader.load_model_tests(kind="node")}
    return [everything(), small(), *(cases[name] for name in SUITE_MODELS)]


# Damage to bytes


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    length = min(rng.randrange(1, 8), len(data) - start)
    data[start : start + length] = rng.randbytes(length)


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def repeat(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randrange(1, 200)]
    at = rng.randrange(len(data))
    data[at:at] = piece * rng.choice((1, 2, 50))


# Damage to messages


def messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in value if field.is_repeated else [value]:
                yield from messages(item)


def scalar(field: FieldDescriptor, rng: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(("", "x", "y", "plain", "outer", "a\nb", "../x", "é" * 300, "\0", "ai.onnx", "custom"))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 4, 8, 5000)))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice((0.0, -1.0, float("nan"), float("inf")))
    limit = 31 if field.type == FieldDescriptor.TYPE_INT32 else 63
    low = 0 if field.type == FieldDescriptor.TYPE_UINT64 else -1
    return rng.choice((low, 0, 1, 2, 3, 7, 8, 99, 2**20, 2**limit - 1))


def damage(model: onnx.ModelProto, rng: random.Random) -> None:
    """Set, clear, repeat, drop or replace one field of one message."""
    everywhere = list(messages(model))
    message = rng.choice(everywhere)
    field = rng.choice(message.DESCRIPTOR.fields)
    name = field.name
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    donors = [m for m in everywhere if is_message and m.DESCRIPTOR is field.message_type]
    action = rng.randrange(4)
    if action == 0:
        message.ClearField(name)
    elif field.is_repeated:
        values = getattr(message, name)
        if action == 1 and len(values):
            del values[rng.randrange(len(values))]
        elif not is_message:
            values.append(scalar(field, rng))
        elif donors:
            copy = type(donor := rng.choice(donors))()
            copy.CopyFrom(donor)
            values.append(copy)
    elif not is_message:
        setattr(message, name, scalar(field, rng))
    elif donors:
        copy = type(donor := rng.choice(donors))()
        copy.CopyFrom(donor)
        getattr(message, name).CopyFrom(copy)


def mutations(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        model = onnx.ModelProto()
        model.CopyFrom(rng.choice(models()))
        if rng.random() < 0.7:
            for _ in range(rng.choice((1, 1, 2, 4))):
                damage(model, rng)
            yield model.SerializeToString()
        else:
            data = bytearray(model.SerializeToString())
            rng.choice((flip, flip, flip, overwrite, overwrite, truncate, repeat))(data, rng)
            yield bytes(data)


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("seed", range(8))
def test_only_our_errors_come_out(entry: str, seed: int) -> None:
    accepted = refused = 0
    for data in mutations(seed, 100):
        start = time.process_time()
        try:
            ENTRY_POINTS[entry](data)
            accepted += 1
        except OnwardError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 500
        assert time.process_time() - start < 5
    assert accepted and refused, "the damage is neither harmless nor total"
