"""ONNX → TensorFlow: the package, the SavedModel and the TensorFlow Lite file, on their own and in training."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import onward
from onward.backends.tensorflow._compat import check_version
from onward.backends.tensorflow.convert import generate
from onward.backends.tensorflow.module import OWN
from onward.cli import main
from onward.errors import OnwardError
from onward.model import load

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)
import tensorflow as tf

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits/digits.onnx"
FLOAT = TensorProto.FLOAT
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `onward convert`; gives the exit code and what was printed as an error."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(model: object, to: str, out: Path, *options: object) -> tuple[int, str]:
        code = main(["convert", str(model), "--to", to, "--out", str(out), *map(str, options)])
        return code, capsys.readouterr().err

    return call


def digits() -> list[Any]:
    """Training images, held-out images, their labels: split as the example's training has it."""
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    return train_test_split(images, data.target, test_size=0.25, random_state=0, stratify=data.target)


def original(model: Any, *feeds: Any) -> Any:
    """The first output, on ONNX Runtime."""
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip((i.name for i in session.get_inputs()), feeds, strict=True)))[0]


def fresh(code: str, folder: Path) -> None:
    """Run Python code in a process of its own, in which Onward must not be loaded."""
    check = 'assert [m for m in sys.modules if m.split(".")[0] in ("onward", "onnx", "onnx_ir", "onnxruntime")] == []'
    text = f"import sys\nsys.path.insert(0, '')\nimport numpy as np\nimport tensorflow as tf\n{code}\n{check}\n"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def lint(folder: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


# The package


def test_the_package_stands_alone(run: Run, tmp_path: Path) -> None:
    code, errors = run(DIGITS, "tensorflow", tmp_path / "net")
    assert code == 0 and "verified: worst error" in errors and "done:" in errors
    assert sorted(p.name for p in (tmp_path / "net").iterdir()) == [
        "model.py",
        "onward.json",
        "ops.py",
        "weights.safetensors",
    ]
    lint(tmp_path / "net")
    images = digits()[1][:5]
    np.savez(tmp_path / "data.npz", image=images, logits=original(DIGITS, images))
    fresh(
        "from net.model import load\n"
        "data = np.load('data.npz')\n"
        "np.testing.assert_allclose(load()(data['image']), data['logits'], rtol=1e-4, atol=1e-4)",
        tmp_path,
    )


def test_a_traced_function_takes_any_batch() -> None:
    net = onward.to_tensorflow(DIGITS)
    traced = tf.function(net.__call__, input_signature=[tf.TensorSpec([None, 1, 8, 8])])
    for size in (1, 7):
        images = digits()[1][:size]
        np.testing.assert_allclose(traced(images), original(DIGITS, images), rtol=1e-4, atol=1e-4)


def test_a_traced_depthwise_convolution_with_padding_and_bias() -> None:
    """With explicit padding, TensorFlow aborts the process when it fuses these."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (float[n, 4, h, w] x) => (float[n, 4, i, j] y) {
            a = Conv<group = 4, strides = [2, 2], pads = [1, 1, 1, 1]>(x, weight, bias)  y = Relu(a)
        }"""
    )
    weights = {"weight": np.linspace(-1, 1, 36).reshape(4, 1, 3, 3), "bias": np.linspace(-1, 1, 4)}
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items())
    assert onward.verify(model, against="tensorflow:function").ok


def test_the_page_shows_real_code() -> None:
    blocks = re.findall(r"```python\n(class .*?)```", (ROOT / "docs/guide/to-tensorflow.md").read_text(), re.DOTALL)
    classes = [text.strip() for block in blocks for text in block.split("\n\n\n")]
    made = generate(load(DIGITS)).model
    assert len(classes) == 2 and all(text in made for text in classes)


# Training


def test_gradients_reach_every_weight() -> None:
    net = onward.to_tensorflow(DIGITS)
    trained = {v.name for v in net.trainable_variables}
    assert all(isinstance(v, tf.Variable) for v in net.variables)
    weights = [w for w in onnx.load(DIGITS).graph.initializer if w.data_type == FLOAT and "running" not in w.name]
    assert len(net.trainable_variables) == len(weights) > 20 and trained
    for traced in (False, True):
        call = tf.function(net.__call__) if traced else net
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(call(tf.constant(digits()[0][:4]))))
        gradients = tape.gradient(loss, net.trainable_variables)
        assert all(g is not None and np.abs(g).max() > 0 for g in gradients)


