"""Rotary embeddings and grouped-query attention with a cache, against ONNX Runtime itself."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, node_model

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
    places: bool = False,
    **given: Any,
) -> None:
    """Run `new` elements of rows that are then `lengths` long; the cache before has room for `buffer`.

    What the cache holds after the end of a row is not defined, nor is the result of what is put there.
    """
    batch, total = len(lengths), max(lengths)
    q = floats(batch, new, (HEADS + 2 * SHARED if packed else HEADS) * SIZE)
    k, v = (None, None) if packed else (floats(batch, new, SHARED * SIZE, seed=i) for i in (1, 2))
    past = [None, None] if buffer is None else [floats(batch, SHARED, buffer, SIZE, seed=i) for i in (3, 4)]
    inputs: list[Any] = [q, k, v, *past, np.array(lengths, np.int32) - 1, np.array(total, np.int32)]
    inputs += angles() if rotary is not None else [None, None]
    inputs += [np.arange(new)[None].repeat(batch, 0) + 2 if places else None]
    inputs += [floats(1, HEADS, new, total) if bias else None, floats(HEADS) if sink else None]
    while inputs[-1] is None:
        inputs.pop()
    given |= {"num_heads": HEADS, "kv_num_heads": SHARED, **({"do_rotary": 1, **rotary} if rotary is not None else {})}
    model, feeds = node_model("GroupQueryAttention", inputs, 3, domain=MS, **given)
    wanted = prepare("onnxruntime", model)(feeds)
    for variant in (model, forget_shapes(model)):
        found = prepare("torch", variant)(feeds)
        assert [x.shape for x in found] == [x.shape for x in wanted]
        for row, end in enumerate(lengths):
            valid = min(new, end)
            np.testing.assert_allclose(found[0][row, :valid], wanted[0][row, :valid], rtol=2e-5, atol=2e-5)
            for index in (1, 2):
                np.testing.assert_allclose(
                    found[index][row, :, :end], wanted[index][row, :, :end], rtol=2e-5, atol=2e-5
                )


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
    gqa(new, lengths, buffer, rotary=rotary, packed=packed)


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
    gqa(new, lengths, buffer, **given)
