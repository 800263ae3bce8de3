"""Other converters, for comparison in the same run. None is a dependency of Onward.

onnx2torch and onnx2pytorch import torchvision for a handful of detection ops. Where torchvision is missing or does not
fit the installed torch, a stand-in lets them import: an op that needs it fails, every other is the peer's own code.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import torch
from torch import nn

import onward
from onward.backends.torch.values import to_framework, to_numpy
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs, Run
from onward.zoo.peers import Peer

NAMES = ("onnx2torch", "onnx2pytorch")
PYTHON = "ONWARD_TF2ONNX"
"""The environment variable with the Python of the environment that tf2onnx is in."""
OPSET = 18
"""The newest that tf2onnx writes."""
FROM_KERAS = """
import sys
import keras
import tf2onnx
try:
    net = keras.models.load_model(sys.argv[1], compile=False)
except Exception:  # a file of Keras 2
    import tf_keras
    net = tf_keras.models.load_model(sys.argv[1], compile=False)
tf2onnx.convert.from_keras(net, opset=int(sys.argv[3]), output_path=sys.argv[2])
"""


def chosen(to_torch: bool, to_onnx: bool) -> dict[str, Peer]:
    """As `onward.zoo` takes them."""
    found = {name: Peer(name, RUNS[name], frozenset({"onnx"})) for name in NAMES if to_torch}
    if to_onnx:
        found["tf2onnx"] = Peer("onnxruntime", with_tf2onnx, frozenset({"tflite", "savedmodel", "keras", "h5"}))
    return found


def with_onnx2torch(path: Path) -> Run:
    return _as_run(onnx2torch(path), path)


def with_onnx2pytorch(path: Path) -> Run:
    return _as_run(onnx2pytorch(path), path)


def _as_run(net: nn.Module, path: Path) -> Run:
    """Outputs go by the names and the order that the model has them in."""
    names = [output.name for output in onnx.load(path, load_external_data=False).graph.output]
    net.eval()

    def run(inputs: Inputs) -> Outputs:
        with torch.inference_mode():
            outputs = net(*(to_framework(value) for value in inputs.values()))
        values = outputs if len(names) > 1 and isinstance(outputs, list | tuple) else [outputs]
        return dict(zip(names, map(to_numpy, values), strict=True))

    return run


def with_tf2onnx(path: Path) -> Run:
    """In its own environment; what it makes runs on ONNX Runtime here, its inputs and outputs by their places."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "net.onnx"
        options = ["--output", str(out), "--opset", str(OPSET)]
        if path.is_dir():
            command = ["-m", "tf2onnx.convert", "--saved-model", str(path), *options]
        elif path.suffix == ".tflite":
            command = ["-m", "tf2onnx.convert", "--tflite", str(path), *options]
        else:
            command = ["-c", FROM_KERAS, str(path), str(out), str(OPSET)]
        done = subprocess.run([os.environ[PYTHON], *command], capture_output=True, text=True, check=False)
        if done.returncode or not out.is_file():
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise RuntimeError(said[-1] if said else f"exit code {done.returncode}")
        model = onward.load(out.read_bytes())
    session = prepare("onnxruntime", model)
    names = [value.name or "" for value in model.ir.graph.inputs if not value.is_initializer()]
    return lambda inputs: session(dict(zip(names, inputs.values(), strict=True)))


RUNS = {"onnx2torch": with_onnx2torch, "onnx2pytorch": with_onnx2pytorch}


def onnx2torch(path: str | Path) -> nn.Module:
    return importlib.import_module("onnx2torch").convert(str(path))


def onnx2pytorch(path: str | Path) -> nn.Module:
    return importlib.import_module("onnx2pytorch").ConvertModel(onnx.load(path))


def remark() -> str:
    """What to say beside the peers' results."""
    if isinstance(_torchvision(), _StandIn):
        return "torchvision does not work here: the peers ran with a stand-in for it, which has no ops."
    return ""


def _torchvision() -> ModuleType:
    try:
        return importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        for broken in [key for key in sys.modules if key.split(".")[0] == "torchvision"]:
            del sys.modules[broken]
        for part in ("torchvision", "torchvision.ops", "torchvision.io"):
            sys.modules[part] = _StandIn(part)
        return sys.modules["torchvision"]


class _StandIn(ModuleType):
    """Has every name; calling one says that torchvision is not usable."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def unusable(*args: object, **kwargs: object) -> None:
            raise RuntimeError(f"torchvision.{name}: torchvision is not usable with this torch")

        return sys.modules.get(f"{self.__name__}.{name}", unusable)


_torchvision()  # whoever imports a peer finds it, or the stand-in
