"""`onward convert` from any framework to any other: each leg is proven against the original's own output."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from onward.cli import main  # noqa: E402
from onward.formats import kind_of, kinds  # noqa: E402


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 3)).eval()


def program(folder: Path) -> Path:
    dims = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(network(), (torch.randn(2, 4),), dynamic_shapes=dims), folder / "net.pt2")
    return folder / "net.pt2"


def keras_file(folder: Path) -> Path:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(3)])
    model.save(folder / "net.keras")
    return folder / "net.keras"


def saved_model(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    module = tf.Module()
    module.w = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))
    module.f = tf.function(lambda x: tf.nn.relu(x @ module.w), [tf.TensorSpec([None, 4], name="x")])
    tf.saved_model.save(module, str(folder / "saved"), signatures=module.f)
    return folder / "saved"


def tflite_file(folder: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    made = tf.lite.TFLiteConverter.from_keras_model(
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh")])
    )
    (folder / "net.tflite").write_bytes(made.convert())
    return folder / "net.tflite"


def skops_file(folder: Path) -> Path:
    pytest.importorskip("skl2onnx")
    dump = pytest.importorskip("skops.io").dump
    linear = pytest.importorskip("sklearn.linear_model")
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)).numpy()
    dump(linear.LogisticRegression().fit(x, (x[:, 0] > 0).astype(int)), folder / "net.skops")
    return folder / "net.skops"


CHAINS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "keras to torch": (keras_file, "torch", "Keras model"),
    "torch to tflite": (program, "tflite", "exported PyTorch program"),
    "torch to torch": (program, "torch", "exported PyTorch program"),
    "savedmodel to torch": (saved_model, "torch", "SavedModel"),
    "sklearn to torch": (skops_file, "torch", "scikit-learn estimator"),
    "tflite to torch": (tflite_file, "torch", "TensorFlow Lite model"),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chain(chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, target, kind = CHAINS[chain]
    if target == "tflite":
        pytest.importorskip("tensorflow")
    source, out = make(tmp_path), tmp_path / "result"
    nameless = source.rename(source.with_name("nameless"))  # told by what is in it
    assert main(["convert", str(nameless), "--to", target, "--out", str(out)]) == 0
    said = capsys.readouterr().err
    assert re.search(rf"{kind} to ONNX, verified: worst error .* against {nameless} \({kind}\)", said)
    assert re.search(rf"{kind} to {target}, verified: worst error .* against {nameless} \({kind}\)", said)
    assert out.exists()


def test_a_result_that_differs_from_the_original_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_models.py").write_text(
        "import torch\n\n\nclass Odd(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x + (1 if torch.compiler.is_exporting() else 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ["convert", "odd_models:Odd", "--input", "x:float32[n,3]", "--to", "onnx", "--out", "odd.onnx"]
    assert main(arguments) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "odd.onnx").exists()


SOURCES = """import torch
from torch import nn


def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())


class Lost(nn.Module):
    def forward(self, x):
        return torch.special.zeta(x, x)


def broken():
    raise ValueError("no weights today")


