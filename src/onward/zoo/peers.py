"""Another converter on a model: what it makes is judged as Onward's own results are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.runners.calls import Run
from onward.zoo.found import Found, raised

PREFIX = "peer:"
"""Of its targets."""


@dataclass(frozen=True)
class Peer:
    """A converter. Workers find its function again by its module and name."""

    package: str
    convert: Callable[[Path], Run]
    """A model to something that runs; whatever it raises is a failure."""
    formats: frozenset[str]
    """What it takes, as lists call it."""


def peer_conversion(path: Path, peer: Peer) -> Found:
    from onward.verification.check import attempted, compared, source_side, verdict
    from onward.zoo.conversions import VERDICTS, errors
    from onward.zoo.speed import ratio
    from onward.zoo.trainings import read_source

    found = Found("failed")
    try:
        original = read_source(path, run=True)
    except Exception as error:  # which is not the peer's doing
        found.message = f"there is nothing to compare it with: {raised(error)[1]}"
        found.verdict = "not verified"
        return found
    try:
        found.model = original.model
        began = time.perf_counter()
        run = peer.convert(path)
        found.facts["seconds"] = round(time.perf_counter() - began, 3)
        side: Any = original.model
        if original.run is not None:
            side = source_side(original.model, original.run, original.kind)
        began = time.perf_counter()
        report = attempted(lambda: compared(side, run, data=original.inputs), str(path), str(path))
        found.facts |= {"verify_seconds": round(time.perf_counter() - began, 3)} | errors(report)
        decided = verdict(report)
        found.verdict, found.message = VERDICTS.get(decided.status, "not verified"), decided.words
        if found.verdict == "different" and report.failure:
            found.verdict = "failed"
        elif found.verdict in ("same", "different"):
            with contextlib.suppress(Exception):  # a runtime may raise anything at all; the verdict stands
                speed = ratio(run, original)
                found.facts["speed"] = None if speed is None else round(speed, 3)
    except Exception as error:
        found.verdict, found.message = raised(error)
        found.verdict = "failed" if found.verdict == "refused" else found.verdict
    return found
