"""`onward.convert`: the way of a model from any framework to any other, verified before anything is written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.advice.extras import missing_packages
from onward.advice.nearest import meant
from onward.advice.options import option
from onward.backends.backend import Backend, Format, Options, formats, require
from onward.conversion.bits import in_fewer_bits, wanted
from onward.conversion.options import check_options
from onward.conversion.output import check_output
from onward.conversion.parts import chosen, is_data_alone, model_alone, with_masks
from onward.conversion.progress import Progress, titled
from onward.conversion.reports import write_report
from onward.conversion.request import Request
from onward.conversion.rewritten import rewritten
from onward.errors import (
    NotVerifiedWarning,
    OnwardError,
    RuntimeDiffersWarning,
    UnsupportedError,
    VerificationError,
)
from onward.gate import trusting
from onward.gate.budget import SECONDS, within
from onward.writing import make_folder, new_files, new_folder, refusals

if TYPE_CHECKING:
    from onward.backends.emit.package import Source, Trainable
    from onward.conversion.sources import Original
    from onward.model import Model
    from onward.runners.calls import Run
    from onward.verification.check import Verdict
    from onward.verification.results import Report

ONNX = "onnx"


@dataclass(frozen=True)
class Conversion:
    """What a conversion came to."""

    out: Path
    """What was written: a file, or a folder."""
    files: tuple[str, ...]
    """The names of all that was written: in that folder, or beside that file and with it."""
    verdicts: tuple[Verdict, ...] = ()
    """Of each leg that was checked: from the framework to ONNX, and to the result."""
    trainable: tuple[str, ...] = ()
    """How many numbers are trained, and which are not, in lines of text."""
    casts: tuple[str, ...] = ()
    """What is computed in another dtype than the file says, a phrase each."""
    remarks: tuple[str, ...] = ()
    """What else there is to know of the result, a line each: which ops of a model in 8 bits are computed in floats."""
    input_orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For an input that is handed over in another layout, which of its axes is at each place."""
    output_orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    decided: tuple[Verdict, ...] = ()
    """The verdicts that say whether the result is right: that of the whole way, where it was compared as a whole."""

    @property
    def doubt(self) -> str:
        """Why it is not known whether the result is right; '' where it was found to be, or nobody wants to know."""
        return _told(self.decided, "not verified")

    @property
    def difference(self) -> str:
        """How a result differs that was to be kept all the same."""
        return _told(self.decided, "different")

    def __str__(self) -> str:
        return "\n".join([*map(str, self.verdicts), *self.trainable, *self.notes, f"written: {self.written}"])

    @property
    def written(self) -> str:
        """What was written, in words: nothing of the user's own that is there as well."""
        if self.out.is_file():
            beside = [name for name in self.files if name != self.out.name]
            also = f", and beside it {', '.join(beside)}" if beside else ""
            return f"{self.out} ({self.out.stat().st_size:,} bytes){also}"
        return f"{self.out}/ ({', '.join(self.files)})"

    @property
    def notes(self) -> list[str]:
        """What a user has to know of the result."""
        sides = [("input", self.input_orders), ("output", self.output_orders)]
        moved = [f"{kind} {n}: its axes are {list(o)} of those it had" for kind, of in sides for n, o in of.items()]
        return [*(f"cast: {phrase}" for phrase in self.casts), *self.remarks, *moved]