NORMS = {
    "ReduceL2": "y = ReduceL2(x, axes)",
    "LpPool": "y = LpPool<kernel_shape = [2, 2]>(x)",
    "LpPool of cubes": "y = LpPool<kernel_shape = [2, 2], p = 3>(x)",
    "GlobalLpPool": "y = GlobalLpPool(x)",
    "LpNormalization": "y = LpNormalization(x)",
}


@pytest.mark.parametrize("body", NORMS.values(), ids=NORMS)
def test_norms_of_zeros_have_gradients(body: str) -> None:
    """A root is infinitely steep at zero: what is behind it must not become NaN. Both backends agree."""
    torch = pytest.importorskip("torch")
    header = '<ir_version: 9, opset_import: ["": 18]> g (float[1,2,4,4] x) => (float[] y) <int64[1] axes = {3}>'
    model = onnx.parser.parse_model(f"{header} {{ {body} }}")
    zeros = torch.zeros(1, 2, 4, 4, requires_grad=True)
    onward.to_torch(model)(zeros).sum().backward()
    x = tf.constant(zeros.detach().numpy())
    net = onward.to_tensorflow(model)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(net(x))
    found = tape.gradient(y, x).numpy()
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, zeros.grad)


def test_training_uses_the_batch_and_keeps_statistics() -> None:
    net = onward.to_tensorflow(DIGITS)
    images = tf.constant(digits()[0][:32])
    norm = net.stem[1]
    before, still = norm.running_mean.numpy(), net(images).numpy()
    assert np.array_equal(norm.running_mean.numpy(), before), "inference leaves the statistics alone"
    x = net.stem[0](tf.transpose(images, [0, 2, 3, 1])).numpy()
    found = norm(tf.constant(x), True).numpy()
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    right = (x - mean) / np.sqrt(variance + 1e-5) * norm.weight.numpy() + norm.bias.numpy()
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.9 * before + 0.1 * mean, rtol=1e-4, atol=1e-5)
    assert np.abs(net(images, training=True).numpy() - still).max() > 1e-2


@pytest.mark.parametrize("traced", [False, True])
def test_fine_tuning_lowers_the_loss(traced: bool) -> None:
    images, _, labels, _ = digits()
    images, labels = tf.constant(images[:64]), tf.constant(9 - labels[:64])
    net = onward.to_tensorflow(DIGITS)

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = net(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for variable, gradient in zip(
            net.trainable_variables, tape.gradient(loss, net.trainable_variables), strict=True
        ):
            variable.assign_sub(0.02 * gradient)
        return loss

    call = tf.function(step) if traced else step
    losses = [float(call()) for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_trainable_patterns() -> None:
    assert len(onward.to_tensorflow(DIGITS, trainable=False).trainable_variables) == 0
    net = onward.to_tensorflow(DIGITS, trainable=["head.*", "stem.0.weight"])
    chosen = {id(net.head.weight), id(net.head.bias), id(net.stem[0].weight)}
    assert {id(v) for v in net.trainable_variables} == chosen
    assert len(net.variables) == len(onward.to_tensorflow(DIGITS).variables)
    with pytest.raises(OnwardError, match=r"no weight is called 'tail.\*'"):
        onward.to_tensorflow(DIGITS, trainable="tail.*")


# SavedModel


def test_saved_model_by_name_with_any_batch(run: Run, tmp_path: Path) -> None:
    code, errors = run(DIGITS, "savedmodel", tmp_path / "saved")
    assert code == 0 and "verified: worst error" in errors
    images = digits()[1][:5]
    np.savez(tmp_path / "data.npz", image=images, logits=original(DIGITS, images))
    fresh(
        "data = np.load('data.npz')\n"
        "serve = tf.saved_model.load('saved').signatures['serving_default']\n"
        "assert serve.structured_input_signature[1]['image'].shape.as_list() == [None, 1, 8, 8]\n"
        "for n in (1, 5):\n"
        "    found = serve(image=tf.constant(data['image'][:n]))\n"
        "    np.testing.assert_allclose(found['logits'], data['logits'][:n], rtol=1e-4, atol=1e-4)",
        tmp_path,
    )
    (tmp_path / "saved/notes.txt").write_text("mine")
    (tmp_path / "saved/assets/old.txt").write_text("of the last time")
    assert run(DIGITS, "savedmodel", tmp_path / "saved", "--no-verify")[0] == 0
    assert (tmp_path / "saved/notes.txt").read_text() == "mine"
    assert not (tmp_path / "saved/assets/old.txt").exists(), "a SavedModel is replaced as a whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.npz", "saved"], "no scratch folder is left"
    (tmp_path / "saved/assets.extra").mkdir()
    (tmp_path / "saved/assets.extra/warmup").write_text("mine")
    code, errors = run(DIGITS, "savedmodel", tmp_path / "saved", "--no-verify")
    assert code == 2 and "assets.extra: warmup was not written by Onward: move it away" in errors


# Names


def named(x: str, y: str, weight: str, bias: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {weight: (4, 3), bias: (3,)}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", [x, weight], ["product"], name=f"{weight}/op"),
            helper.make_node("Add", ["product", bias], [y], name=f"{bias}/op"),
        ],
        x,
        [helper.make_tensor_value_info(x, FLOAT, [x, 4])],
        [helper.make_tensor_value_info(y, FLOAT, [x, 3])],
        [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), name) for name, s in weights.items()],
        doc_string=x,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


