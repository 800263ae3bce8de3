"""Checkpoints of TensorFlow: what they hold for each variable, by its name or by its place in an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.errors import InvalidModelError, OnwardError
from onward.gate import ordinary

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "VARIABLE_VALUE"


class Checkpoint:
    """A checkpoint, by the path that its files have in common, or the newest in a folder: tensors, and no code."""

    def __init__(self, path: Path) -> None:
        import tensorflow as tf

        self.path = path
        for file in [path] if path.is_dir() else path.absolute().parent.glob(f"{escape(path.name)}.*"):
            ordinary(file)
        try:
            self._reader = tf.train.load_checkpoint(str(path))
        except (ValueError, tf.errors.OpError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise InvalidModelError(f"{path}: TensorFlow does not open this checkpoint: {reason[0]}") from error
        self._keys = set(self._reader.get_variable_to_shape_map())

    def by_names(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """What is there under the names of variables."""
        keys = self._by_name() if GRAPH in self._keys else {key: key for key in self._keys}
        self._check_all(names, keys)
        return {name: self._read(keys[name]) for name in names}

    def of(self, variables: Iterable[Any], owner: Any) -> dict[int, npt.NDArray[Any]]:
        """What is there for variables, by their ids: by where in the owner they are, where both say, else by name."""
        variables = list(variables)
        keys = self._by_place(owner) if GRAPH in self._keys and hasattr(owner, "_trackable_children") else {}
        if not keys:
            found = self.by_names([_name(variable) for variable in variables])
            values = {id(variable): found[_name(variable)] for variable in variables}
        else:
            self._check_all([id(v) for v in variables], keys, {id(v): _name(v) for v in variables})
            values = {id(variable): self._read(keys[id(variable)]) for variable in variables}
        for variable in variables:
            if values[id(variable)].shape != tuple(variable.shape):
                raise OnwardError(
                    f"{self.path}: {_name(variable)} is {list(values[id(variable)].shape)} there, not"
                    f" {list(variable.shape)}"
                )
        return values

    def _read(self, key: str) -> npt.NDArray[Any]:
        return np.asarray(self._reader.get_tensor(key))

    def _check_all(self, wanted: Sequence[Any], keys: dict[Any, str], names: dict[int, str] | None = None) -> None:
        missing = [names[one] if names else str(one) for one in wanted if one not in keys]
        if missing:
            listed = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
            raise OnwardError(f"{self.path}: the checkpoint has nothing for {len(missing)} of the variables: {listed}")

    def _nodes(self) -> Any:
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(self._reader.get_tensor(GRAPH))
        return graph.nodes

    def _by_name(self) -> dict[str, str]:
        """The key of each variable whose name no other has."""
        pairs = [(a.full_name, a.checkpoint_key) for node in self._nodes() for a in node.attributes if a.name == VALUE]
        names = [name for name, _ in pairs]
        return {name: key for name, key in pairs if names.count(name) == 1}

    def _by_place(self, owner: Any) -> dict[int, str]:
        """The key of each variable in an object, which is what was saved or a part of it."""
        nodes = self._nodes()
        starts = [0, *(child.node_id for child in nodes[0].children)]
        return max((self._walked(nodes, start, owner) for start in starts), key=len)

    def _walked(self, nodes: Any, start: int, owner: Any) -> dict[int, str]:
        keys: dict[int, str] = {}
        waiting, seen = [(start, owner)], set()
        while waiting:
            number, part = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            keys |= {id(part): a.checkpoint_key for a in nodes[number].attributes if a.name == VALUE}
            parts = part._trackable_children() if hasattr(part, "_trackable_children") else {}
            waiting += [(c.node_id, parts[c.local_name]) for c in nodes[number].children if c.local_name in parts]
        return keys


def _name(variable: Any) -> str:
    return str(variable.name).split(":")[0]
