"""What is trained is the tree of parameters, for JAX and its optimizers as it is; anything else is a constant."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import optax
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.flax import load_file
from safetensors.torch import save_file
from torch import nn

import onward
from onward.backends.jax.convert import generate
from onward.backends.jax.load import run

EXAMPLE = Path(__file__).parents[3] / "examples" / "digits"
DIGITS = EXAMPLE / "digits.onnx"


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    return onward.to_jax(DIGITS, check=False)


@pytest.fixture(scope="module")
def sample() -> tuple[Any, Any]:
    data = np.load(EXAMPLE / "sample.npz")
    return jnp.asarray(data["image"]), jnp.asarray(data["label"])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jax") / "net"
    onward.convert(DIGITS, to="jax", out=folder, verify=False)
    return folder


def linear(dtype: type = np.float32) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.random(s).astype(dtype), n) for n, s in (("fc.weight", (3, 4)), ("fc.bias", 3))
    ]
    node = helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["y"], transB=1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    sides = [helper.make_tensor_value_info(name, kind, ["n", size]) for name, size in (("x", 4), ("y", 3))]
    graph = helper.make_graph([node], "net", sides[:1], sides[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def test_parameters_are_what_is_trained(digits: tuple[Any, Any]) -> None:
    _, params = digits
    block = params["layer1"][0]
    assert block.keys() == {"conv1", "bn1", "conv2", "bn2"} and block["bn1"].keys() == {"weight", "bias"}
    assert isinstance(params["layer1"], list)


def test_the_function_is_like_any_other(digits: tuple[Any, Any], sample: tuple[Any, Any]) -> None:
    (apply, params), (image, _) = digits, sample
    expected = jax.jit(apply)(params, image)
    each = jax.jit(jax.vmap(lambda x: apply(params, x[None])[0]))(image)
    np.testing.assert_allclose(each, expected, atol=1e-4)
    eager = apply(params, image[:1])
    np.testing.assert_allclose(eager, expected[:1], atol=1e-4)


def test_optax_trains_the_parameters(digits: tuple[Any, Any], sample: tuple[Any, Any]) -> None:
    (apply, params), (image, label) = digits, sample
    params = jax.tree.map(lambda x: x * 0.9, params)
    optimizer = optax.adam(1e-3)

    def loss(params: Any) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(apply(params, image), label).mean()

    def step(params: Any, state: Any) -> tuple[Any, Any, jax.Array]:
        found, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, found

    state, losses, jitted = optimizer.init(params), [], jax.jit(step)
    for _ in range(5):
        params, state, found = jitted(params, state)
        losses.append(float(found))
    assert losses[-1] < losses[0]


def test_weights_that_are_frozen_are_constants() -> None:
    source = generate(onward.load(DIGITS), "head.*")
    net = run(source)
    assert jax.tree.map(jnp.shape, net.params) == {"head": {"weight": (10, 32), "bias": (10,)}}
    assert net.constants["layer1"][0]["conv1"].keys() == {"weight"}
    everything = run(generate(onward.load(DIGITS)))
    image = jnp.ones((1, 1, 8, 8))
    np.testing.assert_allclose(net.jitted()(image), everything.jitted()(image), atol=1e-5)


def test_nothing_is_trained() -> None:
    net = run(generate(onward.load(linear()), False))
    assert net.params == {} and net.constants["fc"].keys() == {"weight", "bias"}
    assert net(jnp.ones((2, 4))).shape == (2, 3)


def test_arrays_of_numpy_are_scattered_into() -> None:
    infos = [helper.make_tensor_value_info(name, kind, [3]) for name, kind in (("x", 1), ("i", 7), ("u", 1), ("y", 1))]
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add")
    graph = helper.make_graph([node], "g", infos[:3], infos[3:])
    apply, params = onward.to_jax(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), check=False)
    made = apply(params, np.ones(3, np.float32), np.array([0, 0, -1]), np.ones(3, np.float32))
    assert made.tolist() == [3, 1, 2]


def test_a_model_without_constants_takes_none() -> None:
    source = generate(onward.load(linear()))
    assert "constants" not in source.model and not source.constants
    assert "def apply(params: Params, x: Array) -> Array:" in source.model


def test_lists_of_which_a_part_is_trained(sample: tuple[Any, Any]) -> None:
    """The trees of parameters and constants lack different members of a list; together they are a list again."""
    net = run(generate(onward.load(DIGITS), ["layer1.1.*", "layer2.0.conv1.weight"]))
    assert net.params["layer1"].keys() == {"1"} and isinstance(net.params["layer2"], list)
    everything = run(generate(onward.load(DIGITS)))
    image = sample[0][:2]
    np.testing.assert_allclose(net.jitted()(image), everything.jitted()(image), atol=1e-5)


def test_a_package_needs_no_onward(package: Path, digits: tuple[Any, Any]) -> None:
    assert sorted(file.name for file in package.iterdir()) == [
        "constants.safetensors", "model.py", "onward.json", "ops.py", "weights.safetensors",
    ]  # fmt: skip
    apply, params = digits
    script = (
        "import sys, jax, jax.numpy as jnp, numpy as np\n"
        "from net.model import apply, load, load_constants\n"
        "y = jax.jit(apply)(load(), jnp.ones((2, 1, 8, 8)), load_constants())\n"
        "np.save('y.npy', y); assert not any(name.partition('.')[0] == 'onward' for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=package.parent, check=True, env={"PATH": ""})
    found = np.load(package.parent / "y.npy")
    np.testing.assert_allclose(found, jax.jit(apply)(params, jnp.ones((2, 1, 8, 8))), atol=1e-5)


def test_a_package_is_a_source_of_verify(package: Path) -> None:
    report = onward.verify(DIGITS, package, quick=True)
    assert report.ok and report.sides[0].name.endswith("(generated JAX package)")


def test_inspect_lists_all_weights(package: Path) -> None:
    names = {weight["name"] for weight in onward.inspect(package, weights=True)["weights"]}
    assert {"head.weight", "stem.1.running_mean"} <= names and len(names) == 52


def test_the_state_dict_of_the_original_loads(tmp_path: Path) -> None:
    """Lists, dictionaries and running statistics have the names of the module in PyTorch."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4)
    net = nn.Sequential(nn.Linear(4, 4), norm, nn.Sequential(nn.Linear(4, 4), nn.ReLU())).eval()
    source = generate(onward.load(onward.from_torch(net, (torch.ones(2, 4),), check=False)))
    converted = run(source)
    for value in net.state_dict().values():
        if value.is_floating_point():
            nn.init.uniform_(value, 0.5, 1.5)
    save_file(net.state_dict(), tmp_path / "state.safetensors")
    state = load_file(tmp_path / "state.safetensors")
    nested = sys.modules[converted.apply.__module__].ops.nested
    params = nested({name: x for name, x in state.items() if name not in source.constants})
    constants = nested({name: x for name, x in state.items() if name in source.constants})
    assert jax.tree.structure(params[2]) == jax.tree.structure(converted.params[2])
    x = torch.rand(3, 4)
    found = converted.apply(params, jnp.asarray(x.numpy()), constants=constants)
    np.testing.assert_allclose(found, net(x).detach().numpy(), atol=1e-5)


