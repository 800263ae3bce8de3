"""Models of frameworks as ONNX models, each run beside the original before it is handed over."""

from onward.exporters.jax import from_jax, from_stablehlo
from onward.exporters.tables import from_dataframe, from_lightgbm, from_sklearn, from_xgboost
from onward.exporters.tensorflow import from_keras, from_tensorflow, from_tflite
from onward.exporters.torch import from_torch

__all__ = [
    "from_dataframe",
    "from_jax",
    "from_keras",
    "from_lightgbm",
    "from_sklearn",
    "from_stablehlo",
    "from_tensorflow",
    "from_tflite",
    "from_torch",
    "from_xgboost",
]
