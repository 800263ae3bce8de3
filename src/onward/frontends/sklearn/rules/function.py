"""FunctionTransformer: functions of numpy on arrays, and functions on data frames as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.decompose.special import expm1, log1p
from onward.frontends.sklearn.frames import applied
from onward.frontends.sklearn.registry import rule
from onward.frontends.sklearn.table import Data, Table
from onward.frontends.sklearn.writer import Writer


@rule("FunctionTransformer", as_given=True)
def function(op: Writer, model: Any, x: Data) -> Mapping[str, Data]:
    if model.func is None or _only_checks(model.func):
        return {"transform": op.plain(x) if model.validate or model.func is not None else x}
    is_framed = isinstance(x, Table) and x.rows is not None and not model.validate
    if isinstance(x, Table) and is_framed and not isinstance(model.func, np.ufunc):
        return {"transform": applied(op, model, x)}
    if model.kw_args:
        raise UnsupportedError("FunctionTransformer: arguments of its function have no rule")
    return {"transform": function_of(op, model.func)(op.matrix(x))}


def _only_checks(function: Any) -> bool:
    """Whether it is scikit-learn's own check of arrays, which returns them as they are."""
    from sklearn.utils import check_array

    return isinstance(function, partial) and function.func is check_array


def function_of(op: Writer, function: Any) -> Any:
    """The ops of a function of numpy; any other is Python, which is not translated."""
    known = {
        np.abs: op.Abs,
        np.cos: op.Cos,
        np.exp: op.Exp,
        np.expm1: lambda x: expm1(op, x),
        np.log: op.Log,
        np.log10: lambda x: op.Log(x) / float(np.log(10.0)),
        np.log1p: lambda x: log1p(op, x),
        np.log2: lambda x: op.Log(x) / float(np.log(2.0)),
        np.negative: op.Neg,
        np.reciprocal: op.Reciprocal,
        np.sign: op.Sign,
        np.sin: op.Sin,
        np.sqrt: op.Sqrt,
        np.square: lambda x: x * x,
        np.tanh: op.Tanh,
    }
    if function not in known:
        name = getattr(function, "__name__", type(function).__name__)
        raise UnsupportedError(
            f"the function {name} is given an array: it is translated where it is given a data frame, so give a data"
            " frame as the sample, and leave out validate=True; functions of numpy, such as log1p, take arrays too"
        )
    return known[function]
