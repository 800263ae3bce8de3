"""A decoder as language models are written for ONNX Runtime: attention over a cache, rotary positions, gated layers.

`decoder(…)` makes one with random weights; `quantised(model)` puts its matrices into blocks of four bits.
"""

from __future__ import annotations

import logging

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"


def decoder(
    vocabulary: int, width: int = 64, layers: int = 2, heads: int = 4, shared: int = 2, inner: int = 128, seed: int = 0
) -> onnx.ModelProto:
    """`shared`: how many heads keys and values have; `inner`: the width between the two products of a layer."""
    rng = np.random.default_rng(seed)
    size = width // heads
    weights: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []

    def add(op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def product(x: str, name: str, rows: int, columns: int, spread: float = 1.0) -> str:
        weights[f"{name}.weight"] = _normal(rng, rows, columns) * np.float32(spread / np.sqrt(rows))
        return add("MatMul", [x, f"{name}.weight"], [name])

    def scale(name: str) -> str:
        weights[name] = np.ones(width, np.float32)
        return name

    angles = np.arange(512)[:, None] / 10000 ** (np.arange(size // 2) * 2 / size)
    weights |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    weights |= {"embed.weight": _normal(rng, vocabulary, width), "one": np.array([1], np.int64)}
    add("ReduceSum", ["attention_mask", "one"], ["lengths"], keepdims=0)
    add("Sub", ["lengths", "one"], ["last"])
    add("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32)
    add("Shape", ["attention_mask"], ["places"], start=1, end=2)
    add("Squeeze", ["places"], ["place"])
    add("Cast", ["place"], ["total"], to=TensorProto.INT32)
    stream = add("Gather", ["embed.weight", "input_ids"], ["embed"])
    rooted = add("SimplifiedLayerNormalization", [stream, scale("layers.0.norm1.weight")], ["normal.0"], epsilon=1e-5)
    caches = []
    deep = 1 / np.sqrt(2 * layers)
    for i in range(layers):
        own = f"layers.{i}"
        q, k, v = (
            product(rooted, f"{own}.attention.{n}", width, size * c)
            for n, c in (("q", heads), ("k", shared), ("v", shared))
        )
        past, present = ([f"{when}.{i}.{n}" for n in ("key", "value")] for when in ("past_key_values", "present"))
        given = [q, k, v, *past, "seqlens_k", "total", "cos", "sin"]
        outputs = [f"{own}.attention.seen", *present]
        seen = add("GroupQueryAttention", given, outputs, MS, num_heads=heads, kv_num_heads=shared, do_rotary=1)
        caches.append((past, present))
        mixed = product(seen, f"{own}.attention.o", width, width, deep)
        outputs = [f"{own}.normal2", "", "", f"{own}.middle"]
        norm = [stream, mixed, scale(f"{own}.norm2.weight")]
        rooted = add("SkipSimplifiedLayerNormalization", norm, outputs, MS, epsilon=1e-5)
        stream = f"{own}.middle"
        gate, up = (product(rooted, f"{own}.mlp.{n}", width, inner) for n in ("gate", "up"))
        open_ = add("Mul", [gate, add("Sigmoid", [gate], [f"{own}.mlp.share"])], [f"{own}.mlp.open"])
        held = add("Mul", [open_, up], [f"{own}.mlp.held"])
        down = product(held, f"{own}.mlp.down", inner, width, deep)
        outputs = [f"{own}.after", "", "", f"{own}.stream"]
        norm = [stream, down, scale(f"layers.{i + 1}.norm1.weight" if i + 1 < layers else "norm.weight")]
        rooted = add("SkipSimplifiedLayerNormalization", norm, outputs, MS, epsilon=1e-5)
        stream = f"{own}.stream"
    product(rooted, "logits", width, vocabulary)

    def value(name: str, dtype: int, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, shape)

    inputs = [
        value("input_ids", TensorProto.INT64, "batch", "length"),
        value("attention_mask", TensorProto.INT64, "batch", "total"),
    ]
    outputs_ = [value("logits", TensorProto.FLOAT, "batch", "length", vocabulary)]
    for past, present in caches:
        inputs += [value(name, TensorProto.FLOAT, "batch", shared, "past", size) for name in past]
        outputs_ += [value(name, TensorProto.FLOAT, "batch", shared, "total", size) for name in present]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs_, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def quantised(model: onnx.ModelProto, bits: int = 4, block: int = 32) -> onnx.ModelProto:
    """Every MatMul with a constant becomes a MatMulNBits, by ONNX Runtime's own tool."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    how = DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=False, bits=bits)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    logging.getLogger().setLevel(logging.WARNING)  # the tool turns on what every library says of its steps
    tool = MatMulNBitsQuantizer(copy, algo_config=how)
    tool.process()
    return tool.model.model
