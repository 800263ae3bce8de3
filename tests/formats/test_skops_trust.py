"""Without trust a .skops file holds estimators and arrays, and nothing that does more when it is opened."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onward.cli import main
from onward.errors import UntrustedError
from onward.formats.sklearn import loaded
from onward.gate import trusting

skops = pytest.importorskip("skops.io")
pytest.importorskip("sklearn")
MARK = "executed"


def node(loader: str, name: str, **fields: Any) -> dict[str, Any]:
    module, _, kind = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": kind, "__id__": 1 + hash(name) % 10**6, **fields}


def text(value: Any) -> dict[str, Any]:
    return {**node("JsonNode", "builtins.str"), "__id__": 0, "content": json.dumps(value), "is_json": True}


def several(*values: Any, loader: str = "TupleNode", name: str = "builtins.tuple") -> dict[str, Any]:
    return node(loader, name, content=list(values))


def called(name: str, *arguments: Any) -> dict[str, Any]:
    return node("ConstructorFromReduceNode", name, content=several(*arguments))


TOUCH = several(text("touch"), text(MARK), loader="ListNode", name="builtins.list")
ATTACKS: dict[str, tuple[dict[str, Any], str]] = {
    "a function of scikit-learn's that is not its own": (
        called("sklearn.utils._testing.check_output", TOUCH),
        "sklearn.utils._testing.check_output",
    ),
    "a class that is a command": (called("subprocess.Popen", TOUCH), "subprocess.Popen"),
    "a list that is a function": (several(text("x"), loader="ListNode", name="os.mkdir"), "os.mkdir"),
    "a dictionary that is a function": (
        node("DictNode", "os.getcwd", content={}, key_types=several(loader="ListNode", name="builtins.list")),
        "os.getcwd",
    ),
    "keys of a dictionary": (
        node(
            "DictNode",
            "builtins.dict",
            content={f"touch {MARK}": text(1)},
            key_types=several(node("TypeNode", "os.system"), loader="ListNode", name="builtins.list"),
        ),
        "os.system",
    ),
    "an array that is a function": (node("NdArrayNode", "os.mkdir", type="json", content=[], shape=TOUCH), "os.mkdir"),
    "a module that is imported": (node("FunctionNode", "antigravity.x"), "antigravity.x"),
    "a function that is bound": (
        node(
            "PartialNode",
            "functools.partial",
            content={
                "func": node("FunctionNode", "sklearn.utils._testing.check_output"),
                "args": several(TOUCH),
                "kwds": text({}),
                "namespace": text(None),
            },
        ),
        "sklearn.utils._testing.check_output",
    ),
    "an operator": (node("OperatorFuncNode", "operator.methodcaller", attrs=several(text("x"))), "methodcaller"),
    "a method": (
        node("MethodNode", "pathlib.Path", content={"func": "touch", "obj": called("pathlib.Path", text(MARK))}),
        "pathlib.Path",
    ),
    "a loader of data": (node("FunctionNode", "sklearn.datasets._base.load_files"), "load_files"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_would_be_executed_is_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    content, what = ATTACKS[name]
    path = tmp_path / "model.onnx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps({**content, "protocol": 2, "_skops_version": "0.13"}))
    with pytest.raises(UntrustedError, match=what):
        loaded(path)
    assert main(["convert", str(path), "--to", "onnx", "--out", "out.onnx"]) == 2
    error = capsys.readouterr().err
    assert what in error and "--trust opens it" in error and error.count("\n") == 1
    assert not Path(MARK).exists()


def test_functions_of_old_files_are_checked_where_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "old.skops"
    old = node("FunctionNode", "numpy.exp", content={"module_path": "os", "function": "system"})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps({**old, "protocol": 0, "_skops_version": "0.1"}))
    with pytest.raises(UntrustedError, match=r"os\.system"):
        loaded(path)


def test_a_trusted_file_is_opened_as_skops_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        content = ATTACKS["a class that is a command"][0]
        archive.writestr("schema.json", json.dumps({**content, "protocol": 2, "_skops_version": "0.13"}))
    with trusting(True):
        loaded(path).wait()
    assert Path(MARK).exists()


def test_estimators_with_all_they_hold(tmp_path: Path) -> None:
    from sklearn import compose, ensemble, feature_selection, gaussian_process, neighbors, pipeline, preprocessing

    x = np.random.default_rng(0).normal(size=(60, 3))
    y = (x[:, 0] > 0).astype(int)
    for estimator in (
        ensemble.HistGradientBoostingClassifier(max_iter=3),
        ensemble.GradientBoostingClassifier(n_estimators=2),
        neighbors.KNeighborsClassifier(algorithm="kd_tree"),
        gaussian_process.GaussianProcessRegressor(1.0 * gaussian_process.kernels.RBF()),
        pipeline.make_pipeline(
            compose.ColumnTransformer(
                [("log", preprocessing.FunctionTransformer(np.tanh), [0, 1])], remainder="passthrough"
            ),
            feature_selection.SelectKBest(feature_selection.f_classif, k=2),
            preprocessing.SplineTransformer(),
            ensemble.RandomForestClassifier(3),
        ),
    ):
        path = tmp_path / "model.skops"
        skops.dump(estimator.fit(x, y), path)
        np.testing.assert_allclose(loaded(path).predict(x), estimator.predict(x))
