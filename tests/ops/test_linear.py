"""Matrix products against ONNX Runtime, and where they become linear layers."""

import numpy as np
import pytest
import torch
from harness import check, floats, node_model, source, text_model, to_torch

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def ints(*shape: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2))],
)
def test_matmul(dtype, a, b):
    make = floats if np.dtype(dtype).kind == "f" else ints
    x, y = make(*a, dtype=dtype), make(*b, dtype=dtype)
    for fixed in [(), (0,), (1,)]:
        model, feed = node_model("MatMul", [x, y], fixed=fixed)
        check(model, feed, expected=[np.asarray(x @ y)])


@pytest.mark.parametrize("addend", [None, (), (1,), (4,), (1, 4), (5, 1), (5, 4)])
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 2.0), (1.0, 0.5), (0.5, 0.0)])
def test_gemm(addend, transposed, alpha, beta):
    a, b = floats(5, 3), floats(3, 4)
    inputs = [a.T if transposed[0] else a, b.T if transposed[1] else b, None if addend is None else floats(*addend)]
    attributes = {"transA": transposed[0], "transB": transposed[1], "alpha": alpha, "beta": beta}
    for fixed in [(), (1,), (1, 2) if addend is not None else (1,)]:
        model, feed = node_model(
            "Gemm", [None if x is None else np.ascontiguousarray(x) for x in inputs], fixed=fixed, **attributes
        )
        check(model, feed)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (2.0, 3.0)])
def test_integer_gemm(dtype, alpha, beta):
    a, b, c = ints(5, 3, dtype=dtype), ints(3, 4, dtype=dtype), ints(4, dtype=dtype)
    model, feed = node_model("Gemm", [a, b, c], alpha=alpha, beta=beta)
    check(model, feed, expected=[(int(alpha) * (a @ b) + int(beta) * c).astype(dtype)])


def test_gemm_with_constants_is_a_layer():
    model, _ = node_model("Gemm", [floats(5, 3), floats(4, 3), floats(4)], fixed=(1, 2), transB=1)
    assert "nn.Linear(3, 4)" in source(model)
    model, _ = node_model("Gemm", [floats(5, 3), floats(3, 4)], fixed=(1,))
    assert "nn.Linear(3, 4, bias=False)" in source(model)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk", [(2, 3, 4), (2, 4, 5)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("ij->", [(2, 3)]),
        ("ii", [(3, 3)]),
        (" i j , j -> i ", [(2, 3), (3,)]),
        ("aB,Bc->ca", [(2, 3), (3, 4)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
    ],
)
def test_einsum(equation, shapes):
    for dtype in (np.float32, np.int64):
        make = floats if dtype == np.float32 else ints
        given = [make(*s, dtype=dtype) for s in shapes]
        model, feed = node_model("Einsum", given, equation=equation)
        check(model, feed, expected=[np.asarray(np.einsum(equation.replace(" ", ""), *given))])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_determinant(dtype):
    x = floats(2, 3, 4, 4, dtype=dtype)
    model, feed = node_model("Det", [x], opset=22)
    check(
        model,
        feed,
        expected=[np.linalg.det(x.astype(np.float64)).astype(dtype)],
        rtol=1e-2 if dtype == np.float16 else 1e-4,
    )


LAYERS = [
    ("h = MatMul(x, w) y = Add(h, b)", {"w": (3, 4), "b": (4,)}, "nn.Linear(3, 4)"),
    ("h = MatMul(x, w) y = Add(b, h)", {"w": (3, 4), "b": (4,)}, "nn.Linear(3, 4)"),
    ("t = Transpose<perm=[1,0]>(w) h = MatMul(x, t) y = Add(h, b)", {"w": (4, 3), "b": (4,)}, "nn.Linear(3, 4)"),
    ("y = MatMul(x, w)", {"w": (3, 4)}, "nn.Linear(3, 4, bias=False)"),
    ("h = MatMul(x, w) y = Add(h, b)", {"w": (3, 4), "b": (2, 1, 4)}, "nn.Linear(3, 4, bias=False)"),
    ("h = MatMul(x, w) y = Add(h, b)", {"w": (3, 1), "b": (4,)}, "nn.Linear(3, 1, bias=False)"),
    ("h = MatMul(x, w) a = Add(h, b) y = Mul(a, h)", {"w": (3, 4), "b": (4,)}, "nn.Linear(3, 4, bias=False)"),
    ("h = MatMul(x, w) y = Add(h, h)", {"w": (3, 4)}, "nn.Linear(3, 4, bias=False)"),
]


@pytest.mark.parametrize(("body", "shapes", "layer"), LAYERS)
def test_layers_are_recognised(body, shapes, layer):
    weights = {name: floats(*shape) for name, shape in shapes.items()}
    model = text_model(f"{HEADER} g (float[a,b,3] x) => (float[c,d,e] y) {{ {body} }}", **weights)
    check(model, [floats(2, 5, 3)])
    assert layer in source(model)


def test_a_weight_that_is_also_read_as_it_is_stays_shared():
    body = "g (float[a,3] x, int64[n] i) => (float[a,4] y, float[n,4] z) { y = MatMul(x, w) z = Gather<axis=0>(w, i) }"
    model = text_model(HEADER + body, w=floats(3, 4))
    check(model, [floats(2, 3), np.array([2, 0])])
    assert sum(p.numel() for p in to_torch(model).parameters()) == 12


def test_tied_embedding_is_one_parameter():
    body = """g (int64[a] i) => (float[a,10] y) {
        e = Gather<axis=0>(w, i) t = Transpose<perm=[1,0]>(w) y = MatMul(e, t) }"""
    model = text_model(HEADER + body, w=floats(10, 3))
    check(model, [np.array([2, 0, 9])])
    net = to_torch(model)
    assert sum(p.numel() for p in net.parameters()) == 30
    net(torch.tensor([1, 2])).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
