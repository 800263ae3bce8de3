import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from graphs import model
from onnx import TensorProto, helper, numpy_helper

from onward.errors import InvalidDataError, UnsupportedError
from onward.model import Model, load
from onward.verification.data.sets import DataSet, data_sets

TWO = "g (float[N,3] x, int64[N] i) => (float[N,3] y) { y = Identity(x) }"
ONE = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = np.array([4, 5])


def read(net: Model | str, given: Any, **options: Any) -> list[DataSet]:
    return list(data_sets(model(net) if isinstance(net, str) else net, inputs=given, **options))


def equal(actual: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            equal(a, b)
    else:
        np.testing.assert_array_equal(actual, expected)


def test_arrays_by_name_one_set_or_several() -> None:
    (made,) = read(TWO, {"i": [4, 5], "x": X})
    assert list(made.inputs) == ["x", "i"] and made.inputs["i"].dtype == np.int64 and made.expected is None
    assert [m.label for m in read(TWO, [{"x": X, "i": INDICES}, {"x": X[:1], "i": INDICES[:1]}])] == [
        "given 0",
        "given 1",
    ]


@pytest.mark.parametrize("names", [("x", "i"), ("first", "second")])
def test_npz_by_name_or_by_order(tmp_path: Path, names: tuple[str, str]) -> None:
    np.savez(tmp_path / "data.npz", **dict(zip(names, (X, INDICES), strict=True)))
    (made,) = read(TWO, tmp_path / "data.npz")
    equal(list(made.inputs.values()), [X, INDICES])
    assert list(made.inputs) == ["x", "i"]


def test_npy_and_pb_for_a_model_with_one_input(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", X)
    (tmp_path / "data.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    for name in ("data.npy", "data.pb"):
        (made,) = read(ONE, str(tmp_path / name))
        equal(made.inputs["x"], X)


def test_dtypes_that_numpy_cannot_name_are_read_back(tmp_path: Path) -> None:
    value = X.astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "data.npy", value)
    (made,) = read("g (bfloat16[N,3] x) => (y) { y = Relu(x) }", tmp_path / "data.npy")
    assert made.inputs["x"].dtype == ml_dtypes.bfloat16
    equal(made.inputs["x"], value)


def test_strings(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.array(["a", "bc"]))
    (made,) = read("g (string[N] x) => (y) { y = Identity(x) }", tmp_path / "data.npy")
    assert made.inputs["x"].dtype == object and list(made.inputs["x"]) == ["a", "bc"]


def test_a_folder_of_arrays_is_a_set_each_in_the_order_of_numbers(tmp_path: Path) -> None:
    for number in (10, 9):
        np.save(tmp_path / f"s{number}.npy", X + number)
    np.savez(tmp_path / "s11.npz", x=X)
    (tmp_path / "notes.txt").write_text("no data")
    sets = read(ONE, tmp_path)
    assert [made.label for made in sets] == ["s9.npy", "s10.npy", "s11.npz"]
    equal(sets[0].inputs["x"], X + 9)


def test_a_folder_of_arrays_named_as_the_inputs_is_one_set(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "i.npy", INDICES)
    (made,) = read(TWO, tmp_path)
    equal(list(made.inputs.values()), [X, INDICES])


def test_zoo_folders_come_with_expected_outputs(tmp_path: Path) -> None:
    for number in (0, 1):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(X + number).SerializeToString())
        (folder / "output_0.pb").write_bytes(numpy_helper.from_array(X - number).SerializeToString())
    sets = read(ONE, tmp_path)
    assert [made.label for made in sets] == ["test_data_set_0", "test_data_set_1"]
    equal(sets[1].inputs["x"], X + 1)
    assert sets[1].expected is not None
    equal(sets[1].expected["y"], X - 1)
    (alone,) = read(ONE, tmp_path / "test_data_set_1")
    equal(alone.inputs["x"], X + 1)


def test_sequences_and_optionals_are_read_by_the_type_of_the_model(tmp_path: Path) -> None:
    net = model(
        "g (seq(float[N]) s, optional(seq(float[N])) o, optional(float[N]) e, float[N] t) => (seq(float[N]) y)"
        "{ y = SequenceInsert(s, t) }",
        opset=18,
    )
    rows = [X[0], X[1]]
    empty = onnx.OptionalProto(elem_type=onnx.OptionalProto.UNDEFINED)
    messages = {
        "input_0": numpy_helper.from_list(rows),
        "input_1": numpy_helper.from_optional(rows[:1]),
        "input_2": empty,
        "input_3": numpy_helper.from_array(X[0]),
        "output_0": numpy_helper.from_list([*rows, X[0]]),
    }
    for name, message in messages.items():
        (tmp_path / f"{name}.pb").write_bytes(message.SerializeToString())
    (made,) = read(net, tmp_path)
    equal(made.inputs["s"], rows)
    equal(made.inputs["o"], rows[:1])
    equal(made.inputs["t"], X[0])
    assert made.inputs["e"] is None and made.expected is not None
    equal(made.expected["y"], [*rows, X[0]])


def ppm(path: Path, pixels: np.ndarray) -> Path:
    pytest.importorskip("PIL")
    path.write_bytes(b"P6 %d %d 255\n" % pixels.shape[1::-1] + pixels.astype(np.uint8).tobytes())
    return path


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ("float[N,3,4,6]", (1, 3, 4, 6)),
        ("float[2,3,4,6]", (2, 3, 4, 6)),
        ("float[N,4,6,3]", (1, 4, 6, 3)),
        ("uint8[N,H,W,3]", (1, 8, 12, 3)),
        ("float[3,4,6]", (3, 4, 6)),
        ("float[N,1,H,W]", (1, 1, 8, 12)),
        ("float[a,b,c,d]", (1, 3, 8, 12)),
    ],
)
def test_images_take_the_shape_and_range_of_the_input(tmp_path: Path, declared: str, shape: tuple[int, ...]) -> None:
    left_red = np.zeros((8, 12, 3))
    left_red[:, :6, 0] = 255
    (made,) = read(f"g ({declared} x) => (y) {{ y = Identity(x) }}", ppm(tmp_path / "a.ppm", left_red))
    x = made.inputs["x"]
    assert x.shape == shape
    full = 255 if x.dtype == np.uint8 else 1.0
    pixels = x[0] if x.ndim == 4 else x
    pixels = np.moveaxis(pixels, 0, 2) if pixels.shape[2] != 3 else pixels
    red = 0.299 * full if 1 in shape[1:2] else full
    assert pixels[0, 0, 0] == pytest.approx(red) and pixels[0, -1, 0] == 0
    if pixels.shape[2] == 3:
        assert not pixels[:, :, 1:].any()


