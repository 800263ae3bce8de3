"""Functions on data frames as what is converted: read, tried on the sample, and compared with their library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onward.advice.options import option
from onward.conversion.request import Request
from onward.errors import OnwardError
from onward.formats.dataframe.schema import ColumnSchema, schema_of
from onward.hub.wording import quote

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Inputs
    from onward.verification.check import Verdict

KIND = "function on data frames"


def converted_function(function: Callable[..., Any], request: Request) -> tuple[Model, Inputs, Callable[[], Verdict]]:
    """Its model, the sample as feeds of it, and what compares the two."""
    from onward.dataframes import run
    from onward.exporters import from_dataframe
    from onward.formats.dataframe.functions import frame_for
    from onward.verification.functions import feeds_of, tried

    _check_request(request)
    if request.sample is None:
        raise OnwardError(
            f"a function does not say which columns it is given: give {option('sample', 'rows.parquet')}, some rows of"
            f" data; for a function of JAX give {option('spec', ['f32[b,3]'])}"
        )
    sample = frame_for(function, request.sample, request.library)
    result = tried(function, sample)
    options: dict[str, Any] = {} if request.opset is None else {"opset": request.opset}
    model = from_dataframe(
        function,
        sample,
        freeze=request.freeze,
        never_null=request.never_null,
        extensions=request.extensions,
        check=False,
        **options,
    )

    def check() -> Verdict:
        from onward.verification.check import Verdict
        from onward.verification.frames import differing

        library = type(result).__module__.partition(".")[0]
        if wrong := differing(function, lambda part: run(model, part), sample, request.freeze):
            return Verdict("different", f"the ONNX model differs from {library}: {wrong}")
        rows = len(sample) if hasattr(sample, "__len__") else len(sample.collect())
        parts = "" if request.freeze else ", on one row and on none"
        return Verdict("verified", f"the same as {library} on the sample of {rows:,} rows{parts}")

    return model, feeds_of(model, sample), check


def _check_request(request: Request) -> None:
    for name in ("signature", "allow_custom_ops", "input", "outputs", "checkpoint", "cache"):
        if request.is_given(name):
            raise OnwardError(f"{request.name}: {option(name)} does not apply to a {KIND}: leave it out")


def column_lines(model: Model) -> Iterator[str]:
    """What goes in and comes out of a model with data processing, a line each."""
    schema = schema_of(model.ir)
    if schema is None:
        return
    yield f"columns in: {listed(schema.inputs)}"
    if not schema.boundary:
        yield f"columns out: {listed(schema.outputs)}"


def listed(columns: Sequence[ColumnSchema]) -> str:
    return ", ".join(f"{_shown(column.name)} ({column.type})" for column in columns)


def _shown(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def estimator_check(model: Model, estimator: Any, sample: Any) -> Callable[[], Verdict]:
    """What compares a pipeline with functions on data frames in it with scikit-learn, on the sample."""

    def check() -> Verdict:
        from onward.formats.sklearn import asked
        from onward.formats.tables import shortened
        from onward.frontends.sklearn.convert import expected_of
        from onward.verification.check import Verdict
        from onward.verification.estimators import differing

        rows, methods = shortened(sample), asked(estimator)
        if wrong := differing(model, estimator, rows, methods, expected_of(estimator, rows, methods)):
            return Verdict("different", f"the ONNX model differs from scikit-learn: {wrong[0]}")
        return Verdict("verified", f"the same as scikit-learn on {len(rows):,} rows of the sample")

    return check