def convert(
    source: Any,
    *,
    to: str,
    out: str | os.PathLike[str],
    input: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    spec: Sequence[Any] = (),
    params: Any = None,
    sample: Any = None,
    library: str | None = None,
    freeze: Sequence[str] = (),
    never_null: Sequence[str] = (),
    extensions: bool = False,
    part: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    cache: bool = False,
    opset: int | None = None,
    ir_version: int | None = None,
    simplify: bool = False,
    without: Sequence[str] = (),
    allow_custom_ops: bool = False,
    dims: Mapping[str, int] | None = None,
    bounds: Mapping[str, int] | None = None,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    cast: str = "none",
    quantize: str | None = None,
    io: str = "float32",
    calibrate: Any = None,
    float16: bool = False,
    bfloat16: bool = False,
    keep_float: Iterable[str] = (),
    labels: Any = None,
    max_loss: float | None = None,
    block_size: int | None = None,
    standard_blocks: bool = False,
    select_tf_ops: bool = False,
    fallback: str | None = None,
    verify: bool = True,
    verify_on: str | None = None,
    inputs: Any = None,
    atol: float | None = None,
    rtol: float | None = None,
    quick: bool = False,
    keep: bool = False,
    force: bool = False,
    report: str | os.PathLike[str] | None = None,
    timeout: float = SECONDS,
    seed: int = 0,
    trust: bool = False,
) -> Conversion:
    """Convert a model, check the result against the original, and write it: what `onward convert` does.

    `source` is a file or folder of any framework, an object in memory (a module of PyTorch, a Keras model, an estimator
    of scikit-learn, …), an `onnx.ModelProto` or an `onward.Model`. `to` is "onnx", "torch", "tensorflow", "savedmodel",
    "tflite", "keras", or a format of another backend. Nothing is written if original and result differ.

    What the source leaves open: `input`, such as ["x:float32[batch,3,224,224]"], and `outputs` of a TensorFlow graph,
    the `checkpoint` with its variables, the `signature` of a SavedModel, a `spec` for each input of a JAX function,
    such as ["f32[b,3]"], and its `params`, a `sample` of rows for scikit-learn, `dims`, sizes of dynamic dimensions by
    name, and `cache`, one step of decoding of a language model. To ONNX: `opset`, from 7 on for a model that is ONNX
    already, from 13 on for others, the `ir_version` of the file, which follows the opset, `simplify` for fewer nodes,
    `without` some of its passes, and `allow_custom_ops`. Of
    what is written to a framework: `trainable`, patterns of the names of weights to train; `inputs_nhwc` and
    `outputs_nhwc`, names of images to hand over channels last; `cast` ("up", "down", "both") where there is no kernel
    for a dtype; `quantize` ("float16", "dynamic", "int8" with data to `calibrate` by), `io` ("int8" or "uint8": what a
    model in int8 takes and gives) and `select_tf_ops` for TensorFlow Lite; `bounds` for JAX, the most results by name,
    such as {"boxes": 300}, of ops whose number of results depends on data: `jax.jit` then takes them, the rest is
    filled, and how many there are is given after the outputs.
    `fallback` ("onnxruntime", to PyTorch): what PyTorch has no rule for stays ONNX inside the module, and trains.

    Of an ONNX file in fewer bits: `float16` or `bfloat16`, or `quantize` ("int8", or "int4": weights in blocks);
    `keep_float`, what stays: names or patterns of nodes, their weights and results, or ops; data to `calibrate` by, the
    `labels` of its rows, and `max_loss`, the most that may be lost of accuracy or of the outputs; the
    `block_size` of int4, and whether to write `standard_blocks`, which ONNX itself has.

    Of the check: `verify=False` leaves it out, `verify_on` names the runner of the original, `inputs` are data to
    compare on, as `onward.verify` takes them, `atol` and `rtol` replace the tolerance that follows the model's noise,
    `quick` compares on a single set of inputs, `keep` writes the result even if it differs, `report` is the page or
    JSON file to write. Where it cannot be told whether the result is right, `NotVerifiedWarning` says why.

    `force` writes over files that were edited since Onward wrote them. `timeout`, in seconds, is for each step. `trust`
    lets code in files be executed.

    >>> import onward
    >>> done = onward.convert("examples/digits/digits.onnx", to="torch", out="digits")
    >>> done.verdicts[0].status
    'verified'
    """
    request = Request(
        source=source,
        to=to,
        out=Path(out),
        input=[input] if isinstance(input, str) else input,
        outputs=outputs,
        spec=[spec] if isinstance(spec, str) else spec,
        params=params,
        sample=sample,
        library=library,
        freeze=[freeze] if isinstance(freeze, str) else freeze,
        never_null=[never_null] if isinstance(never_null, str) else never_null,
        extensions=extensions,
        part=part,
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        signature=signature,
        cache=cache,
        opset=opset,
        ir_version=ir_version,
        simplify=simplify,
        without=[without] if isinstance(without, str) else without,
        allow_custom_ops=allow_custom_ops,
        dims=dims or {},
        bounds=bounds or {},
        trainable=trainable,
        inputs_nhwc=tuple(inputs_nhwc),
        outputs_nhwc=tuple(outputs_nhwc),
        cast=cast,
        quantize=quantize,
        io=io,
        calibrate=calibrate,
        float16=float16,
        bfloat16=bfloat16,
        keep_float=tuple(keep_float),
        labels=labels,
        max_loss=max_loss,
        block_size=block_size,
        standard_blocks=standard_blocks,
        select_tf_ops=select_tf_ops,
        fallback=fallback,
        verify=verify,
        verify_on=verify_on,
        inputs=inputs,
        atol=atol,
        rtol=rtol,
        quick=quick,
        keep=keep,
        force=force,
        report=None if report is None else Path(report),
        timeout=timeout,
        seed=seed,
    )
    with trusting(trust), missing_packages():
        done = converted(request)
    if done.doubt:
        warnings.warn(done.doubt, NotVerifiedWarning, stacklevel=2)
    for verdict in done.verdicts:
        if verdict.warning:
            warnings.warn(str(verdict), RuntimeDiffersWarning, stacklevel=2)
    return done


