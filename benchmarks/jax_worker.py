"""What `jax_programs.py` runs in processes of their own: programs and models of the battery, converted by either side.

python jax_worker.py onward       Onward, in this environment
python jax_worker.py jax2onnx     jax2onnx, in an environment that has it

Reads lines of JSON: a case by its id, and the file to write. Answers each with a line of JSON: the seconds of processor
time that the conversion took, or the error.
"""

from __future__ import annotations

import json
import os
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
from jax_cases import Case  # noqa: E402
from jax_data import parsed, structs  # noqa: E402
from jax_modules import CASES, MODELS  # noqa: E402

Convert = Callable[[Case, Path], None]


def by_onward(case: Case, out: Path) -> None:
    import onward

    target, keywords = case.target()
    onward.from_jax(target, *structs(case.specs), check=False, **keywords).save(out)


def by_jax2onnx(case: Case, out: Path) -> None:
    """It takes no trees: leaves are given one by one. Sizes may be names."""
    from jax2onnx import to_onnx

    leaves, tree = jax.tree.flatten(case.specs)
    given = [as_named(leaf) for leaf in leaves]
    target, keywords = case.target()
    if keywords or isinstance(target, tuple):
        target = case.original()
    is_flat = tree == jax.tree.structure(tuple(range(len(leaves))))
    function = target if is_flat else lambda *flat: case.original()(*jax.tree.unflatten(tree, flat))
    to_onnx(function, given, enable_double_precision=case.x64, return_mode="file", output_path=str(out))


def as_named(spec: str) -> jax.ShapeDtypeStruct:
    dtype, shape, _ = parsed(spec)
    dims = [dim.strip() for dim in shape.split(",") if dim.strip()]
    return jax.ShapeDtypeStruct(tuple(int(dim) if dim.isdigit() else dim for dim in dims), dtype)


CONVERTERS: dict[str, Convert] = {"onward": by_onward, "jax2onnx": by_jax2onnx}


def answered(convert: Convert, case: Case, out: Path) -> dict[str, Any]:
    with jax.enable_x64(case.x64):
        try:
            case.target()
            began = time.process_time()
            convert(case, out)
            return {"seconds": time.process_time() - began}
        except Exception as error:
            out.unlink(missing_ok=True)
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}, line {last.lineno}"
            return {"kind": type(error).__name__, "error": " ".join(str(error).split())[:400] or where}


def main() -> None:
    """Something small is converted first, so that what a converter loads when it is called is not counted."""
    warnings.simplefilter("ignore")
    convert = CONVERTERS[sys.argv[1]]
    cases = {case.id: case for case in (*CASES, *MODELS)}
    answers, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder:
        answered(convert, next(iter(cases.values())), Path(folder) / "first.onnx")
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(answered(convert, cases[asked["id"]], Path(asked["out"]))), file=answers, flush=True)


if __name__ == "__main__":
    main()
