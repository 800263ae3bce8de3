"""How the windows of convolutions are written for helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter


def lists(e: Emitter, **given: Sequence[int] | str | None) -> dict[str, Any]:
    """Those of a helper's arguments that say something: no steps of one, no padding of nothing."""
    telling = {k: v for k, v in given.items() if v and set(v) != {0 if "pad" in k else 1}}
    return {k: v if isinstance(v, str) else e.target.each(v) for k, v in telling.items()}