def converted(request: Request, progress: Progress | None = None) -> Conversion:
    """The whole way of a request."""
    from onward.conversion.fixed_sizes import with_sizes
    from onward.conversion.sources import read
    from onward.conversion.trainable import trainable_lines, weights_of_file
    from onward.model import load
    from onward.verification.environment import served_by

    progress = progress or Progress()
    found = _format(request)
    check_output(request.out, found is None or bool(found[1].suffix))
    check_options(request, found)
    with progress.step(1, request.timeout):
        original = chosen(read(request), request)
        if request.dims:
            original = replace(original, model=with_sizes(original.model, request.dims))
        original = replace(original, remarks=(*original.remarks, *served_by(original.model)))
        before = original.model
        if found is None:
            original = rewritten(original, request)
    progress.read(original)
    verdicts = _judged(request, original, found is not None, progress)
    if found is not None:
        return _written(request, original, *found, progress, verdicts)
    if bits := wanted(request):
        with progress.step(3, request.timeout, f"measuring in {bits}"):
            fewer = in_fewer_bits(original.model, request, before)
        progress.found(fewer.verdict, f"ONNX to {bits}")
        verdicts += (accepted(fewer.verdict, request),)
        original = replace(original, model=fewer.model, remarks=(*original.remarks, *fewer.remarks))
    with progress.step(4):
        with refusals(request.out):
            make_folder(request.out.parent)
        original.model.save(request.out)
    has_weights = not is_data_alone(original.model) and bits != "int8"
    lines = tuple(trainable_lines(weights_of_file(original.model))) if has_weights else ()
    names = (request.out.name, *(path.name for path in load(request.out).data_files))
    return Conversion(request.out, names, verdicts, lines, remarks=original.remarks, decided=verdicts)


def _format(request: Request) -> tuple[Backend, Format] | None:
    """What writes the result; None for ONNX itself."""
    if request.to == ONNX:
        return None
    known = formats()
    if request.to not in known:
        names = [*known, ONNX]
        raise OnwardError(f"there is no format {request.to!r}; there are {', '.join(names)}{meant(request.to, names)}")
    found = known[request.to]
    require(found[0])
    return found


def _judged(request: Request, original: Original, goes_on: bool, progress: Progress) -> tuple[Verdict, ...]:
    """How the ONNX model compares with the framework that it comes from, if it comes from one."""
    from onward.frontends.states import without_states
    from onward.verification.check import attempted, compared_with_source, verdict

    run, own = original.run, original.check
    if run is None and (own is None or not request.verify):
        return ()

    name = f"{request.name} ({original.kind})"

    def compare() -> Report:
        with within(request.timeout, "the check", titled(3)):
            model = without_states(original.model)
            data = original.inputs if request.inputs is None else request.inputs
            assert run is not None
            return compared_with_source(model, run, name, graph=original.ran, data=data, **_how(request))

    with progress.step(3):
        if run is None and own is not None:
            found = own()
        else:
            report = attempted(compare, request.name, name)
            progress.compared(report)
            found = verdict(report)
            if not goes_on or found.status != "verified":
                write_report(report, request.report)
        found = accepted(found, request)
    progress.found(found, f"{original.kind} to ONNX" if goes_on else "")
    return (found,)


def _written(
    request: Request,
    original: Original,
    one: Backend,
    form: Format,
    progress: Progress,
    verdicts: tuple[Verdict, ...],
) -> Conversion:
    """What a format asks for, of the whole model; without its data processing where the format does not take that."""
    whole = replace(original, model=with_masks(original.model))
    try:
        return _made(request, whole, one, form, progress, verdicts)
    except (UnsupportedError, VerificationError) as error:
        alone = model_alone(whole, request, error)
        if alone is None:
            raise
    return _made(request, alone, one, form, progress, verdicts)


