"""Functions that PyTorch also has as modules, for use inside `nn.Sequential`."""

from __future__ import annotations

from onward.backends.emit.expr import Attr, Call, Expr, Name, Ref, Var, forced, variables
from onward.backends.torch.target import nn

MODULES = {
    "F.relu": "ReLU",
    "F.relu6": "ReLU6",
    "F.gelu": "GELU",
    "F.silu": "SiLU",
    "F.mish": "Mish",
    "F.elu": "ELU",
    "F.selu": "SELU",
    "F.leaky_relu": "LeakyReLU",
    "F.hardswish": "Hardswish",
    "F.hardsigmoid": "Hardsigmoid",
    "F.softplus": "Softplus",
    "F.max_pool1d": "MaxPool1d",
    "F.max_pool2d": "MaxPool2d",
    "F.max_pool3d": "MaxPool3d",
    "F.avg_pool1d": "AvgPool1d",
    "F.avg_pool2d": "AvgPool2d",
    "F.avg_pool3d": "AvgPool3d",
    "F.adaptive_avg_pool2d": "AdaptiveAvgPool2d",
    "torch.relu": "ReLU",
    "torch.sigmoid": "Sigmoid",
    "torch.tanh": "Tanh",
    "torch.softmax": "Softmax",
    "torch.log_softmax": "LogSoftmax",
    "torch.flatten": "Flatten",
}
"""Each function takes the tensor first and then what its module's constructor takes, in the same order."""


def as_module(expr: Expr, var: Var) -> Expr | None:
    """`nn.GELU(approximate="tanh")` for `F.gelu(x, approximate="tanh")`; None where there is no such module."""
    if isinstance(expr, Ref) and expr._var is var:
        return nn.Identity()
    if not isinstance(expr, Call) or not expr._args:
        return None
    function, first = expr._fn, forced(expr._args[0])
    if not isinstance(function, Attr) or not isinstance(function._obj, Name):
        return None
    name = MODULES.get(f"{function._obj._text}.{function._name}")
    if name is None or not isinstance(first, Ref) or first._var is not var:
        return None
    rest = [*expr._args[1:], *expr._kwargs.values()]
    if any(True for part in rest for _ in variables(part)):
        return None
    return Call(Attr(nn, name), expr._args[1:], expr._kwargs)
