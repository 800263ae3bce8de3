"""Images are pictures: a program in PostScript, which Pillow takes for one and has executed, is refused."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import onward
from onward import runners
from onward.errors import InvalidDataError
from onward.verification.data.images import decode

pytest.importorskip("PIL")

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n(ran) (w) file closefile\n"
DOT = b"P6 1 1 255\n\x01\x02\x03"


def test_an_image_in_a_model() -> None:
    graph = helper.make_graph(
        [helper.make_node("ImageDecoder", ["x"], ["y"], pixel_format="RGB")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [None, None, None])],
    )
    model = onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    run = runners.prepare("reference", model)
    with pytest.raises(InvalidDataError, match="it cannot be read as an image: give one as JPEG"):
        run({"x": np.frombuffer(POSTSCRIPT, np.uint8)})


def test_an_image_as_data(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(POSTSCRIPT)
    with pytest.raises(InvalidDataError, match=r"bad\.png: it cannot be read as an image: give one as JPEG"):
        decode(tmp_path / "bad.png")
    (tmp_path / "dot.png").write_bytes(DOT)
    assert decode(tmp_path / "dot.png").tolist() == [[[1, 2, 3]]]
