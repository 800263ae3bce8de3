import numpy as np
import onnx
import pytest

from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.runners import prepare
from onward.verification.compare import compare, measure
from onward.verification.noise.in_double import in_double
from onward.verification.noise.jitter import jittered
from onward.verification.noise.spread import (
    DOUBLE,
    JITTER,
    JITTERS,
    MOST_JITTERS,
    OPTIMISATIONS,
    Noise,
    measure_noise,
    quantized_outputs,
)

RNG = np.random.default_rng(0)


def parse(body: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {body}')


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    return dict(prepare("onnxruntime", load(model))(inputs))


def sets(model: Model, *inputs: dict[str, np.ndarray], on: str = "onnxruntime") -> list:
    source = prepare(on, model)
    return [(feeds, source(feeds)) for feeds in inputs]


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def mlp() -> onnx.ModelProto:
    model = parse("g (float[N,64] x) => (float[N,64] y) { h = MatMul(x, w) t = Tanh(h) y = MatMul(t, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(normal(64, 64), "w"))
    return model


QUANTIZED = """g (float[N,64] x) => (float[N,64] y) {
    s = Constant<value_float=0.125>() z = Constant<value = uint8 {128}>()
    c = Add(x, x) q = QuantizeLinear(c, s, z) y = DequantizeLinear(q, s, z)
}"""


def test_results_may_be_moved_by_the_unit_of_a_coarser_dtype() -> None:
    """As by rounding to float16."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> net (float[n, 64] x) => (float[n, 64] y) { y = Exp(x) }'
    )
    x = np.zeros((64, 64), np.float32)
    moved = run(jittered(model, unit=1e-3), x=x)["y"] - 1
    assert 5e-4 < np.abs(moved).max() <= 1.01e-3


def test_a_smooth_model_has_noise_in_the_last_places_only() -> None:
    model = parse("g (float[4,4] x) => (float[4,4] y) { h = MatMul(x, x) s = Sigmoid(h) y = MatMul(s, s) }")
    x = normal(4, 4)
    error = measure(run(model, x=x), run(jittered(model), x=x))["y"]
    assert 0 < error.worst < 2e-6


@pytest.mark.parametrize("dtype", ["float16", "float", "double"])
def test_jitter_is_of_the_size_of_the_last_place(dtype: str) -> None:
    model = parse(f"g ({dtype}[N,64] x) => ({dtype}[N,64] y) {{ y = Add(x, x) }}")
    x = RNG.uniform(1, 2, (100, 64)).astype({"float": "float32", "double": "float64"}.get(dtype, dtype))
    moved = run(jittered(model), x=x)["y"].astype(np.float64) / (2 * x.astype(np.float64)) - 1
    eps = np.finfo(x.dtype).eps
    assert 0.5 * eps <= np.abs(moved).max() <= 2 * eps
    assert abs(np.mean(moved)) < 0.1 * eps, "it goes up as often as down"
    assert len(np.unique(moved)) > 1, "each element goes its own way"


def test_jitter_is_drawn_anew_in_each_run() -> None:
    copy = prepare("onnxruntime", load(jittered(mlp())))
    x = normal(3, 64)
    assert not np.array_equal(copy({"x": x})["y"], copy({"x": x})["y"])


def test_a_model_that_rounds_has_noise_of_a_whole_step() -> None:
    model = parse("g (float[1,64] x) => (float[1,64] y) { two = Add(x, x) y = Round(two) }")
    x = np.full((1, 64), 0.25, np.float32) + np.arange(64, dtype=np.float32)
    assert measure(run(model, x=x), run(jittered(model), x=x))["y"].worst > 1e-3


def test_sizes_are_not_touched() -> None:
    model = parse(
        """g (float[N,3] x) => (float[a,b] y) {
            s = Shape(x) f = Cast<to=1>(s) half = Constant<value_float=0.5>() h = Mul(f, half)
            t = Cast<to=7>(h) zero = ConstantOfShape(t) y = Add(zero, zero)
        }"""
    )
    assert run(jittered(model), x=np.ones((4, 3), np.float32))["y"].shape == (2, 1)


@pytest.mark.parametrize("opset", [13, 21, 22, 26])
def test_results_are_moved_by_as_much_at_every_opset(opset: int) -> None:
    """From opset 22 on ONNX Runtime has no kernels that draw random numbers."""
    model = parse("g (float[N,500] x) => (float[N,500] y) { y = Sigmoid(x) }", opset=opset)
    session = prepare("onnxruntime:unoptimized", load(jittered(model)))
    x = normal(20, 500)
    eps, plain = np.finfo(np.float32).eps, run(model, x=x)["y"].astype(np.float64)
    one, other = (session({"x": x})["y"] / plain - 1 for _ in range(2))
    assert 0.6 * eps < np.sqrt(np.mean(one**2)) < 0.8 * eps and np.abs(one).max() < 1.5 * eps
    assert abs(np.mean(one)) < 0.1 * eps and not np.array_equal(one, other)


def test_products_that_cancel_are_rounded_as_well() -> None:
    """A sum that is nearly zero is off by a unit in the last place of its terms, and the model may make much of it."""
    x = normal(4, 64)
    x[:, 63] = -x[:, :63].astype(np.float64).sum(1)
    model = parse("g (float[N,64] x) => (float[N,1] y) { f = Pad(x, p) h = MatMul(f, w) y = Identity(h) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 1), np.float32), "w"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(4, np.int64), "p"))
    exact = x.astype(np.float64).sum(1)
    one_by_one = np.zeros(4, np.float32)
    for column in x.T:
        one_by_one += column
    off = np.abs(one_by_one - exact).max()
    moved = [run(jittered(model, seed), x=x)["y"] - run(model, x=x)["y"] for seed in range(4)]
    assert off / 10 < np.abs(moved).max() < 10 * off


def test_what_only_takes_inputs_apart_sees_them_as_they_are() -> None:
    model = parse("g (float[N,3] x) => (float[N,3] y, float[N,3] z) { h = Floor(x) y = Relu(h) z = Identity(x) }")
    x = np.array([[1, 2, 3]], np.float32)
    found = run(jittered(model), x=x)
    assert np.array_equal(found["y"], x) and np.array_equal(found["z"], x)


@pytest.mark.parametrize("shape", ["N,3", "N,1,1,3"])
def test_infinities_survive_the_jitter(shape: str) -> None:
    model = parse(f"g (float[{shape}] x) => (float[{shape}] y) {{ h = Log(x) y = Add(h, h) }}")
    x = np.array([[0, 1, np.inf]], np.float32).reshape([1 if size == "N" else int(size) for size in shape.split(",")])
    assert np.array_equal(np.isinf(run(jittered(model), x=x)["y"]).ravel(), [True, False, True])


@pytest.mark.parametrize("opset", [11, 17, 22])
def test_pixels_that_are_alike_are_rounded_alike(opset: int) -> None:
    """Elsewhere each goes its own way; in both cases they are moved by as much, and anew in each run."""
    model = parse("g (float[N,8,50,50] x) => (float[N,8,50,50] y) { y = Sigmoid(x) }", opset=opset)
    session = prepare("onnxruntime:unoptimized", load(jittered(model)))
    plain, noisy = np.full((1, 8, 50, 50), 0.3, np.float32), normal(1, 8, 50, 50)
    eps = np.finfo(np.float32).eps

    def moved(x: np.ndarray) -> np.ndarray:
        return (session({"x": x})["y"] / run(model, x=x)["y"].astype(np.float64) - 1) / eps

    one, other = moved(plain), moved(plain)
    assert len(np.unique(one)) > 2 and all(len(np.unique(channel)) == 1 for channel in one[0])
    assert not np.array_equal(one, other)
    apart = moved(noisy)
    assert 0.5 < np.sqrt(np.mean(apart**2)) < 0.8 and abs(np.mean(apart)) < 0.05
    assert abs(np.mean(apart[..., 1:] * apart[..., :-1])) < 0.05, "neighbours have nothing in common"


def test_noise_says_how_it_was_measured_and_is_pooled_over_the_sets() -> None:
    model = load(mlp())
    one = measure_noise(model, sets(model, {"x": normal(2, 64)}))
    assert one.how == f"{OPTIMISATIONS}; {DOUBLE}"
    assert 0 < one["y"].worst < 1e-5 and one["y"].how == DOUBLE
    both = measure_noise(model, sets(model, {"x": normal(2, 64)}, {"x": normal(3, 64)}))
    assert both["y"].samples == 2 * 5 * 64
    assert one.widen() and one.how.endswith(JITTER)
    assert not one.widen(), "there is no more to be learnt"


def test_the_source_may_be_another_runner() -> None:
    model = load(mlp())
    on_torch = measure_noise(model, sets(model, {"x": normal(2, 64)}, on="torch"), source="torch")
    assert OPTIMISATIONS in on_torch.how and on_torch["y"].worst < 1e-5


def test_a_pair_that_is_judged_is_not_its_own_noise() -> None:
    model = load(mlp())
    data = sets(model, {"x": normal(2, 64)})
    assert measure_noise(model, data, judged=["onnxruntime:unoptimized"]).how == DOUBLE
    assert OPTIMISATIONS in measure_noise(model, data, judged=["torch"]).how


def test_a_defect_of_another_engine_is_not_taken_for_noise() -> None:
    """The expected outputs are those of a broken source; its noise is what ONNX Runtime says of the model."""
    model = load(mlp())
    x = normal(2, 64)
    broken = {"y": prepare("onnxruntime", model)({"x": x})["y"] * np.float32(1.5)}
    noise = measure_noise(model, [({"x": x}, broken)], source="torch")
    noise.widen()
    assert noise["y"].worst < 1e-5


def test_a_step_of_quantisation_is_noise_and_a_wrong_scale_is_not() -> None:
    model = load(parse(QUANTIZED))
    x = np.where(RNG.random((500, 64)) < 0.01, 0.03125, normal(500, 64))  # 0.0625 is half a step: rounding decides
    data = sets(model, {"x": x.astype(np.float32)})
    noise = measure_noise(model, data)
    noise.widen()
    expected = data[0][1]
    moved = prepare("onnxruntime", load(jittered(parse(QUANTIZED), seed=7)))(data[0][0])
    assert measure(expected, moved)["y"].worst > 1e-2
    assert [r.status for r in compare(expected, moved, noise)] == ["same"]
    wrong = {"y": expected["y"] * np.float32(1.05)}
    assert [r.status for r in compare(expected, wrong, noise)] == ["different"]


def test_small_outputs_are_measured_more_often() -> None:
    body = "g (float[N,64] x) => (float[N,1] y) { a = Constant<value_ints=[1]>() h = Tanh(x) y = ReduceSum(h, a) }"
    model = load(parse(body))
    noise = measure_noise(model, sets(model, {"x": normal(2, 64)}))
    before = noise["y"].samples
    noise.widen()
    assert noise["y"].samples - before == MOST_JITTERS * 2
    large = measure_noise(model, sets(model, {"x": normal(500, 64)}))
    before = large["y"].samples
    large.widen()
    assert large["y"].samples - before == JITTERS * 500


def test_no_more_is_measured_than_it_takes() -> None:
    """One run of a large output says enough, if what it is measured for agrees by then; of a small one it does not."""
    model = load(mlp())
    large = measure_noise(model, sets(model, {"x": normal(50, 64)}))
    before = large["y"].samples
    assert large.widen(lambda: True) and large["y"].samples - before == 50 * 64
    assert large.widen() and large["y"].samples - before == JITTERS * 50 * 64, "it goes on where it stopped"
    assert not large.widen()
    small = measure_noise(model, sets(model, {"x": normal(1, 64)}))
    before = small["y"].samples
    assert small.widen(lambda: True) and small["y"].samples >= 256


def test_noise_is_known_set_by_set() -> None:
    model = load(mlp())
    data = sets(model, {"x": normal(2, 64)}, {"x": normal(3, 64)})
    noise = measure_noise(model, data)
    one, other = (noise.on(inputs) for inputs, _ in data)
    assert one is not None and other is not None and noise.on({"x": normal(2, 64)}) is None
    assert noise["y"].worst == max(one["y"].worst, other["y"].worst) and one["y"].samples == 2 * 2 * 64
    assert noise.without([data[0][0]])["y"] == other["y"]


def test_the_scale_is_that_of_ordinary_data() -> None:
    model = load(mlp())
    noise = measure_noise(model, sets(model, {"x": normal(2, 64)}, {"x": normal(2, 64, scale=1e-12)}))
    residue, other = np.full((2, 64), 1e-9, np.float32), np.full((2, 64), -1e-9, np.float32)
    assert compare({"y": residue}, {"y": other})[0].status == "different"
    assert compare({"y": residue}, {"y": other}, noise)[0].status == "same"


def test_a_bounded_output_is_measured_by_its_bound() -> None:
    model = load(
        parse("g (float[N,4] x) => (float[M] y) { m = Constant<value_ints=[-1]>() h = Sigmoid(x) y = Reshape(h, m) }")
    )
    x = np.full((2, 4), -16, np.float32)
    noise = measure_noise(model, sets(model, {"x": x}))
    found, exact = prepare("onnxruntime", model)({"x": x}), np.full(8, 1 / (1 + np.exp(16.0)), np.float32)
    assert compare(found, {"y": exact})[0].status == "different"  # 6e-8 instead of 1.1e-7
    assert compare(found, {"y": exact}, noise)[0].status == "same"


def test_data_out_of_the_ordinary_tells_nothing_of_noise() -> None:
    model = load(mlp())
    nothing, bad, huge = normal(0, 64), np.full((2, 64), np.nan, np.float32), normal(2, 64, scale=1e30)
    noise = measure_noise(model, sets(model, *({"x": x} for x in (normal(2, 64), nothing, bad, huge))))
    assert noise["y"].samples == 2 * 2 * 64 and np.isfinite(noise["y"].worst)


def test_a_model_that_onnxruntime_does_not_run_is_measured_on_torch() -> None:
    model = load(parse("g (float[N,4] x) => (float[N,4] y) { h = Exp(x) y = Swish(h) }", opset=28))
    with pytest.raises(Exception, match="onnxruntime"):
        prepare("onnxruntime", model)
    noise = measure_noise(model, sets(model, {"x": normal(9, 4)}, on="torch"), source="torch")
    assert noise.how == ""
    assert noise.widen() and noise.how == DOUBLE and 0 < noise["y"].worst < 1e-6


def test_no_noise_is_an_empty_mapping() -> None:
    assert dict(Noise()) == {} and not Noise().widen()
    assert compare({"y": normal(3)}, {"y": normal(3)}, Noise())[0].status == "different"


def test_quantized_outputs_are_known_from_the_graph() -> None:
    body = """g (float[N,64] x) => (uint8[M] a, float[N,64] b, uint8[N,64] c) {
        s = Constant<value_float=0.05>() z = Constant<value = uint8 {128}>() m = Constant<value_ints=[-1]>()
        q = QuantizeLinear(x, s, z) a = Reshape(q, m) b = DequantizeLinear(q, s, z) c = Cast<to=2>(x)
    }"""
    model = load(parse(body))
    assert quantized_outputs(model) == {"a"}
    noise = measure_noise(model, sets(model, {"x": normal(20, 64)}))
    assert noise["a"].steps and not noise["b"].steps and not noise["c"].steps


def test_a_copy_in_double_precision() -> None:
    body = """g (float[N,4] x, float[N,4] c) => (float[N,4] y, float[N,4] z) {
        half = Constant<value_float=0.5>() v = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>()
        s = Shape(x) e = ConstantOfShape(s) i = Cast<to=7>(c) f = Cast<to=1>(i)
        a = Mul(x, half) b = Add(a, v) d = Add(b, e) y = Add(d, f) z = Exp(x)
    }"""
    model = in_double(parse(body))
    onnx.checker.check_model(model, full_check=True)
    x, c = RNG.standard_normal((3, 4)), np.full((3, 4), 2.7)
    found = run(model, x=x, c=c)
    assert found["y"].dtype == np.float64
    assert np.allclose(found["y"], x / 2 + [1, 2, 3, 4] + 2, rtol=1e-15)
    assert np.allclose(found["z"], np.exp(x), rtol=1e-14)


def test_a_copy_in_double_precision_reaches_into_subgraphs() -> None:
    body = """g (bool p, float[N,4] x) => (float[N,4] y) {
        y = If (p) <
            then_branch = t () => (float[N,4] u) { k = Constant<value_float=0.1>() u = Mul(x, k) },
            else_branch = f () => (float[N,4] v) { v = Identity(x) }
        >
    }"""
    x = RNG.standard_normal((2, 4))
    assert np.allclose(run(in_double(parse(body)), p=np.array(True), x=x)["y"], x * np.float32(0.1), rtol=1e-15)


def test_what_draws_random_numbers_has_no_copy() -> None:
    with pytest.raises(UnsupportedError):
        in_double(parse("g (float[N,4] x) => (float[N,4] y) { r = RandomNormalLike(x) y = Add(x, r) }"))


@pytest.mark.parametrize("node", ["ReduceSum(x, axes)", "ReduceMean<keepdims=0>(x, axes)", "GlobalAveragePool(x)"])
def test_sums_in_another_order_are_the_same_but_for_rounding(node: str) -> None:
    """Of numbers that are all alike, added one after the other: roundings do not cancel."""
    model = parse(f"g (float[N,2,200,250] x) => (float y) {{ y = {node} }}", opset=18)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.int64([-1, 2]), "axes"))
    x = np.full((3, 2, 200, 250), 0.1, np.float32)
    plain, moved = run(model, x=x)["y"], run(jittered(model), x=x)["y"]
    assert moved.shape == plain.shape
    off = np.abs(moved / plain - 1).max()
    assert 1e-5 < off < 5e4 * np.finfo(np.float32).eps
