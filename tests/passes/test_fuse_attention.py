"""Attention that exporters and people write out."""

import contextlib
import io
import warnings

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from harness import check, floats, source, text_model
from torch import Tensor, nn

SDPA = "F.scaled_dot_product_attention"
B, H, T, D = 2, 3, 5, 4
LOWEST = float(np.finfo(np.float32).min)
HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def written_out(body: str, mask: str = "", dims: str = "b,h,{},4") -> str:
    operands = ", ".join(f"float[{dims.format(n)}] {x}" for x, n in (("q", "t"), ("k", "s"), ("v", "s")))
    return f"""{HEADER} g ({operands}{mask}) => (float[b,h,t,e] y)
    <float half = {{0.5}}, float scale = {{0.3}}, float zero = {{0}}, float one = {{1}},
     float lowest = {{{LOWEST:.9e}}}, int64[1] middle = {{1}},
     float[1] root = {{0.70710678}}, float little = {{-3}}, int64[1] last = {{-1}}, int64[1] before = {{-2}},
     int64[1] end = {{9223372036854775807}}, int64[1] first = {{-9223372036854775808}}>
    {{ {body} }}"""


TRANSPOSED = "kt = Transpose<perm=[0,1,3,2]>(k)"
FINISH = "p = Softmax<axis=-1>(m) y = MatMul(p, v)"
CAUSAL = """qs = Shape(q) ks = Shape(k) qt = Slice(qs, before, last) kt_ = Slice(ks, before, last)
    qk = Concat<axis=0>(qt, kt_) ones = Expand(one, qk) tri = Trilu<upper=0>(ones) above = Equal(tri, zero)"""
LONG_WAY = """s = Shape(k) w = Slice(s, last, end) n = Slice(s, before, last) o = Slice(s, first, before)
    flat = Concat<axis=0>(last, n, w) f = Reshape(k, flat) ft = Transpose<perm=[0,2,1]>(f)
    full = Concat<axis=0>(o, w, n) kt = Reshape(ft, full)"""

FUSED = [
    (f"{TRANSPOSED} a = MatMul(q, kt) m = Mul(a, half) {FINISH}", f"{SDPA}(q, k, v)"),
    (f"{TRANSPOSED} a = MatMul(q, kt) m = Mul(a, scale) {FINISH}", "scale=0.3"),
    (f"{TRANSPOSED} m = MatMul(q, kt) {FINISH}", "scale=1.0"),
    (f"{TRANSPOSED} r = Mul(q, root) l = Mul(root, kt) m = MatMul(r, l) {FINISH}", f"{SDPA}(q, k, v)"),
    (f"{TRANSPOSED} r = Div(q, root) a = MatMul(r, kt) m = Mul(a, half) {FINISH}", "scale=0.7071"),
    (f"{LONG_WAY} a = MatMul(q, kt) m = Mul(a, half) {FINISH}", f"{SDPA}(q, k, v)"),
    (
        f"{TRANSPOSED} {CAUSAL} c = Where(above, lowest, zero) a = MatMul(q, kt) b = Mul(a, half) "
        f"m = Add(b, c) {FINISH}",
        "(q, k, v, is_causal=True)",
    ),
    (
        f"{TRANSPOSED} {CAUSAL} a = MatMul(q, kt) b = Mul(a, half) m = Where(above, lowest, b) {FINISH}",
        "(q, k, v, is_causal=True)",
    ),
    (
        f"{TRANSPOSED} {CAUSAL} f = Not(above) c = Where(f, zero, lowest) a = MatMul(q, kt) m = Add(c, a) {FINISH}",
        "is_causal=True, scale=1.0",
    ),
]
APART = [
    # a mask that hides less than everything, an upper triangle, a triangle of another size, other values for all
    f"{TRANSPOSED} {CAUSAL} a = MatMul(q, kt) m = Where(above, little, a) {FINISH}",
    f"{TRANSPOSED} {CAUSAL} a = MatMul(q, kt) m = Where(above, a, lowest) {FINISH}",
    f"{TRANSPOSED} a = MatMul(q, kt) m = Mul(a, half) p = Softmax<axis=2>(m) y = MatMul(p, v)",
    f"{TRANSPOSED} a = MatMul(q, kt) p = Softmax<axis=-1>(a) r = Mul(p, half) y = MatMul(r, v)",
    # a mask over heads and keys instead of queries and keys
    f"{TRANSPOSED} {CAUSAL} w = Where(above, lowest, zero) c = Unsqueeze(w, middle) a = MatMul(q, kt) "
    f"m = Add(a, c) {FINISH}",
]


