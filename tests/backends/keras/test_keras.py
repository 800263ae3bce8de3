"""ONNX → Keras: the .keras file on its own and beside its layers, in training, and what is refused."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

import onward
from onward.cli import main
from onward.errors import OnwardError, UnsupportedError
from onward.model import load

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)
import keras

from onward.backends.keras.convert import generate
from onward.backends.keras.module import OWN
from onward.formats import open_artifact

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits/digits.onnx"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `onward convert --to keras`; gives the exit code and what was printed as an error."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(model: object, out: Path, *options: object) -> tuple[int, str]:
        code = main(["convert", str(model), "--to", "keras", "--out", str(out), *map(str, options)])
        return code, capsys.readouterr().err

    return call


def fresh(code: str, folder: Path) -> str:
    """What a process that knows nothing of this one prints, run in a folder."""
    given = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def images() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return (data.images / 16).astype(np.float32)[:, None], data.target


def original(model: Any, *feeds: Any) -> list[Any]:
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds, strict=True))))


def text_model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 17]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(x, n) for n, x in weights.items())
    return model


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def kinds(net: Any) -> list[str]:
    """The classes of the layers, those that are not of Keras in brackets."""
    named = ((type(layer).__name__, type(layer).__module__.startswith("keras.")) for layer in net.layers)
    return [name if known else f"[{name}]" for name, known in named]


def block(seed: int = 0) -> onnx.ModelProto:
    """A model with a part that Keras has no layer for."""
    text = """g (float[n, 6] x) => (float[n, 4] y) {
        a = MatMul(x, first)
        b = Erf(a)
        c = Sin(b)
        y = MatMul(c, second)
    }"""
    return text_model(text, first=drawn(6, 5, seed=seed), second=drawn(5, 4, seed=seed))


# The file


def test_standard_layers_need_no_source(run: Run, tmp_path: Path) -> None:
    code, errors = run(DIGITS, tmp_path / "a" / "digits.keras")
    assert code == 0 and "verified: worst error" in errors, errors
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["digits.keras", "digits_layers.py"]
    (tmp_path / "a/digits_layers.py").unlink()
    x, _ = images()
    np.savez(tmp_path / "a/data.npz", image=x[:64], logits=original(DIGITS, x[:64])[0])
    fresh(
        "import keras, numpy as np, sys\n"
        "net = keras.models.load_model('digits.keras')\n"
        "data = np.load('data.npz')\n"
        "for n in (1, 64):\n"
        "    found = net.predict(data['image'][:n], verbose=0)\n"
        "    np.testing.assert_allclose(found, data['logits'][:n], rtol=1e-4, atol=1e-4)\n"
        "assert 'onward' not in sys.modules",
        tmp_path / "a",
    )


def test_layers_of_its_own_need_their_source(run: Run, tmp_path: Path) -> None:
    onnx.save(block(), tmp_path / "m.onnx")
    code, errors = run(tmp_path / "m.onnx", tmp_path / "my-net.keras")
    assert code == 0 and "verified: worst error" in errors, errors
    np.save(tmp_path / "x.npy", drawn(3, 6))
    np.save(tmp_path / "y.npy", original(block(), drawn(3, 6))[0])
    fresh(
        "import keras, numpy as np, sys\n"
        "import my_net_layers\n"
        "net = keras.models.load_model('my-net.keras')\n"
        "np.testing.assert_allclose(net(np.load('x.npy')), np.load('y.npy'), rtol=1e-5, atol=1e-5)\n"
        "assert my_net_layers.build().count_params() == net.count_params()\n"
        "assert 'onward' not in sys.modules",
        tmp_path,
    )
    printed = fresh("import onward.cli, sys; sys.exit(onward.cli.main(['verify', 'm.onnx', 'my-net.keras']))", tmp_path)
    assert "Same: my-net.keras (Keras model)" in printed


def test_the_source_reads_as_one_would_write_it(tmp_path: Path) -> None:
    source = generate(load(DIGITS)).model
    assert 'x = layers.Conv2D(16, 3, padding="same", use_bias=False, name="stem.0")(x)' in source
    assert 'logits = layers.Dense(10, name="head")(x)' in source
    assert "class " not in source and "import tensorflow" not in source
    (tmp_path / "source.py").write_text(generate(load(block())).model)
    checked = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F,I", "--line-length=120"]
    subprocess.run([*checked, str(tmp_path / "source.py")], check=True, capture_output=True)


def test_models_in_one_process_keep_their_layers_apart(tmp_path: Path) -> None:
    """Both have a layer of the same name."""
    one, other = block(), block()
    other.graph.node[1].op_type = "Cos"
    for name, model in (("one", one), ("other", other)):
        onward.to_keras(model).save(tmp_path / f"{name}.keras")
    x = drawn(3, 6)
    for name, model in (("one", one), ("other", other)):
        net = keras.models.load_model(tmp_path / f"{name}.keras")
        np.testing.assert_allclose(net(x), original(model, x)[0], rtol=1e-5, atol=1e-5)


def test_a_rank_that_depends_on_sizes_is_what_the_data_say() -> None:
    """The file says one dimension; of a single row there is none left."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n, m] x) => (float[k] y) { z = Neg(x) y = Squeeze(z) }'
    )
    net = onward.to_keras(model, check=False)
    for shape in ((3, 1), (1, 1), (1, 4)):
        x = drawn(*shape)
        np.testing.assert_allclose(np.asarray(net(x)), -x.squeeze())


