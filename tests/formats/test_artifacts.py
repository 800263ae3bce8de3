"""Models of frameworks are recognised by what they hold, and run under the names of the model they came from."""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onward
from onward.errors import InvalidModelError, OnwardError, RunFailure, UnsupportedError, UntrustedError
from onward.formats import is_artifact, open_artifact
from onward.formats.matching import Declared, Pairing
from onward.gate import trusting

FLOAT, INT32, INT64, STRING = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.STRING

TEXT = """<ir_version: 9, opset_import: ["": 18]>
g (float[N, 4] left, float[N, 4] right) => (float[N, 4] sum, float[N, 4] difference)
{ sum = Add(left, right) difference = Sub(left, right) }"""
LEFT, RIGHT = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)


def onnx_model() -> onnx.ModelProto:
    """With an input whose name no framework can keep."""
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.input[1].name = "right.1"
    for node in proto.graph.node:
        node.input[1] = "right.1"
    return proto


def package(folder: Path) -> Path:
    pytest.importorskip("torch")
    from onward.backends.torch.convert import generate, write_package

    return write_package(generate(onward.load(onnx_model())), folder / "package")


def tensorflow_package(folder: Path) -> Path:
    pytest.importorskip("tensorflow")
    from onward.backends.tensorflow.convert import generate, write_package

    return write_package(generate(onward.load(onnx_model())), folder / "package")


def exported(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    net = onward.to_torch(onnx_model())
    example = (torch.ones(2, 4), torch.ones(2, 4))
    program = torch.export.export(net, example, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},) * 2)
    torch.export.save(program, folder / "program.pt2")
    return folder / "program.pt2"


def keras_model() -> Any:
    keras = pytest.importorskip("keras")
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    total = keras.layers.Add(name="sum")([left, right])
    return keras.Model([left, right], [total, keras.layers.Subtract(name="difference")([left, right])])


