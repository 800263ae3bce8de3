"""Graphs at random, of everything that the pass has rules for and of what it has to leave alone."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onward.layout.orders import to_first, to_last

OPSET = 20
UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softplus", "Identity", "Erf")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
REDUCE = ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2")


class Graph:
    def __init__(self, seed: int, nodes: int, dynamic: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.read: set[str] = set()
        self.feeds: dict[str, np.ndarray] = {}
        for i in range(self.number(1, 3)):
            shape = (self.number(1, 3), *(self.number(1, 5) for _ in range(self.number(2, 5))))
            self.feeds[f"x{i}"] = self.array(*shape)
            self.shapes[f"x{i}"] = shape
        while len(self.nodes) < nodes:
            steps = STEPS + [Graph.conv, Graph.binary, Graph.unary, Graph.layout_transpose] * 3
            steps[self.number(0, len(steps))](self)
        self.dynamic = dynamic

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def array(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def pick(self, *ranks: int) -> str | None:
        """A value, most likely a late one, so that graphs are deep."""
        found = [name for name, shape in self.shapes.items() if len(shape) in ranks and np.prod(shape) < 3000]
        if not found:
            return None
        return found[max(self.number(0, len(found)) for _ in range(2))]

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def ints(self, *items: int) -> str:
        return self.weight(np.array(items, np.int64))

    def add(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"{op}_{name}", **attributes))
        self.shapes[name] = tuple(shape)
        self.read.update(inputs)
        return name

    def bounded(self, name: str) -> None:
        """Keep numbers small."""
        self.add("Tanh", [name], self.shapes[name])

    def conv(self) -> None:
        x = self.pick(3, 4, 5)
        if x is None:
            return
        n, c, *spatial = self.shapes[x]
        kind, rank = self.number(0, 6), len(spatial)
        if kind < 3:
            out = self.number(1, 5)
            weight = self.weight(self.array(out, c, *[3] * rank) / 3)
            self.add("Conv", [x, weight], (n, out, *spatial), pads=[1] * 2 * rank)
        elif kind == 3:
            self.add("GlobalAveragePool", [x], (n, c, *[1] * rank))
        elif kind == 4:
            pooled = tuple((s + 1) // 2 for s in spatial)
            self.add("MaxPool", [x], (n, c, *pooled), kernel_shape=[2] * rank, strides=[2] * rank, ceil_mode=1)
        else:
            stats = [self.weight(np.abs(self.array(c)) + 0.5) for _ in range(4)]
            self.add("BatchNormalization", [x, *stats], self.shapes[x])

    def resize(self) -> None:
        if x := self.pick(4):
            n, c, h, w = self.shapes[x]
            scales = self.weight(np.array([1, 1, 2, 2], np.float32))
            if self.number(0, 2):
                self.add("Resize", [x, "", scales], (n, c, 2 * h, 2 * w), mode="nearest")
            else:
                sizes = self.ints(n, c, h + 1, w + 2)
                self.add("Resize", [x, "", "", sizes], (n, c, h + 1, w + 2), mode="linear")

    def unary(self) -> None:
        if x := self.pick(1, 2, 3, 4, 5):
            self.add(UNARY[self.number(0, len(UNARY))], [x], self.shapes[x])

    def binary(self) -> None:
        op = BINARY[self.number(0, len(BINARY))]
        x = self.pick(3, 4, 5)
        if x is None:
            return
        shape, kind = self.shapes[x], self.number(0, 3)
        if kind == 0:
            part = tuple(s if self.number(0, 3) else 1 for s in shape[self.number(0, len(shape)) :])
            y = self.weight(self.array(*part))
        else:
            fitting = [v for v, s in self.shapes.items() if v != x and _broadcasts(s, shape)]
            if not fitting:
                return
            y = fitting[self.number(0, len(fitting))]
        pair = [x, y] if self.number(0, 2) else [y, x]
        out = np.broadcast_shapes(shape, self.weights[y].shape if y in self.weights else self.shapes[y])
        self.bounded(self.add(op, pair, out))

    def where(self) -> None:
        if x := self.pick(3, 4):
            condition = self.weight(self.rng.random(self.shapes[x][1:]) > 0.5)
            self.add("Where", [condition, x, self.weight(self.array(1))], self.shapes[x])

    def layout_transpose(self) -> None:
        if x := self.pick(3, 4, 5):
            rank = len(self.shapes[x])
            self.transposed(x, (to_last if self.number(0, 2) else to_first)(rank))

    def transpose(self) -> None:
        if x := self.pick(2, 3, 4, 5):
            self.transposed(x, tuple(int(i) for i in self.rng.permutation(len(self.shapes[x]))))

    def transposed(self, x: str, perm: tuple[int, ...]) -> None:
        self.add("Transpose", [x], tuple(self.shapes[x][i] for i in perm), perm=perm)

    def axis(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """An axis, and how it is written."""
        axis = self.number(0, len(shape))
        return axis, axis - len(shape) if self.number(0, 2) else axis

    def concat(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            axis, written = self.axis(shape)
            fitting = [v for v, s in self.shapes.items() if len(s) == len(shape) and _same_but(s, shape, axis)]
            y = fitting[self.number(0, len(fitting))]
            parts = [x, y, self.weight(self.array(*shape))]
            size = 2 * shape[axis] + self.shapes[y][axis]
            self.add("Concat", parts, (*shape[:axis], size, *shape[axis + 1 :]), axis=written)

    def split(self) -> None:
        x = self.pick(3, 4, 5)
        if x is None:
            return
        shape = self.shapes[x]
        axis, written = self.axis(shape)
        if shape[axis] < 2:
            return
        sizes = (1, shape[axis] - 1)
        outputs = [f"v{len(self.nodes)}a", f"v{len(self.nodes)}b"]
        self.nodes.append(helper.make_node("Split", [x, self.ints(*sizes)], outputs, axis=written))
        self.read.add(x)
        for name, size in zip(outputs, sizes, strict=True):
            self.shapes[name] = (*shape[:axis], size, *shape[axis + 1 :])

    def slice(self) -> None:
        x = self.pick(3, 4, 5)
        if x is None:
            return
        shape = self.shapes[x]
        axis, written = self.axis(shape)
        if shape[axis] < 2:
            return
        size = shape[axis] - 1
        inputs = [x, self.ints(1), self.ints(100), self.ints(written)]
        if axis == 0 and self.number(0, 2):
            inputs = inputs[:3]
        self.add("Slice", inputs, (*shape[:axis], size, *shape[axis + 1 :]))

    def pad(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            before = [self.number(0, 2) for _ in shape]
            if self.number(0, 2):
                padded = tuple(s + b for s, b in zip(shape, before, strict=True))
                self.add("Pad", [x, self.ints(*before, *[0] * len(shape))], padded)
            else:
                axis, written = self.axis(shape)
                grown = (*shape[:axis], shape[axis] + 3, *shape[axis + 1 :])
                self.add("Pad", [x, self.ints(1, 2), self.weight(np.float32(0.5)), self.ints(written)], grown)

    def reduce(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            axes = sorted(self.rng.choice(len(shape), self.number(1, len(shape)), replace=False).tolist())
            keep = self.number(0, 2)
            out = tuple(1 if i in axes else s for i, s in enumerate(shape) if keep or i not in axes)
            written = [a - len(shape) if self.number(0, 2) else a for a in axes]
            self.bounded(self.add(REDUCE[self.number(0, len(REDUCE))], [x, self.ints(*written)], out, keepdims=keep))

    def softmax(self) -> None:
        if x := self.pick(2, 3, 4, 5):
            self.add("Softmax", [x], self.shapes[x], axis=self.axis(self.shapes[x])[1])

    def squeeze(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            ones = [i for i, s in enumerate(shape) if s == 1]
            if len(ones) == 0 or len(ones) > len(shape) - 1:
                return
            if self.number(0, 2):
                self.add("Squeeze", [x], tuple(s for s in shape if s != 1))
            else:
                out = tuple(s for i, s in enumerate(shape) if i != ones[0])
                self.add("Squeeze", [x, self.ints(ones[0])], out)

    def unsqueeze(self) -> None:
        if x := self.pick(1, 2, 3, 4):
            shape = list(self.shapes[x])
            rank = len(shape) + self.number(1, min(3, 6 - len(shape)))
            axes = self.rng.choice(rank, rank - len(shape), replace=False).tolist()
            for axis in sorted(axes):
                shape.insert(axis, 1)
            self.add("Unsqueeze", [x, self.ints(*axes)], tuple(shape))

    def gather(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            axis, written = self.axis(shape)
            if self.number(0, 2):
                indices, kept = self.ints(0, -1), (2,)
            else:
                indices, kept = self.weight(np.array(0, np.int64)), ()
            self.add("Gather", [x, indices], (*shape[:axis], *kept, *shape[axis + 1 :]), axis=written)

    def expand(self) -> None:
        if x := self.pick(2, 3, 4):
            shape = tuple(2 if s == 1 else s for s in self.shapes[x])
            if len(shape) < 4 and self.number(0, 2):
                shape = (2, *shape)
            self.add("Expand", [x, self.ints(*shape)], shape)

    def tile(self) -> None:
        if x := self.pick(3, 4):
            repeats = [self.number(1, 3) for _ in self.shapes[x]]
            self.add(
                "Tile", [x, self.ints(*repeats)], tuple(r * s for r, s in zip(repeats, self.shapes[x], strict=True))
            )

    def reshape(self) -> None:
        """Merges or splits the spatial axes, or anything else."""
        x = self.pick(2, 3, 4, 5)
        if x is None:
            return
        shape = self.shapes[x]
        kind, size = self.number(0, 6), int(np.prod(shape))
        if kind == 0 and len(shape) > 2:
            self.add("Reshape", [x, self.ints(0, 0, -1)], (*shape[:2], size // (shape[0] * shape[1])))
        elif kind == 1 and len(shape) > 2:
            out = (shape[0], size // (shape[0] * shape[-1]), shape[-1])
            self.add("Reshape", [x, self.ints(out[0], -1, out[2])], out)
        elif kind == 2:
            out = (*shape[:2], 1, size // (shape[0] * shape[1]))
            self.add("Reshape", [x, self.ints(*out)], out)
        elif kind == 3:
            self.add("Flatten", [x], (shape[0], size // shape[0]))
        elif kind == 4:
            out = (shape[0], size // shape[0], 1, 1)
            self.add("Reshape", [x, self.ints(0, -1, 1, 1)], out)
        else:
            out = tuple(int(s) for s in self.rng.permutation(shape))
            self.add("Reshape", [x, self.ints(*out)], out)

    def shuffle(self) -> None:
        """Splits an axis, transposes, and merges what is then next to each other."""
        x = self.pick(3, 4, 5)
        if x is None:
            return
        shape = self.shapes[x]
        axis = self.number(0, len(shape))
        part = 2 if shape[axis] % 2 == 0 else 1
        longer = (*shape[:axis], part, shape[axis] // part, *shape[axis + 1 :])
        perm = [int(i) for i in self.rng.permutation(len(longer))] if self.number(0, 2) else list(range(len(longer)))
        if perm == sorted(perm):
            perm[axis], perm[axis + 1] = perm[axis + 1], perm[axis]
        moved = [longer[i] for i in perm]
        at = self.number(0, len(moved) - 1) if self.number(0, 2) else axis
        shorter = (*moved[:at], moved[at] * moved[at + 1], *moved[at + 2 :])
        first = self.add("Reshape", [x, self.ints(*longer)], longer)
        second = self.add("Softmax", [first], longer, axis=axis) if self.number(0, 2) else first
        third = self.add("Transpose", [second], tuple(moved), perm=perm)
        fourth = self.add("Relu", [third], tuple(moved)) if self.number(0, 2) else third
        self.add("Reshape", [fourth, self.ints(*shorter)], shorter)
        if self.number(0, 5):
            for name in {first, second, third, fourth}:
                del self.shapes[name]

    def computed_reshape(self) -> None:
        """To a shape that is computed from that of the tensor."""
        if x := self.pick(4):
            shape = self.shapes[x]
            dims = self.add("Shape", [x], ()), self.add("Shape", [x], (), start=1, end=3)
            whole = self.add("Concat", [self.piece(dims[0], 0), self.piece(dims[1], 0), self.ints(-1)], (), axis=0)
            self.add("Reshape", [x, whole], (*shape[:2], shape[2] * shape[3]))
            for name in (*dims, whole):
                del self.shapes[name]

    def piece(self, vector: str, i: int) -> str:
        name = self.add("Gather", [vector, self.ints(i)], ())
        del self.shapes[name]
        return name

    def computed_resize(self) -> None:
        """To the size of another tensor, as feature pyramids do."""
        x, y = self.pick(4), self.pick(4)
        if x and y:
            dims = [self.add("Shape", [v], (), start=s, end=e) for v, s, e in ((x, 0, 2), (y, 2, 4))]
            sizes = self.add("Concat", dims, (), axis=0)
            for name in (*dims, sizes):
                del self.shapes[name]
            self.add("Resize", [x, "", "", sizes], (*self.shapes[x][:2], *self.shapes[y][2:]), mode="nearest")

    def quantize(self) -> None:
        if x := self.pick(3, 4, 5):
            shape = self.shapes[x]
            axis, written = self.axis(shape)
            scale = self.weight(np.abs(self.array(shape[axis])) + 0.1)
            zero = self.weight(np.zeros(shape[axis], np.uint8))
            integers = self.add("QuantizeLinear", [x, scale, zero], shape, axis=written)
            del self.shapes[integers]
            self.add("DequantizeLinear", [integers, scale, zero], shape, axis=written)

    def cumulative(self) -> None:
        if x := self.pick(3, 4, 5):
            axis = self.weight(np.array(self.axis(self.shapes[x])[1], np.int64))
            self.bounded(self.add("CumSum", [x, axis], self.shapes[x]))

    def arg(self) -> None:
        if x := self.pick(3, 4, 5):
            shape, keep = self.shapes[x], self.number(0, 2)
            axis, written = self.axis(shape)
            out = (*shape[:axis], *[1] * keep, *shape[axis + 1 :])
            found = self.add("ArgMax", [x], out, axis=written, keepdims=keep)
            self.add("Cast", [found], out, to=TensorProto.FLOAT)
            del self.shapes[found]

    def matmul(self) -> None:
        if x := self.pick(3, 4):
            *left, last = self.shapes[x]
            self.bounded(self.add("MatMul", [x, self.weight(self.array(last, 3))], (*left, 3)))

    def layer_norm(self) -> None:
        if x := self.pick(3, 4):
            size = self.shapes[x][-1]
            scale, bias = (self.weight(self.array(size)) for _ in range(2))
            self.add("LayerNormalization", [x, scale, bias], self.shapes[x], axis=-1)

    def model(self) -> onnx.ModelProto:
        ends = [name for name in self.shapes if name not in self.read]
        extra = self.pick(3, 4, 5)
        outputs = dict.fromkeys([*ends, *([extra] if extra and extra.startswith("v") else [])])
        graph = helper.make_graph(
            self.nodes,
            "random",
            [self.declared(name, self.shapes[name]) for name in self.feeds],
            [onnx.ValueInfoProto(name=name) for name in outputs if name.startswith("v")],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        for output in graph.output:
            output.type.tensor_type.elem_type = TensorProto.FLOAT
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

    def declared(self, name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        """With `dynamic`, only sizes that weights depend on are known."""
        dims = [f"{name}_{i}" if self.dynamic and i != 1 else s for i, s in enumerate(shape)]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return len(np.broadcast_shapes(a, b)) <= 5 and np.prod(np.broadcast_shapes(a, b)) < 3000
    except ValueError:
        return False


def _same_but(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> bool:
    return all(i == axis or m == n for i, (m, n) in enumerate(zip(a, b, strict=True)))


STEPS: list[Callable[[Graph], None]] = [
    *(Graph.resize, Graph.where, Graph.transpose, Graph.concat, Graph.split, Graph.slice, Graph.pad, Graph.reduce),
    *(Graph.softmax, Graph.squeeze, Graph.unsqueeze, Graph.gather, Graph.expand, Graph.tile, Graph.reshape),
    *(Graph.computed_reshape, Graph.computed_resize, Graph.quantize, Graph.cumulative, Graph.arg, Graph.matmul),
    *(Graph.layer_norm, Graph.shuffle, Graph.shuffle),
]
