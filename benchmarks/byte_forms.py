"""In which form are quantised layers exact on every processor, and how fast is ONNX Runtime with each?

python benchmarks/byte_forms.py --exactness avx2.json    on a processor, or an emulated one, with AVX2 and without VNNI
python benchmarks/byte_forms.py --beside avx2.json       on another; writes docs/measured/byte-forms.md

Without a processor of the first kind, `qemu-x86_64 -cpu Haswell` runs Python as on one; times mean nothing there.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from onward.model import load
from onward.passes.unsigned_bytes import unsigned_bytes

PAGE = Path(__file__).parent.parent / "docs/measured/byte-forms.md"
MARKS = "<!-- forms -->", "<!-- /forms -->"
RNG = np.random.default_rng(0)
LAYERS, ROUNDS = 6, 40
FORMS = ("int8 × int8", "uint8 × int8", "as Onward writes it", "floats")


@dataclass(frozen=True)
class Kind:
    """A chain of equal layers."""

    op: str
    data: list[int]
    weight: tuple[int, ...]
    attributes: dict[str, Any]


KINDS = {
    "Conv 3×3, 64 channels": Kind("Conv", [1, 64, 56, 56], (64, 64, 3, 3), {"pads": [1] * 4}),
    "Conv 1×1, 128 channels": Kind("Conv", [1, 128, 56, 56], (128, 128, 1, 1), {}),
    "Conv 3×3, a filter for each of 128 channels": Kind(
        "Conv", [1, 128, 56, 56], (128, 1, 3, 3), {"group": 128, "pads": [1] * 4}
    ),
    "MatMul 64 × 768 × 768": Kind("MatMul", [64, 768], (768, 768), {}),
}


def chain(kind: Kind, data: Any, layers: int, high: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Layers between grids, with weights of int8; where numbers are `high`, they are as large as saturates."""
    axis = 0 if kind.op == "Conv" else 1
    count = kind.weight[axis]
    reach = float(np.prod(kind.weight)) / count * (110 if high else 4) * 0.01 / 255
    arrays = {
        "scale": np.array(0.02, np.float32),
        "zero": np.array(np.iinfo(data).min + (0 if high else 128), data),
        "wide": np.array(0.02 * 255 * reach if high else 0.02, np.float32),
        "w_scale": np.full(count, 0.01 if high else 0.01 / np.prod(kind.weight) * count, np.float32),
        "w_zero": np.zeros(count, np.int8),
    }
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q0"])]
    for i in range(layers):
        arrays[f"w{i}"] = RNG.integers(90 if high else -127, 128, kind.weight).astype(np.int8)
        before, after = ("scale" if i == 0 or not high else "wide"), "wide"
        nodes += [
            helper.make_node("DequantizeLinear", [f"q{i}", before, "zero"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [f"w{i}", "w_scale", "w_zero"], [f"dw{i}"], axis=axis),
            helper.make_node(kind.op, [f"d{i}", f"dw{i}"], [f"r{i}"], **kind.attributes),
            helper.make_node("QuantizeLinear", [f"r{i}", after, "zero"], [f"q{i + 1}"]),
        ]
    nodes.append(helper.make_node("DequantizeLinear", [f"q{layers}", "wide", "zero"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, kind.data)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(kind.data))],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    numbers = RNG.integers(200, 256, kind.data) * 0.02 if high else RNG.standard_normal(kind.data)
    return proto, {"x": numbers.astype(np.float32)}


def forms(kind: Kind, layers: int, high: bool) -> tuple[dict[str, onnx.ModelProto], dict[str, np.ndarray]]:
    """The same numbers in each form."""
    global RNG
    made = {}
    for form, data in zip(FORMS, (np.int8, np.uint8, np.int8, np.uint8), strict=True):
        RNG = np.random.default_rng(0)
        proto, feeds = chain(kind, data, layers, high)
        if form == "as Onward writes it":
            model = load(proto)
            unsigned_bytes(model.ir)
            proto = model.to_proto()
        made[form] = proto
    return made, feeds


def session(proto: onnx.ModelProto, form: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    if form == "floats":
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])


def exactness(kind: Kind) -> dict[str, float]:
    """By how many steps of its grid a layer with large numbers is off, in each form."""
    made, feeds = forms(kind, 1, high=True)
    found = {form: session(proto, form).run(None, feeds)[0] for form, proto in made.items()}
    (step,) = (numpy_helper.to_array(t) for t in made["floats"].graph.initializer if t.name == "wide")
    return {form: float(np.abs(found[form] - found["floats"]).max() / step).__round__() for form in FORMS[:3]}


def seconds(kind: Kind) -> dict[str, float]:
    """Of the processor, the median of runs that take turns."""
    made, feeds = forms(kind, LAYERS, high=False)
    sessions = {form: session(proto, form) for form, proto in made.items()}
    taken: dict[str, list[float]] = {form: [] for form in sessions}
    for _ in range(ROUNDS):
        for form, one in sessions.items():
            began = time.thread_time()
            one.run(None, feeds)
            taken[form].append(time.thread_time() - began)
    return {form: statistics.median(times[2:]) for form, times in taken.items()}


def page(beside: dict[str, dict[str, float]]) -> str:
    exact = ["| one layer, steps off at most | processor | " + " | ".join(FORMS[:3]) + " |", "|---|---|---|---|---|"]
    fast = [f"| {LAYERS} layers, time | " + " | ".join(FORMS) + " |", "|---|---|---|---|---|"]
    for name, kind in KINDS.items():
        for processor, found in (("AVX2 alone", beside[name]), ("this one", exactness(kind))):
            exact.append(f"| {name} | {processor} | " + " | ".join(f"{found[form]:g}" for form in FORMS[:3]) + " |")
        taken = seconds(kind)
        first = taken[FORMS[0]]
        fast.append(f"| {name} | " + " | ".join(f"{1000 * t:.2f} ms ({t / first:.2f}×)" for t in taken.values()) + " |")
    where = machine.describe("onnxruntime", "onnx")
    return "\n".join([MARKS[0], *exact, "", *fast, "", f"{where}. One thread.", MARKS[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exactness", type=Path, help="write only how exact each form is here")
    parser.add_argument("--beside", type=Path, help="what that wrote on the other processor")
    args = parser.parse_args()
    if args.exactness is not None:
        args.exactness.write_text(json.dumps({name: exactness(kind) for name, kind in KINDS.items()}))
    elif args.beside is not None:
        machine.put(PAGE, *MARKS, page(json.loads(args.beside.read_text())))
    else:
        parser.error("give --exactness or --beside")


if __name__ == "__main__":
    main()