def operands(queries: int = T, keys: int = T) -> list[np.ndarray]:
    return [floats(B, H, queries, D), floats(B, H, keys, D, seed=1), floats(B, H, keys, D, seed=2)]


@pytest.mark.parametrize(("body", "expected"), FUSED)
def test_recognised(body, expected):
    model = text_model(written_out(body))
    for queries, keys in ((T, T), (3, 6), (6, 3)):
        check(model, operands(queries, keys))
    assert expected in source(model)


@pytest.mark.parametrize("body", APART)
def test_left_as_it_is(body):
    model = text_model(written_out(body))
    heads_as_queries = [np.ascontiguousarray(x[:, :, :H]) for x in operands()]
    check(model, heads_as_queries)
    text = source(model)
    assert SDPA not in text or "attn_mask" in text


@pytest.mark.parametrize("dims", ["b,{},4", "b,h,g,{},4"])
def test_any_rank(dims):
    rank = dims.count(",") + 1
    perm = [*range(rank - 2), rank - 1, rank - 2]
    body = f"kt = Transpose<perm={perm}>(k) a = MatMul(q, kt) m = Mul(a, half) {FINISH}"
    text = written_out(body, dims=dims).replace("float[b,h,t,e] y", f"float[{dims.format('t')}] y")
    shape = (2, 3) if rank == 5 else ()
    model = text_model(text)
    check(model, [floats(B, *shape, T, D), floats(B, *shape, 6, D), floats(B, *shape, 6, D, seed=2)])
    assert SDPA in source(model)


def test_long_way_of_another_order_is_no_transposition():
    other = LONG_WAY.replace("Concat<axis=0>(o, w, n)", "Concat<axis=0>(o, n, w)")
    body = f"{other} l = Transpose<perm=[0,1,3,2]>(kt) m = MatMul(q, l) {FINISH}"
    model = text_model(written_out(body))
    check(model, operands())
    assert "reshape" in source(model)


@pytest.mark.parametrize(("which", "fused"), [("tril", True), ("triu", False)])
def test_corner_of_a_constant_triangle(which, fused):
    """As in GPT-2: a buffer for the longest sequence, cut to the current one."""
    body = f"""kt = Transpose<perm=[0,1,3,2]>(q) s = Shape(q) n = Slice(s, before, last)
        o = Constant<value_ints=[0]>() two = Constant<value_ints=[2]>() three = Constant<value_ints=[3]>()
        r = Slice(buffer, o, n, two) c = Slice(r, o, n, three)
        above = Equal(c, zero) a = MatMul(q, kt) b = Mul(a, half) m = Where(above, lowest, b) {FINISH}"""
    buffer = getattr(np, which)(np.ones((1, 1, 8, 8), np.float32))
    model = text_model(written_out(body), buffer=buffer)
    check(model, operands())
    assert ("is_causal=True" in source(model)) == fused


MASKED = f"{TRANSPOSED} a = MatMul(q, kt) b = Mul(a, half)"


