"""The features of a credit model as an ONNX graph written by hand: what a conversion is measured against.

A column is (N, 1); in floats NaN is missing, times are int64 microseconds, and a missing string has True in
`<column>.null`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pandas as pd
from credit_features import AGES, GRADES, NAMES, NUMBERS, PUBLIC, STRINGS, TIMES, UNEMPLOYMENT
from onnx import TensorProto, helper, numpy_helper

DAY = 86_400_000_000
CYCLE = 146_097
"""The days of 400 years, after which months and days of the week repeat."""
INTS = ("term", "score", "late")
BOOL, DOUBLE, INT64, STRING = TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
ML = "ai.onnx.ml"
NAT = np.iinfo(np.int64).min


class Graph:
    """Nodes and constants; an op is called with the names of its inputs, and with the name of its output if need be."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[tuple[str, str], str] = {}

    def constant(self, value: Any, dtype: Any = "float64") -> str:
        """A number as (1, 1): with a scalar or (1,), ONNX Runtime takes a column row by row, 40 times as slow."""
        array = np.asarray(value, dtype)
        array = array.reshape(1, 1) if array.ndim == 0 else array
        name = self.names.setdefault((str(array.dtype), repr(array.tolist())), f"c{len(self.names)}")
        if name not in {one.name for one in self.initializers}:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        name = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name


def hand_written(with_strings: bool) -> onnx.ModelProto:
    """The model, with all features or with those without strings; the outputs are `out.<feature>`."""
    g = Graph()
    outputs = _numbers(g)
    columns = [helper.make_tensor_value_info(n, DOUBLE, ["N", 1]) for n in NUMBERS if n not in INTS]
    columns += [helper.make_tensor_value_info(n, INT64, ["N", 1]) for n in (*INTS, *TIMES)]
    if with_strings:
        outputs |= _strings(g)
        columns += [helper.make_tensor_value_info(n, STRING, ["N", 1]) for n in STRINGS]
        columns.append(helper.make_tensor_value_info("purpose.null", BOOL, ["M", 1]))
        g.initializers.append(numpy_helper.from_array(np.array([[False]]), "purpose.null"))
    results = [helper.make_tensor_value_info(f"out.{n}", dtype, ["N", 1]) for n, dtype in outputs.items()]
    graph = helper.make_graph(g.nodes, "credit", columns, results, g.initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 5)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model)
    return model


def _numbers(g: Graph) -> dict[str, int]:
    """The features of numbers and times, and their dtypes."""
    c = g.constant
    is_gone = g("IsNaN", "income", out="out.income_missing")
    age = g("Where", g("IsNaN", "age"), c(40), "age", out="out.age")
    dti = g("Div", "loan", g("Max", "income", c(1)), out="out.dti")
    _log1p(g, g("Max", g("Where", is_gone, c(0), "income"), c(0)), "out.log_income")
    g("Min", g("Max", g("Div", "balance", g("Max", "limit", c(1))), c(0)), c(2), out="out.utilization")
    g("Sub", "limit", "balance", out="out.free_limit")
    monthly = g("Div", "rate", c(1200))
    growth = g("Log", g("Add", monthly, c(1)))
    discount = g("Exp", g("Mul", growth, g("Cast", g("Neg", "term"), to=DOUBLE)))
    payment = g("Div", g("Mul", "loan", monthly), g("Sub", c(1), discount), out="out.payment")
    g("Div", payment, g("Div", "income", c(12)), out="out.payment_share")
    _age_band(g)
    bands = [g("Cast", g("GreaterOrEqual", "score", c(edge, "int64")), to=INT64) for edge in (580, 670, 740)]
    g("Add", g("Add", *bands[:2]), bands[2], out="out.score_band")
    is_late = g("Greater", "late", c(0, "int64"), out="out.is_late")
    g("Min", "late", c(3, "int64"), out="out.late_capped")
    tenure = g("Where", g("IsNaN", "employed_years"), c(0), "employed_years", out="out.tenure")
    g("And", g("GreaterOrEqual", tenure, c(2)), g("GreaterOrEqual", age, c(25)), out="out.stable")
    _times(g)
    risky = g("Or", is_late, g("Less", "score", c(600, "int64")))
    g("And", g("Greater", dti, c(0.4)), risky, out="out.high_risk")
    dtypes = dict.fromkeys(
        ("age", "dti", "income_missing", "log_income", "utilization", "free_limit", "payment", "payment_share"), DOUBLE
    )
    dtypes |= {"age_band": DOUBLE, "score_band": INT64, "is_late": BOOL, "late_capped": INT64, "tenure": DOUBLE}
    dtypes |= {"stable": BOOL, "month": DOUBLE, "weekend": BOOL, "history_years": DOUBLE, "high_risk": BOOL}
    return dtypes | {"income_missing": BOOL}


