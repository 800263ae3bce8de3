"""Onward moves machine-learning models between frameworks through ONNX, and proves that they stay the same."""

from typing import TYPE_CHECKING, Any

from onward.deferred import defer
from onward.version import __version__ as __version__

defer()

if TYPE_CHECKING:
    from onward import plugins, training
    from onward.conversion.convert import convert
    from onward.conversion.inspect import inspect
    from onward.conversion.partition import partition
    from onward.conversion.view import view
    from onward.dataframes import pipeline, run, split
    from onward.editing.diff import diff
    from onward.editing.extract import extract
    from onward.editing.merge import merge
    from onward.errors import OnwardError
    from onward.exporters import (
        from_dataframe,
        from_jax,
        from_keras,
        from_lightgbm,
        from_sklearn,
        from_stablehlo,
        from_tensorflow,
        from_tflite,
        from_torch,
        from_xgboost,
    )
    from onward.frontends.dataframe.fitted import fitted
    from onward.importers import to_jax, to_keras, to_savedmodel, to_tensorflow, to_tflite, to_torch
    from onward.model import Model, load
    from onward.scoring.score import score
    from onward.verification.verify import verify

_HOMES = {
    "Model": "onward.model",
    "OnwardError": "onward.errors",
    "convert": "onward.conversion.convert",
    "diff": "onward.editing.diff",
    "extract": "onward.editing.extract",
    "fitted": "onward.frontends.dataframe.fitted",
    "from_dataframe": "onward.exporters",
    "from_jax": "onward.exporters",
    "from_keras": "onward.exporters",
    "from_lightgbm": "onward.exporters",
    "from_sklearn": "onward.exporters",
    "from_stablehlo": "onward.exporters",
    "from_tensorflow": "onward.exporters",
    "from_tflite": "onward.exporters",
    "from_torch": "onward.exporters",
    "from_xgboost": "onward.exporters",
    "inspect": "onward.conversion.inspect",
    "load": "onward.model",
    "merge": "onward.editing.merge",
    "partition": "onward.conversion.partition",
    "pipeline": "onward.dataframes",
    "run": "onward.dataframes",
    "score": "onward.scoring.score",
    "split": "onward.dataframes",
    "to_jax": "onward.importers",
    "to_keras": "onward.importers",
    "to_savedmodel": "onward.importers",
    "to_tensorflow": "onward.importers",
    "to_tflite": "onward.importers",
    "to_torch": "onward.importers",
    "verify": "onward.verification.verify",
    "view": "onward.conversion.view",
}

__all__ = [
    "Model",
    "OnwardError",
    "convert",
    "diff",
    "extract",
    "fitted",
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
    "inspect",
    "load",
    "merge",
    "partition",
    "pipeline",
    "plugins",
    "run",
    "score",
    "split",
    "to_jax",
    "to_keras",
    "to_savedmodel",
    "to_tensorflow",
    "to_tflite",
    "to_torch",
    "training",
    "verify",
    "view",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: `import onward` itself loads next to nothing."""
    import importlib

    if name in ("plugins", "training"):
        return importlib.import_module(f"onward.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'onward' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