@pytest.mark.parametrize(
    ("mask", "inputs", "fused"),
    [
        ("f = Cast<to=1>(i) o = Sub(one, f) c = Mul(o, lowest)", ", int64[b,1,1,s] i", True),
        ("f = Cast<to=1>(i) o = Sub(one, f) c = Mul(o, lowest)", ", bool[b,1,1,s] i", True),
        ("c = Where(i, zero, lowest)", ", bool[b,1,1,s] i", True),
        ("i2 = Not(i) d = Where(i2, lowest, zero) c = Add(d, d)", ", bool[b,1,1,s] i", False),
        ("inf = Constant<value = float {-inf}>() c = Where(i, zero, inf)", ", bool[b,1,1,s] i", False),
        ("c = Identity(i)", ", float[b,1,1,s] i", False),
    ],
)
def test_masks(mask, inputs, fused):
    """A mask that may hide a row completely with minus infinity gives NaN in ONNX, and must do so after conversion."""
    model = text_model(written_out(f"{mask} {MASKED} m = Add(b, c) {FINISH}", inputs))
    shown = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]]).reshape(B, 1, 1, T)
    hidden = np.where(shown, 0, -np.inf).astype(np.float32)
    given = {"int64": shown.astype(np.int64), "bool": shown.astype(bool), "float": hidden}
    check(model, [*operands(), given[inputs.split("[")[0].strip(", ")]])
    assert (SDPA in source(model)) == fused


@pytest.mark.parametrize(
    ("queries", "keys", "shown"),
    [
        ((1, H, T), (1, H, T), (B, 1, 1, T)),
        ((1, 1, T), (1, 1, T), (B, H, T, T)),
        ((1, 1, T), (B, 1, T), (1, H, T, T)),
        ((1, H, 1), (1, H, T), (1, 1, T, T)),
        ((1, 1, 1), (1, H, T), (B, 1, T, T)),
        ((0, H, T), (0, H, T), (1, 1, T, T)),
        ((B, H, T), (B, H, T), (B, 1, T, T)),
        ((1, H, 1), (1, H, T), (T, T)),
    ],
)
def test_a_mask_for_more_than_there_is(queries, keys, shown):
    """Of unknown sizes, a mask may make a batch, heads or rows of one that the operands do not have."""
    unknown = ["qb,qh,t,4", "kb,kh,s,4", "kb,kh,s,4", "mb,mh,mt,ms"[-3 * len(shown) + 1 :]]
    known = [f"{','.join(map(str, size))},4" for size in (queries, keys, keys)] + [",".join(map(str, shown))]
    mask = np.random.default_rng(0).random(shown) > 0.4
    inputs = [floats(*queries, D), floats(*keys, D, seed=1), floats(*keys, D, seed=2), mask]
    for sizes in (unknown, known):
        names = [f"float[{d}] {x}" for d, x in zip(sizes, "qkv", strict=False)]
        text = written_out(f"c = Where(i, zero, lowest) {MASKED} m = Add(b, c) {FINISH}")
        begin, end = text.index("(float"), text.index(" =>")
        model = text_model(
            f"{text[:begin]}({', '.join(names)}, bool[{sizes[3]}] i){text[end:]}".replace("[b,h,t,e]", "")
        )
        check(model, inputs)
        assert ("widened_attention" in source(model)) == (sizes is unknown)


