"""What a verification found, as plain data: the terminal, JSON and HTML views are made from it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from onward.looks import shown

Status = Literal["same", "different", "failed"]
"""`failed`: it could not be run, or is drawn at random, or drowns in rounding, so nothing is known."""

Kind = Literal[
    "", "values", "shape", "dtype", "nan", "infinite", "missing", "unexpected", "order", "constant", "layout", "type",
    "drawn", "drowned",
]  # fmt: skip
"""In what way an output differs; `drawn`: at random, so it has to; `drowned`: in the source's own rounding."""

Who = Literal["source", "other", ""]
"""One of two sides."""


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be off, and why."""

    worst: float
    """Allowed for a single element, see `Metrics.worst`."""
    overall: float
    """Allowed for the output as a whole, see `Metrics.overall`."""
    floor: float = 0.0
    """What rounding alone may cause at this dtype."""
    noise_worst: float = 0.0
    noise_overall: float = 0.0
    """The source model's own noise: how far two runs of it that ought to be equal are apart."""
    factor: float = 0.0
    """By which the noise is multiplied."""
    why: str = ""
    """One phrase: 'the floor of float32', '4 × the noise of …', 'as given'."""


@dataclass(frozen=True)
class Metrics:
    """The distance of two arrays. The first two decide; the rest informs."""

    worst: float = 0.0
    """max of |difference| / (|expected| + rms of expected); for integers and strings the share that differs; for a
    quantised output the largest difference in steps."""
    overall: float = 0.0
    """Relative L2: rms of the difference / rms of expected; for integers and strings the share that differs; for a
    quantised output the mean difference in steps."""
    max_abs: float = 0.0
    max_abs_over_scale: float = 0.0
    """max |difference| / max |expected|."""
    mismatched: float = 0.0
    """The share of elements beyond the tolerance."""
    max_ulp: float | None = None
    cosine: float | None = None
    snr_db: float | None = None
    max_steps: int | None = None
    """Of a quantised output: the largest difference in steps (LSB)."""
    top1: float | None = None
    top5: float | None = None
    """Where the output looks like logits: how often the best class agrees, and is among the other's best five."""


@dataclass(frozen=True)
class OutputResult:
    """One output, or one element of a sequence or map."""

    name: str
    status: Status
    kind: Kind = ""
    reason: str = ""
    """What is wrong, in one sentence; a remark where nothing is."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    metrics: Metrics = Metrics()
    tolerance: Tolerance = Tolerance(0.0, 0.0)
    index: tuple[int, ...] | None = None
    """Of the worst element."""
    expected: str = ""
    actual: str = ""
    """The worst element's values."""
    histogram: tuple[tuple[float, ...], tuple[int, ...]] | None = None
    """n + 1 edges, as powers of ten of |difference| / max |expected|, and n counts; the first bin holds the exactly
    equal and nothing else, the second and the last also what is beyond their edges."""

    @property
    def closeness(self) -> float:
        """1 at the tolerance; infinite where two arrays cannot be compared, 0 where that is as it has to be."""
        if self.kind in ("drawn", "drowned"):
            return 0.0
        if self.status != "same" and self.kind != "values":
            return math.inf
        pairs = ((self.metrics.worst, self.tolerance.worst), (self.metrics.overall, self.tolerance.overall))
        return max(error / allowed if allowed else math.inf * error if error else 0.0 for error, allowed in pairs)


@dataclass(frozen=True)
class Trial:
    """One set of inputs on one runner."""

    data: str
    """What was fed: 'random, batch=2', 'zeros', 'test_data_set_0'."""
    outputs: tuple[OutputResult, ...] = ()
    seconds: float = 0.0
    failure: str = ""
    """Why it could not be run."""

    @property
    def status(self) -> Status:
        if self.failure:
            return "failed"
        statuses = {output.status for output in self.outputs}
        return "different" if "different" in statuses else "failed" if "failed" in statuses else "same"


@dataclass(frozen=True)
class NodeError:
    """A value inside the graph."""

    value: str
    node: str
    op: str
    path: float
    """Error at this value when each side computes everything from the inputs: drift and defects."""
    own: float | None = None
    """Error of this node alone, both sides being fed the same values; None where that was not measured."""
    allowed: float = 0.0


