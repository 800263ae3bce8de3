"""Where each element of a trained weight, and so of its optimizer's state, stands in a generated model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.backends.backend import Backend, Options
from onward.backends.emit.package import Source
from onward.errors import OnwardError, UnsupportedError
from onward.graph.held_weights import homes, lift_from_bodies, with_weights
from onward.graph.trained import MARK, Role
from onward.model import Model
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
_LARGEST = {2: 31 << 10, 4: 255 << 23, 8: 2047 << 52}
"""Bit patterns below these are finite numbers, by bytes of a float."""


class NotInWords(UnsupportedError):
    """A framework has no words for a part of a training: its graphs are converted and called instead."""


@dataclass(frozen=True)
class Place:
    """Of a trained weight in a generated package."""

    name: str
    """In the state dict."""
    onnx_name: str
    shape: tuple[int, ...]
    order: Array
    """For each element there, the index of the one in the ONNX weight."""

    def moved(self, array: Array) -> Array:
        """An array that belongs to the ONNX weight, as it belongs to the module's."""
        return np.ascontiguousarray(array.reshape(-1)[self.order]).reshape(self.shape)

    def moved_back(self, array: Array, like: Array) -> Array:
        """An array that belongs to the module's weight, as it belongs to the ONNX one, which is of the form of `like`.

        The opposite of `moved`.
        """
        found = np.empty(like.size, array.dtype)
        found[self.order] = array.reshape(-1)
        return found.reshape(like.shape)


def package(model: Model, parameters: Mapping[str, Array], backend: Backend) -> tuple[Source, list[Place]]:
    """The source of a model of which only some weights are trained, and where those are.

    They are followed by giving every element its own number, in the bits of a float: a module may hold a weight
    transposed, or gates in another order.
    """
    trainable = [_escaped(name) for name in parameters]
    source, probe = _twice(model, parameters, Options(trainable=trainable, trains=True), backend)
    places: dict[str, Place] = {}
    for path, tensor in probe.tensors.items():
        name = tensor.onnx_name
        if not tensor.parameter or not any(fnmatchcase(n, p) for n in (name, path) for p in trainable):
            continue
        if name not in parameters or name in places:
            other = places[name].name if name in places else ""
            raise NotInWords(
                f"{backend.title} has two weights for {name!r}, {other} and {path}, which would be trained apart"
                if other
                else f"the {backend.title} weight {path} has the name of a trained weight, but is not trained"
            )
        order = _order(tensor.read())
        if not np.array_equal(np.sort(order), np.arange(parameters[name].size)):
            raise UnsupportedError(f"the {backend.title} weight {path} has other elements than {name!r}")
        places[name] = Place(path, name, tuple(tensor.shape), order)
    return source, list(places.values())


def places_in(
    model: Model, arrays: Mapping[str, Array], trained: Sequence[str] | bool, backend: Backend
) -> tuple[Source, list[Place]]:
    """The source of a model, and every place where it has one of its weights: some are in several, or not read."""
    plain = with_weights(model, {}).ir
    common.RemoveUnusedNodesPass()(plain)
    read = homes(plain.graph)
    arrays = {name: array for name, array in arrays.items() if name in read}
    names = trained if isinstance(trained, bool) else [_escaped(name) for name in trained if name in read]
    options = Options(trainable=names, trains=True)
    source, probe = _twice(model, arrays, options, backend)
    found = []
    for path, tensor in probe.tensors.items():
        if tensor.onnx_name in arrays:
            order = _order(tensor.read())
            if not np.array_equal(np.sort(order), np.arange(arrays[tensor.onnx_name].size)):
                raise UnsupportedError(
                    f"the {backend.title} weight {path} has other elements than {tensor.onnx_name!r}"
                )
            found.append(Place(path, tensor.onnx_name, tuple(tensor.shape), order))
    return source, found


def _twice(model: Model, arrays: Mapping[str, Array], options: Options, backend: Backend) -> tuple[Source, Source]:
    """The source of a model as it is, and with numbered elements in some of its weights.

    Where a layer takes in a weight by its values, or makes new ones of several, those weights are kept out of layers.
    """
    try:
        return _both(model, arrays, options, backend)
    except OnwardError as why:
        found = {
            tensor.onnx_name for tensor in backend.generate(model, replace(options, trainable=True)).tensors.values()
        }
        kept_out = [name for name in arrays if name not in found] or list(arrays)
        try:
            return _both(held_apart(model, kept_out), arrays, options, backend)
        except OnwardError:
            raise why from None


