"""Products with tensors full of one number, which XLA's CPU compiler gets wrong when it sees that they are."""

import numpy as np
import onnx
import pytest

jax = pytest.importorskip("jax")

from onward.backends.backend import backend  # noqa: E402
from onward.backends.jax.convert import generate  # noqa: E402
from onward.model import load  # noqa: E402
from onward.scoreboard.suite import prepare  # noqa: E402

IMAGES = np.random.default_rng(0).uniform(1, 2, (1, 16, 20, 20)).astype(np.float32)
ROWS = np.random.default_rng(0).uniform(1, 2, (400, 128)).astype(np.float32)
FILL = "w = ConstantOfShape<value = float[1] {0.02}>(shape)"
SUM = "axes = Constant<value_ints = [0]>()  y = ReduceSum<keepdims = 0>(z, axes)"
NETS = {
    "Conv": ("float[1, 16, 20, 20] x", "64, 16, 3, 3", f"{FILL} z = Conv(x, w)  y = GlobalAveragePool(z)"),
    "Conv of single pixels": (
        "float[1, 16, 20, 20] x",
        "320, 16, 1, 1",
        f"{FILL} z = Conv(x, w)  y = GlobalAveragePool(z)",
    ),
    "ConvTranspose": (
        "float[1, 16, 20, 20] x",
        "16, 64, 3, 3",
        f"{FILL} z = ConvTranspose(x, w)  y = GlobalMaxPool(z)",
    ),
    "MatMul": ("float[400, 128] x", "128, 64", f"{FILL} z = MatMul(x, w)  {SUM}"),
    "Gemm": ("float[400, 128] x", "64, 128", f"{FILL} z = Gemm<transB = 1>(x, w)  {SUM}"),
    "reshaped": ("float[400, 128] x", "64, 128", f"{FILL} t = Transpose<perm = [1, 0]>(w)  z = MatMul(x, t)  {SUM}"),
    "scaled": ("float[400, 128] x", "128, 64", f"{FILL} t = Mul(w, w)  z = MatMul(x, t)  {SUM}"),
    "function": ("float[400, 128] x", "128, 64", f"{FILL} t = Exp(w)  z = MatMul(x, t)  {SUM}"),
    "Einsum": ("float[400, 128] x", "128, 64", f'{FILL} z = Einsum<equation = "ij,jk->ik">(x, w)  {SUM}'),
    "Einsum of batches": (
        "float[400, 128] x",
        "4, 128, 64",
        f"""{FILL} s = Constant<value_ints = [4, 100, 128]>()  b = Reshape(x, s)
        z = Einsum<equation = "...ij, ...jk -> ...ik">(b, w)  {SUM}""",
    ),
    "Einsum without a result": ("float[400, 128] x", "128, 64", f'{FILL} z = Einsum<equation = "ij,jk">(x, w)  {SUM}'),
    "expanded": (
        "float[400, 128] x, float[1] c",
        "128, 64",
        f"w = Expand(c, shape)  z = MatMul(x, w)  {SUM}",
    ),
}


def model(name: str) -> onnx.ModelProto:
    inputs, shape, body = NETS[name]
    header = '<ir_version: 10, opset_import: ["" : 21]>\n'
    text = f"{header}g ({inputs}) => (float[...] y) {{ shape = Constant<value_ints = [{shape}]>()  {body} }}"
    return onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text.replace("float[...]", "float")))


@pytest.mark.parametrize("name", NETS)
def test_the_sum_of_products_is_right_under_jit(name: str) -> None:
    net = model(name)
    x = IMAGES if "Conv" in name else ROWS
    inputs = [x, np.array([0.02], np.float32)][: len(net.graph.input)]
    (wanted,) = prepare("onnxruntime", net)(inputs)
    for mode in ("jax", "jax:jit"):
        (found,) = prepare(mode, net)(inputs)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_it_has_gradients_and_can_be_mapped() -> None:
    jax_backend = backend("jax")
    net = jax_backend.load(jax_backend.generate(load(model("MatMul"))))
    gradient = jax.jit(jax.grad(lambda x: net(x).sum()))(ROWS)
    np.testing.assert_allclose(gradient, np.full_like(ROWS, 64 * 0.02), rtol=1e-5)
    mapped = jax.jit(jax.vmap(net))(np.stack([ROWS, 2 * ROWS]))
    np.testing.assert_allclose(mapped[1], 2 * net(ROWS), rtol=1e-5)


def test_other_products_are_as_ever() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21]>\n'
    text = "g (float[4, 4] x) => (float[4, 4] y) { t = Transpose<perm = [1, 0]>(x)  y = MatMul(x, t) }"
    assert "x @ x.T" in generate(load(onnx.parser.parse_model(header + text))).model