def keras_file(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        pytest.importorskip("tensorflow")
        keras_model().save(folder / f"model{suffix}")
        return folder / f"model{suffix}"

    return make


def saved_model(folder: Path) -> Path:
    tensorflow = pytest.importorskip("tensorflow")

    class Module(tensorflow.Module):  # type: ignore[misc]
        def compute(self, left: Any, right_1: Any) -> Any:
            return {"sum": left + right_1, "difference": left - right_1}

    module = Module()
    specs = [tensorflow.TensorSpec([None, 4], tensorflow.float32, name=name) for name in ("left", "right_1")]
    function = tensorflow.function(module.compute, input_signature=specs)
    tensorflow.saved_model.save(module, str(folder / "saved"), signatures=function.get_concrete_function())
    return folder / "saved"


def tflite(folder: Path) -> Path:
    tensorflow = pytest.importorskip("tensorflow")
    converter = tensorflow.lite.TFLiteConverter.from_saved_model(str(saved_model(folder)))
    (folder / "model.tflite").write_bytes(converter.convert())
    return folder / "model.tflite"


MAKERS = {
    "package": package,
    "tensorflow package": tensorflow_package,
    "pt2": exported,
    "saved_model": saved_model,
    "keras": keras_file(".keras"),
    "h5": keras_file(".h5"),
    "tflite": tflite,
}


@pytest.fixture(params=MAKERS)
def artifact(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    return request.param, MAKERS[request.param](tmp_path)


def check(found: Any) -> None:
    by_name = found if "sum" in found else dict(zip(("sum", "difference"), found.values(), strict=True))
    assert by_name.keys() == {"sum", "difference"}
    np.testing.assert_array_equal(by_name["sum"], LEFT + RIGHT)
    np.testing.assert_array_equal(by_name["difference"], LEFT - RIGHT)
    assert all(value.dtype == np.float32 for value in by_name.values())


def test_each_kind_runs_under_the_names_of_its_source(artifact: tuple[str, Path]) -> None:
    kind, path = artifact
    assert is_artifact(path)
    opened = open_artifact(path)
    check(opened.run({"left": LEFT, "right.1": RIGHT}))
    three = {"left": np.ones((3, 4), np.float32), "right.1": np.ones((3, 4), np.float32)}
    assert all(value.shape == (3, 4) for value in opened.run(three).values())
    with pytest.raises(RunFailure, match=r"it takes 'left'.* but got 'left'"):
        opened.run({"left": LEFT})
    if "package" in kind:
        assert opened.inputs == [] and opened.outputs is None
        return
    assert [slot.dtype for slot in opened.inputs] == [FLOAT, FLOAT]
    assert all(isinstance(slot.dims[0], str) and slot.dims[1] == 4 for slot in opened.inputs)
    with pytest.raises(RunFailure, match=r"it takes 'left' \(float\[.*, 4\]\), but got 'left' \(float64\[2, 4\]\)"):
        opened.run({"left": LEFT.astype(np.float64), "right.1": RIGHT})


def test_each_kind_runs_in_a_process_of_its_own(artifact: tuple[str, Path]) -> None:
    opened = open_artifact(artifact[1], isolate=True, seconds=120)
    check(opened.run({"left": LEFT, "right.1": RIGHT}))
    opened.run.close()  # type: ignore[attr-defined]
    check(opened.run({"left": LEFT, "right.1": RIGHT}))
    opened.run.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["pt2", "keras", "h5", "tflite"])
def test_the_suffix_does_not_matter(kind: str, tmp_path: Path) -> None:
    other = MAKERS[kind](tmp_path).rename(tmp_path / "other.bin")
    check(open_artifact(other).run({"left": LEFT, "right.1": RIGHT}))


def test_packages_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    first = package(tmp_path).rename(tmp_path / "first")
    second = package(tmp_path)
    source = (second / "model.py").read_text()
    (second / "model.py").write_text(source.replace("left + ", "left - "))
    with trusting(True):
        runs = [open_artifact(path).run for path in (first, second)]
    totals = [run({"left": LEFT, "right.1": RIGHT})["0"] for run in runs]
    np.testing.assert_array_equal(totals, [LEFT + RIGHT, LEFT - RIGHT])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "this file or folder does not exist"),
        (b"", "Onward does not recognise this file"),
        (b"TFL3", "Onward does not recognise this file"),
        (b"PK\x03\x04 cut short", "Onward does not recognise this file"),
    ],
)
def test_what_is_no_model(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    if content is not None:
        path.write_bytes(content)
    assert not is_artifact(path)
    with pytest.raises(InvalidModelError, match=message):
        open_artifact(path)


def test_a_folder_and_an_onnx_file_are_no_artifacts(tmp_path: Path) -> None:
    onnx.save(onnx_model(), tmp_path / "model.onnx")
    assert not is_artifact(tmp_path) and not is_artifact(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("name", "content", "package"),
    [
        ("model.tflite", b"\x1c\0\0\0TFL3 and nothing more", "tensorflow"),
        ("model.h5", b"\x89HDF\r\n\x1a\n and nothing more", "keras"),
        ("model.pt2", {"x/archive_format": "pt2"}, "torch"),
        ("model.keras", {"metadata.json": "{}", "config.json": "{}"}, "keras"),
        ("saved", {"saved_model.pb": "damaged"}, "tensorflow"),
        ("package", {"model.py": "1 / 0", "weights.safetensors": ""}, "torch"),
        ("package", {"model.py": "", "weights.safetensors": ""}, "torch"),
    ],
)
def test_a_damaged_model_is_one_line(name: str, content: Any, package: str, tmp_path: Path) -> None:
    """Or, where the framework is not there, that it is not."""
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif "." in name:
        with zipfile.ZipFile(path, "w") as archive:
            for file, text in content.items():
                archive.writestr(file, text)
    else:
        path.mkdir()
        for file, text in content.items():
            (path / file).write_text(text)
    assert is_artifact(path)
    with pytest.raises(OnwardError) as caught:
        open_artifact(path)
    assert "\n" not in str(caught.value)
    if isinstance(caught.value, UnsupportedError):
        assert package in str(caught.value)


def test_nothing_in_an_exported_program_is_executed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    witness = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (witness,)

    original = exported(tmp_path)
    torch.save((Evil(),), tmp_path / "evil.pt")
    for replaced in ("sample_inputs/model.pt", "constants/opaque_obj_0"):
        changed = tmp_path / "changed.pt2"
        with zipfile.ZipFile(original) as old, zipfile.ZipFile(changed, "w") as new:
            for name in old.namelist():
                if not name.endswith(replaced):
                    new.writestr(name, old.read(name))
            new.writestr(f"program/data/{replaced}", (tmp_path / "evil.pt").read_bytes())
        if "opaque" in replaced:
            with pytest.raises(UntrustedError, match="opaque_obj_0 in it is a pickled object"):
                open_artifact(changed)
        else:
            open_artifact(changed)  # examples of inputs are not needed, and not opened
        assert not witness.exists()


def test_recognising_a_kind_imports_no_framework(tmp_path: Path) -> None:
    code = (
        "import sys; from onward.formats import is_artifact; is_artifact(sys.argv[1]);"
        "print([n for n in ('torch', 'tensorflow', 'keras') if n in sys.modules])"
    )
    (tmp_path / "model").write_bytes(b"\x1c\0\0\0TFL3")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


IMAGE = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
TOKENS = np.arange(4).reshape(1, 4)


@pytest.mark.parametrize(
    ("declared", "given", "wanted"),
    [
        ([Declared("b"), Declared("a")], ["a", "b"], ["b", "a"]),
        ([Declared("in_1"), Declared("serving_default_Other:0")], ["other", "in.1"], ["in.1", "other"]),
        ([Declared("p"), Declared("q")], ["a", "b"], ["a", "b"]),
        ([Declared("p"), Declared("a")], ["a", "b"], ["b", "a"]),
        ([Declared("p", FLOAT), Declared("q", INT64)], ["tokens", "image"], ["image", "tokens"]),
        ([Declared("image")], ["image", "tokens"], ["image"]),
        ([Declared("a_1"), Declared("a.1")], ["a.1", "a_1"], ["a_1", "a.1"]),
        ([Declared("p"), Declared("q")], ["a.1", "a_1"], ["a.1", "a_1"]),
    ],
)
def test_inputs_are_matched_by_name_then_place_then_fit(
    declared: list[Declared], given: list[str], wanted: list[str]
) -> None:
    values = {name: {"tokens": TOKENS}.get(name, IMAGE + place) for place, name in enumerate(given)}
    fed = Pairing(declared, values).inputs
    assert list(fed) == [own.name for own in declared]
    for own, name in zip(declared, wanted, strict=True):
        np.testing.assert_array_equal(fed[own.name], values[name])


@pytest.mark.parametrize(
    ("declared", "value", "wanted", "note"),
    [
        (Declared("x", FLOAT, (None, 3, 4, 2)), IMAGE, IMAGE.transpose(0, 2, 3, 1), "fed channels-last"),
        (Declared("x", FLOAT, ("n", 2, 3, 4)), IMAGE, IMAGE, ""),
        (Declared("x", INT32, (1, 4)), TOKENS, TOKENS.astype(np.int32), "fed as int32"),
        (Declared("x", STRING, (1,)), np.array(["a"]), np.array(["a"]), ""),
    ],
)
def test_inputs_are_fed_as_the_model_takes_them(declared: Declared, value: Any, wanted: Any, note: str) -> None:
    pairing = Pairing([declared], {"y": value})
    assert pairing.inputs["x"].dtype == wanted.dtype
    np.testing.assert_array_equal(pairing.inputs["x"], wanted)
    assert " ".join(pairing.notes).endswith(note) and bool(pairing.notes) == bool(note)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Declared("x", INT32), TOKENS + 2**40),
        (Declared("x", FLOAT), TOKENS),
        (Declared("x", FLOAT), np.array(["a"])),
        (Declared("x", STRING), TOKENS),
        (Declared("x", FLOAT, (1, 2, 3)), IMAGE),
        (Declared("x", FLOAT, (1, 5, 3, 4)), IMAGE),
    ],
)
def test_inputs_that_do_not_fit_are_refused(declared: Declared, value: Any) -> None:
    with pytest.raises(RunFailure, match=r"it takes 'x'.* but got 'y'"):
        Pairing([declared], {"y": value})
