"""Training: any ONNX model becomes trainable, as an ordinary ONNX graph."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onward.training.autodiff.derivatives import gradient
    from onward.training.capture.jax import from_jax
    from onward.training.capture.keras import from_keras
    from onward.training.capture.tensorflow import from_tensorflow
    from onward.training.capture.torch import from_torch
    from onward.training.export import to_jax_package, to_keras_package, to_tensorflow_package, to_torch_package
    from onward.training.info.check import check
    from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
    from onward.training.info.read import load
    from onward.training.parallel.launch import on_workers
    from onward.training.parallel.transports import ReduceBy, reduce_by_mpi, reduce_by_torch
    from onward.training.recipe.adapters import lora
    from onward.training.recipe.by_shape import Adafactor, Muon
    from onward.training.recipe.ctc import CTC
    from onward.training.recipe.groups import Group
    from onward.training.recipe.losses import (
        L1,
        BinaryCrossEntropy,
        CausalLM,
        CrossEntropy,
        Huber,
        KLDivergence,
        MeanSquaredError,
        NegativeLogLikelihood,
        Penalty,
        Term,
    )
    from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
    from onward.training.recipe.schedules import Constant, Cosine, Linear, Steps, Table, Warmup
    from onward.training.recipe.user_models import OnnxLoss, OnnxOptimizer
    from onward.training.runtime.callbacks import Callback
    from onward.training.runtime.tensorboard import TensorBoard
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable, prepare
    from onward.training.verification.verify import verify

_HOMES = {
    "recipe.adapters": ("lora",),
    "capture.torch": ("from_torch",),
    "capture.jax": ("from_jax",),
    "capture.keras": ("from_keras",),
    "capture.tensorflow": ("from_tensorflow",),
    "recipe.ctc": ("CTC",),
    "autodiff.derivatives": ("gradient",),
    "recipe.user_models": ("OnnxLoss", "OnnxOptimizer"),
    "export": ("to_jax_package", "to_keras_package", "to_tensorflow_package", "to_torch_package"),
    "recipe.groups": ("Group",),
    "info.read": ("load",),
    "info.check": ("check",),
    "recipe.losses": (
        "BinaryCrossEntropy",
        "CausalLM",
        "CrossEntropy",
        "Huber",
        "KLDivergence",
        "L1",
        "MeanSquaredError",
        "NegativeLogLikelihood",
        "Penalty",
        "Term",
    ),
    "recipe.by_shape": ("Adafactor", "Muon"),
    "recipe.optimizers": ("LAMB", "SGD", "Adagrad", "Adam", "AdamW", "RMSprop"),
    "recipe.schedules": ("Constant", "Cosine", "Linear", "Steps", "Table", "Warmup"),
    "info.preview_ops": ("OnnxAdagrad", "OnnxAdam", "OnnxMomentum"),
    "trainable": ("Trainable", "prepare"),
    "runtime.callbacks": ("Callback",),
    "runtime.tensorboard": ("TensorBoard",),
    "runtime.trainer": ("Trainer",),
    "verification.verify": ("verify",),
    "parallel.transports": ("ReduceBy", "reduce_by_mpi", "reduce_by_torch"),
    "parallel.launch": ("on_workers",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CTC",
    "L1",
    "LAMB",
    "SGD",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "BinaryCrossEntropy",
    "Callback",
    "CausalLM",
    "Constant",
    "Cosine",
    "CrossEntropy",
    "Group",
    "Huber",
    "KLDivergence",
    "Linear",
    "MeanSquaredError",
    "Muon",
    "NegativeLogLikelihood",
    "OnnxAdagrad",
    "OnnxAdam",
    "OnnxLoss",
    "OnnxMomentum",
    "OnnxOptimizer",
    "Penalty",
    "RMSprop",
    "ReduceBy",
    "Steps",
    "Table",
    "TensorBoard",
    "Term",
    "Trainable",
    "Trainer",
    "Warmup",
    "check",
    "from_jax",
    "from_keras",
    "from_tensorflow",
    "from_torch",
    "gradient",
    "load",
    "lora",
    "on_workers",
    "prepare",
    "reduce_by_mpi",
    "reduce_by_torch",
    "to_jax_package",
    "to_keras_package",
    "to_tensorflow_package",
    "to_torch_package",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used."""
    if name in _HOME_OF:
        import importlib

        return getattr(importlib.import_module(f"onward.training.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'onward.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
