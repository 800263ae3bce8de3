"""What a .skops file holds: its classes and functions are those that estimators are known to be made of, or refused.

A name in the file is looked up in tables that are made of scikit-learn, numpy and scipy as they are installed. It is
never imported to see what it is: that alone can execute something.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from onward.errors import InvalidModelError

CONTAINERS = {
    *(f"builtins.{name}" for name in ("dict", "list", "set", "frozenset", "tuple", "slice", "bytes", "bytearray")),
    *("collections.OrderedDict", "collections.defaultdict", "sklearn.utils._bunch.Bunch"),
}
PRIMITIVES = {f"builtins.{name}" for name in ("int", "float", "str", "bool", "complex", "NoneType")} | CONTAINERS
HELPERS = (
    *("sklearn._loss._loss", "sklearn._loss.loss", "sklearn._loss.link", "sklearn.linear_model._sgd_fast"),
    *("sklearn.linear_model._glm._newton_solver", "sklearn.tree._tree", "sklearn.neighbors._kd_tree"),
    *("sklearn.neighbors._ball_tree", "sklearn.metrics._dist_metrics", "sklearn.gaussian_process.kernels"),
    *("sklearn.ensemble._hist_gradient_boosting.binning", "sklearn.ensemble._hist_gradient_boosting.predictor"),
    *("sklearn.calibration", "sklearn.cluster._bisect_k_means", "sklearn.neighbors._quad_tree"),
    *("sklearn.metrics._scorer", "sklearn.model_selection._split", "sklearn.utils._metadata_requests"),
    *("sklearn.neural_network._stochastic_optimizers",),
)
"""Modules whose classes fitted estimators hold, beside other estimators: trees, losses, kernels, distances."""
BOOSTERS = {"xgboost": ("xgboost.sklearn", "xgboost.core"), "lightgbm": ("lightgbm.sklearn", "lightgbm.basic")}
BOOSTER = {"xgboost.core.Booster", "lightgbm.basic.Booster"}
SCIPY = {
    "scipy.interpolate._bsplines.BSpline",
    "scipy.interpolate._interpolate.interp1d",
    *(f"scipy.sparse._{kind}.{kind}_{form}" for kind in ("csr", "csc", "coo") for form in ("array", "matrix")),
}
COMPUTING = (
    *("sklearn.feature_selection._univariate_selection", "sklearn.feature_selection._mutual_info"),
    *("sklearn.metrics.pairwise", "sklearn.metrics._regression", "sklearn.metrics._classification"),
    *("sklearn.metrics._ranking", "sklearn.preprocessing._function_transformer", "sklearn.linear_model._base"),
    *("sklearn.utils._array_api", "sklearn.gaussian_process._gpr", "sklearn.cluster._kmeans"),
)
"""Modules whose functions estimators hold: they compute scores, distances and kernels of arrays, and nothing else."""
ARRAY_FUNCTIONS = ("mean", "median", "sum", "max", "min", "amax", "amin", "std", "var", "nan_to_num", "clip", "round")
ALIASES = {
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "sklearn.externals.array_api_compat.numpy._aliases.asarray",
}

CLASSES = {"ObjectNode", "ConstructorFromReduceNode", "TreeNode", "LossNode", "ReduceNode"}
ARRAYS = {"NdArrayNode", "MaskedArrayNode", "DTypeNode", "RandomStateNode", "RandomGeneratorNode", "SparseMatrixNode"}
HOLDING = {"DictNode", "DefaultDictNode", "ListNode", "SetNode", "TupleNode", "SliceNode", "BytesNode", "BytearrayNode"}
READ = {"JsonNode", "CachedNode"}


def dangers(schema: dict[str, Any]) -> Iterator[str]:
    """What would be executed of a file, by the contents of its schema.json."""
    old = schema.get("protocol") == 0
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                yield from _node_dangers(part, old)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _node_dangers(node: dict[str, Any], old: bool) -> Iterator[str]:
    loader, name = node["__loader__"], _name(node.get("__module__"), node.get("__class__"))
    if loader in READ:
        return
    if loader == "FunctionNode":
        content = node.get("content")
        if old and isinstance(content, dict):
            name = _name(content.get("module_path"), content.get("function"))
        if name not in _functions():
            yield f"it holds the function {name}"
    elif loader == "PartialNode":
        if name != "functools.partial":
            yield f"it holds an object of {name}"
    elif loader == "TypeNode":
        if name not in PRIMITIVES and not _is_array(name) and not _is_class(name):
            yield f"it holds the class {name}"
    elif loader in HOLDING:
        if name not in CONTAINERS:
            yield f"it holds an object of {name}"
    elif loader in ARRAYS:
        if not _is_array(name) or (old and loader == "RandomGeneratorNode"):
            yield f"it holds an array of {name}"
    elif loader not in CLASSES:
        yield f"it holds an object of {name}, made by {str(loader)[:80]}"
    elif not _is_class(name):
        yield f"it holds an object of {name}"


def _name(module: Any, name: Any) -> str:
    if not isinstance(module, str) or not isinstance(name, str):
        raise InvalidModelError("a class in it has no name")
    return f"{module}.{name}"[:200]


def _is_class(name: str) -> bool:
    return name in _classes() or name in _boosters(name.partition(".")[0]) or name in SCIPY


def _is_array(name: str) -> bool:
    return name in SCIPY or name in _array_types()


@cache
def _classes() -> frozenset[str]:
    """Estimators of scikit-learn, public or not, and what they hold; its tests and loaders of data are none."""
    from sklearn.base import BaseEstimator
    from sklearn.utils import all_estimators

    all_estimators()  # imports all modules of scikit-learn
    loaded = [
        module for name, module in sorted(sys.modules.items()) if name.startswith("sklearn.") and ".tests" not in name
    ]
    found = _defined(loaded, lambda value: inspect.isclass(value) and issubclass(value, BaseEstimator))
    return found | _defined(_modules(HELPERS), inspect.isclass)


@cache
def _boosters(package: str) -> frozenset[str]:
    """Of boosted trees, which are estimators of scikit-learn as well."""
    if package not in BOOSTERS or importlib.util.find_spec(package) is None:
        return frozenset()
    from sklearn.base import BaseEstimator

    found = _defined(_modules(BOOSTERS[package]), lambda one: inspect.isclass(one) and issubclass(one, BaseEstimator))
    return found | BOOSTER


@cache
def _functions() -> frozenset[str]:
    import numpy as np
    from skops.io._trusted_types import NUMPY_UFUNC_TYPE_NAMES, SCIPY_UFUNC_TYPE_NAMES

    arrays = {f"numpy.{name}" for name in ARRAY_FUNCTIONS if callable(getattr(np, name, None))}
    return (
        _defined(_modules(COMPUTING), inspect.isfunction)
        | arrays
        | ALIASES
        | {
            *NUMPY_UFUNC_TYPE_NAMES,
            *SCIPY_UFUNC_TYPE_NAMES,
        }
    )


@cache
def _array_types() -> frozenset[str]:
    import numpy as np

    numbers = {_full(one) for one in np.sctypeDict.values()}
    others = [np.ndarray, np.ma.MaskedArray, np.dtype, np.random.RandomState, np.random.Generator]
    return frozenset(numbers | {_full(one) for one in others} | {"numpy.ma.core.MaskedArray"})


def _modules(names: Iterable[str]) -> list[Any]:
    """Those of a list of ours that this version has."""
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            continue
    return found


def _defined(modules: Iterable[Any], wanted: Callable[[Any], bool]) -> frozenset[str]:
    """The full names of what modules define themselves, as opposed to what they import."""
    return frozenset(
        _full(value)
        for module in modules
        for value in vars(module).values()
        if wanted(value) and value.__module__ == module.__name__
    )


def _full(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"