def _both(model: Model, arrays: Mapping[str, Array], options: Options, backend: Backend) -> tuple[Source, Source]:
    source = backend.generate(model, options)
    marked = with_weights(model, {name: _numbered(name, array) for name, array in arrays.items()})
    marked.path = model.path
    probe = backend.generate(marked, options)
    if (probe.model, probe.ops) != (source.model, source.ops):
        raise UnsupportedError(f"the {backend.title} source depends on the values of weights that are trained")
    if lost := arrays.keys() - {tensor.onnx_name for tensor in probe.tensors.values()}:
        raise UnsupportedError(f"the {backend.title} model does not have the trained weight {sorted(lost)[0]!r}")
    return source, probe


def held_apart(model: Model, names: Collection[str]) -> Model:
    """A copy of a model in which no pass takes these weights for constants.

    Integers are marked as weights, which they usually are not; floats go through a Sum of one.
    """
    copy = with_weights(model, {})
    copy.path = model.path
    graph = copy.ir.graph
    lift_from_bodies(copy.ir)
    for name in names:
        weight = graph.initializers.get(name)
        if weight is None or weight.is_graph_output():
            continue
        if weight.dtype is not None and not weight.dtype.is_floating_point():
            weight.meta[MARK] = Role(False, name)
        else:
            uses = list(weight.uses())
            node = ir.Node("", "Sum", [weight], num_outputs=1, name=f"{name}.apart")
            node.outputs[0].name = f"{name}.apart"
            node.outputs[0].type, node.outputs[0].shape = weight.type, weight.shape
            graph.insert_before(graph[0], node)
            for user, index in uses:
                user.replace_input_with(index, node.outputs[0])
    return copy


def _order(data: Array) -> Array:
    """The numbers that `_numbered` gave to elements."""
    if data.dtype.kind in "iu":
        return data.reshape(-1).astype(np.int64)
    found: Array = data.reshape(-1).view(_BITS[data.dtype.itemsize]).astype(np.int64)
    return found


def with_adapters(
    trainable: Trainable, places: Sequence[Place], names: Callable[[str, str], tuple[str, str]]
) -> tuple[list[Place], dict[str, float], dict[str, Array]]:
    """Where all is that is trained, the scales of adapters by the matrix that they are beside, and their tensors.

    A module adds `a @ b` to its matrix. Where it holds the matrix transposed, that is the product of the ONNX model's
    two, transposed and in the other order. `names` says what a part beside a matrix is called, there and in its file.
    """
    found, scales, tensors = [], {}, {}
    for place in places:
        adapter = trainable.adapters.get(place.onnx_name)
        if adapter is None:
            found.append(place)
            continue
        base = trainable.gradients.graph.initializers[adapter.base].const_value
        assert base is not None
        array = base.numpy()
        turned = place.shape != array.shape or not np.array_equal(place.order.reshape(-1), np.arange(array.size))
        if turned and not np.array_equal(place.order, np.arange(array.size).reshape(array.shape).T.reshape(-1)):
            raise NotInWords(f"the weight {place.name} has the elements of an adapted matrix in another order")
        scales[place.name] = adapter.scale
        tensors[f"{place.name}.original"] = place.moved(array)
        flipped = turned != adapter.transposed
        for key, name in zip("ab", (adapter.b, adapter.a) if flipped else (adapter.a, adapter.b), strict=True):
            small = trainable.parameters[name]
            order = np.arange(small.size).reshape(small.shape)
            order = order.T if flipped else order
            at, in_file = names(place.name, key)
            found.append(Place(at, name, order.shape, order.reshape(-1)))
            tensors[in_file] = found[-1].moved(small)
    return found, scales, tensors


def _escaped(name: str) -> str:
    return "".join(f"[{ch}]" if ch in "*?[" else ch for ch in name)


def _numbered(name: str, array: Array) -> Array:
    size = array.dtype.itemsize
    if array.dtype.kind in "iu" and array.size <= np.iinfo(array.dtype).max:
        return np.arange(array.size, dtype=array.dtype).reshape(array.shape)
    if array.dtype.kind != "f" or array.size > _LARGEST[size]:
        raise UnsupportedError(f"{name!r} is of {array.dtype}, which is not exported with its training")
    return np.arange(array.size, dtype=_BITS[size]).view(array.dtype).reshape(array.shape)
