"""What a generated package says about itself: the help of its function, the README, and the function for images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.package import plain
from onward.backends.matlab.language import wrap
from onward.backends.matlab.package import PACKAGE
from onward.backends.matlab.target import CLASSES

Sides = Sequence[dict[str, Any]]
CHECK = "checked"
"""The helper that looks at an argument."""
PIXELS = ("FLOAT", "FLOAT16", "DOUBLE", "UINT8")


def described(side: dict[str, Any]) -> tuple[str, str]:
    """What MATLAB is given or gives, and what that is in the file."""
    kind = side["kind"]
    of = ir.DataType[side["dtype"]]
    if kind != "tensor":
        return "cell array" if kind == "sequence" else "value, or []", f"{kind} {plain(side['name'])}"
    carrier = "cell array of texts" if of == ir.DataType.STRING else CLASSES.get(of, of.name.lower())
    shape = None if side["shape"] is None else [plain(str(n)) for n in side["shape"]]
    said = f"{of.name.lower()}[{', '.join(shape)}]" if shape is not None else of.name.lower()
    return f"{carrier}, {_dims(shape)}", f"{plain(side['name'])}: {said}"


def _dims(shape: Sequence[str] | None) -> str:
    if shape is None:
        return "of any size"
    sizes = [*reversed(shape), *["1"] * (2 - len(shape))]
    return " x ".join(sizes)


def call_of(inputs: Sequence[str], outputs: Sequence[str]) -> str:
    left = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
    return f"{left} = {PACKAGE}.model({', '.join(['params', *inputs])})"


def help_text(name: str, inputs: Sequence[str], outputs: Sequence[str], takes: Sides, gives: Sides) -> list[str]:
    """The comment that `help` shows."""
    rows = [("params", f"what {PACKAGE}.load() gives", "")]
    rows += [(n, *described(side)) for n, side in zip(inputs, takes, strict=True)]
    results = [(n, *described(side)) for n, side in zip(outputs, gives, strict=True)]
    width = max(len(n) for n, *_ in [*rows, *results])
    lines = [f"%MODEL  {name}: a MATLAB model, converted from ONNX.", "%"]
    lines += [f"%   {line}" for line in wrap(call_of(inputs, outputs), 92)]
    lines += ["%", *_table(rows, width), "%", *_table(results, width), "%", "%   Example:"]
    lines += [f"%       params = {PACKAGE}.load();"]
    given = [_example(side) for side in takes]
    if all(given):
        lines += [
            f"%       {line}" for line in wrap(f"{outputs[0]} = {PACKAGE}.model({', '.join(['params', *given])});", 88)
        ]
    return [*lines, ""]


def checks(inputs: Sequence[str], takes: Sides) -> list[str]:
    """The lines that bring arguments into the class that the network computes with, if they are of its sizes."""
    lines = []
    for name, side in zip(inputs, takes, strict=True):
        of = ir.DataType[side["dtype"]]
        if side["kind"] == "tensor" and side["shape"] is not None and of in CLASSES and name.isidentifier():
            sizes = [str(n) if isinstance(n, int) else "NaN" for n in reversed(side["shape"])]
            dims = ", ".join([*sizes, *["1"] * (2 - len(sizes))])
            lines += wrap(f"{name} = {PACKAGE}.ops.{CHECK}({name}, '{name}', [{dims}], '{CLASSES[of]}');")
    return [f"    {line}" for line in lines]


def _table(rows: Sequence[tuple[str, str, str]], width: int) -> list[str]:
    lines = []
    for name, what, original in rows:
        lines.append(f"%   {name.ljust(width)}  {what}" + (f"  ({original} in the file)" if original else ""))
    return lines


def _example(side: dict[str, Any]) -> str:
    """An argument of the right sizes; '' where there is none that is short."""
    of = ir.DataType[side["dtype"]]
    if side["kind"] != "tensor" or side["shape"] is None or of not in CLASSES:
        return ""
    sizes = [str(n) if isinstance(n, int) else "1" for n in reversed(side["shape"])]
    dims = ", ".join([*sizes, *["1"] * (2 - len(sizes))])
    return f"false({dims})" if CLASSES[of] == "logical" else f"zeros({dims}, '{CLASSES[of]}')"


def channels_axis(takes: Sides) -> int | None:
    """The axis of the channels, if the one input is images of one or three channels."""
    if len(takes) != 1 or takes[0]["kind"] != "tensor" or takes[0]["dtype"] not in PIXELS:
        return None
    shape = takes[0]["shape"] or ()
    return next((axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in (1, 3)), None)


def image_text(name: str, inputs: Sequence[str], outputs: Sequence[str], takes: Sides) -> str:
    """The text of predict_image.m; '' where the input is no image."""
    axis = channels_axis(takes)
    if axis is None:
        return ""
    left = f"[{', '.join(outputs)}]" if len(outputs) > 1 else outputs[0]
    height, width, channels = (plain(str(takes[0]["shape"][i])) for i in ((2, 3, 1) if axis == 1 else (1, 2, 3)))
    order = "[2, 1, 3, 4]" if axis == 1 else "[3, 2, 1, 4]"
    return f"""function {left} = predict_image(params, picture)
%PREDICT_IMAGE  What {name} makes of a picture as MATLAB has it.
%
%   {call_of(inputs, outputs).replace(".model(", ".predict_image(").replace(inputs[0] + ")", "picture)")}
%
%   params   what {PACKAGE}.load() gives
%   picture  height x width x channels, here {height} x {width} x {channels}, as imread gives it;
%            several along a fourth dimension. Values and the order of channels are passed on
%            as they are: both have to be those of the training.
%
%   Example, for a network that was trained on red, green and blue from 0 to 1:
%       picture = single(imread('picture.png')) / 255;
%       {outputs[0]} = {PACKAGE}.predict_image({PACKAGE}.load(), picture);

{left} = {PACKAGE}.model(params, permute(picture, {order}));
end
"""


def readme(name: str, inputs: Sequence[str], outputs: Sequence[str], takes: Sides, gives: Sides) -> str:
    """The text of README.md."""
    rows = [(n, *described(side)) for n, side in zip([*inputs, *outputs], [*takes, *gives], strict=True)]
    table = "\n".join(f"| `{n}` | {what} | {original} |" for n, what, original in rows)
    return f"""# {name}

A network as plain MATLAB source, converted from ONNX by Onward. It runs in MATLAB and in GNU Octave, without a toolbox.

```matlab
addpath('the folder in which +{PACKAGE} lies')
params = {PACKAGE}.load();
{call_of(inputs, outputs)};
```

| variable | in MATLAB | in the ONNX file |
|---|---|---|
{table}

Dimensions are reversed: a tensor [N, C, H, W] of the file is an array W x H x C x N here, whose elements lie in memory
in the same order. The folder is called +{PACKAGE}, since the package is {PACKAGE}: its functions call one another by
that name. In Octave, `warning('off', 'Octave:shadowed-function')` silences a remark about load.m, which is harmless.
"""
