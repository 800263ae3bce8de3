"""Runs a model as the source code that a backend generates for it, or as what the backend writes."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from functools import partial
from pathlib import Path

from onward.backends.backend import PLAIN, Backend, Format, backend
from onward.formats import open_artifact
from onward.graph.narrow import carried, dtype_of
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.runner import Runner


def runner_of(one: Backend) -> Runner:
    """The runner of a backend: beside its own modes it has one for each further format that it writes."""
    written = {form.name: f"as {form.about}, written and opened again" for form in one.formats()[1:]}
    about = f"{one.title}, as generated source"
    return Runner(one.name, about, one.package, partial(_prepare, one.name), {**one.modes, **written})


def _prepare(name: str, model: Model, mode: str) -> Run:
    one = backend(name)
    form = next((form for form in one.formats()[1:] if form.name == mode), None)
    return one.prepare(model, mode) if form is None else _written(model, form)


def _written(model: Model, form: Format) -> Run:
    """Runs what is written for a model, under the names and in the dtypes of the ONNX file.

    The file stays as long as what runs it: an interpreter of TensorFlow Lite opens it anew for each run.
    """
    graph = model.ir.graph
    outputs = [(value.name or "", dtype_of(value)) for value in graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        found = opened.run(inputs)
        return {name: carried(found[name], dtype) for name, dtype in outputs}

    folder = tempfile.mkdtemp(prefix="onward-")
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / f"model{form.suffix}"
    form.write(model, form.generate(model, PLAIN), path, PLAIN)
    opened = open_artifact(path)
    return run
