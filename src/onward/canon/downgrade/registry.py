"""The table of downgrade entries: which function takes which op below which version."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy.typing as npt
import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import Inference
from onward.graph.rewriter import Rewriter, dims


class Unsayable(OnwardError):
    """Why older versions have no words for a node: the driver adds which node it is."""

    def __init__(self, why: str, since: int | None = None) -> None:
        """`since` is the first version that has; where it is not given, it is the one that was to be left."""
        super().__init__(why)
        self.since = since


class RefusedError(UnsupportedError):
    """A node that an opset of `domain` cannot say."""

    def __init__(self, message: str = "", domain: str = "") -> None:
        super().__init__(message)
        self.domain = domain


def refuse(why: str, since: int | None = None) -> NoReturn:
    raise Unsayable(why, since)


class Older(Rewriter):
    """A rewriter whose new values are typed, and that reads what follows from shapes and constants as well."""

    target = 0
    """The opset of the default domain that is wanted: for the few entries with a shorter way at some."""

    def __init__(self, model: ir.Model, inference: Inference) -> None:
        super().__init__(model)
        self._inference = inference
        self.functions = {function.graph for function in model.functions.values()}
        """The graphs that can hold no weights."""
        self.imports = model.opset_imports

    def _new(
        self, count: int, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
    ) -> ir.Node:
        new = super()._new(count, op_type, inputs, attributes)
        self._inference.node(new)
        return new

    def of_version(self, version: int, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """As a call, for an op that the dialect of new nodes has no longer, or has in another form."""
        made = self(op_type, *inputs, **attributes)
        self.created[-1].version = version
        return made

    def read(self, value: ir.Value | None) -> npt.NDArray[Any] | None:
        found = super().read(value)
        if found is not None or value is None or value.dtype is None or value.is_graph_input():
            return found
        numbers = self._inference.numbers(value)
        return None if numbers is None else numbers.astype(value.dtype.numpy())

    def fixed(self, value: ir.Value | None, what: str) -> npt.NDArray[Any]:
        """The elements of an input that older versions have as an attribute."""
        found = self.read(value)
        if found is None:
            refuse(f"{what} cannot be known before the model runs")
        return found

    def typed(self, value: ir.Value, what: str = "an input") -> ir.DataType:
        if value.dtype is None or value.dtype == ir.DataType.UNDEFINED:
            refuse(f"the element type of {what} is not known")
        return value.dtype

    def ranked(self, value: ir.Value, what: str = "its input") -> int:
        known = dims(value)
        if known is None:
            refuse(f"the rank of {what} is not known")
        return len(known)

    def sizes(self, value: ir.Value, what: str = "its input") -> list[int]:
        known = dims(value)
        if known is None or None in known:
            refuse(f"the shape of {what} is not known")
        return [d for d in known if d is not None]


Entry = Callable[[ir.Node, Older], None]

ENTRIES: dict[tuple[str, str], dict[int, Entry]] = defaultdict(dict)
"""By (domain, op): the entries by the version that they lead away from."""


def downgrade(*ops: str, since: int, domain: str = "") -> Callable[[Entry], Entry]:
    """Register the function that makes a node of version `since` mean the same under the version before.

    It is called with the node and an `Older` placed in front of it. It changes the node itself, replaces it, or says
    `refuse(why)`. What it writes in opset 21 is brought to the opset that is wanted as well.
    """

    def file(entry: Entry) -> Entry:
        for op in ops:
            if since in ENTRIES[domain, op]:
                raise ValueError(f"downgrade entry for {op}-{since} is registered twice")
            ENTRIES[domain, op][since] = entry
        return entry

    return file
