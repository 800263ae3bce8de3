"""All that a conversion can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.gate.budget import SECONDS

if TYPE_CHECKING:
    from onward.backends.emit.package import Trainable


@dataclass(frozen=True)
class Request:
    """What to convert, to what, and how; see `onward.convert` for what each option means."""

    source: Any
    to: str
    out: Path
    input: Sequence[str] = ()
    outputs: Sequence[str] | None = None
    spec: Sequence[str] = ()
    params: Any = None
    sample: Any = None
    library: str | None = None
    freeze: Sequence[str] = ()
    never_null: Sequence[str] = ()
    extensions: bool = False
    part: str | None = None
    checkpoint: str | None = None
    signature: str | None = None
    cache: bool = False
    opset: int | None = None
    ir_version: int | None = None
    simplify: bool = False
    without: Sequence[str] = ()
    allow_custom_ops: bool = False
    dims: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    trainable: Trainable = True
    inputs_nhwc: Sequence[str] = ()
    outputs_nhwc: Sequence[str] = ()
    cast: str = "none"
    quantize: str | None = None
    io: str = "float32"
    calibrate: Any = None
    float16: bool = False
    bfloat16: bool = False
    keep_float: Sequence[str] = ()
    labels: Any = None
    max_loss: float | None = None
    block_size: int | None = None
    standard_blocks: bool = False
    select_tf_ops: bool = False
    fallback: str | None = None
    verify: bool = True
    verify_on: str | None = None
    inputs: Any = None
    atol: float | None = None
    rtol: float | None = None
    quick: bool = False
    keep: bool = False
    force: bool = False
    report: Path | None = None
    timeout: float = SECONDS
    seed: int = 0

    @property
    def name(self) -> str:
        """The source, as messages call it."""
        if isinstance(self.source, str | Path):
            return str(self.source)
        is_function = type(self.source).__name__ == "function"
        return str(self.source.__name__) if is_function else type(self.source).__name__

    def is_given(self, option: str) -> bool:
        """Whether an option was asked for: it is not as it is by default."""
        value, default = getattr(self, option), Request.__dataclass_fields__[option].default
        if not isinstance(value, str | int | float | Sequence | Mapping):  # an array does not say whether it is true
            return value is not None
        return value is not default and bool(value) and value != default
