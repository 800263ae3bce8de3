"""Encoders, preprocessing and maps of `ai.onnx.ml` against ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import pytest
from harness import check, compare, floats, source, to_torch
from ml_models import ml_model
from onnx import TensorProto, numpy_helper

from onward.errors import RunFailure
from onward.scoreboard.suite import prepare

NAN = float("nan")
WORDS = np.array([["a", "b", "x"], ["c", "", "a"]], object)
NUMBERS = np.array([[1, 2, 9], [3, -4, 1]])
DECIMALS = np.array([[1.5, NAN, 9.0], [-0.0, 2.0, 1.5]], np.float32)

ENCODERS: list[tuple[np.ndarray, dict[str, Any]]] = [
    (WORDS, {"keys_strings": ["a", "b", "c", "a"], "values_int64s": [1, 2, 3, 4], "default_int64": 77}),
    (WORDS, {"keys_strings": ["a", "b"], "values_floats": [1.5, 2.5]}),
    (WORDS, {"keys_strings": ["a", ""], "values_strings": ["A", "empty"], "default_string": "?"}),
    (NUMBERS, {"keys_int64s": [3, 1, 2, 1], "values_strings": ["c", "a", "b", "no"]}),
    (NUMBERS, {"keys_int64s": [3, 1], "values_floats": [0.5, 0.25], "default_float": NAN}),
    (NUMBERS, {"keys_int64s": [3, 1, -4], "values_int64s": [5, 6, 7]}),
    (DECIMALS, {"keys_floats": [1.5, NAN, 0.0], "values_strings": ["x", "nan", "zero"]}),
    (DECIMALS, {"keys_floats": [1.5, NAN, 0.0], "values_int64s": [5, 6, 7]}),
    (DECIMALS, {"keys_floats": [2.0], "values_floats": [7.0]}),
    (
        DECIMALS.astype(np.float64),
        {
            "keys_tensor": numpy_helper.from_array(np.array([9.0, 1.5])),
            "values_tensor": numpy_helper.from_array(np.array([0.5, 0.25])),
            "default_tensor": numpy_helper.from_array(np.array([3.0])),
        },
    ),
    (
        WORDS,
        {
            "keys_tensor": numpy_helper.from_array(np.array(["a", "c"], object)),
            "values_tensor": numpy_helper.from_array(np.array([4, 5], np.int16)),
            "default_tensor": numpy_helper.from_array(np.array([-9], np.int16)),
        },
    ),
]


@pytest.mark.parametrize(("x", "given"), ENCODERS, ids=lambda v: "+".join(v) if isinstance(v, dict) else "")
def test_label_encoder(x: np.ndarray, given: dict[str, Any]) -> None:
    check(ml_model("LabelEncoder", [x], version=4, **given), [x])


@pytest.mark.parametrize("keys", [[1.0, NAN], [NAN, 1.0], [NAN, NAN, 1.0], [np.inf, 1.0, NAN], [NAN], [-np.inf, NAN]])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_key_that_is_no_number(version: int, keys: list[float]) -> None:
    """All versions say that NaN can be a key; in ONNX Runtime it is one since version 4, and the others are found."""
    x = np.array([1.0, NAN, 3.0, -NAN, np.inf, -np.inf], np.float32)
    found = {"NaN" if key != key else key: i for i, key in reversed(list(enumerate(keys)))}
    expected = [np.array([found.get("NaN" if v != v else v, -9) for v in x.tolist()])]
    model = ml_model(
        "LabelEncoder", [x], version=version, keys_floats=keys, values_int64s=range(len(keys)), default_int64=-9
    )
    check(model, [x], expected=expected)
    if version == 4:
        check(model, [x])


@pytest.mark.parametrize("x", [WORDS, NUMBERS], ids=["strings", "ints"])
def test_category_mapper(x: np.ndarray) -> None:
    given = {"cats_int64s": [9, 2, 3], "cats_strings": ["a", "x", ""], "default_int64": 5, "default_string": "none"}
    check(ml_model("CategoryMapper", [x], **given), [x])


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("x", [WORDS, NUMBERS, NUMBERS / 2, (NUMBERS / 2).astype(np.float32), NUMBERS[0]])
def test_one_hot_encoder(x: np.ndarray, repeat: bool) -> None:
    given = {"cats_strings": ["b", "a", "c"]} if x.dtype == object else {"cats_int64s": [2, 1, -4]}
    given = {key: values + values[:1] * repeat for key, values in given.items()}
    check(ml_model("OneHotEncoder", [x], **given), [x])


@pytest.mark.parametrize("x", [WORDS, NUMBERS])
def test_a_category_that_must_be_known(x: np.ndarray) -> None:
    given = {"cats_strings": ["b", "a"]} if x.dtype == object else {"cats_int64s": [2, 1]}
    with pytest.raises(RunFailure, match="none of the categories"):
        prepare("torch", ml_model("OneHotEncoder", [x], zeros=0, **given))([x])


@pytest.mark.parametrize("x", [WORDS, NUMBERS, DECIMALS, floats(2, 3, 4), NUMBERS[0]])
@pytest.mark.parametrize("columns", [np.array([1]), np.array([[2, 0, 2]])])
def test_array_feature_extractor(x: np.ndarray, columns: np.ndarray) -> None:
    check(ml_model("ArrayFeatureExtractor", [x, columns]), [x, columns])


X = floats(5, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize(
    "given", [{"offset": [0.1, 2.0, -3.0], "scale": [1.5, 0.3, 2.0]}, {"offset": [0.1], "scale": [3.0]}]
)
def test_scaler(given: dict[str, Any], dtype: Any) -> None:
    x = (X * 100).astype(dtype)
    check(ml_model("Scaler", [x], **given), [x])
    check(ml_model("Scaler", [x[0]], **given), [x[0]])


def test_binarizer() -> None:
    x = np.array([[0.5, 0.4999, 0.5001], [-1, 7, 0.5]], np.float32)
    check(ml_model("Binarizer", [x], threshold=0.5), [x])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_normalizer(norm: str, dtype: Any) -> None:
    x = (X * 10).astype(dtype)
    x[1], x[2] = 0, [-3, -1, -2]
    check(ml_model("Normalizer", [x], norm=norm), [x])
    check(ml_model("Normalizer", [x[0]], norm=norm), [x[0]])


@pytest.mark.parametrize("replaced", [NAN, 0.5])
@pytest.mark.parametrize("values", [[7.0], [7.0, 8.0, 9.0]])
def test_imputer_of_floats(values: list[float], replaced: float) -> None:
    x = np.array([[0.5, NAN, 1.0], [NAN, 0.5, 0.5]], np.float32)
    check(ml_model("Imputer", [x], imputed_value_floats=values, replaced_value_float=replaced), [x])
    check(ml_model("Imputer", [x[0]], imputed_value_floats=values, replaced_value_float=replaced), [x[0]])


def test_imputer_of_integers() -> None:
    x = NUMBERS
    check(ml_model("Imputer", [x], imputed_value_int64s=[5, 6, 7], replaced_value_int64=1), [x])


def test_imputer_of_another_width_uses_its_first_value() -> None:
    model = ml_model("Imputer", [X], imputed_value_floats=[7.0, 8.0], replaced_value_float=0.0)
    x = np.where(X > 0, X, 0)
    check(model, [x], unknown=False)


@pytest.mark.parametrize(
    "parts",
    [
        [floats(4, 2), floats(4, 3)],
        [NUMBERS, NUMBERS[:, 1:]],
        [floats(4, 2, dtype=np.float64)],
        [floats(3), floats(2)],
        [floats(2, 2, 3), floats(2, 2)],
    ],
    ids=["floats", "ints", "doubles", "vectors", "deep"],
)
@pytest.mark.parametrize("change", [0, 1, -1])
def test_feature_vectorizer(parts: list[np.ndarray], change: int) -> None:
    """As many columns as the inputs have, or one more or less of each."""
    widths = [int(np.prod(p.shape[1:])) if p.ndim > 1 else len(p) for p in parts]
    model = ml_model("FeatureVectorizer", parts, inputdimensions=[w + change for w in widths])
    check(model, parts)


def map_type(key: int, value: int) -> onnx.TypeProto:
    found = onnx.TypeProto()
    found.map_type.key_type, found.map_type.value_type.tensor_type.elem_type = key, value
    return found


def check_map(model: onnx.ModelProto, x: Any, expected: Any = None) -> None:
    compare(prepare("torch", model)([x]), prepare("onnxruntime", model)([x]) if expected is None else [expected])


@pytest.mark.parametrize(
    "form", [{"map_form": "DENSE"}, *({"map_form": "SPARSE", "max_map": n} for n in (2, 5))], ids=str
)
@pytest.mark.parametrize("target", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
def test_cast_map(target: str, form: dict[str, Any]) -> None:
    x = {3: 1.5, 1: 2.0, 0: -3.75}
    check_map(ml_model("CastMap", [map_type(TensorProto.INT64, TensorProto.FLOAT)], cast_to=target, **form), x)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("TO_FLOAT", np.array([[-3, 0, 1.5]], np.float32)),
        ("TO_STRING", np.array([["-3", "0.f", "1.5"]], object)),
    ],
)
def test_cast_map_of_strings(target: str, expected: np.ndarray) -> None:
    """ONNX Runtime's Python interface cannot feed a map of strings."""
    kind = map_type(TensorProto.INT64, TensorProto.STRING)
    check_map(ml_model("CastMap", [kind], cast_to=target, map_form="SPARSE", max_map=3), {2: "1.5", 0: "-3"}, expected)


