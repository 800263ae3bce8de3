"""What `jax_programs.py` and `speed_from_jax.py` run in processes of their own: conversions by either side.

python jax_worker.py onward       Onward, in this environment
python jax_worker.py jax2onnx     jax2onnx, in an environment that has it

Reads lines of JSON: a program, model or network by its id, and the file to write. Answers each with a line of JSON: the
seconds of processor time that the conversion took, of user and system together, or the error. They are from the call to
a protobuf in memory; if it is asked for, each side writes the file by itself, and they are from the call to that file.
Beside it are those of the system alone, those that JAX takes to trace it, and those of writing as many bytes plainly.
Each file is new: what it takes to give back the memory of an old one is not counted.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
BATTERY = Path(__file__).parent.parent / "tests/frontends/jax/battery"
sys.path.insert(0, str(BATTERY))

import jax  # noqa: E402
import onnx  # noqa: E402
from jax_cases import Case  # noqa: E402
from jax_data import parsed, structs  # noqa: E402
from jax_modules import CASES, MODELS  # noqa: E402

Convert = Callable[[Case, Path | None], onnx.ModelProto | None]
"""To a protobuf, or to a file if one is given."""


def by_onward(case: Case, out: Path | None = None) -> onnx.ModelProto | None:
    import onward

    target, keywords = case.target()
    model = onward.from_jax(target, *jax.tree.map(as_named, case.specs), check=False, **keywords)
    return model.to_proto() if out is None else model.save(out)


def by_jax2onnx(case: Case, out: Path | None = None) -> onnx.ModelProto | None:
    """It takes no trees: leaves are given one by one. Sizes may be names."""
    from jax2onnx import to_onnx

    leaves, tree = jax.tree.flatten(case.specs)
    given = [as_named(leaf) for leaf in leaves]
    target, keywords = case.target()
    if keywords or isinstance(target, tuple):
        target = case.original()
    is_flat = tree == jax.tree.structure(tuple(range(len(leaves))))
    function = target if is_flat else lambda *flat: case.original()(*jax.tree.unflatten(tree, flat))
    if out is None:
        return to_onnx(function, given, enable_double_precision=case.x64)
    to_onnx(function, given, enable_double_precision=case.x64, return_mode="file", output_path=out)
    return None


def as_named(spec: str) -> jax.ShapeDtypeStruct:
    dtype, shape, _ = parsed(spec)
    dims = [dim.strip() for dim in shape.split(",") if dim.strip()]
    return jax.ShapeDtypeStruct(tuple(int(dim) if dim.isdigit() else dim for dim in dims), dtype)


CONVERTERS: dict[str, Convert] = {"onward": by_onward, "jax2onnx": by_jax2onnx}


def answered(convert: Convert, case: Case, out: Path, to_file: bool = False) -> dict[str, Any]:
    with jax.enable_x64(case.x64):
        try:
            case.target()
            out.unlink(missing_ok=True)
            began, of_system = time.process_time(), system_time()
            model = convert(case, out if to_file else None)
            answer = {"seconds": time.process_time() - began, "system": system_time() - of_system}
            if model is not None:
                onnx.save(model, out)
            return answer
        except Exception as error:
            out.unlink(missing_ok=True)
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}, line {last.lineno}"
            return {"kind": type(error).__name__, "error": " ".join(str(error).split())[:400] or where}


def system_time() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def written(out: Path) -> float:
    """What it takes to write as many bytes to another new file, from memory that is there."""
    data, beside = out.read_bytes(), out.with_suffix(".plain")
    began = time.process_time()
    with beside.open("xb") as file:
        file.write(data)
    ended = time.process_time()
    beside.unlink()
    return ended - began


def tracing(case: Case) -> float:
    """What a converter cannot do without; the function is a new one, since JAX knows those it has traced."""
    original, given = case.original(), structs(case.specs)
    began = time.process_time()
    jax.make_jaxpr(lambda *inputs: original(*inputs))(*given)
    return time.process_time() - began


def main() -> None:
    """Something small is converted first, so that what a converter loads when it is called is not counted."""
    warnings.simplefilter("ignore")
    convert = CONVERTERS[sys.argv[1]]
    cases: dict[str, Case] = {case.id: case for case in (*CASES, *MODELS)}
    answers, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder:
        answered(convert, next(iter(cases.values())), Path(folder) / "first.onnx")
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["id"] not in cases:  # PyTorch is imported with them
            from jax_sizes import NETWORKS

            cases |= {case.id: case for case in NETWORKS}
        case = cases[asked["id"]]
        answer = answered(convert, case, Path(asked["out"]), asked["to_file"])
        if asked["to_file"] and "error" not in answer:
            answer |= {"tracing": tracing(case), "write": written(Path(asked["out"]))}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
