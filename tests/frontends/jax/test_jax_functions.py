"""Functions and modules of JAX become ONNX models, with the names and sizes they have."""

import json
from typing import Any, NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError, UnsupportedError, VerificationError  # noqa: E402
from onward.graph.walk import all_nodes  # noqa: E402
from onward.runners import onnxruntime  # noqa: E402

DRAW = np.random.default_rng(0)


def drawn(*shape: int) -> Any:
    return DRAW.standard_normal(shape).astype(np.float32)


def spec(*shape: int | str) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def run(model: onward.Model, *arrays: Any) -> list[Any]:
    names = [str(value.name) for value in model.ir.graph.inputs]
    return list(onnxruntime.prepare(model, "")(dict(zip(names, arrays, strict=True))).values())


def kinds(model: onward.Model) -> list[str]:
    return [node.op_type for node in model.ir.graph]


def converted(function: Any, *specs: Any, **options: Any) -> onward.Model:
    model: onward.Model = onward.from_jax(function, *specs, check=False, **options)
    return model


def trained(model: onward.Model) -> dict[str, bool]:
    found: dict[str, bool] = json.loads(model.ir.metadata_props["onward.trained"])
    return found


class State(NamedTuple):
    h: Any
    c: Any


def test_inputs_are_called_as_parameters_and_weights_by_their_paths() -> None:
    def cell(params: Any, x: Any, state: State) -> Any:
        h = jnp.tanh(x @ params["dense"]["kernel"] + params["dense"]["bias"] + state.h)
        return {"output": h * state.c, "state": State(h, state.c)}

    params = {"dense": {"kernel": drawn(3, 4), "bias": drawn(4)}, "steps": np.int32(3)}
    model = onward.from_jax(cell, spec("b", 3), State(spec("b", 4), spec("b", 4)), params=params)
    graph = model.ir.graph
    assert [value.name for value in graph.inputs] == ["x", "state_h", "state_c"]
    assert [value.name for value in graph.outputs] == ["output", "state_h_2", "state_c_2"]
    assert {"dense.kernel", "dense.bias"} <= set(graph.initializers)
    assert trained(model) == {"dense.kernel": True, "dense.bias": True}
    x, h, c = drawn(5, 3), drawn(5, 4), drawn(5, 4)
    wanted = cell(params, x, State(h, c))
    for found, value in zip(run(model, x, h, c), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_names_can_be_given() -> None:
    model = converted(lambda x, y: (x + y, x), spec(2), spec(2), input_names=["a", "b"], output_names=["sum", "same"])
    assert [value.name for value in model.ir.graph.inputs] == ["a", "b"]
    assert [value.name for value in model.ir.graph.outputs] == ["sum", "same"]
    with pytest.raises(OnwardError, match="1 input_names are given for 2 inputs: x, y"):
        converted(lambda x, y: x + y, spec(2), spec(2), input_names=["a"])


def test_arrays_that_a_function_closes_over_keep_their_names() -> None:
    weights = {"kernel": jnp.asarray(drawn(3, 4)), "bias": jnp.asarray(drawn(4))}
    model = converted(lambda x: x @ weights["kernel"] + weights["bias"], spec("b", 3))
    assert {"weights.kernel", "weights.bias"} <= set(model.ir.graph.initializers)
    assert kinds(model) == ["MatMul", "Add"]


@pytest.mark.parametrize(
    ("name", "function", "wanted"),
    [
        ("relu6", jax.nn.relu6, ["Clip"]),
        ("softmax", lambda x: jax.nn.softmax(x, axis=1), ["Softmax"]),
        ("log_softmax", jax.nn.log_softmax, ["LogSoftmax"]),
        ("gelu", jax.nn.gelu, ["Gelu"]),
        ("exact gelu", lambda x: jax.nn.gelu(x, approximate=False), ["Gelu"]),
        ("softplus", jax.nn.softplus, ["Softplus"]),
        ("elu", lambda x: jax.nn.elu(x, 0.5), ["Elu"]),
        ("mean", lambda x: x.mean((0, 2), keepdims=True), ["ReduceMean"]),
        ("a constant", lambda x: x * jnp.arange(4.0)[::-1].sum(), ["Mul"]),
        ("broadcast", lambda x: x + jnp.broadcast_to(x[:1], x.shape), ["Slice", "Add"]),
        ("attention", lambda x: jnp.einsum("bst,bth->bsh", jax.nn.softmax(x), x), ["Softmax", "MatMul"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_onnx_has_a_name_for_is_one_node(name: str, function: Any, wanted: list[str]) -> None:
    x = drawn(2, 4, 4) * 3
    model = converted(function, x)
    assert kinds(model) == wanted
    np.testing.assert_allclose(run(model, x)[0], jax.jit(function)(x), rtol=1e-5, atol=1e-5)


def test_a_function_of_the_users_with_a_known_name_is_what_it_is() -> None:
    @jax.jit  # type: ignore[untyped-decorator]
    def softplus(x: Any) -> Any:
        return x * 2

    assert kinds(converted(softplus, spec(3))) == ["Mul"]
    derivative = jax.grad(lambda x: jax.nn.softplus(x).sum())
    x = drawn(5)
    np.testing.assert_allclose(run(converted(derivative, x), x)[0], derivative(x), rtol=1e-5)


@pytest.mark.parametrize("rows", [4, 6, 10])
def test_sizes_that_are_open_are_computed(rows: int) -> None:
    def function(x: Any) -> Any:
        half = x.shape[0] // 2
        pairs = x.reshape(half, 2, 3).sum(1)
        return pairs / x.shape[0], jnp.arange(x.shape[0] * 2), jnp.concatenate([x[:half], x], 0)

    x = drawn(rows, 3)
    model = converted(function, spec("2*b", 3))
    for found, value in zip(run(model, x), function(x), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)


def test_sizes_may_be_expressions_of_jax() -> None:
    b, c = jax.export.symbolic_shape("b, c", constraints=["b >= 2"])
    model = converted(lambda x, y: (x[1:] @ y).sum(0), spec(b, 3), spec(3, c))
    assert [str(dim) for dim in model.ir.graph.inputs[0].shape or ()] == ["b", "3"]
    x, y = drawn(4, 3), drawn(3, 2)
    np.testing.assert_allclose(run(model, x, y)[0], (x[1:] @ y).sum(0), rtol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loops_run_as_often_as_they_say(steps: int) -> None:
    def function(x: Any, n: Any) -> Any:
        doubled = lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 2, s[1] + 1), (x, 0))[0]
        return doubled, lax.scan(lambda c, row: (c + row, c), jnp.zeros(3), x, reverse=True)

    x = drawn(4, 3)
    model = converted(function, spec("b", 3), jax.ShapeDtypeStruct((), jnp.int32))
    wanted = jax.tree.leaves(function(x, steps))
    for found, value in zip(run(model, x, np.asarray(steps, np.int32)), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_branches_are_chosen_when_the_model_runs() -> None:
    def function(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: jnp.zeros_like(x)], x)

    model = converted(function, jax.ShapeDtypeStruct((), jnp.int32), spec(3))
    x = drawn(3)
    for i in (-1, 0, 1, 2, 7):
        np.testing.assert_allclose(run(model, np.asarray(i, np.int32), x)[0], function(i, x), rtol=1e-6)


def test_linen_keeps_names_and_which_weights_are_trained() -> None:
    nn = pytest.importorskip("flax.linen")

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, image: Any) -> Any:
            x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(4, (3, 3))(image)))
            return nn.Dense(3)(nn.LayerNorm()(nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)))

    image = drawn(2, 4, 4, 2)
    variables = jax.jit(Net().init)(jax.random.key(0), image)
    model = converted((Net(), variables), spec("b", 4, 4, 2))
    assert [value.name for value in model.ir.graph.inputs] == ["image"]
    scopes = {str(node.name).split("/")[1] for node in model.ir.graph if str(node.name).startswith("Net/")}
    assert {"BatchNorm_0", "Conv_0", "Dense_0", "LayerNorm_0"} <= scopes
    marks = trained(model)
    assert marks["Conv_0.kernel"] and not marks["BatchNorm_0.mean"]
    assert {"BatchNormalization", "LayerNormalization", "Conv"} <= set(kinds(model))
    assert kinds(model).count("Transpose") == 2
    bound = converted(Net().bind(variables), spec("b", 4, 4, 2))
    np.testing.assert_allclose(run(bound, image)[0], Net().apply(variables, image), rtol=1e-4, atol=1e-5)


