"""MATLAB source rewritten so that Octave holds it to MATLAB's rules about integers, which are stricter than its own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from miss_hit_core import m_ast as ast
from miss_hit_core.config import Config
from miss_hit_core.errors import Message_Handler
from miss_hit_core.m_language import MATLAB_Latest_Language
from miss_hit_core.m_lexer import MATLAB_Lexer, Token_Buffer
from miss_hit_core.m_parser import MATLAB_Parser

OPERATORS = {
    "+": "plus",
    "-": "minus",
    ".*": "times",
    "*": "mtimes",
    "./": "rdivide",
    "/": "mrdivide",
    ".^": "power",
    "^": "mpower",
}
PAIRS = {"max", "min", "mod", "rem", "bitand", "bitor", "bitxor", "atan2", "hypot", "idivide"}
"""Functions of two operands, for which the same holds."""
PACKAGE = "pkg."
HELPER = f"{PACKAGE}ops.matlab_rule"
RULE = """function y = matlab_rule(name, a, varargin)
% What MATLAB does with two operands, or its error: an integer takes integers of its class, or one double.
if nargin == 3 && (isinteger(a) || isinteger(varargin{1}))
    b = varargin{1};
    if isinteger(a) && isinteger(b)
        is_right = strcmp(class(a), class(b));
    elseif isinteger(a)
        is_right = isa(b, 'double') && isscalar(b);
    else
        is_right = isa(a, 'double') && isscalar(a);
    end
    if ~is_right
        error('MATLAB has no %s of %s %s and %s %s', name, class(a), mat2str(size(a)), class(b), mat2str(size(b)));
    end
    if strcmp(name, 'mtimes') && ~isscalar(a) && ~isscalar(b)
        error('MATLAB has no product of matrices of integers');
    end
end
y = feval(name, a, varargin{:});
end
"""


def hold(folder: Path, package: str) -> None:
    """Rewrite the functions of a package, in place."""
    for path in folder.rglob("*.m"):
        text = path.read_text()
        if "builtin" not in text:
            path.write_text(rewritten(text.replace(f"{package}.", PACKAGE)).replace(PACKAGE, f"{package}."))
    (folder / "+ops").mkdir(exist_ok=True)
    (folder / "+ops/matlab_rule.m").write_text(RULE)


@cache
def rewritten(text: str) -> str:
    messages, config = Message_Handler("debug"), Config()
    lexer = MATLAB_Lexer(MATLAB_Latest_Language(), messages, text, "x.m")
    tree = MATLAB_Parser(messages, Token_Buffer(lexer, config), config).parse_file()
    return "\n".join(line for function in tree.l_functions for line in _function(function)) + "\n"


def _function(node: Any) -> list[str]:
    said = node.n_sig
    header = f"function [{_list(said.l_outputs)}] = {said.n_name}({_list(said.l_inputs)})"
    return [header, *_body(node.n_body), "end"]


def _body(node: Any) -> list[str]:
    return [line for statement in node.l_statements for line in _statement(statement)]


def _statement(node: Any) -> list[str]:
    match node:
        case ast.Simple_Assignment_Statement():
            return [f"{_text(node.n_lhs)} = {_text(node.n_rhs)};"]
        case ast.Compound_Assignment_Statement():
            return [f"[{_list(node.l_lhs)}] = {_text(node.n_rhs)};"]
        case ast.Naked_Expression_Statement():
            return [f"{_text(node.n_expr)};"]
        case ast.General_For_Statement():
            return [f"for {_text(node.n_ident)} = {_text(node.n_expr)}", *_body(node.n_body), "end"]
        case ast.While_Statement():
            return [f"while {_text(node.n_guard)}", *_body(node.n_body), "end"]
        case ast.If_Statement():
            return [*_actions(node), "end"]
        case ast.Switch_Statement():
            return [f"switch {_text(node.n_expr)}", *_actions(node), "end"]
        case ast.Return_Statement():
            return ["return"]
        case ast.Break_Statement():
            return ["break"]
        case ast.Continue_Statement():
            return ["continue"]
    raise TypeError(f"{type(node).__name__}: generated source has none of these")


def _actions(node: Any) -> list[str]:
    lines: list[str] = []
    for action in node.l_actions:
        test = "" if action.n_expr is None else f" {_text(action.n_expr)}"
        lines += [f"{action.kind()}{test}", *_body(action.n_body)]
    return lines


def _has_end(node: Any) -> bool:
    """Whether it has an `end` of an index: in a call, Octave takes it for that of the call."""
    return re.search(r"\bend\b", str(node)) is not None


def _list(nodes: Any) -> str:
    return ", ".join(map(_text, nodes))


def _text(node: Any) -> str:
    match node:
        case ast.Binary_Operation() if node.t_op.value in OPERATORS and not _has_end(node):
            return f"{HELPER}('{OPERATORS[node.t_op.value]}', {_text(node.n_lhs)}, {_text(node.n_rhs)})"
        case ast.Binary_Operation():
            return f"({_text(node.n_lhs)} {node.t_op.value} {_text(node.n_rhs)})"
        case ast.Unary_Operation():
            symbol, operand = node.t_op.value, _text(node.n_expr)
            return f"({operand}){symbol}" if symbol in (".'", "'") else f"({symbol}({operand}))"
        case ast.Reference():
            name = _text(node.n_ident)
            if name in PAIRS and len(node.l_args or ()) == 2 and not _has_end(node):
                return f"{HELPER}('{name}', {_list(node.l_args)})"
            return name if node.l_args is None else f"{name}({_list(node.l_args)})"
        case ast.Function_Call():
            return f"{_text(node.n_name)}({_list(node.l_args)})"
        case ast.Cell_Reference():
            return f"{_text(node.n_ident)}{{{_list(node.l_args)}}}"
        case ast.Selection():
            return f"{_text(node.n_prefix)}.{_text(node.n_field)}"
        case ast.Dynamic_Selection():
            return f"{_text(node.n_prefix)}.({_text(node.n_field)})"
        case ast.Range_Expression():
            parts = [node.n_first, *([node.n_stride] if node.n_stride else []), node.n_last]
            return f"({':'.join(f'({_text(part)})' for part in parts)})"
        case ast.Matrix_Expression():
            return f"[{'; '.join(_list(row.l_items) for row in node.n_content.l_items)}]"
        case ast.Cell_Expression():
            return f"{{{'; '.join(_list(row.l_items) for row in node.n_content.l_items)}}}"
        case ast.Lambda_Function():
            return f"@({_list(node.l_parameters)}) {_text(node.n_body)}"
        case ast.Function_Pointer():
            return f"@{_text(node.n_name)}"
        case ast.Reshape():
            return ":"
        case ast.Number_Literal():
            return str(node.t_value.raw_text)
        case ast.Char_Array_Literal():
            return str(node.t_string.raw_text)
        case ast.Identifier():
            return str(node.t_ident.value)
    raise TypeError(f"{type(node).__name__}: generated source has none of these")
