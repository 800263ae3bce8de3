"""Modules of StableHLO become ONNX models that compute what XLA computes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

pytest.importorskip("jax")

import jax
import jax.export
import jax.numpy as jnp
from jax import lax

import onward
from onward.cli import main
from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.frontends.stablehlo.convert import converted

F32, I32 = jnp.float32, jnp.int32


def spec(*shape: Any, dtype: Any = F32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def pooled(x: Any) -> Any:
    return lax.reduce_window(jnp.tanh(x), -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID")


def looped(x: Any, i: Any) -> Any:
    chosen = lax.switch(i[0], [lambda v: v * 2, jax.nn.softmax, lambda v: -v], x)
    return lax.fori_loop(0, 5, lambda k, v: v + k, chosen), lax.while_loop(lambda v: v.sum() < 9, lambda v: v + 1, x)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "arithmetic": (lambda x: (jnp.exp(x) / (1 + x * x), jnp.round(x), x % 0.7, jnp.sign(x)), [spec(3, 4)]),
    "integers": (lambda x: (x // 3, x % 3, x << 2, x ^ 5, x.astype(F32)), [spec(6, dtype=I32)]),
    "special functions": (lambda x: (lax.erf(x), lax.lgamma(x), jnp.arctan2(x, 1 + x), jnp.sinh(x)), [spec(5)]),
    "products": (lambda a, b: jnp.einsum("bij,bjk->bki", a, b), [spec(2, 3, 4), spec(2, 4, 5)]),
    "a convolution": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [spec(2, 8, 8, 3), spec(3, 3, 3, 4)],
    ),
    "a transposed one": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
        [spec(1, 4, 4, 3), spec(3, 3, 3, 2)],
    ),
    "pooling and its gradient": (lambda x: (pooled(x), jax.grad(lambda v: pooled(v).sum())(x)), [spec(2, 4, 4)]),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.prod(), jnp.argmax(x, 1), jnp.any(x > 1, 0)), [spec(3, 4)]),
    "sorts": (
        lambda x, y: (jnp.sort(x), jnp.sort(x, descending=True), lax.sort((y, x), num_keys=2), lax.top_k(x, 2)),
        [spec(3, 5), spec(3, 5, dtype=I32)],
    ),
    "places": (
        lambda x, i: (
            x[i],
            x.at[i].set(0),
            x.at[:, i].add(1),
            x.at[i].max(0.5),
            lax.dynamic_slice(x, (i[0], 1), (2, 2)),
        ),
        [spec(4, 4), spec(2, dtype=I32)],
    ),
    "control flow": (looped, [spec(4), spec(1, dtype=I32)]),
    "a scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), jnp.zeros(3), x), [spec(4, 3)]),
    "random numbers": (lambda x: x + jax.random.normal(jax.random.wrap_key_data(jnp.uint32([1, 2])), (3,)), [spec(3)]),
    "complex numbers inside": (lambda x: jnp.abs(jnp.fft.fft(x)), [spec(2, 8)]),
    "shapes": (lambda x: (jnp.pad(x, ((0, 1), (2, 0))), x[::-1, 1::2], jnp.roll(x, 1), jnp.tile(x, 2)), [spec(3, 4)]),
    "decompositions": (
        lambda x, y: (
            jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)),
            *jnp.linalg.qr(x),
            jnp.linalg.svd(x, compute_uv=False),
            jnp.linalg.eigvalsh(x + x.mT),
            *lax.linalg.lu(x),
            jnp.linalg.solve(x, y),
            lax.linalg.triangular_solve(x, y.mT, lower=True, transpose_a=True, unit_diagonal=True),
            lax.linalg.tridiagonal_solve(x[:, 0], 5 + x[:, 1], x[:, 2], y),
        ),
        [spec(2, 3, 3), spec(2, 3, 2)],
    ),
    "a decomposition of an open batch": (
        lambda x: jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)),
        [spec(*jax.export.symbolic_shape("b, 3, 3"))],
    ),
    "a scatter and a window by functions of their own": (
        lambda x, i: (x.at[i].apply(jnp.tanh), lax.cumlogsumexp(x), lax.approx_max_k(x, 2)),
        [spec(4, 4), spec(2, dtype=I32)],
    ),
    "open lengths": (
        lambda x: (x[: x.shape[0] // 2 + 1], x.cumsum(0), lax.scan(lambda c, r: (jnp.tanh(c + r), c), x[0], x)),
        [spec(*jax.export.symbolic_shape("t, 3"))],
    ),
    "an open batch": (
        lambda x: (x.mean(0), x.reshape(-1) * x.shape[0], jnp.arange(x.shape[0]), x[1:], jnp.concatenate([x, x])),
        [spec(*jax.export.symbolic_shape("b, 3"))],
    ),
}


def written(path: Path, function: Callable[..., Any], specs: list[Any]) -> Path:
    path.write_text(jax.export.export(jax.jit(function, keep_unused=True))(*specs).mlir_module())
    return path


def drawn(value: Any) -> Any:
    draw = np.random.default_rng(3)
    shape = [4 if isinstance(dim, str) else dim for dim in value.shape]
    is_float = value.type == "tensor(float)"
    return draw.standard_normal(shape).astype(np.float32) if is_float else draw.integers(0, 3, shape).astype(np.int32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "module.mlir", *PROGRAMS[name])
    model, original = converted(path, None, 21)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    given = {value.name: drawn(value) for value in session.get_inputs()}
    wanted = original()(given)
    for (key, right), found in zip(wanted.items(), session.run(None, given), strict=True):
        assert found.dtype == right.dtype and found.shape == right.shape, key
        np.testing.assert_allclose(found, right, rtol=2e-5, atol=1e-5, err_msg=key)


def test_there_and_back(tmp_path: Path) -> None:
    """Text and portable artifacts, with the names of inputs, outputs and open dimensions."""
    for name in ("digits.mlir", "digits.mlirbc"):
        onward.convert("examples/digits/digits.onnx", to="stablehlo", out=tmp_path / name, quick=True)
        graph = onward.from_stablehlo(tmp_path / name).ir.graph
        assert [value.name for value in (*graph.inputs, *graph.outputs)] == ["image", "logits"]
        assert [str(dim) for dim in graph.inputs[0].shape or ()] == ["batch", "1", "8", "8"]


def test_on_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path / "net.mlir", *PROGRAMS["products"])
    main(["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "net.onnx")])
    assert len(onward.load(tmp_path / "net.onnx").ir.graph.inputs) == 2


TWO = """module { func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.add %a, %b : tensor<?x?xf32> return %0 : tensor<?x?xf32> } }"""


def test_open_dimensions_are_named_where_they_have_no_names(tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(TWO)
    with pytest.raises(UnsupportedError, match="name them, such as dims="):
        onward.from_stablehlo(path)
    model = onward.from_stablehlo(path, dims={"arg0": ("b", "n"), "arg1": ("b", "n")})
    assert [str(dim) for dim in model.ir.graph.outputs[0].shape or ()] == ["b", "n"]
    with pytest.raises(OnwardError, match="dims has 'x', but the module takes arg0, arg1"):
        onward.from_stablehlo(path, dims={"x": ("b",)})


REFUSED = {
    "calls lapack_spotrf_ffi on matrices that are not stored by column": """
      func.func @main(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {
      %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}}
        : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
      return %0#0 : tensor<3x3xf32> }""",
    "calls lapack_sgees_ffi, a function of LAPACK that has no form": """
      func.func @main(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {
      %0 = stablehlo.custom_call @lapack_sgees_ffi(%a) : (tensor<3x3xf32>) -> tensor<3x3xf32>
      return %0 : tensor<3x3xf32> }""",
    "calls SPMDFullToShardShape: it is for several devices": """
      func.func @main(%a: tensor<4xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @SPMDFullToShardShape(%a) : (tensor<4xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }""",
    "stablehlo.constant at line 3: the numbers of a constant were left out": """
      func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
      %c = stablehlo.constant dense_resource<__elided__> : tensor<64xf32>
      %r = stablehlo.add %a, %c : tensor<64xf32> return %r : tensor<64xf32> }""",
    "has quantized types": """func.func @main(%a: tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.1>> {
      %q = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.1>>
      return %q : tensor<4x!quant.uniform<i8:f32, 0.1>> }""",
    "gives tuple<.*>, which is no tensor": """func.func @main(%a: tuple<tensor<f32>>) -> tuple<tensor<f32>> {
      return %a : tuple<tensor<f32>> }""",
    "a sort by a comparison of its own": """func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "stablehlo.sort"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        %1 = stablehlo.compare LT, %s, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1> }) {dimension = 0 : i64} : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }""",
    r"random numbers \(UNIFORM\) are the compiler's own": """
      func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<3xf32> {
      %s = stablehlo.constant dense<3> : tensor<1xi64>
      %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }""",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str, tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(f"module {{ {REFUSED[words]} }}")
    with pytest.raises(UnsupportedError, match=words):
        onward.from_stablehlo(path)


