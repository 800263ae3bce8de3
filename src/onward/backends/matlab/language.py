"""How MATLAB writes statements and names: only what Octave reads alike."""

from __future__ import annotations

from typing import ClassVar

from onward.backends.emit.expr import Expr, Index, Ref, Resolve, Var, forced, walk
from onward.backends.emit.names import identifier
from onward.backends.emit.printing.language import Language
from onward.backends.matlab.render import render

WIDTH = 100
# fmt: off
KEYWORDS = frozenset([
    "arguments", "break", "case", "catch", "classdef", "continue", "do", "else", "elseif", "end",
    "end_try_catch", "end_unwind_protect", "endfor", "endfunction", "endif", "endswitch", "endwhile",
    "enumeration", "events", "for", "function", "global", "if", "methods", "otherwise", "parfor", "persistent",
    "properties", "return", "spmd", "switch", "try", "until", "unwind_protect", "unwind_protect_cleanup",
    "while",
])
FUNCTIONS = frozenset([
    "Inf", "NaN", "abs", "accumarray", "acos", "acosh", "all", "ans", "any", "arrayfun", "asin", "asinh",
    "atan", "atan2", "atanh", "axes", "beta", "bitand", "bitcmp", "bitor", "bitshift", "bitxor", "bsxfun",
    "builtin", "cast", "cat", "ceil", "cell", "cellfun", "char", "circshift", "class", "clear", "colon",
    "colormap", "complex", "conj", "conv", "conv2", "cos", "cosh", "cov", "cross", "cummax", "cummin",
    "cumprod", "cumsum", "deal", "deblank", "det", "diag", "diff", "disp", "display", "dot", "double", "e",
    "eig", "eps", "eq", "erf", "erfc", "erfinv", "error", "exp", "expm1", "eye", "false", "fclose", "feval",
    "fft", "fft2", "fieldnames", "figure", "filter", "find", "fix", "flip", "floor", "fopen", "format",
    "fprintf", "full", "gamma", "gather", "ge", "gt", "help", "horzcat", "hypot", "i", "idivide", "ifft",
    "imag", "ind2sub", "inf", "int16", "int32", "int64", "int8", "interp1", "interp2",
    "intersect", "inv", "isa", "iscell", "ischar", "isempty", "isfield", "isfinite", "isinf", "islogical",
    "ismember", "isnan", "isnumeric", "isreal", "isscalar", "isstruct", "isvector", "j", "kron", "le",
    "length", "linspace", "load", "log", "log10", "log1p", "log2", "logical", "lookup", "lower", "lt", "max",
    "mean", "median", "mfilename", "min", "minus", "mod", "nan", "nargin", "nargout", "native2unicode",
    "nchoosek", "ndims", "ne", "net", "nnz", "norm", "not", "num2cell", "num2str", "numel", "ones", "ops",
    "or", "params", "path", "pause", "permute", "pi", "pinv", "plot", "plus", "pow2", "power", "prctile",
    "predict_image", "print", "prod", "qr", "rand", "randi", "randn", "randperm", "rank", "rat", "rdivide",
    "real", "regexp", "regexprep", "rem", "repmat", "reshape", "resize", "round", "save", "sign", "sin",
    "single", "sinh", "size", "sort", "split", "sprintf", "sqrt", "squeeze", "std", "str2double", "strcat",
    "strcmp", "strfind", "strjoin", "strncmp", "strrep", "strsplit", "strtrim", "struct", "sub2ind", "sum",
    "svd", "swapbytes", "switch", "tan", "tanh", "tic", "times", "toc", "trace", "transpose", "trapz",
    "tril", "triu", "true", "typecast", "uint16", "uint32", "uint64", "uint8", "uminus", "unicode2native",
    "union", "unique", "upper", "var", "varargin", "varargout", "vertcat", "warning", "which", "who", "xor",
    "zeros",
])
# fmt: on
"""Names that MATLAB has functions of, which generated code may call: no variable is called so."""
LONGEST = 60


def name(wish: str) -> str:
    """An identifier for both dialects that resembles a name of the file."""
    text = identifier(wish).lstrip("_")[:LONGEST] or "x"
    text = text if text[0].isalpha() else f"x{text}"
    return f"{text}_" if text in KEYWORDS or text in FUNCTIONS else text


class Matlab(Language):
    """Statements that end in a semicolon, blocks that end in `end`."""

    reserved = FUNCTIONS | KEYWORDS
    unread = "~"
    unused_item = ""
    nothing: ClassVar[list[str]] = []
    ending: ClassVar[list[str]] = ["end"]

    def render(self, expr: Expr, resolve: Resolve) -> str:
        return render(expr, resolve)

    def name(self, wish: str) -> str:
        return name(wish)

    def takes(self, consumer: Expr, variable: Var) -> bool:
        """What a function gives has to be a variable before it is indexed."""
        indexed = (forced(expr._obj) for expr in walk(consumer) if isinstance(expr, Index))
        return not any(isinstance(found, Ref) and found._var is variable for found in indexed)

    def assignment(self, left: list[str], text: str, *, rest: bool, is_display: bool) -> list[str]:
        if rest:
            raise TypeError("MATLAB does not collect the rest of several results")
        if len(left) == 1:
            return [] if left[0] == text else wrap(f"{left[0]} = {text};")
        value = f"deal({text[1:-1]})" if is_display else text
        return wrap(f"[{', '.join(left)}] = {value};")

    def effect(self, text: str) -> list[str]:
        return wrap(f"{text};")

    def keyword(self, word: str) -> list[str]:
        return [f"{word};"] if word != "pass" else []

    def header(self, word: str, names: list[str], test: str) -> str:
        if word == "for":
            return f"for {names[0]} = {test}"
        return f"{word} {test}" if test else word

    def shorter(self, lines: list[str], bodies: list[list[str]]) -> list[str] | None:
        return None

    def function(self, name: str, parameters: list[str], body: list[str]) -> list[str]:
        raise TypeError("MATLAB has no functions within functions that could be called later")


def wrap(line: str, width: int = WIDTH) -> list[str]:
    """Break a long line after commas, the outermost first; what goes on says so by three points."""
    first, *others = _broken(line, width, width - 4)
    return [first, *("    " + more for more in others)]


def _broken(line: str, width: int, following: int) -> list[str]:
    if len(line) <= width:
        return [line]
    places = [(depth, at) for at, depth in _commas(line) if 30 < at <= width - 4]
    if not places:
        places = [(depth, at) for at, depth in _commas(line) if at > width - 4][:1]
        if not places:
            return [line]
    outermost = min(depth for depth, _ in places)
    at = max(at for depth, at in places if depth == outermost)
    return [f"{line[:at].rstrip()} ...", *_broken(line[at:].strip(), following, following)]


def _commas(line: str) -> list[tuple[int, int]]:
    """The places after commas outside of texts, each with the number of brackets around it."""
    found: list[tuple[int, int]] = []
    depth, quoted = 0, False
    for i, ch in enumerate(line):
        if ch == "'" and (quoted or i == 0 or not (line[i - 1].isalnum() or line[i - 1] in "_)]}.'")):
            quoted = not quoted
        elif not quoted:
            depth += (ch in "([{") - (ch in ")]}")
            if ch == ",":
                found.append((i + 1, depth))
    return found


MATLAB = Matlab()