def test_verify_finds_the_layers_beside_a_file(run: Run, tmp_path: Path) -> None:
    onnx.save(block(), tmp_path / "m.onnx")
    assert run(tmp_path / "m.onnx", tmp_path / "net.keras", "--no-verify")[0] == 0
    (tmp_path / "net.keras").rename(tmp_path / "renamed.keras")
    keras.saving.get_custom_objects().clear()
    found = open_artifact(tmp_path / "renamed.keras").run({"x": drawn(3, 6)})
    np.testing.assert_allclose(next(iter(found.values())), original(block(), drawn(3, 6))[0], rtol=1e-5, atol=1e-5)


# Training


def test_fit_lowers_the_loss_and_the_result_loads_again(tmp_path: Path) -> None:
    net = onward.to_keras(block())
    x = drawn(64, 6)
    target = original(block(seed=1), x)[0]
    net.compile(keras.optimizers.Adam(0.02), "mse")
    before = net.evaluate(x, target, verbose=0)
    net.fit(x, target, epochs=8, batch_size=16, verbose=0)
    after = net.evaluate(x, target, verbose=0)
    assert after < 0.8 * before
    net.save(tmp_path / "trained.keras")
    again = keras.models.load_model(tmp_path / "trained.keras")
    assert [layer.name for layer in again.layers] == [layer.name for layer in net.layers]
    assert again.evaluate(x, target, verbose=0) == pytest.approx(after, rel=1e-5)


def test_batch_normalisation_follows_training() -> None:
    net = onward.to_keras(DIGITS)
    x, _ = images()
    statistic = net.get_layer("stem.1").moving_mean
    before = statistic.numpy()
    net(x[:32])
    np.testing.assert_array_equal(statistic, before)
    net(x[:32], training=True)
    assert np.abs(statistic.numpy() - before).max() > 1e-4


def test_what_a_part_of_our_own_does_in_training() -> None:
    """Statistics that no layer of Keras takes, since their dtype differs, are still updated."""
    text = """g (float16[n, 3] x) => (float16[n, 3] y) {
        b = BatchNormalization(x, scale, bias, mean, var)
        y = Dropout(b, ratio)
    }"""
    numbers = {"scale": 1.0, "bias": 0.5, "mean": 0.0, "var": 1.0}
    weights = {name: np.full(3, value, np.float16) for name, value in numbers.items()}
    net = onward.to_keras(text_model(text, **weights, ratio=np.array(0.5, np.float32)))
    x = drawn(400, 3).astype(np.float16)
    trained = np.asarray(net(x, training=True))
    assert 0.3 < np.mean(trained == 0) < 0.7 and np.mean(np.asarray(net(x)) == 0) < 0.05
    assert len(net.trainable_weights) == 2 and len(net.non_trainable_weights) == 2
    assert any(np.abs(weight.numpy()).max() not in (0, 1) for weight in net.non_trainable_weights)


@pytest.mark.parametrize(
    ("trainable", "trained"),
    [(True, {"stem", "layer1", "layer2", "head"}), (False, set()), (["layer2.*", "head.*"], {"layer2", "head"})],
    ids=["all", "none", "some"],
)
def test_trainable(trainable: Any, trained: set[str]) -> None:
    source = generate(load(DIGITS), trainable)
    made = re.findall(r"layers.(?:Conv2D|Dense|BatchNormalization)\((.*?)\)\(", source.model, re.DOTALL)
    free = [options for options in made if "trainable=False" not in options]
    assert {re.findall(r'name="(\w+)', options)[0] for options in free} == trained
    assert len(made) == len(source.layers)