def test_what_is_refused_after_it_was_read_has_its_place(tmp_path: Path) -> None:
    def windows(x: Any) -> Any:
        return lax.reduce_window(jnp.sin(x), F32(1), lambda a, b: a * b + 1, (2, 1), (1, 1), "VALID")

    path = written(tmp_path / "module.mlir", windows, [spec(*jax.export.symbolic_shape("b, 3"))])
    with pytest.raises(UnsupportedError, match=r"reduce_window at jit\(windows\)/reduce_window: windows that move"):
        onward.from_stablehlo(path)


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text("module { func.func @main( }")
    with pytest.raises(InvalidModelError, match="no module of StableHLO"):
        onward.from_stablehlo(path)
    path.write_text("""module {
      func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32> }
      func.func private @f(%a: tensor<f32>) -> tensor<f32> { %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32> } }""")
    with pytest.raises(InvalidModelError, match="f calls itself"):
        onward.from_stablehlo(path)


CONSTANTS = {
    "bf16": ("[1.5, 0xFF80, -2.0]", [1.5, -np.inf, -2]),
    "f32": ("[1.5, 0x7FC00000, -2.0]", [1.5, np.nan, -2]),
    "i8": ("[1, -128, 127]", [1, -128, 127]),
    "ui8": ("[1, 255, 0]", [1, 255, 0]),
    "ui32": ("4000000000", [4e9] * 3),
    "i1": ("[true, false, true]", [1, 0, 1]),
}


