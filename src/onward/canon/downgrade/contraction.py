"""Einsum in terms of products of matrices."""

import onnx_ir as ir

from onward.canon.downgrade.registry import Older, refuse
from onward.graph.rewriter import dims


def contracted(equation: str, values: list[ir.Value], op: Older) -> ir.Value:
    """What an equation says, where each letter is once in each operand."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in equation:
        refuse(f"its equation {equation} has an ellipsis")
    if any(len(set(term)) < len(term) for term in (*terms, right)):
        refuse(f"its equation {equation} takes a diagonal")
    if not arrow:
        letters = left.replace(",", "")
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    value, term = values[0], terms[0]
    for index, (other, its) in enumerate(zip(values[1:], terms[1:], strict=True), 1):
        later = right + "".join(terms[index + 1 :])
        value, term = _pair(value, term, other, its, later, op)
    value, term = _summed(value, term, right, op)
    return _ordered(value, term, right, op)


def _summed(value: ir.Value, term: str, kept: str, op: Older) -> tuple[ir.Value, str]:
    """Without the letters that nobody asks for."""
    gone = [i for i, letter in enumerate(term) if letter not in kept]
    if gone:
        value = op("ReduceSum", value, op.ints(gone), keepdims=0)
    return value, "".join(letter for letter in term if letter in kept)


def _ordered(value: ir.Value, term: str, wanted: str, op: Older) -> ir.Value:
    return value if term == wanted else op("Transpose", value, perm=[term.index(letter) for letter in wanted])


def _pair(a: ir.Value, left: str, b: ir.Value, right: str, kept: str, op: Older) -> tuple[ir.Value, str]:
    """The product of two operands, with the letters in `kept` left: (batch, rows, sum) times (batch, sum, columns).

    What is as long as 1 in one operand may be longer in the other, whose sum it is multiplied by.
    """
    stretched = [c for c in left if c in right and c not in kept and 1 in (_size(a, left, c), _size(b, right, c))]
    a, left = _summed(a, left, "".join({*right, *kept}.difference(stretched)), op)
    b, right = _summed(b, right, "".join({*left, *kept}.difference(stretched)), op)
    batch = [c for c in left if c in right and c in kept]
    over = [c for c in left if c in right and c not in kept]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    first = _ordered(a, left, "".join(batch + rows + over), op)
    second = _ordered(b, right, "".join(batch + over + columns), op)
    if len(rows) == 1 and len(columns) == 1 and len(over) == 1:
        return op("MatMul", first, second), "".join(batch + rows + columns)
    shapes = op("Shape", first), op("Shape", second)
    n, r, k = len(batch), len(rows), len(over)
    summed = _product(shapes[0], n + r, n + r + k, op)
    lead = [op.ints([0] * n)] if n else []
    one = op("Reshape", first, op("Concat", *lead, op.ints([-1]), summed, axis=0))
    other = op("Reshape", second, op("Concat", *lead, summed, op.ints([-1]), axis=0))
    product = op("MatMul", one, other)
    parts = [(shapes[0], 0, n + r), (shapes[1], n + k, n + k + len(columns))]
    pieces = [_piece(shape, begin, end, op) for shape, begin, end in parts if end > begin]
    whole = op("Concat", *pieces, axis=0) if pieces else op.ints([])
    return op("Reshape", product, whole), "".join(batch + rows + columns)


def _size(value: ir.Value, term: str, letter: str) -> int | None:
    known = dims(value)
    return None if known is None else known[term.index(letter)]


def _piece(shape: ir.Value, begin: int, end: int, op: Older) -> ir.Value:
    return op("Slice", shape, op.ints([begin]), op.ints([end]), op.ints([0]))


def _product(shape: ir.Value, begin: int, end: int, op: Older) -> ir.Value:
    """How many elements some dimensions have together, as a vector of one."""
    found = _piece(shape, begin, begin + 1, op) if end > begin else op.ints([1])
    for index in range(begin + 1, end):
        found = op("Mul", found, _piece(shape, index, index + 1, op))
    return found
