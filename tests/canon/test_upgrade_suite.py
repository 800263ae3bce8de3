"""The old files that the onnx package ships: upgraded, they give the results stored beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from old_files import on_runtime
from onnx import numpy_helper

from onward.canon.inline import inline
from onward.canon.upgrade import upgrade

DATA = Path(onnx.__file__).parent / "backend/test/data"
KINDS = ("pytorch-converted", "pytorch-operator", "simple")

LEFT_OUT = {
    "test_gradient": "no runtime computes the op Gradient",
    "test_strnorm": "ONNX Runtime needs a locale that the machine may not have",
}
FILES = [
    path
    for kind in KINDS
    for path in sorted((DATA / kind).glob("*/model.onnx"))
    if not path.parent.name.startswith(tuple(LEFT_OUT))
]


def stored(path: Path, value: onnx.ValueInfoProto) -> Any:
    if value.type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_upgraded_file_gives_the_stored_results(path: Path) -> None:
    old = onnx.load(path)
    model = ir.from_proto(old)
    inline(model)
    upgrade(model, 21)
    model.ir_version = 10
    new = ir.to_proto(model)
    for folder in sorted(path.parent.glob("test_data_set_*")):
        given = zip(old.graph.input, sorted(folder.glob("input_*.pb")), strict=False)
        actual = on_runtime(new, {value.name: stored(file, value) for value, file in given})
        for result, value, file in zip(actual, old.graph.output, sorted(folder.glob("output_*.pb")), strict=True):
            expected = stored(file, value)
            if np.asarray(expected).dtype.kind in "fc":
                np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-6)
            else:
                np.testing.assert_array_equal(result, expected)
