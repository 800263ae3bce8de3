"""Inputs of a TensorFlow function that are records of bytes (tf.Example), which it does nothing with but read them.

Such an input is fed by the features of the records: they are written as records where TensorFlow runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure
from onward.formats.matching import Declared

LISTS = {
    1: (ir.DataType.FLOAT, "float_list"),
    9: (ir.DataType.INT64, "int64_list"),
    7: (ir.DataType.STRING, "bytes_list"),
}
"""What a feature can consist of, by TensorFlow's number of the dtype, and the field of a tf.Example that holds it."""
FIELDS = dict(LISTS.values())
RANKS = {"ParseExample": (1,), "ParseSingleExample": (0,), "ParseExampleV2": (0, 1)}
"""Ops that read records, and the ranks of what each takes."""
HANDING_ON = ("Identity", "StopGradient", "Snapshot")
CALLS = ("PartitionedCall", "StatefulPartitionedCall")


@dataclass(frozen=True)
class Records:
    """What an input's records hold."""

    rows: tuple[int | None, ...]
    """The shape of the input: how many records there are, or () for a single one."""
    features: tuple[Declared, ...]
    """Those of a fixed length, in the order in which the op gives them; without the axis of the records."""
    sparse: tuple[Declared, ...]
    """Those of any length that the op gives as sparse tensors, in its order: what a record has, without dimensions."""
    refused: tuple[str, ...]
    """The keys of others, of any length, that no inputs stand for."""

    @property
    def declared(self) -> list[Declared]:
        """The features as inputs: of any length, as many as the longest has, and how many are in each record."""
        found = [Declared(one.name, one.dtype, (*self.rows, *(one.dims or ()))) for one in self.features]
        for one in self.sparse:
            found.append(Declared(one.name, one.dtype, (*self.rows, None)))
            found.append(Declared(lengths_of(one.name), ir.DataType.INT64, self.rows))
        return found

    def written(self, inputs: Mapping[str, Any]) -> Any:
        """The records that hold such features."""
        arrays = {one.name: np.asarray(inputs[one.name]) for one in self.declared}
        if not self.rows:
            return self._record(arrays)
        counts = {len(array) for array in arrays.values()}
        if len(counts) > 1:
            raise RunFailure(f"the features of its records are of different numbers of rows: {sorted(counts)}")
        return np.array([self._record({key: a[i] for key, a in arrays.items()}) for i in range(counts.pop())], object)

    def _record(self, values: Mapping[str, Any]) -> bytes:
        from tensorflow.core.example.example_pb2 import Example

        record = Example()
        for one in (*self.features, *self.sparse):
            assert one.dtype is not None
            items = np.asarray(values[one.name]).reshape(-1).tolist()
            if one in self.sparse:
                items = items[: max(int(values[lengths_of(one.name)]), 0)]
            if one.dtype == ir.DataType.STRING:
                items = [item if isinstance(item, bytes) else str(item).encode() for item in items]
            getattr(record.features.feature[one.name], FIELDS[one.dtype]).value.extend(items)
        return bytes(record.SerializeToString(deterministic=True))


def lengths_of(key: str) -> str:
    """The input that says how many of a feature of any length are in each record."""
    return f"{key}_length"


def records_in(graph: Any, inputs: Mapping[str, Any]) -> dict[str, Records]:
    """The inputs, by name, that one op reads as records and nothing else reads, in a graph and what it calls.

    There are none where features would have one another's names, or those of other inputs.
    """
    texts = {name: tensor for name, tensor in inputs.items() if tensor.dtype.name == "string"}
    if not texts:
        return {}
    definition = graph.as_graph_def()
    library = {function.signature.name: function for function in definition.library.function}
    given_out = [tensor.op.name for tensor in graph.outputs]
    found: dict[str, Records] = {}
    for name, tensor in texts.items():
        readers = list(_readers(definition.node, given_out, tensor.op.name, library, set()))
        read = _records(*readers[0], tensor.shape) if len(readers) == 1 and readers[0] is not None else None
        if read is not None:
            found[name] = read
    names = [name for name in inputs if name not in found]
    names += [one.name for records in found.values() for one in records.declared]
    return found if len({*names, ""}) == len(names) + 1 else {}


