"""Training: any ONNX model becomes trainable, as an ordinary ONNX graph."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onward.training.adapters import lora
    from onward.training.capture import from_torch
    from onward.training.capture_keras import from_keras
    from onward.training.capture_tensorflow import from_tensorflow
    from onward.training.ctc import CTC
    from onward.training.derivatives import gradient
    from onward.training.embed import OnnxLoss, OnnxOptimizer
    from onward.training.export import to_torch_package
    from onward.training.groups import Group
    from onward.training.info import load
    from onward.training.info_check import check
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
    "adapters": ("lora",),
    "capture": ("from_torch",),
    "capture_keras": ("from_keras",),
    "capture_tensorflow": ("from_tensorflow",),
    "ctc": ("CTC",),
    "derivatives": ("gradient",),
    "embed": ("OnnxLoss", "OnnxOptimizer"),
    "export": ("to_torch_package",),
    "groups": ("Group",),
    "info": ("load",),
    "info_check": ("check",),
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
    "CTC",
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
    "from_keras",
    "from_tensorflow",
    "from_torch",
    "gradient",
    "load",
    "lora",
    "prepare",
    "to_torch_package",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used."""
    if name in _HOME_OF:
        import importlib

        return getattr(importlib.import_module(f"onward.training.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'onward.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
