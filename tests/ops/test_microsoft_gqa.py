"""Rotary embeddings and grouped-query attention with a cache, against ONNX Runtime itself."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check, floats, node_model

from onward.backends.backend import backend
from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.passes.pipelines import canonical
from onward.scoreboard.suite import forget_shapes, prepare

MS = "com.microsoft"
HEADS, SHARED, SIZE, LONGEST = 4, 2, 16, 32


def angles(width: int = SIZE) -> list[np.ndarray]:
    turns = np.arange(LONGEST)[:, None] / 10 ** (np.arange(width // 2) / 3)
    return [np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)]


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    "positions", [np.array([3]), np.array([[4, 0, 9, 2, 1], [1, 2, 3, 5, 8]])], ids=["offset", "each"]
)
@pytest.mark.parametrize("apart", [False, True])
def test_rotary_embedding(apart: bool, positions: np.ndarray, interleaved: int) -> None:
    x = floats(2, HEADS, 5, SIZE) if apart else floats(2, 5, HEADS * SIZE)
    model, feeds = node_model("RotaryEmbedding", [x, positions, *angles()], domain=MS, interleaved=interleaved)
    check(model, feeds, unknown=apart)


def test_rotary_embedding_of_a_part() -> None:
    given = {"num_heads": HEADS, "rotary_embedding_dim": SIZE // 2}
    inputs = [floats(2, 5, HEADS * SIZE), np.array([[4, 0, 9, 2, 1]] * 2), *angles(SIZE // 2)]
    model, feeds = node_model("RotaryEmbedding", inputs, domain=MS, **given)
    check(model, feeds)


def gqa(
    new: int,
    lengths: list[int],
    buffer: int | None = None,
    *,
    packed: bool = False,
    rotary: dict[str, Any] | None = None,
    bias: bool = False,
    sink: bool = False,
    places: np.ndarray | None = None,
    bits: int = 0,
    scale_of: str = "PER_TENSOR",
    on: Sequence[str] = ("torch",),
    **given: Any,
) -> None:
    """Run `new` elements of rows that are then `lengths` long; the cache before has room for `buffer`.

    What the cache holds after the end of a row is not defined, nor is the result of what is put there. `on`: backends,
    and 'standard ops' for ONNX's reference implementation, given what the op is in terms of these.
    """
    batch, total = len(lengths), max(lengths)
    q = floats(batch, new, (HEADS + 2 * SHARED if packed else HEADS) * SIZE)
    k, v = (None, None) if packed else (floats(batch, new, SHARED * SIZE, seed=i) for i in (1, 2))
    past = [None, None] if buffer is None else [cache(batch, buffer, bits, seed=i) for i in (3, 4)]
    inputs: list[Any] = [q, k, v, *past, np.array(lengths, np.int32) - 1, np.array(total, np.int32)]
    inputs += angles() if rotary is not None else [None, None]
    inputs += [places, floats(1, HEADS, new, total) if bias else None, floats(HEADS) if sink else None]
    if bits:
        steps = np.abs(floats(*((1,) if scale_of == "PER_TENSOR" else (1, SHARED, 1, SIZE)))) * 0.1 + 2 / 2**bits
        inputs += [steps, steps]
        given |= {"k_quant_type": scale_of, "v_quant_type": scale_of, "kv_cache_bit_width": bits}
    while inputs[-1] is None:
        inputs.pop()
    given |= {"num_heads": HEADS, "kv_num_heads": SHARED, **({"do_rotary": 1, **rotary} if rotary is not None else {})}
    model, feeds = node_model("GroupQueryAttention", inputs, 3, domain=MS, **given)
    wanted = prepare("onnxruntime", model)(feeds)
    if "torch" in on:
        check_types(model, wanted)
    for name, variant in itertools.product(on, (model, forget_shapes(model))):
        found = standard(variant, feeds) if name == "standard ops" else prepare(name, variant)(feeds)
        assert [x.shape for x in found] == [x.shape for x in wanted]
        for row, end in enumerate(lengths):
            valid = min(new, end)
            np.testing.assert_allclose(found[0][row, :valid], wanted[0][row, :valid], rtol=2e-5, atol=2e-5)
            for index in (1, 2):
                assert found[index].dtype == wanted[index].dtype
                np.testing.assert_allclose(
                    found[index][row, :, :end], wanted[index][row, :, :end], rtol=2e-5, atol=2e-5
                )


def check_types(model: onnx.ModelProto, wanted: list[np.ndarray]) -> None:
    """What is inferred before anything runs is true."""
    outputs = canonical(load(model), backend("torch").has_rule).graph.outputs
    for output, array in zip(outputs, wanted, strict=True):
        assert output.shape is not None and output.dtype is not None
        assert output.dtype.numpy() == array.dtype
        assert all(not isinstance(n, int) or n == m for n, m in zip(output.shape, array.shape, strict=True))


def cache(batch: int, places: int, bits: int, seed: int) -> np.ndarray:
    if not bits:
        return floats(batch, SHARED, places, SIZE, seed=seed)
    numbers = np.random.default_rng(seed).integers(0, 256, (batch, SHARED, places, SIZE * bits // 8)).astype(np.uint8)
    return numbers.view(np.int8) if bits == 8 else numbers


def standard(model: onnx.ModelProto, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What ONNX's reference implementation makes of a model in which standard ops stand for all others."""
    lowered = canonical(load(model), lambda key: "::" not in key)
    return prepare("reference", Model(lowered).to_proto())(feeds)


