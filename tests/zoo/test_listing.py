"""Models of lists and folders: what is there is found, and what is wrong is said with its line."""

from pathlib import Path

import pytest
from zoo_models import HEADER, net

from onward.errors import OnwardError
from onward.zoo.listing import digest, listed

ROW = "a/b.onnx,a==1.0,pypi,a/b.onnx,onnx,17,task,ai.onnx=17,MIT," + "0" * 64 + "\n"


def test_a_list_of_packages_and_paths(tmp_path: Path) -> None:
    net(tmp_path / "models/own.onnx")
    (tmp_path / "packages.csv").write_text(HEADER + ROW)
    (tmp_path / "paths.csv").write_text("path,task\nmodels/own.onnx,mine\n")
    published, own = listed([tmp_path / "packages.csv", tmp_path / "paths.csv"])
    assert (published.name, published.package, published.size_bytes, published.task) == (
        "a/b.onnx",
        "a==1.0",
        17,
        "task",
    )
    assert (own.name, own.format, own.task) == ("own.onnx", "onnx", "mine")
    assert own.path == str(tmp_path / "models/own.onnx")
    assert own.sha256 == digest(tmp_path / "models/own.onnx")


def test_columns_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("package,path_inside,sha256\na==1.0,a/b.onnx," + "0" * 64 + "\n")
    (entry,) = listed([tmp_path / "few.csv"])
    assert (entry.name, entry.source, entry.size_bytes, entry.is_folder) == ("a/b.onnx", "pypi", 0, False)


def test_a_saved_model_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(HEADER + ROW.replace(",onnx,", ",savedmodel,").replace("a/b.onnx", "a/saved"))
    (entry,) = listed([tmp_path / "list.csv"])
    assert entry.is_folder and entry.path_inside == "a/saved/"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + ROW.replace("a==1.0", "a"), "line 2: 'a' is no package with its version"),
        (HEADER + ROW.replace("a==1.0", "--index-url=x==1"), "is no package with its version"),
        (HEADER + ROW.replace("0" * 64, "12"), "line 2: a model in a package needs its sha256"),
        (HEADER + ROW.replace("pypi", "ftp"), "there is no source 'ftp'"),
        (HEADER + ROW.replace(",17,", ",many,"), "size_bytes 'many' is no number"),
        ("name\nx\n", "line 2: it has neither a path, nor a package"),
        ("path\nnone.onnx\n", "there is no such file or folder"),
        (HEADER + ROW + ROW.replace("0" * 64, "1" * 64), "two models are called 'a/b.onnx'"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(OnwardError, match=said):
        listed([tmp_path / "list.csv"])


def test_a_folder_has_models_of_any_format(tmp_path: Path) -> None:
    net(tmp_path / "in/deep/a.onnx")
    (tmp_path / "in/notes.txt").write_text("no model")
    (tmp_path / "in/lite.bin").write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    (tmp_path / "in/saved").mkdir()
    (tmp_path / "in/saved/saved_model.pb").write_bytes(b"graph")
    (tmp_path / "in/saved/inner.onnx").write_bytes(b"a part of that")
    found = {entry.name: entry.format for entry in listed([tmp_path / "in"])}
    assert found == {"deep/a.onnx": "onnx", "lite.bin": "tflite", "saved": "savedmodel"}


def test_small_models_come_first(tmp_path: Path) -> None:
    net(tmp_path / "large.onnx", op="HardSigmoid").write_bytes(bytes(5000))
    net(tmp_path / "small.onnx")
    assert [entry.name for entry in listed([tmp_path])] == ["small.onnx", "large.onnx"]


@pytest.mark.parametrize("name", ["nowhere", "notes.txt", "."])
def test_what_is_no_model_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    with pytest.raises(OnwardError, match=r"no such file|neither a \.csv list nor a model|no model in it"):
        listed([tmp_path / name])