def test_dict_vectorizer() -> None:
    strings = ml_model(
        "DictVectorizer", [map_type(TensorProto.STRING, TensorProto.FLOAT)], string_vocabulary=list("cba")
    )
    check_map(strings, {"a": 1.5, "z": 3.0, "c": 2.0})
    ints = ml_model("DictVectorizer", [map_type(TensorProto.INT64, TensorProto.FLOAT)], int64_vocabulary=[3, 2, 1])
    check_map(ints, {1: 1.5, 3: 2.0})
    texts = ml_model("DictVectorizer", [map_type(TensorProto.INT64, TensorProto.STRING)], int64_vocabulary=[3, 2, 1])
    check_map(texts, {1: "q"}, np.array([["", "", "q"]], object))


@pytest.mark.parametrize("names", [{"classlabels_int64s": [5, 6, 7]}, {"classlabels_strings": ["a", "b", "c"]}])
@pytest.mark.parametrize("x", [X, X[0]])
def test_zip_map(x: np.ndarray, names: dict[str, Any]) -> None:
    model = ml_model("ZipMap", [x], **names)
    assert prepare("torch", model)([x]) == prepare("onnxruntime", model)([x])


def test_labels_are_safe_in_source() -> None:
    hostile = '"); import os #'
    x = WORDS
    model = ml_model("LabelEncoder", [x], version=4, keys_strings=[hostile, "a"], values_strings=["b", hostile])
    assert "import os #\n" not in source(model)
    assert to_torch(model)(np.array(["a"], object)).tolist() == [hostile]