def test_sizes_of_images_can_be_given_by_name_and_shrinking_averages(tmp_path: Path) -> None:
    board = np.indices((8, 8)).sum(axis=0) % 2 * 255
    path = ppm(tmp_path / "a.ppm", np.repeat(board[:, :, None], 3, axis=2))
    (made,) = read("g (float[N,3,H,W] x) => (y) { y = Relu(x) }", path, dims={"H": 2, "W": 4, "N": 3})
    assert made.inputs["x"].shape == (3, 3, 2, 4)
    assert np.abs(made.inputs["x"] - 0.5).max() < 0.1


def test_without_pillow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ppm(tmp_path / "a.ppm", np.zeros((2, 2, 3)))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r"a\.ppm: Pillow is not installed: pip install 'onward\[images\]'"):
        read("g (float[N,3,H,W] x) => (y) { y = Relu(x) }", path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X}, r"nothing is given for 'i'; the model takes 'x' \(float32 \[N, 3\]\), 'i' \(int64 \[N\]\)"),
        ({"x": X, "i": INDICES, "z": X}, "there is no input 'z'; the model takes 'x'"),
        ({"x": X.astype(np.float64), "i": INDICES}, r"'x' is float32 \[N, 3\], but float64 \[2, 3\] was found"),
        ({"x": X[:, :2], "i": INDICES}, r"'x' is float32 \[N, 3\], but the shape \[2, 2\] was found"),
        ({"x": [[1, 2], [3]], "i": INDICES}, r"'x' is float32 \[N, 3\], but something else was found"),
        ({"x": X[0], "i": INDICES}, r"but the shape \[3\] was found"),
        ({"x": X, "i": "four"}, "'i' is int64"),
        ({"x": None, "i": INDICES}, "'x' is float32"),
        ([], "empty"),
        ([3], "set 0 .* is int"),
        (3, "got int"),
        ("nowhere.npz", "does not exist"),
    ],
)
def test_wrong_inputs_are_one_clear_line(given: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message) as caught:
        read(TWO, given)
    assert "\n" not in str(caught.value)