@pytest.mark.parametrize("kind", CONSTANTS)
def test_constants(kind: str, tmp_path: Path) -> None:
    text, wanted = CONSTANTS[kind]
    path = tmp_path / "module.mlir"
    path.write_text(f"""module {{ func.func @main(%a: tensor<3xf64>) -> tensor<3xf64> {{
      %c = stablehlo.constant dense<{text}> : tensor<3x{kind}>
      %0 = stablehlo.convert %c : (tensor<3x{kind}>) -> tensor<3xf64>
      %1 = stablehlo.add %a, %0 : tensor<3xf64> return %1 : tensor<3xf64> }} }}""")
    model, original = converted(path, None, 21)
    given = {"arg0": np.zeros(3)}
    found = onnxruntime.InferenceSession(model.to_proto().SerializeToString()).run(None, given)[0]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(original()(given)["result0"], wanted)


SLICED = """module { func.func @main(%x: tensor<6xf32>, %i: tensor<i32>) -> (tensor<2xf32>, tensor<6xf32>) {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<6xf32>, tensor<i32>) -> tensor<2xf32>
  %z = stablehlo.constant dense<0.0> : tensor<2xf32>
  %1 = stablehlo.dynamic_update_slice %x, %z, %i : (tensor<6xf32>, tensor<2xf32>, tensor<i32>) -> tensor<6xf32>
  return %0, %1 : tensor<2xf32>, tensor<6xf32> } }"""


@pytest.mark.parametrize("place, first", [(-9, 0), (-1, 0), (3, 3), (9, 4)])
def test_a_slice_before_the_first_is_the_first(place: int, first: int, tmp_path: Path) -> None:
    """JAX counts negative places from the end; StableHLO does not."""
    path = tmp_path / "module.mlir"
    path.write_text(SLICED)
    model, original = converted(path, None, 21)
    x = np.arange(1, 7, dtype=np.float32)
    given = {"arg0": x, "arg1": np.asarray(place, np.int32)}
    sliced, updated = onnxruntime.InferenceSession(model.to_proto().SerializeToString()).run(None, given)
    np.testing.assert_array_equal(sliced, x[first : first + 2])
    np.testing.assert_array_equal(np.flatnonzero(updated == 0), [first, first + 1])
    np.testing.assert_array_equal(original()(given)["result1"], updated)


def test_names_that_are_no_names(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    told = ["jax.arg_info = 3 : i32", 'jax.arg_info = "x"', 'jax.arg_info = "x"']
    arguments = ", ".join(f"%{i}: tensor<f32> {{{attribute}}}" for i, attribute in enumerate(told))
    path.write_text(f"""module {{ func.func @main({arguments}) -> tensor<f32> {{
      %d = stablehlo.subtract %1, %2 : tensor<f32> %s = stablehlo.add %d, %0 : tensor<f32>
      return %s : tensor<f32> }} }}""")
    model = onward.from_stablehlo(path)
    assert [value.name for value in model.ir.graph.inputs] == ["arg0", "x", "x_2"]
