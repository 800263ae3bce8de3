"""The functions of a generated MATLAB model: of a struct of arrays, with cell arrays where names are numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from onward.backends.emit.expr import Call, Expr, Name, Ref, lift
from onward.backends.emit.functions.numbers import Words
from onward.backends.emit.functions.printed import Printed
from onward.backends.emit.functions.writer import FunctionWriter
from onward.backends.emit.modules.tracing import marked
from onward.backends.emit.printing.language import Language
from onward.backends.emit.printing.printer import FunctionPrinter
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import TreeNode
from onward.backends.matlab.language import MATLAB, name, wrap
from onward.backends.matlab.package import PACKAGE, runtime
from onward.backends.matlab.tree import field_name

WORDS = Words(
    positional={
        "conv": ("", "", "", "stride", "padding", "dilation", "groups"),
        "conv_transpose": ("", "", "", "stride", "padding", "dilation", "groups"),
        "max_pool": ("", "kernel", "stride", "padding"),
        "average_pool": ("", "kernel", "stride", "padding"),
        "leaky_relu": ("", "slope"),
        "batch_norm": ("", "", "", "", "", "epsilon"),
        "layer_norm": ("", "", "", "epsilon"),
        "reshape": ("", "shape", "shape", "shape", "shape"),
        "permute": ("", "order"),
    }
)
"""What numbers are called by which equal blocks differ."""


@dataclass
class MatlabWriter(FunctionWriter):
    """Writes functions of MATLAB's arrays. The first is that of the whole model, as MATLAB wants it."""

    language: Language = MATLAB
    in_loops = False
    helpers_at = f"{PACKAGE}.ops"
    reserved: frozenset[str] = frozenset({"params", "p", "model"})
    words: Words = field(default_factory=lambda: WORDS)
    whole = "params"
    outputs: list[str] = field(default_factory=list)
    """What the function of the whole model calls what it gives."""
    package: str = ""
    """No variable may be called as it is: functions are called by it."""
    inputs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """What the file calls what the whole model gives."""

    def __post_init__(self) -> None:
        self.reserved |= {self.package, *runtime()}  # Octave takes a function of the file for a helper of its name
        super().__post_init__()

    def annotation(self, kind: str) -> str:
        return ""

    def text_of(self, made: Printed, printer: FunctionPrinter) -> list[str]:
        closing, outputs = self._closing(made, printer)
        lines = [*made.lines, *made.traced(marked(closing, printer.inside(*made.results)))]
        arguments = [argument for argument, _ in made.arguments]
        takes = [self.own if made.name else self.whole, *arguments, *(keyword.name for keyword in made.keywords)]
        gives = outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]"
        header = wrap(f"function {gives} = {made.name or 'model'}({', '.join(takes)})")
        if not made.name:
            self.inputs, self.outputs = arguments, outputs
        about = [f"    % {made.about}"] if made.name else []
        return [*header, *about, *("    " + line for line in lines), "end"]

    def _closing(self, made: Printed, printer: FunctionPrinter) -> tuple[list[str], list[str]]:
        """The lines that assign what a function gives, and what that is called."""
        taken = {argument for argument, _ in made.arguments} | {keyword.name for keyword in made.keywords}
        lines: list[str] = []
        names: list[str] = []
        texts = [printer.text(result) for result in made.results]
        for result, text in zip(made.results, texts, strict=True):
            is_variable = isinstance(result, Ref) and text.isidentifier()
            wish = "" if made.name else name(self.results[len(names)])
            if is_variable and text not in names and text not in taken and wish in ("", text):
                names.append(text)
                continue
            hint = wish or "y"
            fresh = next(n for n in _numbered(hint) if n not in names and n not in texts and printer.is_free(n))
            names.append(fresh)
            lines += wrap(f"{fresh} = {text};")
        return lines, names

    def _without_defaults(self, expr: Expr) -> Expr:
        """A call of a function with every number that it takes, in its order: MATLAB knows no names for them."""
        if not isinstance(expr, Call) or not isinstance(expr._fn, Name) or expr._fn._text not in self._keywords:
            return expr
        if not expr._kwargs:
            return expr
        known = self._keywords[expr._fn._text]
        numbers = [expr._kwargs.get(keyword, lift(known[keyword].default)) for keyword in known]
        return Call(expr._fn, (*expr._args, *numbers), {})

    def _access(self, node: TreeNode, path: Scope) -> str:
        text = self.whole if node is self.root else self.own
        for i in range(len(node.path), len(path)):
            text += f"{{{int(path[i]) + 1}}}" if path[:i] in self.lists else f".{field_name(path[i])}"
        return text


def _numbered(wish: str) -> list[str]:
    return [wish, *(f"{wish}{n}" for n in range(2, 1000))]