NAMES = ['"); import os #', "a.b/c:0", "0", "12.weight", "training", "self", "tf", "weights", "größe", "a b\n", "name"]


@pytest.mark.parametrize("name", NAMES)
def test_names_neither_break_nor_inject(name: str) -> None:
    model = named(name, f"{name}_out", f"{name}.w", f"deep.{name}")
    feed = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    source = generate(load(model))
    imports = [node for node in ast.walk(ast.parse(source.model)) if isinstance(node, ast.Import)]
    assert {alias.name for node in imports for alias in node.names} <= {"tensorflow", "numpy"}
    np.testing.assert_allclose(onward.to_tensorflow(model)(feed), original(model, feed), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "names", [("0", "p0"), ("0.a", "p0.a"), ("name", "name_"), ("variables.0", "variables_.0"), ("p0", "p0_")]
)
def test_names_that_become_equal_stay_apart(names: tuple[str, str]) -> None:
    model = named("x", "y", *names)
    feed = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    net = onward.to_tensorflow(model)
    assert len(net.trainable_variables) == 2
    np.testing.assert_allclose(net(feed), original(model, feed), rtol=1e-5, atol=1e-6)


def test_attributes_of_modules_are_all_known() -> None:
    net = tf.Module()
    net.part = [tf.Module()]
    assert {name for name in dir(net) if not name.startswith("__")} - {"part"} <= OWN


@pytest.mark.parametrize("to", ["savedmodel", "tflite"])
def test_names_of_written_models(run: Run, tmp_path: Path, to: str) -> None:
    """Whatever the names, what is written is run and verified."""
    onnx.save(named(NAMES[0], "y/0.out;\n", "0.w", "a.b"), tmp_path / "m.onnx")
    code, errors = run(tmp_path / "m.onnx", to, tmp_path / "out")
    assert code == 0 and "verified: worst error" in errors, errors


# Control flow

LOOP = """
<ir_version: 9, opset_import: ["": 17]>
nested (float[n, 2] x, int64 times, bool flag) => (float[n, 2] y) {
    go_on = Constant <value = bool {1}> ()
    y = Loop <body = step (int64 i, bool go, float[n, 2] state) => (bool go2, float[n, 2] next) {
        go2 = Identity (go)
        next = If (flag) <
            then_branch = up () => (float[n, 2] a) {
                b = Cast <to = 1> (i)
                a = Add (state, b)
            },
            else_branch = down () => (float[n, 2] c) { c = Neg (state) }
        >
    }> (times, go_on, x)
}
"""


