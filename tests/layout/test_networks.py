"""How many transposes networks need: one for each image that comes in or goes out, and those of their own."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from referee import check, image_ops, transposes

from onward.layout.roles import IMAGE_OPS, ONNX
from onward.model import load

pytest.importorskip("torch")
import vision

LIMITS = {
    "ResNet-50": 1,
    "MobileNetV2": 1,
    "EfficientNet-B0": 1,
    "U-Net": 1,
    "YOLO-like": 2,
    "ConvNeXt": 1,
    "ViT": 1 + 3 * 5,
    "ShuffleNet-like": 1 + 4,
}
"""U-Net's one mask is reshaped, for free; the detector transposes the boxes that it gives out; attention
has five in each of the three layers of the ViT, a channel shuffle is one."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.mark.parametrize("name", LIMITS)
def test_transposes(name: str, files: Path) -> None:
    path, size = files / f"{name}.onnx", 224 if name == "ViT" else 64
    vision.write(name, path, "torchscript", size)
    model = load(path)
    image = {"image": np.random.default_rng(0).random((2, 3, size, size), np.float32)}
    made = check(model, image, tolerance=1e-3)
    assert transposes(made) <= LIMITS[name]
    assert not [node for node in made.graph if node.op_type in IMAGE_OPS and node.domain == ""]
    assert image_ops(made)
    assert transposes(check(model, image, inputs=["image"], tolerance=1e-3)) == transposes(made) - 1


def from_tensorflow(blocks: int) -> onnx.ModelProto:
    """As TensorFlow's exporters write networks: transposes around every convolution, and NHWC between them."""
    body, last = [], "x"
    for i in range(blocks):
        body += [
            f"i{i} = Transpose<perm=[0,3,1,2]>({last})",
            f"c{i} = Conv<pads=[1,1,1,1]>(i{i}, w)",
            f"o{i} = Transpose<perm=[0,2,3,1]>(c{i})",
            f"b{i} = Add(o{i}, bias)",
            f"r{i} = Relu(b{i})",
            f"s{i} = Add(r{i}, {last})",
        ]
        last = f"s{i}"
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> g (float[n,8,8,4] x) => (float[n,8,8,4] y, float[n,4] p) '
        f"{{ {' '.join(body)} y = Tanh({last}) p = ReduceMean<keepdims=0>(y, axes) }}"
    )
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((4, 4, 3, 3)) / 6, "bias": rng.standard_normal(4)}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(a.astype(np.float32), k) for k, a in arrays.items())
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2]), "axes"))
    return made


def test_transposes_of_tensorflow_go_away() -> None:
    model = from_tensorflow(5)
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 8, 8, 4)).astype(np.float32)}
    assert transposes(check(model, feeds)) == 0, "channels last all along"
    assert transposes(check(model, feeds, roles=ONNX)) == 2, "at the input and the output"


def test_weights_keep_their_names_and_nodes_their_origin() -> None:
    from onward.graph.origin import origin

    made = check(from_tensorflow(1), {"x": np.ones((1, 8, 8, 4), np.float32)}, roles=ONNX)
    assert {"w", "bias"} <= set(made.graph.initializers)
    assert made.graph.initializers["bias"].metadata_props == {"onward.layout.of": "bias"}
    last = check(from_tensorflow(1), {"x": np.ones((1, 8, 8, 4), np.float32)})
    assert [str(origin(node)) for node in last.graph if node.op_type == "Conv"] == ["Conv 'c0'"]