def test_wrong_files_are_one_clear_line(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    np.savez(tmp_path / "three.npz", a=X, b=X, c=X)
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object), i=INDICES)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "one.npy", X)
    np.savez(tmp_path / "data.npz", x=X)
    (tmp_path / "short.npz").write_bytes((tmp_path / "data.npz").read_bytes()[:80])
    (tmp_path / "short.npy").write_bytes((tmp_path / "one.npy").read_bytes()[:-4])
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n garbage")
    (tmp_path / "data.csv").write_text("1,2")
    (tmp_path / "empty").mkdir()
    outside = TensorProto(data_type=1, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "outside.pb").write_bytes(outside.SerializeToString())
    extra = tmp_path / "extra"
    extra.mkdir()
    for number in (0, 1):
        (extra / f"input_{number}.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    for net, name, message in [
        (TWO, "three.npz", "it holds 'a', 'b', 'c', but the model takes 'x'"),
        (TWO, "objects.npz", "Python objects"),
        (ONE, "objects.npy", "Python objects"),
        (TWO, "one.npy", "one array, but the model takes 'x'"),
        (ONE, "short.npz", "damaged"),
        (ONE, "short.npy", "damaged"),
        (ONE, "text.npy", "damaged"),
        (ONE, "bad.pb", "TensorProto"),
        (ONE, "outside.pb", "another file"),
        ("g (float[N,3,4,4] x) => (y) { y = Relu(x) }", "bad.png", "cannot be read as an image"),
        (ONE, "bad.png", r"an image was found, but the input 'x' is float32 \[N, 3\]"),
        (TWO, "bad.png", "2 inputs"),
        (ONE, "data.csv", "'.csv' cannot be read"),
        (ONE, "empty", "it holds no data"),
        (ONE, "extra", "input_1.pb: the model takes only 'x'"),
    ]:
        with pytest.raises(InvalidDataError, match=message) as caught:
            read(net, tmp_path / name)
        assert "\n" not in str(caught.value) and name in str(caught.value)


def test_optional_inputs_may_be_left_out_and_maps_are_taken() -> None:
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    node = helper.make_node("OptionalHasElement", ["o"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_value_info("o", helper.make_optional_type_proto(inner))],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, [])],
    )
    net = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert read(net, {})[0].inputs == {"o": None}
    equal(read(net, {"o": X[0]})[0].inputs["o"], X[0])

    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["cat", "dog"])
    declared = onnx.TypeProto()
    declared.map_type.key_type = TensorProto.STRING
    declared.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_value_info("m", declared)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    net = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8))
    assert read(net, {"m": {"cat": 2.0}})[0].inputs == {"m": {"cat": 2.0}}
    (generated,) = data_sets(net, regimes=["random"])
    assert set(generated.inputs["m"]) == {"cat", "dog"}
    with pytest.raises(InvalidDataError, match="map from string to float32"):
        read(net, {"m": X})


def test_without_slots_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=X)
    for given in ({"x": X}, str(tmp_path / "data.npz")):
        (made,) = data_sets([], inputs=given)
        equal(made.inputs["x"], X)


def test_an_image_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    head = b"IHDR" + struct.pack(">IIBBBBB", 12000, 12000, 1, 0, 0, 0, 0)
    frame = struct.pack(">BHHB", 8, 12000, 12000, 1) + b"\1\x11\0"
    images_of = {
        "large.png": b"\x89PNG\r\n\x1a\n\0\0\0\x0d" + head + struct.pack(">I", zlib.crc32(head)) + b"\0\0\0\0IDAT",
        "large.jpg": b"\xff\xd8\xff\xc0\0\x0b" + frame + b"\xff\xda\0\x02",
        "large.ppm": b"P4 12000 12000\n",
    }
    for name, content in images_of.items():
        (tmp_path / name).write_bytes(content)
        message = f"{name}: it cannot be read as an image: its 12,000 x 12,000 pixels would take 3,456,000,000 bytes"
        with pytest.raises(InvalidDataError, match=re.escape(message)):
            read("g (float[N,3,4,4] x) => (y) { y = Relu(x) }", tmp_path / name)