def test_one_weight_of_a_layer_can_be_trained(tmp_path: Path) -> None:
    """Keras freezes whole layers, so a layer of our own says it of each weight, in a file as well."""
    x = drawn(8, 1, 8, 8)
    onward.to_keras(DIGITS, trainable=["head.bias", "layer1.*"]).save(tmp_path / "net.keras")
    net = keras.models.load_model(tmp_path / "net.keras")
    np.testing.assert_allclose(net(x), original(onnx.load(DIGITS), x)[0], rtol=1e-4, atol=1e-4)
    (bias,) = (weight for weight in net.trainable_weights if tuple(weight.shape) == (10,))
    assert len(net.trainable_weights) == 1 + 12, "two blocks of two convolutions and two normalisations"
    (kernel,) = (weight for weight in net.non_trainable_weights if 10 in weight.shape)
    before = [weight.numpy().copy() for weight in (bias, kernel)]
    net.compile(keras.optimizers.SGD(0.1), "mse")
    net.fit(x, drawn(8, 10), verbose=0)
    assert not np.array_equal(bias.numpy(), before[0]) and np.array_equal(kernel.numpy(), before[1])


def test_a_weight_that_is_used_twice_stays_one() -> None:
    """By a lookup and by a product after a layer: whoever owns it hands it on."""
    text = """g (int64[n, t] ids) => (float[n, t, 7] y) {
        rows = Gather(table, ids)
        sines = Sin(rows)
        hidden = MatMul(sines, weight)
        across = Transpose<perm=[1, 0]>(table)
        y = MatMul(hidden, across)
    }"""
    model = text_model(text, table=drawn(7, 4), weight=drawn(4, 4))
    net = onward.to_keras(model)
    assert sum(int(np.prod(w.shape)) for w in net.trainable_weights) == 7 * 4 + 4 * 4
    ids = np.array([[0, 3, 6], [1, 1, 2]])
    np.testing.assert_allclose(net(ids), original(model, ids)[0], rtol=1e-5, atol=1e-5)
    net.compile(keras.optimizers.SGD(0.1), "mse")
    net.fit(ids, drawn(2, 3, 7), verbose=0)
    changed = net.layers[1].weights[0].numpy() - drawn(7, 4)
    assert np.abs(changed[4]).max() > 0, "a row that is not looked up changes by the product"


def test_a_layer_that_is_called_twice_stays_one() -> None:
    text = """g (float[n, 4] a, float[n, 4] b) => (float[n, 3] y) {
        p = Gemm(a, weight, bias)
        q = Gemm(b, weight, bias)
        y = Sub(p, q)
    }"""
    model = text_model(text, weight=drawn(4, 3), bias=drawn(3))
    net = onward.to_keras(model)
    assert kinds(net).count("Dense") == 1 and net.count_params() == 15
    a, b = drawn(2, 4), drawn(2, 4, seed=1)
    np.testing.assert_allclose(net([a, b]), original(model, a, b)[0], rtol=1e-5, atol=1e-5)


# Inputs and outputs


def test_several_inputs_and_outputs_have_their_names() -> None:
    text = """g (float[n, 4] a, int64[n] k, double s) => (float[n, 4] y, int64[n] more, double t) {
        y = Relu(a)
        more = Add(k, k)
        t = Mul(s, s)
    }"""
    net = onward.to_keras(text_model(text))
    a, k = drawn(2, 4), np.array([1, 2**40])
    assert [tensor.name for tensor in net.inputs] == ["a", "k", "s"]
    for given in ([a, k, np.float64(3)], {"a": a, "k": k, "s": np.float64(3)}):
        found = net(given)
        assert set(found) == {"y", "more", "t"}
        np.testing.assert_array_equal(found["y"], np.maximum(a, 0))
        np.testing.assert_array_equal(found["more"], 2 * k)
        assert np.asarray(found["t"]) == 9 and np.asarray(found["t"]).dtype == np.float64


def test_outputs_that_are_inputs_or_constants() -> None:
    text = """g (float[n, 4] x) => (float[n, 4] same, float[2] c, int64[2] s) {
        same = Identity(x)
        c = Identity(w)
        s = Shape(x)
    }"""
    net = onward.to_keras(text_model(text, w=drawn(2)))
    found = net(drawn(3, 4))
    np.testing.assert_array_equal(found["same"], drawn(3, 4))
    np.testing.assert_array_equal(found["c"], drawn(2))
    np.testing.assert_array_equal(found["s"], [3, 4])


def test_strings() -> None:
    text = "g (string[n] x) => (string[n] y, bool[n] same) { y = Identity(x) same = Equal(x, x) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 19]> {text}')
    found = onward.to_keras(model)(np.array(["a", "ß"]))
    assert [text.decode() for text in np.asarray(found["y"])] == ["a", "ß"]
    assert np.asarray(found["same"]).all()


