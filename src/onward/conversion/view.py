"""`onward.view`: the page of a model, of whatever framework it is."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.advice.extras import is_installed, missing_packages
from onward.backends.backend import Backend, backend, names, require
from onward.conversion.request import Request
from onward.conversion.sources import read
from onward.errors import OnwardError
from onward.formats import kind_of
from onward.formats.package import MODULES, is_package, weights_in
from onward.gate import trusting
from onward.model import Model
from onward.report.view.page import Code, package_page, page
from onward.writing import write_text

LARGEST_FRAME = 8_000_000
"""Characters of a page that a notebook is given."""
LONGEST_SOURCE = 4_000_000
"""Bytes of a file of source that are shown."""


@dataclass(frozen=True)
class View:
    """The page of a model: a notebook shows it, and it can be saved or opened."""

    name: str
    html: str
    path: Path | None = None
    """Where it was written."""

    def save(self, path: str | os.PathLike[str]) -> View:
        """Write the page: one file that needs no network."""
        write_text(path, self.html)
        return View(self.name, self.html, Path(path))

    def open(self) -> View:
        """Show the page in the browser, written to a file for temporary ones unless it is written already."""
        if self.path is None:
            handle, place = tempfile.mkstemp(".html", "onward-view-")
            os.close(handle)
            return self.save(place).open()
        webbrowser.open(self.path.resolve().as_uri())
        return self

    def __repr__(self) -> str:
        return f"View({self.name!r}, {len(self.html):,} characters{f', in {self.path}' if self.path else ''})"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, out of which its scripts cannot reach."""
        if len(self.html) > LARGEST_FRAME:
            return f"<p>{html.escape(repr(self))}: too large to be shown here; <code>open()</code> shows it.</p>"
        style = "width:100%;height:56rem;border:1px solid #8884;border-radius:8px"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


def view(
    source: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    to: str | None = None,
    open: bool = False,
    input: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    spec: Sequence[Any] = (),
    params: Any = None,
    sample: Any = None,
    library: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    cache: bool = False,
    trust: bool = False,
) -> View:
    """A page of a model: its graph to look into, each node with its shapes, weights and generated source.

    `source` is a file or folder of any framework, an object in memory, bytes, an `onnx.ModelProto` or an
    `onward.Model`. What is not ONNX is shown as the ONNX model that it becomes; `input`, `outputs`, `spec`, `params`,
    `sample`, `library`, `checkpoint`, `signature`, `cache` and `trust` are then as for `onward.convert`. `to` is the
    backend whose source is shown beside the nodes, or "none"; by default PyTorch, where it is installed. With `out` the
    page is written there, with `open` it is shown in the browser. A notebook shows what is returned. The model is not
    run.

    >>> import onward
    >>> onward.view("examples/digits/digits.onnx", to="none").name
    'digits'
    """
    given: dict[str, Any] = {
        "input": input,
        "outputs": outputs,
        "spec": [spec] if isinstance(spec, str) else spec,
        "params": params,
        "sample": sample,
        "library": library,
        "signature": signature,
        "cache": cache,
    }
    one = _backend(to)
    place = None if checkpoint is None else os.fspath(checkpoint)
    request = Request(source=source, to="", out=Path(), checkpoint=place, verify=False, **given)
    path = Path(source) if isinstance(source, str | os.PathLike) and Path(source).exists() else None
    with trusting(trust), missing_packages():
        if path is not None and is_package(path) and not input:
            found = _of_package(path)
        else:
            original = read(request)
            found = _of_model(original.model, original.kind, one, asked=to is not None)
    if out is not None:
        found = found.save(out)
    return found.open() if open else found


def _backend(to: str | None) -> Backend | None:
    if to == "none" or (to is None and not is_installed("torch")):
        return None
    if to is not None and to not in names():
        backend(to)  # which says what there is
    one = backend(to or "torch")
    if to is not None:
        require(one)
    return one


def _of_model(model: Model, kind: str, one: Backend | None, asked: bool) -> View:
    code, remark = None, ""
    if one is not None:
        try:
            source = one.generate(model)
            code = Code(one.title, "model.py", source.model, source.lines, is_traced=bool(source.lines))
        except OnwardError as error:
            if asked:
                raise
            remark = f"No source for {one.title} is shown: {error}"
    words = kind if kind == "ONNX" else f"{kind}, as ONNX"
    return View(model.name, page(model, words, code, remark))


def _of_package(path: Path) -> View:
    """Source code is not executed: it is shown, with its weights."""
    kind = kind_of(path)
    _, weights = weights_in(path)
    title = "" if kind is None else kind.name
    codes = []
    for name in reversed(MODULES):
        file = path / f"{name}.py"
        if file.is_file():
            with file.open("rb") as opened:
                text = opened.read(LONGEST_SOURCE).decode(errors="replace")
            codes.append(Code(title, file.name, text))
    remark = (
        "A package of source is shown as it is: nothing of it is run. To see it as a graph, trust it and say what it"
    )
    remark += ' takes: onward view … --trust --input "x:float32[1,3,224,224]".'
    return View(path.resolve().name, package_page(path.resolve().name, title, weights, codes, remark))