def _made(
    request: Request,
    original: Original,
    one: Backend,
    form: Format,
    progress: Progress,
    verdicts: tuple[Verdict, ...],
) -> Conversion:
    """Generate, verify and write what a format asks for, in this order."""
    from onward.conversion.fallback import with_parts
    from onward.conversion.trainable import trainable_lines, weights_of_source
    from onward.formats import in_numbers, open_artifact

    model, out = original.model, request.out
    options = _options(request, model)
    remarks, decided = list(original.remarks), verdicts
    with ExitStack() as writing:
        with progress.step(2, request.timeout):
            written = model
            if request.fallback is not None:
                written, found = with_parts(model, one.name, request.fallback)
                remarks += found
            source = form.generate(written, options)
            if not form.runs_source:  # what is run is the file, which takes its place in the end
                with refusals(out):
                    staged = writing.enter_context(_staged(form, out))
                    form.write(model, source, staged, options)
                    remarks += () if form.remarks is None else form.remarks(staged, options)
        if request.verify:
            if source.checked is not None and not form.runs_source:  # what is written gives less than the original
                with progress.step(3):
                    within_bounds = replace(original, run=one.proof(one.load(source), model.ir.graph), kind=one.title)
                    run = in_numbers(open_artifact(staged))
                    verdict, leg = _checked(request, within_bounds, form, source, run, remarks, progress)
                progress.found(verdict, leg)
                verdicts += (verdict,)
            with progress.step(3):  # which begins with the import of the framework
                run = (
                    one.proof(one.load(source.checked or source), model.ir.graph)
                    if form.runs_source or source.checked is not None
                    else in_numbers(open_artifact(staged))
                )
                verdict, leg = _checked(request, original, form, source, run, remarks, progress)
            progress.found(verdict, leg)
            verdicts += (verdict,)
            decided = verdicts[-1:] if leg else verdicts  # a leg with a name is the whole way
        with progress.step(4):
            if form.runs_source:
                form.write(model, source, out, options)
            writing.close()
    trained = tuple(trainable_lines(weights_of_source(source))) if form.trains else ()
    place = out.parent if form.suffix else out
    names = tuple(name for name in form.files(out) if (place / name).exists())
    orders = source.input_orders, source.output_orders
    return Conversion(out, names, verdicts, trained, tuple(source.casts), tuple(remarks), *orders, decided)


def _options(request: Request, model: Model) -> Options:
    from onward.verification.data.sets import data_sets

    samples = request.calibrate
    if samples is not None:
        samples = [data.inputs for data in data_sets(model, inputs=samples)]
    named = [each.name for each in fields(Options) if hasattr(request, each.name)]  # others ask for the rest
    return Options(**{name: getattr(request, name) for name in named} | {"calibrate": samples})


@contextmanager
def _staged(form: Format, out: Path) -> Iterator[Path]:
    """Where to write what takes its place at the end."""
    names = form.files(out)
    with new_files(out.parent, names) if form.suffix else new_folder(out, names) as folder:
        yield folder / out.name if form.suffix else folder


def _checked(
    request: Request,
    original: Original,
    form: Format,
    source: Source,
    run: Run,
    remarks: Sequence[str],
    progress: Progress,
) -> tuple[Verdict, str]:
    """How original, on the framework that it comes from, and result compare.

    What is kept for the next call only ONNX shows: there, the original is the ONNX model.
    """
    from onward.conversion.in_bytes import beyond
    from onward.conversion.trainable import trainable_lines, weights_of_source
    from onward.frontends.states import states_of
    from onward.runners import find
    from onward.verification.check import attempted, compared, reordered, source_side, verdict

    run = reordered(run, source.input_orders, source.output_orders)
    if request.verify_on:
        find(request.verify_on)
    whole = None if request.verify_on or states_of(original.model) else original.run
    name = f"{request.name} ({original.kind})"
    given = original.model if whole is None else source_side(original.model, whole, name)
    data = next((d for d in (request.inputs, request.calibrate) if d is not None), original.inputs)
    excuse = request.quantize or source.excuse

    def compare() -> Report:
        with within(request.timeout, "the check", titled(3)):
            how = {**_how(request), "arbitrate": not excuse}
            return compared(given, run, on=request.verify_on, data=data, **how)

    report = attempted(compare, request.name, request.name if whole is None else name)
    progress.compared(report, run)
    report.notes += [*(f"cast: {phrase}" for phrase in source.casts), *remarks]
    if form.trains:
        report.notes += trainable_lines(weights_of_source(source))
    write_report(report, request.report)
    too_far = beyond(report, original.model) if source.in_bytes and not report.unchecked else ""
    leg = "" if whole is None or report.unchecked else f"{original.kind} to {request.to}"
    return accepted(verdict(report, excuse, too_far), request), leg


def _how(request: Request) -> dict[str, Any]:
    """How a check is made, as `verify` takes it."""
    return {"seed": request.seed, "atol": request.atol, "rtol": request.rtol, "quick": request.quick}


def _told(verdicts: Sequence[Verdict], status: str) -> str:
    return next((str(verdict) for verdict in verdicts if verdict.status == status), "")


def accepted(verdict: Verdict, request: Request) -> Verdict:
    """Raises where original and result differ, unless the result is to be kept all the same."""
    if verdict.status == "different" and not request.keep:
        word = option("keep", True)
        raise VerificationError(f"{verdict.words}; nothing was written ({word} writes it all the same)")
    return verdict
