"""A small scoreboard, made by hand."""

from typing import Any

from onward.scoreboard.board import totals

HOSTILE = "</script><b id=evil>bold</b> & 'quoted'"


def result(status: str, message: str = "") -> dict[str, Any]:
    return {"status": status, "seconds": 0.1} | ({"message": message} if message else {})


def case(name: str, op: str, family: str, opset: str, suite: dict[str, Any], unknown: dict[str, Any]) -> dict[str, Any]:
    fields = {"name": name, "op": op, "family": family, "opset": opset, "counted": "random" not in name}
    return fields | {"suite": suite, "unknown": unknown}


def cell(op: str, dtype: str, results: dict[str, Any], kind: str = "tensor({})", why: str = "") -> dict[str, Any]:
    return {
        "op": op,
        "since": 13,
        "parameter": "T",
        "type": kind.format(dtype),
        "dtype": dtype,
        "template": "test_it",
        "truth": "" if why else "reference",
        "why": why,
        "results": results,
    }


def board(fixed: bool = False) -> dict[str, Any]:
    """Two runners, of which `quick` does not do all; with `fixed` it does Relu."""
    good = {"sure": result("pass"), "quick": result("pass")}
    relu = good if fixed else {"sure": result("pass"), "quick": result("wrong", HOSTILE)}
    data: dict[str, Any] = {
        "format": 1,
        "made": "2026-11-16T10:00:00Z",
        "seconds": 12.5,
        "machine": {"processor": "Abacus", "cores": 2, "python": "3.11.7"},
        "selection": {"what": ["suite", "unknown", "dtypes"], "only": "", "timeout": 60.0},
        "runners": {
            "sure": {"about": "slow and sure", "versions": {"onward": "0.1.0", "onnx": "1.23.2"}},
            "quick": {"about": "quick", "versions": {"onward": "0.1.0", "onnx": "1.23.2", "quick": "7"}},
        },
        "families": {"node": "one op each", "light": "well-known networks"},
        "tests": [
            case("test_relu", "Relu", "node", "ai.onnx 13", relu, relu),
            case("test_relu_2", "Relu", "node", "ai.onnx 6", good, good),
            case(
                "test_add",
                "Add",
                "node",
                "ai.onnx 13",
                good,
                {"sure": result("pass"), "quick": result("refused", "no shape")},
            ),
            case("test_random", "Random", "node", "ai.onnx 13", dict.fromkeys(good, result("wrong", "x")), good),
            case(
                "test_net",
                "(whole networks)",
                "light",
                "ai.onnx 9",
                {"sure": result("timeout", "timed out after 60 s"), "quick": result("crash", "crash (SIGSEGV)")},
                good,
            ),
        ],
        "dtype_opset": 26,
        "dtypes": [
            cell("Add", "float", good),
            cell("Add", "float16", {"sure": result("pass"), "quick": result("refused", "no halves")}),
            cell("Relu", "double", {"sure": result("pass"), "quick": result("imprecise", "off by 1e-8")}),
            cell("Relu", "float", good),
            cell("Relu", "float", {"sure": result("pass"), "quick": result("wrong", HOSTILE)}, "seq(tensor({}))"),
            cell("Random", "float", {}, why="its output is random"),
        ],
    }
    return data | {"totals": totals(data)}


def history(runs: int) -> list[dict[str, Any]]:
    """Runs of which each passes a little more."""
    found = []
    for run in range(runs):
        data = board(fixed=run > runs // 2)
        data["made"] = f"2026-11-{10 + run:02}T10:00:00Z"
        found.append({key: data[key] for key in ("made", "selection", "totals")})
    return found