def _readers(
    nodes: Sequence[Any], given_out: Sequence[str], name: str, library: Mapping[str, Any], called: set[str]
) -> Iterator[tuple[Any, Sequence[Any]] | None]:
    """The nodes that read the only output of a node, or an argument, as their first input; None for any other reader.

    A function that is called for a second time is another reader as well.
    """
    if name in given_out:
        yield None
    for node in nodes:
        for place, source in enumerate(node.input):
            if source.partition(":")[0] != name:
                continue
            function = library.get(node.attr["f"].func.name) if node.op in CALLS else None
            if node.op in HANDING_ON:
                yield from _readers(nodes, given_out, node.name, library, called)
            elif function is not None and function.signature.name not in called:
                called.add(function.signature.name)
                results = [result.partition(":")[0] for result in function.ret.values()]
                argument = function.signature.input_arg[place].name
                yield from _readers(function.node_def, results, argument, library, called)
            else:
                yield (node, nodes) if place == 0 and node.op in RANKS else None


def _records(node: Any, nodes: Sequence[Any], shape: Any) -> Records | None:
    """What a node says of the records that it reads; None where it does not say it before it runs."""
    kinds, shapes = node.attr["Tdense"].list.type, node.attr["dense_shapes"].list.shape
    keys, others = _keys(node, nodes, len(kinds))
    rank = RANKS[node.op][0] if shape.rank is None and len(RANKS[node.op]) == 1 else shape.rank
    if rank not in RANKS[node.op] or keys is None or others is None or not (keys or others):
        return None
    count = node.attr["num_sparse"].i + node.attr["Nsparse"].i + len(node.attr["ragged_value_types"].list.type)
    sparse_kinds = node.attr["sparse_types"].list.type
    if len(others) != count or not len(keys) == len(kinds) == len(shapes) or not all(kind in LISTS for kind in kinds):
        return None
    sparse = [Declared(key, LISTS[kind][0]) for key, kind in zip(others, sparse_kinds, strict=False) if kind in LISTS]
    if rank != 1 or len(sparse) < len(sparse_kinds):
        sparse = []
    fixed, refused = list[Declared](), others[len(sparse) :]
    for key, kind, size in zip(keys, kinds, shapes, strict=True):
        if size.unknown_rank or any(dim.size < 0 for dim in size.dim):
            refused.append(key)
        else:
            fixed.append(Declared(key, LISTS[kind][0], tuple(dim.size for dim in size.dim)))
    rows = (None,) * rank if shape.rank is None else tuple(shape.as_list())
    return Records(rows, tuple(fixed), tuple(sparse), tuple(refused))


def _keys(node: Any, nodes: Sequence[Any], dense: int) -> tuple[list[str] | None, list[str] | None]:
    """The keys of features of a fixed length, and of the others."""
    if node.op == "ParseSingleExample":
        return _texts(node.attr["dense_keys"].list.s), _texts(node.attr["sparse_keys"].list.s)
    constants = {one.name: one.attr["value"].tensor.string_val for one in nodes if one.op == "Const"}
    given = [constants.get(source.partition(":")[0]) for source in node.input]
    if node.op == "ParseExampleV2":
        return _texts(_joined(given[3:4])), _texts(_joined([given[2], given[4]]))
    sparse = 2 + int(node.attr["Nsparse"].i)
    return _texts(_joined(given[sparse : sparse + dense])), _texts(_joined(given[2:sparse]))


def _joined(lists: Sequence[Sequence[bytes] | None]) -> list[bytes] | None:
    known = [one for one in lists if one is not None]
    return [item for one in known for item in one] if len(known) == len(lists) else None


def _texts(items: Sequence[bytes] | None) -> list[str] | None:
    try:
        return None if items is None else [item.decode() for item in items]
    except UnicodeDecodeError:
        return None
