"""Sizes that follow from what a model computes, such as those of a state that is as large as an image made smaller.

Where the graph does not tell them, the part of the model that they have to fit is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onward import runners
from onward.errors import OnwardError
from onward.model import Model
from onward.runners.calls import Inputs
from onward.verification.data.linked_sizes import Fit
from onward.verification.locate.cut import Cutter

MOST = 64
"""Values that are run to see how large they are."""


class Measure:
    """Runs parts of a model."""

    def __init__(self, model: Model, fit: Fit) -> None:
        self._cutter = Cutter(model)
        known = self._cutter.values
        self._meetings = [one for one in fit.meetings if one[1].name in known][:MOST]
        self._fit = fit

    def fitted(
        self, sizes: Mapping[str, int], fixed: Mapping[str, int], fill: Callable[[Mapping[str, int]], Inputs]
    ) -> tuple[dict[str, int], Inputs]:
        """The sizes, with those that have to fit values as these turn out to be, and inputs; what is `fixed` stays.

        Of the inputs, those that get no other size keep their values: they may be what decides about the others.
        """
        found, feeds = dict(sizes), fill(sizes)
        done = {self._fit.first(name) for name in fixed}
        shapes: dict[str, tuple[int, ...] | None] = {}
        for dim, value, axis in self._meetings:
            first, name = self._fit.first(dim), str(value.name)
            if first in done:
                continue
            if shapes.get(name) is None:
                shapes[name] = self._shape(name, feeds)
            shape = shapes[name]
            if shape is None or not -len(shape) <= axis < len(shape) or shape[axis] < 1:
                continue
            done.add(first)
            found |= {each: shape[axis] for each in found if self._fit.first(each) == first}
            fresh = fill(found)
            feeds = {
                each: new if np.shape(new) != np.shape(feeds[each]) else feeds[each] for each, new in fresh.items()
            }
        return found, feeds

    def _shape(self, name: str, feeds: Inputs) -> tuple[int, ...] | None:
        """Of a value, where it can be computed."""
        try:
            piece = self._cutter.piece([name], feeds)
            needed = [str(value.name) for value in piece.ir.graph.inputs]
            made = runners.prepare("onnxruntime", piece)({each: feeds[each] for each in needed})
        except OnwardError:
            return None
        return getattr(made.get(name), "shape", None)