@pytest.mark.parametrize("sides", ["inputs", "outputs", "both"])
def test_images_handed_over_channels_last(sides: str) -> None:
    text = "g (float[n, 3, 5, 7] image) => (float[n, 6, 5, 7] map) { map = Conv<pads=[1, 1, 1, 1]>(image, w) }"
    model = text_model(text, w=drawn(6, 3, 3, 3))
    both = {"inputs_nhwc": ["image"], "outputs_nhwc": ["map"]}
    options = both if sides == "both" else {f"{sides}_nhwc": both[f"{sides}_nhwc"]}
    image = drawn(2, 3, 5, 7)
    right = original(model, image)[0]
    net = onward.to_keras(model, **options)
    found = net(image.transpose(0, 2, 3, 1) if "inputs_nhwc" in options else image)
    right = right.transpose(0, 2, 3, 1) if "outputs_nhwc" in options else right
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
    assert kinds(net).count("Permute") == 2 - len(options)


def test_channels_last_is_verified(run: Run, tmp_path: Path) -> None:
    text = "g (float[n, 3, 5, 7] image) => (float[n, 6, 5, 7] map) { map = Conv<pads=[1, 1, 1, 1]>(image, w) }"
    onnx.save(text_model(text, w=drawn(6, 3, 3, 3)), tmp_path / "m.onnx")
    code, errors = run(tmp_path / "m.onnx", tmp_path / "out.keras", "--inputs-nhwc", "image", "--outputs-nhwc", "map")
    assert code == 0 and "verified: worst error" in errors, errors
    config = json.loads(zipfile.ZipFile(tmp_path / "out.keras").read("config.json"))
    assert config["config"]["layers"][0]["config"]["batch_shape"] == [None, 5, 7, 3]


# Names


def named(x: str, y: str, weight: str, bias: str) -> onnx.ModelProto:
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", [x, weight], ["product"], name=f"{weight}/op"),
            helper.make_node("Sin", ["product"], ["sine"], name=f"{weight}/sine"),
            helper.make_node("Add", ["sine", bias], [y], name=f"{bias}/op"),
        ],
        x,
        [helper.make_tensor_value_info(x, FLOAT, [x, 4])],
        [helper.make_tensor_value_info(y, FLOAT, [x, 3])],
        [numpy_helper.from_array(drawn(4, 3), weight), numpy_helper.from_array(drawn(3), bias)],
        doc_string=x,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


NAMES = [
    '"); import os #',
    "a.b/c:0",
    "0",
    "12.weight",
    "training",
    "self",
    "keras",
    "layers",
    "größe",
    "a b\n",
    "name",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_neither_break_nor_inject(name: str) -> None:
    model = named(name, f"{name}_out", f"{name}.w", f"deep.{name}")
    source = generate(load(model))
    imported = [node for node in ast.walk(ast.parse(source.model)) if isinstance(node, ast.Import)]
    assert {alias.name for node in imported for alias in node.names} <= {"keras", "tensorflow", "numpy"}
    x = drawn(2, 4)
    np.testing.assert_allclose(onward.to_keras(model)(x), original(model, x)[0], rtol=1e-5, atol=1e-6)


def test_attributes_of_layers_are_all_known() -> None:
    assert {name for name in dir(keras.layers.Layer()) if not name.startswith("_")} <= OWN


# What is refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "g (seq(float[n]) x) => (float y) { i = Constant<value = int64 {0}>() y = SequenceAt(x, i) }",
            "its input 'x'",
        ),
        ("g (float[n, 2] x) => (seq(float[n, 1]) y) { y = SplitToSequence<axis=1>(x) }", "its output 'y' is a"),
        ("g () => (float[1] y) { y = Constant<value = float[1] {1.0}>() }", "a Keras model has inputs"),
        ("g (float[n, k] x) => (float y) { y = Squeeze(x) }", "Keras cannot make the layers"),
    ],
    ids=["sequence in", "sequence out", "no inputs", "unknown rank"],
)
def test_refused(text: str, words: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 17]> {text}')
    if words.startswith("Keras"):
        model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match=words):
        onward.to_keras(model)


def test_nothing_that_is_not_ours_is_replaced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net_layers.py").write_text("mine = 1\n")
    for out, words in [
        ("net.keras", "is not Onward"),
        ("net", "ends with .keras"),
        ("net_layers.py", "ends with .keras"),
    ]:
        code, errors = run(DIGITS, tmp_path / out)
        assert code == 2 and words in errors
    assert (tmp_path / "net_layers.py").read_text() == "mine = 1\n"
    assert [p.name for p in tmp_path.iterdir()] == ["net_layers.py"]
    assert run(DIGITS, tmp_path / "other.keras", "--no-verify")[0] == 0
    assert run(DIGITS, tmp_path / "other.keras", "--no-verify")[0] == 0, "what is ours is"


def test_without_keras(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, errors = run(DIGITS, tmp_path / "out.keras")
    assert code == 2 and "Keras is not installed: pip install 'onward[tensorflow]'" in errors


def test_another_backend_of_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(OnwardError, match="Keras runs on jax here; set KERAS_BACKEND=tensorflow"):
        onward.to_keras(DIGITS)