def test_a_weight_in_several_places_is_one_leaf() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.head(self.embed(ids))
            return found

    net = run(generate(onward.load(onward.from_torch(Tied().eval(), (torch.tensor([[1, 2]]),), check=False))))
    assert [leaf.shape for leaf in jax.tree.leaves(net.params)] == [(7, 4)]
    gradient = jax.grad(lambda params: net.apply(params, jnp.array([[1, 2]])).sum())(net.params)
    assert float(jnp.abs(jax.tree.leaves(gradient)[0]).sum()) > 0


@pytest.mark.parametrize("dtype, warns", [(np.float64, True), (np.float32, False)])
def test_load_says_where_64_bits_are_needed(dtype: type, warns: bool, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        apply, params = onward.to_jax(linear(dtype), check=False)
    assert any("jax_enable_x64" in str(each.message) for each in found) == warns
    assert params["fc"]["weight"].dtype == jnp.float32  # as JAX is configured
    assert apply(params, jnp.ones((2, 4))).dtype == jnp.float32
    assert ("ops.warn_of_32_bits()" in generate(onward.load(linear(dtype))).model) == warns


@pytest.mark.parametrize("op, warns", [("Add", False), ("Mul", True)])
def test_integers_that_may_outgrow_32_bits(op: str, warns: bool) -> None:
    """Indices and counts do not; sizes are none of JAX's numbers."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Mul", ["s", "s"], ["t"])]
    nodes += [helper.make_node("Reshape", ["x", "t"], ["r"]), helper.make_node(op, ["r", "r"], ["y"])]
    sides = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "net", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    assert ("ops.warn_of_32_bits()" in generate(onward.load(model)).model) == warns


WIDE = {
    "a far number": ("t = Constant<value = int64[1] {5000000000}>()  y = Add(x, t)", True),
    "a far number in a branch": (
        """c = Equal(x, x)  s = Squeeze(c)  y = If(s) <then_branch = a () => (int64[1] r) {
            t = Constant<value = int64[1] {5000000000}>()  r = Add(x, t) }, else_branch = b () => (int64[1] r) {
            r = Neg(x) }>""",
        True,
    ),
    "the end of a slice": (
        """a = Constant<value = int64[1] {0}>()  b = Constant<value = int64 {9223372036854775807}>()
        e = Unsqueeze(b, a)  y = Slice(x, a, e)""",
        False,
    ),
    "rounded floats": (
        """f = Cast<to = 1>(x)  g = Exp(f)  i = Cast<to = 7>(g)
        t = Constant<value = int64[1] {1000003}>()  y = Mul(i, t)""",
        True,
    ),
    "rounded sizes": (
        """s = Shape(x)  f = Cast<to = 1>(s)  i = Cast<to = 7>(f)  t = Mul(i, i)  y = Reshape(x, t)""",
        False,
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_what_else_needs_64_bits(name: str) -> None:
    body, warns = WIDE[name]
    text = f'<ir_version: 10, opset_import: ["" : 21]>\nnet (int64[1] x) => (int64[1] y) {{ {body} }}'
    source = generate(onward.load(onnx.parser.parse_model(text))).model
    assert ("ops.warn_of_32_bits()" in source) == warns


def test_dtypes_that_safetensors_does_not_read(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [2, 2], [1.0, 2.0, 3.0, 4.0])
    node = helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT)
    nodes = [node, helper.make_node("MatMul", ["x", "c"], ["y"])]
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "net", sides[:1], sides[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onward.convert(model, to="jax", out=tmp_path / "net", verify=False)
    assert onward.verify(model, tmp_path / "net", quick=True).ok