number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's, which is not known before or after."""
    (tmp_path / "own_models.py").write_text(SOURCES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    return tmp_path


def test_an_object_by_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["convert", "own_models:build", "--to", "onnx", "--out", "net.onnx"]
    assert main([*arguments, "--input", "image:float32[batch,3,H,W]"]) == 0
    assert "verified: worst error" in capsys.readouterr().err
    (given,) = onnx.load("net.onnx").graph.input
    assert given.name == "image"
    assert [d.dim_param or d.dim_value for d in given.type.tensor_type.shape.dim] == ["batch", 3, "H", "W"]


DECODERS = """
import torch, transformers

SIZES = dict(vocab_size=31, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)


def llama():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))


def t5():
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=31, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    return transformers.T5ForConditionalGeneration(config)
"""
STEPS = {
    "llama": ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"],
    "t5": [
        "input_ids",
        "encoder_hidden_states",
        "encoder_attention_mask",
        *(f"past_key_values.0.{side}.{kind}" for side in ("decoder", "encoder") for kind in ("key", "value")),
    ],
}


@pytest.mark.parametrize("name", STEPS)
def test_a_language_model_with_its_cache(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    (here / "own_decoders.py").write_text(DECODERS)
    sys.modules.pop("own_decoders", None)
    assert main(["convert", f"own_decoders:{name}", "--cache", "--to", "onnx", "--out", "step.onnx"]) == 0
    assert "over 3 sets of inputs" in capsys.readouterr().err
    assert [value.name for value in onnx.load("step.onnx").graph.input] == STEPS[name]
    assert main(["convert", f"own_decoders:{name}", "--cache", "--to", "torch", "--out", "step"]) == 0
    assert capsys.readouterr().err.count("over 3 sets of inputs") == 2


def test_a_whole_module_needs_trust(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(network(), "net.pt")
    arguments = ["convert", "net.pt", "--input", "x:float32[n,4]", "--to", "onnx", "--out", "net.onnx"]
    assert main(arguments) == 2
    assert "--trust opens it" in capsys.readouterr().err
    assert main([*arguments, "--trust"]) == 0


def test_a_generated_package_is_a_source(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(program(here)), "--to", "torch", "--out", "package", "--no-verify"]) == 0
    arguments = ["convert", "package", "--input", "x:float32[n,4]", "--to", "onnx", "--out", "net.onnx"]
    assert main(arguments) == 0
    with (here / "package" / "model.py").open("a") as file:
        file.write("\n")
    assert main(arguments) == 2
    assert "model.py is Python code" in capsys.readouterr().err
    assert main([*arguments, "--trust"]) == 0


BAD: dict[str, tuple[list[str], str]] = {
    "unknown": (
        ["own_models.py"],
        r"not recognised as a model; Onward recognises ONNX .*SavedModel \(a folder with",
    ),
    "folder": (["."], "not recognised as a model; Onward recognises"),
    "missing": (["missing.pt2"], "does not exist"),
    "state dict": (["weights.pt"], r"it holds weights \(0.weight, 0.bias, 2.weight, …\), and no module"),
    "pickle": (["object.pkl"], "it is a pickle, which could execute anything when it is opened; --trust opens it"),
    "no model in a pickle": (["object.pkl", "--trust"], "an object of builtins.dict, which is not a model"),
    "script": (["script.pt"], "it is a TorchScript program"),
    "no input": (["own_models:build"], "give --input"),
    "no cache": (["own_models:build", "--cache"], "--cache takes a language model of transformers"),
    "cache and input": (
        ["own_models:build", "--cache", "--input", "x:int64"],
        "the inputs follow from the model: leave out --input",
    ),
    "bad input": (["own_models:build", "--input", "x float32"], "is not understood"),
    "bad dtype": (["own_models:build", "--input", "x:float33[2]"], "'float33' is not a dtype"),
    "bad dimension": (["own_models:build", "--input", "x:float32[2,-1]"], "a dimension is a number or a name"),
    "input twice": (["own_models:build", "--input", "x:int64", "--input", "x:int64"], "'x' is given twice"),
    "code fails": (["own_models:broken"], "ValueError: no weights today"),
    "no model": (["own_models:number"], "does not recognise an object of builtins.int as a model"),
    "no such name": (["own_models:nothing"], "has no attribute 'nothing'"),
    "no such module": (["no_models:nothing"], "No module named 'no_models'"),
    "no translation": (["own_models:Lost", "--input", "x:float32[2]"], "there is no translation of prims.zeta to ONNX"),
    "cut short": (["cut.pt2"], "not recognised as a model"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sources(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = BAD[name]
    torch.save(network().state_dict(), "weights.pt")
    (here / "object.pkl").write_bytes(pickle.dumps({"a": 1}))
    if name == "script":
        torch.jit.script(network()).save("script.pt")
    if name == "cut short":
        (here / "cut.pt2").write_bytes(program(here).read_bytes()[:2000])
    before = {path.name for path in here.iterdir()}
    assert main(["convert", *arguments, "--to", "onnx", "--out", "out.onnx"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("onward: ") and said.count("\n") == 1
    assert re.search(words, said)
    assert {path.name for path in here.iterdir()} - {"__pycache__"} == before - {"__pycache__"}


def test_a_pickle_is_not_opened_unless_trusted(here: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
            return exec, ("open('sprung', 'w').close()",)

    (here / "trap.pkl").write_bytes(pickle.dumps(Trap()))
    torch.save(Trap(), "trap.pt")
    for name in ("trap.pkl", "trap.pt"):
        assert main(["convert", name, "--to", "onnx", "--out", "out.onnx"]) == 2
    assert not (here / "sprung").exists()


def test_kinds_say_what_they_are_recognised_by(tmp_path: Path) -> None:
    assert all(kind.sign for kind in kinds())
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert kind_of(empty) is None