def _log1p(g: Graph, x: str, out: str) -> str:
    """Exact for small numbers, too: the rounding of 1 + x is divided out."""
    c = g.constant
    more = g("Add", x, c(1))
    rounded = g("Sub", more, c(1))
    exact = g("Div", g("Mul", x, g("Log", more)), rounded)
    return g("Where", g("Equal", rounded, c(0)), x, exact, out=out)


def _age_band(g: Graph) -> None:
    """How many of the inner edges an age is past, if it is inside of the outer ones."""
    c = g.constant
    past = [g("Cast", g("Greater", "age", c(edge)), to=DOUBLE) for edge in AGES[1:-1]]
    is_inside = g("And", g("Greater", "age", c(AGES[0])), g("LessOrEqual", "age", c(AGES[-1])))
    g("Where", is_inside, g("Add", g("Add", *past[:2]), past[2]), c(np.nan), out="out.age_band")


def _times(g: Graph) -> None:
    """Months repeat every 400 years, so that they are looked up by the day of that cycle.

    Times are moved by a multiple of the cycle, so that none is negative and division rounds down; and by three days
    more, so that a day divided by seven leaves the day of the week.
    """
    c = g.constant
    shift, three = 100 * CYCLE, 3
    is_gone = g("Equal", "applied", c(NAT, "int64"))
    day = g("Div", g("Add", "applied", c((shift + three) * DAY, "int64")), c(DAY, "int64"))
    dates = pd.date_range("1970-01-01", periods=CYCLE, unit="s")
    months = c(np.roll(dates.month, three).reshape(-1, 1), "int8")
    month = g("GatherElements", months, g("Mod", day, c(CYCLE, "int64")))
    g("Where", is_gone, c(np.nan), g("Cast", month, to=DOUBLE), out="out.month")
    is_late_in_week = g("Greater", g("Mod", day, c(7, "int64")), c(4, "int64"))
    g("And", is_late_in_week, g("Not", is_gone), out="out.weekend")
    gap = g("Add", g("Sub", "applied", "first_credit"), c(shift * DAY, "int64"))
    whole = g("Sub", g("Div", gap, c(DAY, "int64")), c(shift, "int64"))
    years = g("Div", g("Cast", whole, to=DOUBLE), c(365.25))
    is_open = g("Or", is_gone, g("Equal", "first_credit", c(NAT, "int64")))
    g("Where", is_open, c(np.nan), years, out="out.history_years")


def _strings(g: Graph) -> dict[str, int]:
    """The features of strings, and their dtypes; a missing string is fed as an empty one, which no table has."""
    _lookup(g, "grade", GRADES, 0.25, "out.grade_risk")
    home = _lookup(g, "purpose", {"home": True, "renovation": True}, False, "home")
    g("Cast", home, to=BOOL, out="out.is_home")
    g("Where", "purpose.null", g.constant([["none"]], object), "purpose", out="out.purpose")
    _lookup(g, "region", UNEMPLOYMENT, 5.5, "out.unemployment")
    g("RegexFullMatch", "employer", pattern=f"(?s).*({PUBLIC}).*", out="out.public")
    tiers = [g("Cast", g("GreaterOrEqual", "score", g.constant(edge, "int64")), to=DOUBLE) for edge in (620, 740)]
    _lookup(g, g("Add", *tiers), dict(enumerate(["sub", "near", "prime"])), "", "out.segment")
    _lookup(g, "out.age_band", dict(enumerate(NAMES)), "", "out.age_group")
    dtypes = {"grade_risk": DOUBLE, "is_home": BOOL, "purpose": STRING, "unemployment": DOUBLE, "public": BOOL}
    return dtypes | {"segment": STRING, "age_group": STRING}


def _lookup(g: Graph, x: str, table: dict[Any, Any], default: Any, out: str) -> str:
    """A value for each key, or the default."""
    keys, values = list(table), list(table.values())
    tensors = {"keys_tensor": keys, "values_tensor": values, "default_tensor": [default]}
    made = {name: numpy_helper.from_array(_array(found), name) for name, found in tensors.items()}
    return g("LabelEncoder", x, out=out, domain=ML, **made)


def _array(values: list[Any]) -> Any:
    kind = {str: object, int: "float64", float: "float64", bool: "int64"}[type(values[0])]
    return np.array(values, kind)


def feeds(df: pd.DataFrame, with_strings: bool) -> dict[str, Any]:
    """The columns of a frame as the inputs of the model."""
    fed = {name: df[name].to_numpy().reshape(-1, 1) for name in NUMBERS}
    fed |= {name: df[name].astype("datetime64[us]").astype("int64").to_numpy().reshape(-1, 1) for name in TIMES}
    if with_strings:
        fed |= {name: df[name].fillna("").to_numpy(object).reshape(-1, 1) for name in STRINGS}
        fed["purpose.null"] = df["purpose"].isna().to_numpy().reshape(-1, 1)
    return fed
