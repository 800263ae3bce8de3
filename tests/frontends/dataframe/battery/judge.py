"""Judges a case: the function is converted on the sample, and run beside the library on all four frames."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import narwhals as nw
from frame_cases import Case, Refusal
from frame_compare import plain, same
from frame_data import VARIANTS, pandas_frame, polars_frame

import onward
from onward.errors import UnsupportedError


@dataclass(frozen=True)
class Verdict:
    """`same`, `wrong`, `refused` or `crash`, and what about it."""

    word: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


def frame_of(case: Case | Refusal, variant: str) -> Any:
    """The frame as the function takes it: what is decorated by narwhals takes a native one."""
    backend = case.backend if isinstance(case, Case) and case.library == "narwhals" else case.library
    native = (pandas_frame if backend == "pandas" else polars_frame)(case.frame, variant)
    is_plain = case.library == "narwhals" and not hasattr(case.function, "__wrapped__")
    return nw.from_native(native) if is_plain else native


def expected(case: Case, variant: str) -> Any:
    """What the library itself computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.as_if is not None:
            return case.as_if(frame_of(case, variant), frame_of(case, "sample"))
        return case.function(frame_of(case, variant))


def judge(case: Case) -> Verdict:
    """Convert and compare; the first variant that differs decides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = onward.from_dataframe(case.function, frame_of(case, "sample"), freeze=case.freeze, check=False)
        except UnsupportedError as error:
            return Verdict("refused", str(error))
        except Exception as error:
            return Verdict("crash", f"conversion: {type(error).__name__}: {error}")
        for variant in VARIANTS:
            verdict = judge_variant(case, model, variant)
            if verdict.word != "same":
                return verdict
    return Verdict("same")


def judge_variant(case: Case, model: Any, variant: str) -> Verdict:
    """Where the library raises, so does the model; without rows it may also give no rows."""
    try:
        found = onward.run(model, frame_of(case, variant))
    except Exception as error:
        if variant in case.raises:
            return Verdict("same")
        return Verdict("crash", f"{variant}: {type(error).__name__}: {error}")
    if variant in case.raises:
        if variant == "none" and not any(column.values for column in plain(found)):
            return Verdict("same")
        return Verdict("wrong", f"{variant}: the library raises, the model does not")
    difference = same(expected(case, variant), found, case.near)
    return Verdict("same") if difference is None else Verdict("wrong", f"{variant}: {difference}")


def judge_refusal(refusal: Refusal) -> Verdict:
    """`refused` if the message has the word; a message without it is `wrong`, and so is a conversion."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            onward.from_dataframe(refusal.function, frame_of(refusal, "sample"))
        except UnsupportedError as error:
            is_named = refusal.word.lower() in str(error).lower()
            return Verdict("refused" if is_named else "wrong", str(error))
        except Exception as error:
            return Verdict("crash", f"{type(error).__name__}: {error}")
    return Verdict("wrong", "converted")
