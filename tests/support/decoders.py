"""Small decoders of language models, written as ONNX Runtime GenAI writes them, and how they are run step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
WIDTH, HEADS, SHARED, SIZE, INNER, WORDS, LONGEST = 32, 4, 2, 16, 48, 48, 64
BLOCK = 16
Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]


class Writer:
    """Nodes and weights of a decoder. `bits`: 4 or 8 where the weights of its products are quantized, in `block`s."""

    def __init__(self, bits: int | None, block: int = BLOCK, zeros: bool = True, dtype: Any = np.float32) -> None:
        self.bits, self.block, self.zeros, self.dtype = bits, block, zeros, dtype
        self.given: dict[str, int] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def numbers(self, *shape: int, scale: float = 0.3) -> Array:
        return (self._random.standard_normal(shape) * scale).astype(self.dtype)

    def weight(self, name: str, data: Array) -> str:
        if name not in [w.name for w in self.weights]:
            self.weights.append(numpy_helper.from_array(data, name))
        return name

    def node(
        self, op: str, name: str, inputs: list[str], outputs: int | list[str] = 1, domain: str = "", **given: Any
    ) -> list[str]:
        made = [f"{name}/output_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, inputs, made, name, domain=domain, **given))
        return made

    def product(self, name: str, x: str, rows: int, columns: int, biased: bool = False) -> str:
        """`x` times a weight of (rows, columns), as a float one or quantized in blocks; a bias is added by a node."""
        path = name.strip("/").replace("/", ".")
        data = self.numbers(columns, rows)
        if self.bits is None:
            inputs = [x, self.weight(f"{path}.MatMul.weight", data.T.copy())]
            (y,) = self.node("MatMul", f"{name}/MatMul", inputs)
        else:
            packed, scales, zeros = quantized(data, self.bits, self.block, self.zeros)
            inputs = [x, self.weight(f"{path}.MatMul.weight_Q{self.bits}", packed)]
            inputs += [self.weight(f"{path}.MatMul.weight_scales", scales)]
            inputs += [self.weight(f"{path}.MatMul.weight_zp", zeros)] if self.zeros else []
            given = {"K": rows, "N": columns, "bits": self.bits, "block_size": self.block, **self.given}
            (y,) = self.node("MatMulNBits", f"{name}/MatMul_Q{self.bits}", inputs, domain=MS, **given)
        if not biased:
            return y
        return self.node("Add", f"{name}/Add", [y, self.weight(f"{path}.Add.bias", self.numbers(columns))])[0]


def quantized(data: Array, bits: int, block: int, shifted: bool) -> tuple[Array, Array, Array]:
    """A weight (N, K) as MatMulNBits takes it: packed numbers, scales and packed zero points of each block."""
    count, columns = data.shape
    wide = np.pad(data.astype(np.float32), ((0, 0), (0, -columns % block)))
    blocks = wide.reshape(count, -1, block)
    low, high = blocks.min(2, keepdims=True), blocks.max(2, keepdims=True)
    if shifted:
        scales = (high - low) / (2**bits - 1)
        zeros = np.clip(np.round(-low / scales), 0, 2**bits - 1)
    else:
        scales = np.maximum(high, -low) / (2 ** (bits - 1) - 1)
        zeros = np.full_like(scales, 2 ** (bits - 1))
    codes = np.clip(np.round(blocks / scales) + zeros, 0, 2**bits - 1).astype(np.uint8)
    points = zeros[..., 0].astype(np.uint8)
    if bits == 4:
        codes = codes[..., ::2] | codes[..., 1::2] << 4
        points = np.pad(points, ((0, 0), (0, points.shape[1] % 2)))
        points = points[:, ::2] | points[:, 1::2] << 4
    return codes, scales[..., 0].astype(data.dtype).reshape(-1), points.reshape(-1)


def decoder(
    layers: int = 2,
    *,
    bits: int | None = 4,
    int8_cache: bool = False,
    experts: int = 0,
    packed: bool = False,
    block: int = BLOCK,
    zeros: bool = True,
    accuracy: int | None = None,
    dtype: Any = np.float32,
    positions: bool = False,
    room: int | None = None,
    counted: bool = True,
    biased: bool = False,
    **attention: Any,
) -> onnx.ModelProto:
    """Ids and a mask of the words so far, earlier keys and values → scores of the next words, all keys and values.

    With `positions` they are an input, and rotations nodes of their own. A cache has `room` for so many places. Lengths
    are inputs themselves where they are not `counted` from the mask.
    """
    w = Writer(bits, block, zeros, dtype)
    w.given = {} if accuracy is None else {"accuracy_level": accuracy}
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ones = lambda n: np.ones(n, dtype) + w.numbers(n, scale=0.1)  # noqa: E731
    table = w.weight("model.embed_tokens.weight", w.numbers(WORDS, WIDTH, scale=1.0))
    x = w.node("Gather", "/model/embed_tokens/Gather", [table, "input_ids"])[0]
    last, total = _lengths(w) if counted else ("seqlens_k", "total_sequence_length")
    turns = np.arange(LONGEST)[:, None] / 10 ** (np.arange(SIZE // 2) / 2)
    cos = w.weight("cos_cache", np.cos(turns).astype(dtype))
    sin = w.weight("sin_cache", np.sin(turns).astype(dtype))
    cache = TensorProto.INT8 if int8_cache else element
    skip = x
    for i in range(layers):
        at, path = f"/model/layers.{i}", f"model.layers.{i}"
        gamma = w.weight(f"{path}.input_layernorm.weight", ones(WIDTH))
        if i == 0:
            (y,) = w.node("SimplifiedLayerNormalization", f"{at}/input_layernorm/LayerNorm", [x, gamma], epsilon=1e-5)
        else:
            y, skip = _skip_norm(w, f"{at}/input_layernorm/SkipLayerNorm", skip, x, gamma)
        if packed:
            qkv = [w.product(f"{at}/attn/qkv_proj", y, WIDTH, (HEADS + 2 * SHARED) * SIZE), "", ""]
        else:
            sizes = zip("qkv", (HEADS, SHARED, SHARED), strict=True)
            qkv = [w.product(f"{at}/attn/{name}_proj", y, WIDTH, heads * SIZE, biased) for name, heads in sizes]
        if positions:
            qkv[:2] = [
                w.node("RotaryEmbedding", f"{at}/attn/{n}_rotary", [x, "position_ids", cos, sin], domain=MS)[0]
                for n, x in zip("qk", qkv[:2], strict=True)
            ]
        past = [f"past_key_values.{i}.{kind}" for kind in ("key", "value")]
        present = [f"present.{i}.{kind}" for kind in ("key", "value")]
        name = f"{at}/attn/GroupQueryAttention"
        turned = [] if positions else [cos, sin]
        inputs, given = [*qkv, *past, last, total, *turned], dict(attention)
        if int8_cache:
            scales = [w.weight(f"{path}.attn.{kind}_scale", np.array([0.03], np.float32)) for kind in "kv"]
            inputs += ["", "", "", *scales]
            given |= {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
        y = w.node(
            *("GroupQueryAttention", name, inputs, [f"{name}/output_0", *present], MS),
            **{"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": int(not positions), **given},
        )[0]
        y = w.product(f"{at}/attn/o_proj", y, HEADS * SIZE, WIDTH)
        gamma = w.weight(f"{path}.post_attention_layernorm.weight", ones(WIDTH))
        y, skip = _skip_norm(w, f"{at}/post_attention_layernorm/SkipLayerNorm", skip, y, gamma)
        x = _experts(w, at, y, experts) if experts else _mlp(w, at, y)
    gamma = w.weight(f"model.layers.{layers}.final_norm_layernorm.weight", ones(WIDTH))
    y, _ = _skip_norm(w, f"/model/layers.{layers}/final_norm_layernorm/SkipLayerNorm", skip, x, gamma, last=True)
    y = w.product("/lm_head", y, WIDTH, WORDS)
    w.nodes[-1].output[0] = "logits"
    ids = [_value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
    if counted:
        ids += [_value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])]
    else:
        ids += [_value("seqlens_k", TensorProto.INT32, ["batch_size"]), _value(total, TensorProto.INT32, [])]
    if positions:
        ids += [_value("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]
    outputs = [_value("logits", element, ["batch_size", "sequence_length", None])]
    for i in range(layers):
        for kind in ("key", "value"):
            for values, name, size in (
                (ids, f"past_key_values.{i}.{kind}", "past_sequence_length"),
                (outputs, f"present.{i}.{kind}", "total_sequence_length"),
            ):
                values.append(_value(name, cache, ["batch_size", SHARED, room or size, SIZE]))
    graph = helper.make_graph(w.nodes, "main_graph", ids, outputs, w.weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="onnxruntime-genai")


def _value(name: str, dtype: int, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def _lengths(w: Writer) -> tuple[str, str]:
    """The last place of each row, and the number of places in all."""
    at = "/model/attn_mask_reformat/attn_mask_subgraph"
    one, axis = w.weight("one", np.array([1], np.int64)), w.weight("axis", np.array([1], np.int64))
    index = w.weight("index", np.array(1, np.int64))
    (count,) = w.node("ReduceSum", f"{at}/ReduceSum", ["attention_mask", axis], keepdims=0)
    (last,) = w.node("Sub", f"{at}/Sub", [count, one])
    (last,) = w.node("Cast", f"{at}/Sub/Cast", [last], to=TensorProto.INT32)
    (shape,) = w.node("Shape", f"{at}/Shape", ["attention_mask"])
    (total,) = w.node("Gather", f"{at}/Gather", [shape, index], axis=0)
    return last, w.node("Cast", f"{at}/Gather/Cast", [total], to=TensorProto.INT32)[0]


def _skip_norm(w: Writer, name: str, skip: str, x: str, gamma: str, last: bool = False) -> tuple[str, str]:
    outputs = [f"{name}/output_0", "", "", f"{name}/output_3"][: 1 if last else 4]
    made = w.node("SkipSimplifiedLayerNormalization", name, [skip, x, gamma], outputs, MS, epsilon=1e-5)
    return made[0], made[-1]


def _mlp(w: Writer, at: str, x: str) -> str:
    gate = w.product(f"{at}/mlp/gate_proj", x, WIDTH, INNER)
    up = w.product(f"{at}/mlp/up_proj", x, WIDTH, INNER)
    (share,) = w.node("Sigmoid", f"{at}/mlp/act_fn/Sigmoid", [gate])
    (active,) = w.node("Mul", f"{at}/mlp/act_fn/Mul", [gate, share])
    (y,) = w.node("Mul", f"{at}/mlp/Mul", [active, up])
    return w.product(f"{at}/mlp/down_proj", y, INNER, WIDTH)


def _experts(w: Writer, at: str, x: str, count: int) -> str:
    path = at.strip("/").replace("/", ".")
    logits = w.product(f"{at}/moe/router", x, WIDTH, count if w.bits is None else BLOCK)
    flat = w.weight("flat", np.array([-1, count if w.bits is None else BLOCK], np.int64))
    (logits,) = w.node("Reshape", f"{at}/moe/router/Reshape", [logits, flat])
    count = count if w.bits is None else BLOCK
    given = {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1}
    up = w.weight(f"{path}.moe.experts.up_proj.weight", w.numbers(count, INNER, WIDTH))
    down = w.weight(f"{path}.moe.experts.down_proj.weight", w.numbers(count, WIDTH, INNER))
    return w.node("MoE", f"{at}/moe", [x, logits, up, "", down], domain=MS, **given)[0]


def steps(model: onnx.ModelProto, run: Callable[[Feeds], list[Array]], prompt: Array, count: int) -> list[list[Array]]:
    """What a model gives for a prompt, and for each of `count` further words, of which each is the likeliest."""
    caches = [value for value in model.graph.input if value.name.startswith("past")]
    made: list[list[Array]] = []
    ids, mask = prompt, np.ones_like(prompt)
    past = {
        v.name: np.zeros((len(prompt), SHARED, 0, SIZE), helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type))
        for v in caches
    }
    for _ in range(count + 1):
        given = {"input_ids": ids, "attention_mask": mask, **past}
        if any(value.name == "position_ids" for value in model.graph.input):
            given["position_ids"] = np.broadcast_to(np.arange(mask.shape[1] - ids.shape[1], mask.shape[1]), ids.shape)
        outputs = run(given)
        made.append(outputs)
        past = dict(zip(past, outputs[1:], strict=True))
        ids = outputs[0][:, -1].argmax(-1)[:, None]
        mask = np.concatenate([mask, np.ones_like(ids)], 1)
    return made
