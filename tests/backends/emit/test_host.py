"""Numbers computed from shapes are Python numbers in the generated code, and the right ones."""

import numpy as np
import pytest
import torch
from harness import check, floats, source, text_model, to_torch

from onward.errors import RunFailure
from onward.scoreboard.suite import prepare

HEADER = '<ir_version: 9, opset_import: ["": 20]>\n'
SHAPE = "g (float[n, m, 4] x) => (float[a, b, c] y)"
ONE = {
    "axis0": np.array([0]),
    "m1": np.array([-1]),
    "i0": np.array(0),
    "i1": np.array(1),
    "i2": np.array(2),
    "two": np.array(2),
}


def model_of(body, signature=SHAPE, **weights):
    return text_model(f"{HEADER}{signature} {{ {body} }}", **{k: v for k, v in (ONE | weights).items() if k in body})


def forward(model):
    return " ".join(source(model).partition("def forward")[2].partition("def load")[0].split())


def chain(body, *inputs, **weights):
    """Check a chain from `shape` (of x) to `wanted`, or to `n` for (n, -1), to which x is reshaped; its code."""
    if "wanted" not in body:
        body += " n1 = Unsqueeze(n, axis0) wanted = Concat<axis = 0>(n1, m1)"
    model = model_of(f"shape = Shape(x) {body} y = Reshape(x, wanted)", **weights)
    check(model, list(inputs) or [floats(3, 6, 4)])
    code = forward(model)
    assert "torch.tensor" not in code and "tolist" not in code
    return code


