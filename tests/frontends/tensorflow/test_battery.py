"""Every function of the battery, converted and run on ONNX Runtime, computes what TensorFlow computes."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import battery_arrays  # noqa: E402
import battery_gradients  # noqa: E402
import battery_images  # noqa: E402
import battery_layers  # noqa: E402
import battery_linalg  # noqa: E402
import battery_math  # noqa: E402
import battery_more  # noqa: E402
import battery_nets  # noqa: E402
import battery_numbers  # noqa: E402
import battery_sparse  # noqa: E402
import battery_strings  # noqa: E402
from any_processor import computed  # noqa: E402
from battery import Case  # noqa: E402
from refused import REFUSED  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402
from onward.model import Model  # noqa: E402

PARTS = (
    battery_arrays,
    battery_gradients,
    battery_images,
    battery_layers,
    battery_linalg,
    battery_math,
    battery_more,
    battery_nets,
    battery_numbers,
    battery_sparse,
    battery_strings,
)
CASES: list[Case] = [case for part in PARTS for case in part.CASES]


def traced(case: Case) -> Any:
    specs = []
    for array in map(np.asarray, case.arguments):
        shape = array.shape if case.static else [None] * array.ndim
        specs.append(tf.TensorSpec(shape, tf.string if array.dtype.kind == "U" else array.dtype))
    return tf.function(case.function).get_concrete_function(*specs)


def run(model: Model, arguments: tuple[Any, ...]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), options)
    arrays = [np.asarray(a) for a in arguments]
    arrays = [a.astype(object) if a.dtype.kind == "U" else a for a in arrays]
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})


def expected(function: Any, arguments: tuple[Any, ...]) -> list[Any]:
    results = tf.nest.flatten(computed(function, *map(tf.constant, arguments)))
    return [np.asarray(result.numpy()) for result in results]


def check(found: Any, wanted: Any) -> None:
    if wanted.dtype.kind in "OS":
        assert [text.decode() if isinstance(text, bytes) else text for text in wanted.ravel()] == list(found.ravel())
        return
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6 * size)


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in REFUSED], ids=lambda case: case.name)
def test_the_same_is_computed(case: Case) -> None:
    function = traced(case)
    wanted = expected(function, case.arguments)
    found = run(from_tensorflow(function, check=False), case.arguments)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        check(np.asarray(one), other)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_is_named(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    with pytest.raises(UnsupportedError):
        from_tensorflow(traced(case))


def test_names_are_told_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 240