@pytest.mark.parametrize("to", ["tensorflow", "savedmodel"])
def test_control_flow(run: Run, tmp_path: Path, to: str) -> None:
    onnx.save(onnx.parser.parse_model(LOOP), tmp_path / "loop.onnx")
    code, errors = run(tmp_path / "loop.onnx", to, tmp_path / "out")
    assert code == 0 and "verified: worst error" in errors, errors
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    serve = tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"] if to == "savedmodel" else None
    for times, flag in ((0, True), (3, True), (3, False)):
        given = {"x": x, "times": np.array(times), "flag": np.array(flag)}
        right = x + 3 if times and flag else -x if times else x
        if serve is not None:
            found = serve(**{name: tf.constant(value) for name, value in given.items()})["y"]
        else:
            found = onward.to_tensorflow(tmp_path / "loop.onnx")(*map(tf.constant, given.values()))
        np.testing.assert_array_equal(found, right)


# Channels last


def image_model() -> onnx.ModelProto:
    weight = np.random.default_rng(0).standard_normal((6, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["image", "w"], ["map"], pads=[1] * 4)],
        "g",
        [helper.make_tensor_value_info("image", FLOAT, ["n", 3, 5, 7])],
        [helper.make_tensor_value_info("map", FLOAT, ["n", 6, 5, 7])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize("sides", ["inputs", "outputs", "both"])
def test_images_handed_over_channels_last(sides: str) -> None:
    options = {f"{side}_nhwc": [name] for side, name in (("inputs", "image"), ("outputs", "map")) if sides != side}
    if sides != "both":
        options = {f"{sides}_nhwc": ["image" if sides == "inputs" else "map"]}
    image = np.random.default_rng(1).standard_normal((2, 3, 5, 7)).astype(np.float32)
    right = original(image_model(), image)
    given = image.transpose(0, 2, 3, 1) if "inputs_nhwc" in options else image
    found = onward.to_tensorflow(image_model(), **options)(tf.constant(given)).numpy()
    right = right.transpose(0, 2, 3, 1) if "outputs_nhwc" in options else right
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
    source = generate(load(image_model()), **options)
    assert source.model.count("tf.transpose") == 2 - len(options)


@pytest.mark.parametrize("to", ["tensorflow", "savedmodel", "tflite"])
def test_channels_last_is_verified(run: Run, tmp_path: Path, to: str) -> None:
    onnx.save(image_model(), tmp_path / "m.onnx")
    code, errors = run(tmp_path / "m.onnx", to, tmp_path / "out", "--inputs-nhwc", "image", "--outputs-nhwc", "map")
    assert code == 0 and "verified: worst error" in errors, errors
    assert "input image: its axes are [0, 2, 3, 1]" in errors and "output map: its axes are [0, 2, 3, 1]" in errors
    if to == "savedmodel":
        serve = tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"]
        assert serve.structured_input_signature[1]["image"].shape.as_list() == [None, 5, 7, 3]


# TensorFlow Lite


def interpreted(path: Path, images: Any) -> Any:
    interpreter = tf.lite.Interpreter(str(path))
    runner = interpreter.get_signature_runner()
    return np.concatenate([next(iter(runner(image=images[i : i + 1]).values())) for i in range(len(images))])


@pytest.mark.parametrize("quantize", [None, "float16", "dynamic"])
def test_tflite(run: Run, tmp_path: Path, quantize: str | None) -> None:
    options = [] if quantize is None else ["--quantize", quantize]
    code, errors = run(DIGITS, "tflite", tmp_path / "a/digits.tflite", *options)
    assert code == 0, errors
    assert "verified: worst error" in errors if quantize is None else f"not the same, by {quantize}" in errors
    images = digits()[1][:64]
    found, right = interpreted(tmp_path / "a/digits.tflite", images), original(DIGITS, images)
    allowed = {None: 1e-4, "float16": 0.05, "dynamic": 1.0}[quantize]
    assert np.abs(found - right).max() < allowed
    size = (tmp_path / "a/digits.tflite").stat().st_size
    assert size < {None: 250_000, "float16": 130_000, "dynamic": 90_000}[quantize]


@pytest.mark.parametrize("options", [[], ["--inputs-nhwc", "image"]])
def test_int8_keeps_the_accuracy(run: Run, tmp_path: Path, options: list[str]) -> None:
    train, images, _, labels = digits()
    np.savez(tmp_path / "data.npz", image=train[:200])
    path = tmp_path / "digits.tflite"
    code, errors = run(DIGITS, "tflite", path, "--quantize", "int8", "--calibrate", tmp_path / "data.npz", *options)
    assert code == 0 and "by int8" in errors, errors
    details = tf.lite.Interpreter(str(path)).get_tensor_details()
    assert sum(detail["dtype"] == np.int8 for detail in details) > 20
    fed = images.transpose(0, 2, 3, 1) if options else images
    floats, integers = (
        np.mean(logits.argmax(1) == labels) for logits in (original(DIGITS, images), interpreted(path, fed))
    )
    assert floats > 0.97 and integers >= floats - 0.005


# Errors


@pytest.mark.parametrize(
    ("to", "options", "words"),
    [
        ("tensorflow", ["--quantize", "int8"], "--quantize is for --to tflite"),
        ("savedmodel", ["--calibrate", "x.npz"], "--calibrate is for --to tflite"),
        ("tflite", ["--quantize", "int8"], "needs calibration data: give --calibrate"),
        ("tflite", ["--quantize", "int8", "--calibrate", "no.npz"], "no.npz"),
        ("torch", ["--inputs-nhwc", "image"], "--inputs-nhwc is for --to keras, tensorflow, savedmodel, tflite"),
        ("tensorflow", ["--inputs-nhwc", "picture"], "there is no input 'picture'"),
        ("tensorflow", ["--outputs-nhwc", "logits"], "only those of rank 3, 4 or 5 have channels"),
        ("tensorflow", ["--trainable", "tail.*"], "no weight is called 'tail.*'"),
    ],
)
def test_wrong_options(run: Run, tmp_path: Path, to: str, options: list[str], words: str) -> None:
    code, errors = run(DIGITS, to, tmp_path / "out", *options)
    assert code == 2 and words in errors and errors.splitlines()[-1].startswith("onward: ")
    assert list(tmp_path.iterdir()) == [], "nothing is written"


@pytest.mark.parametrize("to", ["savedmodel", "tflite"])
def test_a_rank_that_tracing_needs_and_nothing_tells(run: Run, tmp_path: Path, to: str) -> None:
    header = '<ir_version: 9, opset_import: ["" : 20]>'
    model = onnx.parser.parse_model(f"{header} g (float x, float[k] s) => (float y) {{ y = Resize(x, , s) }}")
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    code, said = run(tmp_path / "m.onnx", to, tmp_path / "out")
    assert code == 2 and "TensorFlow needs the rank of 'x'" in said and not (tmp_path / "out").exists()


def test_output_of_the_wrong_kind(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("mine")
    for to, out, words in [
        ("tensorflow", "file", "is a file; --out names a folder"),
        ("savedmodel", "file", "is a file; --out names a folder"),
        ("savedmodel", "folder", "holds something other than a SavedModel"),
        ("tflite", "folder", "is a folder; --out names a file"),
        ("tflite", "file/x.tflite", "is a file; --out names a file in a folder"),
    ]:
        code, errors = run(DIGITS, to, tmp_path / out)
        assert code == 2 and words in errors
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("to", ["tensorflow", "savedmodel", "tflite"])
def test_without_tensorflow(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, errors = run(DIGITS, to, tmp_path / "out")
    assert code == 2 and "TensorFlow is not installed: pip install 'onward[tensorflow]'" in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("version", "runs"), [("2.15.1", False), ("2.16.2", True), ("2.21.0", True), ("3.0.0", True)])
def test_a_version_that_is_too_old_is_refused(version: str, runs: bool) -> None:
    if runs:
        check_version(version)
    else:
        with pytest.raises(OnwardError, match=r"needs 2\.16 or newer"):
            check_version(version)