EVERYWHERE = ("torch", "tensorflow", "standard ops")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [None, {}, {"rotary_interleaved": 1}], ids=str)
@pytest.mark.parametrize(
    ("new", "lengths", "buffer"),
    [(5, [5, 5], None), (5, [5, 3], 0), (1, [7, 7], 6), (1, [7, 4], 6), (1, [7, 4], 12), (3, [9], 6)],
    ids=["prompt", "padded prompt", "step", "uneven step", "shared cache", "several steps"],
)
def test_group_query_attention(
    new: int, lengths: list[int], buffer: int | None, rotary: dict[str, Any] | None, packed: bool
) -> None:
    gqa(new, lengths, buffer, rotary=rotary, packed=packed, on=("torch", "standard ops"))


@pytest.mark.parametrize(
    "given",
    [
        {"local_window_size": 2},
        {"local_window_size": 4},
        {"scale": 0.2},
        {"softcap": 3.0},
        {"smooth_softmax": 1},
        {"sink": True},
        {"bias": True},
        {"bias": True, "sink": True, "local_window_size": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize(("new", "lengths", "buffer"), [(6, [6, 6], None), (1, [9, 9], 8)], ids=["prompt", "step"])
def test_options(new: int, lengths: list[int], buffer: int | None, given: dict[str, Any]) -> None:
    gqa(new, lengths, buffer, **given, on=EVERYWHERE)


def test_a_window_of_nothing_is_refused() -> None:
    """ONNX Runtime gives zeros: that is hardly what a file means that says 0."""
    with pytest.raises(UnsupportedError, match="a window of no places"):
        gqa(1, [9, 9], 8, local_window_size=0)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("new", "lengths", "buffer"), [(5, [5, 5], 0), (1, [7, 4], 12)], ids=["prompt", "step"])
@pytest.mark.parametrize("given", [{"bits": 8}, {"bits": 8, "scale_of": "PER_CHANNEL"}, {"bits": 4}], ids=str)
def test_caches_of_integers(given: dict[str, Any], new: int, lengths: list[int], buffer: int, packed: bool) -> None:
    gqa(new, lengths, buffer, rotary={}, packed=packed, **given, on=EVERYWHERE)


@pytest.mark.parametrize(
    ("new", "lengths", "buffer", "places"),
    [
        (4, [4, 4], None, [[3, 9, 1, 5], [2, 2, 2, 2]]),
        (1, [7, 4], 6, [[6], [11]]),
        (3, [9], 6, [[6, 9, 2]]),
    ],
    ids=["prompt", "step", "several steps"],
)
def test_positions(new: int, lengths: list[int], buffer: int | None, places: list[list[int]]) -> None:
    """The elements of a prompt follow the first position of all: ONNX Runtime looks at no other."""
    gqa(new, lengths, buffer, rotary={}, places=np.array(places), on=EVERYWHERE)


@pytest.mark.parametrize("packed", [False, True])
def test_normalised_heads(packed: bool) -> None:
    """ONNX Runtime has kernels for graphics cards alone: it gets queries and keys that are normalised before."""
    parts = [floats(2, 5, n * SIZE, seed=n) for n in (HEADS, SHARED, SHARED)]
    scales = [floats(SIZE, seed=i) for i in (5, 6)]
    normal = [
        (x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale).reshape(2, 5, -1)
        for x, scale in zip((x.reshape(2, 5, -1, SIZE) for x in parts), scales, strict=False)
    ]
    rest = [None, None, np.array([4, 4], np.int32), np.array(5, np.int32)]
    given = {"num_heads": HEADS, "kv_num_heads": SHARED}
    plain, plain_feeds = node_model("GroupQueryAttention", [*normal, parts[2], *rest], 3, domain=MS, **given)
    inputs = [np.concatenate(parts, 2), None, None] if packed else parts
    model, feeds = node_model(
        "GroupQueryAttention", [*inputs, *rest, *[None] * 7, *scales], 3, domain=MS, fixed=[14, 15], **given
    )
    check(model, feeds, expected=prepare("onnxruntime", plain)(plain_feeds), rtol=2e-5, atol=2e-5)
