"""Training: any ONNX model becomes trainable, as an ordinary ONNX graph."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onward.training.capture import from_torch
    from onward.training.embed import OnnxLoss, OnnxOptimizer
    from onward.training.export import to_torch_package
    from onward.training.gradient import gradient
    from onward.training.groups import Group
    from onward.training.info import load
    from onward.training.info_check import check
    from onward.training.lora import lora
    from onward.training.losses import (
        L1,
        BinaryCrossEntropy,
        CrossEntropy,
        Huber,
        KLDivergence,
        MeanSquaredError,
        NegativeLogLikelihood,
        Penalty,
        Term,
    )
    from onward.training.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
    from onward.training.schedules import Constant, Cosine, Linear, Steps, Warmup
    from onward.training.standard import OnnxAdagrad, OnnxAdam, OnnxMomentum
    from onward.training.trainable import Trainable, prepare
    from onward.training.trainer import Trainer

_HOMES = {
    "capture": ("from_torch",),
    "embed": ("OnnxLoss", "OnnxOptimizer"),
    "export": ("to_torch_package",),
    "gradient": ("gradient",),
    "groups": ("Group",),
    "info": ("load",),
    "info_check": ("check",),
    "lora": ("lora",),
    "losses": (
        "BinaryCrossEntropy",
        "CrossEntropy",
        "Huber",
        "KLDivergence",
        "L1",
        "MeanSquaredError",
        "NegativeLogLikelihood",
        "Penalty",
        "Term",
    ),
    "optimizers": ("LAMB", "SGD", "Adagrad", "Adam", "AdamW", "RMSprop"),
    "schedules": ("Constant", "Cosine", "Linear", "Steps", "Warmup"),
    "standard": ("OnnxAdagrad", "OnnxAdam", "OnnxMomentum"),
    "trainable": ("Trainable", "prepare"),
    "trainer": ("Trainer",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "L1",
    "LAMB",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "BinaryCrossEntropy",
    "Constant",
    "Cosine",
    "CrossEntropy",
    "Group",
    "Huber",
    "KLDivergence",
    "Linear",
    "MeanSquaredError",
    "NegativeLogLikelihood",
    "OnnxAdagrad",
    "OnnxAdam",
    "OnnxLoss",
    "OnnxMomentum",
    "OnnxOptimizer",
    "Penalty",
    "RMSprop",
    "Steps",
    "Term",
    "Trainable",
    "Trainer",
    "Warmup",
    "check",
    "from_torch",
    "gradient",
    "load",
    "lora",
    "prepare",
    "to_torch_package",
]


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """An import of the file `gradient` would put it in the place of the function of that name."""
        if name not in _HOME_OF or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Public names are imported when first used."""
    if name in _HOME_OF:
        import importlib

        return getattr(importlib.import_module(f"onward.training.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'onward.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