class Attention(nn.Module):
    def __init__(self, causal: bool, masked: bool) -> None:
        super().__init__()
        self.causal = causal
        self.qkv = nn.Linear(12, 36)
        self.masked = masked

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (p.view(*x.shape[:2], 3, 4).transpose(1, 2) for p in self.qkv(x).split(12, dim=2))
        bias = None if mask is None else ((1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min)
        bias = None if bias is None else bias.expand(-1, 1, x.shape[1], -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=self.causal)
        return y.transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize(
    ("options", "dynamic", "causal"),
    [
        ({"dynamo": True}, True, True),
        ({"dynamo": True}, False, False),
        ({"dynamo": True, "optimize": False}, False, True),
        ({"dynamo": False}, True, False),
        ({"dynamo": False}, False, True),
    ],
)
def test_what_torch_exports(options, dynamic, causal):
    torch.manual_seed(0)
    net = Attention(causal, not causal).eval()
    inputs = (torch.randn(2, 5, 12),) if causal else (torch.randn(2, 5, 12), torch.tensor([[1, 1, 1, 0, 0], [0] * 5]))
    names = ["x", "mask"][: len(inputs)]
    axes = {0: "batch", 1: "time"} if dynamic else {}
    if dynamic and options["dynamo"]:
        dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}
        options = options | {"dynamic_shapes": dict.fromkeys(names, dims)}
    elif dynamic:
        options = options | {"dynamic_axes": dict.fromkeys(names, axes)}
    file = io.BytesIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, inputs, file, input_names=names, opset_version=20, verbose=False, **options)
    model = onnx.load_from_string(file.getvalue())
    text = source(model)
    assert SDPA in text and ("is_causal=True" in text) == causal and "softmax" not in text
    with torch.no_grad():
        check(model, [x.numpy() for x in inputs], expected=[net(*inputs).numpy()], unknown=False)


GUARDED = "p = Softmax<axis=-1>(m) none = IsNaN(p) w = Where(none, zero, p) y = MatMul(w, v)"


@pytest.mark.parametrize(
    ("mask", "made", "expected"),
    [
        (", bool[b,h,t,s] seen", "c = Where(seen, zero, nothing)", "attn_mask=seen"),
        (", float[b,h,t,s] c", "", "attn_mask=c"),
    ],
    ids=["booleans", "floats"],
)
def test_queries_that_see_nothing_get_zeros(mask, made, expected):
    """As PyTorch's exporters write its own attention."""
    body = f"{TRANSPOSED} {made} r = Mul(q, root) l = Mul(kt, root) a = MatMul(r, l) m = Add(a, c) {GUARDED}"
    model = text_model(written_out(body, mask), nothing=np.float32(-np.inf))
    seen = np.random.default_rng(0).random((B, H, T, T)) < 0.6
    seen[0, 1, 2] = False
    given = seen if "bool" in mask else np.where(seen, np.float32(0), np.float32(-np.inf))
    check(model, [*operands(), given])
    assert f"{SDPA}(q, k, v, {expected})" in source(model)


def test_a_guard_of_something_else_is_none():
    body = f"{TRANSPOSED} a = MatMul(q, kt) m = Add(a, c) {GUARDED.replace('zero, p', 'one, p')}"
    model = text_model(written_out(body, ", float[b,h,t,s] c"))
    check(model, [*operands(), floats(B, H, T, T)])
    assert SDPA not in source(model)


@pytest.mark.parametrize("between", ["p2 = Identity(p)", "p2 = Cast<to=1>(p)"], ids=["dropout", "cast"])
def test_what_changes_nothing_is_no_obstacle(between):
    body = f"{TRANSPOSED} a = MatMul(q, kt) m = Mul(a, half) p = Softmax<axis=-1>(m) {between} y = MatMul(p2, v)"
    model = text_model(written_out(body))
    check(model, operands())
    assert f"return {SDPA}(q, k, v)" in source(model)


@pytest.mark.parametrize(("bias", "fused"), [(-5.0, True), (-3e38, False)])
def test_a_bias_beside_the_lowest_float(bias, fused):
    """As in T5: positions count, and what is hidden stays finite; unless both together are too much."""
    body = f"""{TRANSPOSED} low = Where(seen, zero, lowest) c = Add(low, positions)
        a = MatMul(q, kt) m = Add(a, c) {FINISH}"""
    model = text_model(written_out(body, ", bool[b,1,1,s] seen"), positions=np.full((1, H, T, T), bias, np.float32))
    seen = np.ones((B, 1, 1, T), np.bool_)
    seen[0, 0, 0, 2:] = False
    check(model, [*operands(), seen], unknown=False)
    assert (SDPA in source(model) or "widened_attention" in source(model)) is fused
