"""The other ONNX-to-PyTorch converters, for comparison in the same run. Neither is a dependency of Onward.

Both import torchvision for a handful of detection ops. Where torchvision is missing or does not fit the
installed torch, a stand-in lets them import: an op that needs it fails, every other is the peer's own code.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
from torch import nn

NAMES = ("onnx2torch", "onnx2pytorch")


def onnx2torch(path: str | Path) -> nn.Module:
    return _import("onnx2torch").convert(str(path))


def onnx2pytorch(path: str | Path) -> nn.Module:
    return _import("onnx2pytorch").ConvertModel(onnx.load(path))


def remark() -> str:
    """What to say beside the peers' results."""
    if isinstance(_torchvision(), _StandIn):
        return "torchvision does not work here: the peers ran with a stand-in for it, which has no ops."
    return ""


def _import(name: str) -> Any:
    _torchvision()
    return importlib.import_module(name)


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