def test_nnx_modules_are_converted_as_they_are() -> None:
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):  # type: ignore[misc, name-defined]
        def __init__(self, rngs: Any) -> None:
            self.dense = nnx.Linear(3, 4, rngs=rngs)
            self.norm = nnx.BatchNorm(4, use_running_average=True, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, deterministic=True, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.dropout(self.norm(self.dense(x)))

    net = Net(nnx.Rngs(0))
    model = onward.from_jax(net, spec("b", 3))
    assert trained(model) == {
        "dense.kernel": True,
        "dense.bias": True,
        "norm.scale": True,
        "norm.bias": True,
        "norm.mean": False,
        "norm.var": False,
    }


def test_equinox_modules_have_their_weights_with_them() -> None:
    eqx = pytest.importorskip("equinox")
    net = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    x = drawn(3)
    model = converted(net, spec(3))
    assert set(trained(model)) == {f"layers.{i}.{name}" for i in (0, 1) for name in ("weight", "bias")}
    np.testing.assert_allclose(run(model, x)[0], net(x), rtol=1e-5, atol=1e-6)
    assert "layers.0.weight" in converted(jax.vmap(net), spec("b", 3)).ir.graph.initializers


def test_haiku_takes_its_weights_as_params() -> None:
    hk = pytest.importorskip("haiku")
    net = hk.transform(lambda x: hk.nets.MLP([4, 2])(x))
    x = drawn(5, 3)
    params = jax.jit(net.init)(jax.random.key(0), x)
    model = converted(net, spec("b", 3), params=params)
    assert trained(model)["mlp/~/linear_0.w"]
    np.testing.assert_allclose(run(model, x)[0], net.apply(params, None, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(OnwardError, match="give params"):
        onward.from_jax(net, spec("b", 3))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: jax.pure_callback(np.sin, spec(3), x), ["pure_callback", "test_jax_functions.py", "Python"]),
        (lambda x: x.astype(jnp.complex64) * 1j, ["output", "complex"]),
        (lambda x: jax.random.normal(jax.random.key(0, impl="rbg"), (3,)) + x, ["rbg"]),
    ],
    ids=["callback", "complex output", "rbg"],
)
def test_refusals_say_what_and_where(function: Any, words: list[str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        converted(function, spec(3))
    assert [word for word in words if word not in str(caught.value)] == []


def test_what_is_no_function_or_no_input_is_refused() -> None:
    with pytest.raises(OnwardError, match="no function"):
        converted(3, spec(3))
    with pytest.raises(OnwardError, match="is no input"):
        converted(lambda x, mode: x, spec(3), "train")
    with pytest.raises(OnwardError, match="cannot trace it with these specs: TypeError"):
        converted(lambda x, y: x @ y, spec(3))
    with pytest.raises(UnsupportedError, match="complex numbers"):
        converted(lambda z: z.real, jax.ShapeDtypeStruct((3,), jnp.complex64))


def test_the_result_is_run_beside_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.frontends.jax import convert

    real = convert.runner
    monkeypatch.setattr(convert, "runner", lambda call, *rest: real(lambda *given: call(*given) + 1, *rest))
    with pytest.raises(VerificationError, match="differs from JAX"):
        onward.from_jax(jnp.sin, spec("b", 3))


def test_no_function_of_jax_is_replaced() -> None:
    before = {name: getattr(jnp, name) for name in dir(jnp)}
    converted(lambda x: jax.nn.softmax(jnp.where(x > 0, x, 0)), spec(3))
    assert all(getattr(jnp, name) is value for name, value in before.items())


def test_what_is_left_of_the_error_function_is_written_where_it_stands() -> None:
    """It is put off until a Gelu could have taken it: in bodies, as an output, and twice of one number."""

    def program(x: Any) -> Any:
        last, rest = lax.scan(lambda carry, row: (lax.erfc(carry + row), lax.erfc(row)), x[0], x)
        return lax.erfc(x), last, rest, lax.erfc(x) * 0.5 * x

    model = converted(program, spec(4, 3))
    assert all(node.domain == "" for node in all_nodes(model.ir.graph))
    given = drawn(4, 3)
    for found, wanted in zip(run(model, given), program(given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)


def test_names_of_sizes_are_the_same_in_each_conversion_so_that_jax_traces_inner_functions_once():
    traced = []

    @jax.jit
    def inner(x):
        traced.append(x.shape)
        return x + 1

    for size in ("b", "b", "c"):
        assert converted(lambda x: inner(x), spec(size, 3)).ir.graph.inputs[0].shape[0] == size
    assert [str(shape[0]) for shape in traced] == ["b", "c"]