CHAINS = {
    "gather": "n = Gather(shape, i0)",
    "negative index": "n = Gather(shape, back)",
    "slice": "a = Slice(shape, first, last) wanted = Concat<axis = 0>(m1, a)",
    "slice far beyond the end": "a = Slice(shape, two1, far) wanted = Concat<axis = 0>(m1, a)",
    "slice backwards": "wanted = Slice(shape, back1, begin, axis0, back1)",
    "product": "a = ReduceProd<keepdims = 0>(shape) n = Div(a, two)",
    "sum": "a = ReduceSum<keepdims = 0>(shape) b = Sub(a, a) n = Add(b, two)",
    "largest": "a = ReduceMax(shape) wanted = Concat<axis = 0>(a, m1)",
    "arithmetic": "a = Gather(shape, i1) b = Mul(a, two) n = Div(b, three)",
    "negative division": "a = Gather(shape, i1) b = Neg(a) c = Div(b, four) d = Add(c, two) n = Add(d, two)",
    "modulo of a negative number": "a = Gather(shape, i1) b = Neg(a) n = Mod(b, four)",
    "where": "a = Equal(shape, fours) wanted = Where(a, twos, shape0)",
    "floats": "a = Gather(shape, i1) b = Cast<to = 1>(a) c = Mul(b, half) d = Floor(c) n = Cast<to = 7>(d)",
    "square root": "a = Gather(shape, i2) b = Cast<to = 1>(a) c = Sqrt(b) n = Cast<to = 7>(c)",
    "double precision": "a = Gather(shape, i2) b = Cast<to = 1>(a) c = Cast<to = 11>(b) n = Cast<to = 7>(c)",
    "min and max": "a = Min(shape, fours) b = Max(a, twos) c = Slice(b, two1, far) wanted = Concat<axis = 0>(c, m1)",
    "split": "a, b, c = Split<num_outputs = 3>(shape) wanted = Concat<axis = 0>(c, m1)",
    "squeeze": "a = Slice(shape, first, one) n = Squeeze(a)",
    "reshape and transpose": """a = Concat<axis = 0>(shape, one) b = Reshape(a, pairs) c = Transpose(b)
        d = Reshape(c, m1) e = Slice(d, first, two1) wanted = Concat<axis = 0>(e, m1)""",
    "length of the shape": "a = Shape(shape) b = ConstantOfShape<value = int64[1] {1}>(a) wanted = Mul(b, shape)",
    "expand": "a = Expand(one, one) wanted = Concat<axis = 0>(m1, a)",
    "tile": "a = Tile(one, one) wanted = Concat<axis = 0>(m1, a)",
    "comparison": "a = Gather(shape, i1) b = Greater(a, two) c = Cast<to = 7>(b) n = Add(c, i1)",
    "logic": """a = Gather(shape, i1) b = Greater(a, two) c = Less(a, two) d = Or(b, c) e = And(d, b) f = Not(e)
        h = Cast<to = 7>(f) n = Add(h, i1)""",
    "size": "a = Size(x) wanted = Unsqueeze(a, axis0)",
    "absolute": "a = Gather(shape, i1) b = Neg(a) n = Abs(b)",
}
NUMBERS = {
    "back": np.array(-1),
    "back1": np.array([-1]),
    "begin": np.array([-(2**63)]),
    "first": np.array([0]),
    "last": np.array([-1]),
    "one": np.array([1]),
    "two1": np.array([2]),
    "far": np.array([2**63 - 1]),
    "three": np.array(3),
    "four": np.array(4),
    "fours": np.array([4, 4, 4]),
    "twos": np.array([2, 2, 2]),
    "shape0": np.array([3, -1, 6]),
    "half": np.array(0.5, dtype=np.float32),
    "pairs": np.array([2, -1]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chain(name):
    chain(CHAINS[name], **NUMBERS)


def test_numbers_read_as_written_by_hand():
    assert "return x.flatten(1)" in chain(CHAINS["gather"])
    code = chain("a = Gather(shape, i0) b = Gather(shape, i1) n = Mul(a, b)")
    assert "return x.reshape(x.shape[0] * x.shape[1], -1)" in code


def test_expand_as_exporters_write_it():
    """`x.expand(-1, 5, -1)`: -1 is replaced by 1 through Where, Equal and ConstantOfShape."""
    body = """s = Shape(wanted) ones = ConstantOfShape<value = int64[1] {1}>(s) minus = Mul(ones, m1)
        keeps = Equal(wanted, minus) target = Where(keeps, ones, wanted) y = Expand(x, target)"""
    model = model_of(body, "g (float[n, 1, 4] x) => (float[a, b, c] y)", wanted=np.array([-1, 5, -1]))
    check(model, [floats(3, 1, 4)])
    assert "return x.expand(-1, 5, -1)" in forward(model)


def test_pad_as_exporters_write_it():
    """`F.pad(x, (1, 2))`: its widths filled up with zeros, turned round, in ONNX's order."""
    body = """zeros = ConstantOfShape<value = int64[1] {0}>(missing) all = Concat<axis = 0>(widths, zeros)
        pairs = Reshape(all, shape) back = Slice(pairs, m1, begin, axis0, m1) turned = Transpose<perm = [1, 0]>(back)
        flat = Reshape(turned, m1) pads = Cast<to = 7>(flat) y = Pad(x, pads)"""
    model = model_of(
        body, missing=np.array([4]), widths=np.array([1, 2]), shape=np.array([-1, 2]), begin=np.array([-(2**63)])
    )
    check(model, [floats(3, 6, 4)])
    assert "return F.pad(x, (1, 2))" in forward(model)


def test_pad_to_a_multiple():
    """A width that depends on the size."""
    body = """shape = Shape(x) n = Gather(shape, i1) minus = Neg(n) missing = Mod(minus, five)
        m = Unsqueeze(missing, axis0) pads = Concat<axis = 0>(none, m, one) y = Pad(x, pads)"""
    weights = {"five": np.array(5), "none": np.array([0, 0, 0, 0]), "one": np.array([1])}
    model = model_of(body, **weights)
    check(model, [floats(3, 6, 4)])
    check(model, [floats(3, 5, 4)])
    assert "torch.tensor" not in forward(model)


def test_range_up_to_a_dimension():
    body = """shape = Shape(x) n = Gather(shape, i1) r = Range(i0, n, i1) f = Cast<to = 1>(r) g = Unsqueeze(f, m1)
        y = Mul(x, g)"""
    model = model_of(body)
    check(model, [floats(3, 6, 4)])
    assert "torch.arange(x.shape[1], device=x.device)" in forward(model)


@pytest.mark.parametrize("dtype", [1, 11])
def test_division_by_a_dimension_that_is_zero(dtype):
    """Floats become infinite, as in a tensor."""
    kind = {1: "float", 11: "double"}[dtype]
    body = f"""shape = Shape(x) a = Cast<to = {dtype}>(shape) n = Gather(a, i0) m = Gather(a, i1) minus = Neg(n)
        p = Div(n, m) q = Div(m, m) r = Div(minus, m) s = Add(p, p) t = Div(n, s)
        p1 = Unsqueeze(p, axis0) q1 = Unsqueeze(q, axis0) r1 = Unsqueeze(r, axis0) t1 = Unsqueeze(t, axis0)
        y = Concat<axis = 0>(p1, q1, r1, t1)"""
    model = model_of(body, f"g (float[n, m, 4] x) => ({kind}[4] y)")
    check(model, [floats(3, 0, 4)])
    check(model, [floats(3, 5, 4)])


def test_integer_division_by_a_dimension_that_is_zero_is_refused():
    """As ONNX Runtime does."""
    body = "shape = Shape(x) n = Gather(shape, i0) m = Gather(shape, i1) y = Div(n, m)"
    model = model_of(body, "g (float[n, m, 4] x) => (int64 y)")
    check(model, [floats(7, 2, 4)])
    with pytest.raises(RunFailure, match="by zero"):
        prepare("torch", model)([floats(7, 0, 4)])


def test_slice_up_to_a_dimension():
    body = (
        "shape = Shape(x) n = Gather(shape, i1) h = Div(n, two) e = Unsqueeze(h, axis0) y = Slice(x, axis0, e, axis1)"
    )
    model = model_of(body, axis1=np.array([1]))
    check(model, [floats(3, 6, 4)])
    assert "x[:, :x.shape[1] // 2]" in forward(model)


def test_shapes_stay_symbolic_when_exported():
    """Python numbers are what lets `torch.export` follow a dynamic dimension."""
    body = f"""shape = Shape(x) {CHAINS["arithmetic"]} n1 = Unsqueeze(n, axis0) wanted = Concat<axis = 0>(m1, n1)
        z = Reshape(x, wanted) y = Neg(z)"""
    model = model_of(body, **NUMBERS)
    sizes = {0: torch.export.Dim("n"), 1: 6}
    program = torch.export.export(to_torch(model), (torch.zeros(3, 6, 4),), dynamic_shapes=(sizes,))
    assert program.module()(torch.zeros(5, 6, 4)).shape == (30, 4)