@dataclass(frozen=True)
class Culprit:
    """The first node at which two sides part."""

    node: str
    op: str
    outputs: tuple[str, ...]
    own: float
    """The node's own error on the same inputs."""
    allowed: float
    runs: int
    """How many times a model was run to find it."""
    how: str = ""
    """A remark, such as that the difference only shows in the fused whole."""
    reduced: str = ""
    """Where the smallest model that still shows the difference was written."""


@dataclass(frozen=True)
class Arbitration:
    """What the reference evaluator of the onnx package says where two sides differ."""

    alone: Who
    """The side that the reference does not agree with, while it agrees with the other; '' where it cannot tell."""
    words: str
    """Who is alone, or why that cannot be told."""
    culprit: Culprit | None = None
    """The node at which ONNX Runtime, where it is alone, parts from the reference."""
    blames_runtime: bool = False
    """Whether it is ONNX Runtime that is alone."""


@dataclass(frozen=True)
class SideResult:
    """One side against the source."""

    name: str
    trials: tuple[Trial, ...] = ()
    failure: str = ""
    """Why it could not be prepared."""
    seconds: float = 0.0
    """Spent preparing."""
    culprit: Culprit | None = None
    profile: tuple[NodeError, ...] = ()
    """Errors along the graph, in its order."""
    arbitration: Arbitration | None = None
    """Who is alone, where the two differ and the reference could be asked."""

    @property
    def status(self) -> Status:
        statuses = {trial.status for trial in self.trials}
        if "different" in statuses:
            return "different"
        return "failed" if self.failure or "failed" in statuses or not self.trials else "same"

    @property
    def worst(self) -> OutputResult | None:
        """The output furthest beyond, or closest to, its tolerance."""
        found = [output for trial in self.trials for output in trial.outputs]
        return max(found, key=lambda output: output.closeness, default=None)


@dataclass(repr=False)
class Report:
    """A source and what was compared with it."""

    model: str
    source: str
    """The runner, or the file, that gave the expected outputs."""
    sides: list[SideResult] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    graph: list[dict[str, Any]] = field(default_factory=list)
    """The nodes of the source, for the picture of it: name, op, inputs, outputs."""
    unchecked: str = ""
    """Why nothing could be compared."""
    blank: str = ""
    """Why agreement says nothing: no output has anything in it that could differ."""
    remark: str = ""
    """How the source was run, where that is not as its file says."""
    drawn: list[str] = field(default_factory=list)
    """The ops by which the source draws random numbers."""

    def __repr__(self) -> str:
        return shown("report_words", self)

    def _repr_html_(self) -> str:
        return shown("report_html", self)

    @property
    def status(self) -> Status:
        statuses = {side.status for side in self.sides}
        if "different" in statuses:
            return "different"
        return "failed" if "failed" in statuses or not self.sides else "same"

    @property
    def failure(self) -> str:
        """Why a side could not be run, where that is so."""
        trials = (trial.failure for side in self.sides for trial in side.trials)
        return next(filter(None, [*(side.failure for side in self.sides), *trials]), "")

    @property
    def unknown(self) -> OutputResult | None:
        """An output of which nothing is known though both sides were run."""
        found = (output for side in self.sides for trial in side.trials for output in trial.outputs)
        return next((output for output in found if output.status == "failed"), None)

    @property
    def ok(self) -> bool:
        return self.status == "same"

    @property
    def worst(self) -> OutputResult | None:
        """Of all sides, the output furthest beyond, or closest to, its tolerance."""
        return max((side.worst for side in self.sides if side.worst), key=lambda output: output.closeness, default=None)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dump`: infinities and NaN as strings."""
        found: dict[str, Any] = plain(asdict(self))
        found["status"] = self.status
        for side, result in zip(self.sides, found["sides"], strict=True):
            result["status"] = side.status
            for trial, data in zip(side.trials, result["trials"], strict=True):
                data["status"] = trial.status
        return found


def plain(value: Any) -> Any:
    """As JSON can hold it: infinities and NaN as strings."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
