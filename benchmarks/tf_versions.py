"""What is generated here, run by other versions of TensorFlow: the cases of ONNX's suite, as a table.

python benchmarks/tf_versions.py ENV/bin/python …    each with tensorflow-cpu, safetensors, and nothing of Onward
    --match REGEX     only cases whose name matches
    --folder FOLDER   keeps what was generated, and goes on with it the next time
    --kinds LIST      of package, function (the same source, traced), savedmodel, keras
    --failures        name the cases that do not pass, and say why

An environment is made by: python -m venv ENV && ENV/bin/pip install tensorflow-cpu==2.16.2 safetensors
"""

import argparse
import contextlib
import json
import pickle
import re
import subprocess
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import machine
import numpy as np
from onnx.backend.test.runner import Runner
from rich.console import Console
from rich.progress import track

from onward.backends.emit.package import write_package
from onward.backends.keras.convert import built
from onward.backends.keras.save import source_path, write_keras
from onward.backends.tensorflow.convert import generate
from onward.backends.tensorflow.saved_model import signature_names, write_saved_model
from onward.backends.tensorflow.target import DTYPES
from onward.backends.tensorflow.values import to_tensor
from onward.errors import OnwardError, UnsupportedError
from onward.graph.narrow import dtype_of
from onward.model import Model, load
from onward.runners.feeds import conform
from onward.scoreboard import suite
from onward.scoreboard.exceptions import DRAWS

WORKER = Path(__file__).with_name("tf_worker.py")
KINDS = ("package", "function", "savedmodel", "keras")
SAVED = ("real", "simple", "pytorch-converted", "pytorch-operator")
"""Kinds of cases that are saved as SavedModels and as .keras files, too."""
MINUTES = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--failures", action="store_true")
    args = parser.parse_args()
    kinds = args.kinds.split(",")
    with tempfile.TemporaryDirectory() as scratch:
        root = args.folder or Path(scratch)
        names = [name for name in sorted(suite.cases()) if re.search(args.match, name) and not random(name)]
        made = [name for name in track(names, "generating", console=Console(stderr=True)) if write(name, root, kinds)]
        print(f"{machine.describe('tensorflow-cpu', 'onnx')}: {len(made):,} of {len(names):,} cases generated\n")
        print(f"| run by | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
        for python in args.pythons:
            answers = root / f"answers_{python.absolute().parent.parent.name}"
            subprocess.run([python, WORKER, root, answers, args.kinds], check=True, timeout=60 * MINUTES)
            print_row(answers, made, kinds, args.failures)


def random(name: str) -> bool:
    return name in DRAWS


def write(name: str, root: Path, kinds: Iterable[str]) -> bool:
    """The case as generated source and, for some, saved, with its inputs; False where it is refused."""
    folder, case = root / name, suite.cases()[name]
    if (folder / "inputs.pickle").exists():
        return True
    model = load(suite.model_of(case))
    graph = model.ir.graph
    try:
        source = generate(model)
    except OnwardError:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    write_package(source, folder / "net")
    fed = [value.name or "" for value in graph.inputs if not value.is_initializer()]
    if case.kind in SAVED:
        names = signature_names(fed)
        outputs = [value.name for value in graph.outputs]
        text = json.dumps({"inputs": [names[name] for name in fed], "outputs": outputs})
        (folder / "names.json").write_text(text)
        if "savedmodel" in kinds:
            write_saved_model(source, graph, folder / "saved_model")
        if "keras" in kinds:
            write_net(model, folder / "net.keras")
    (folder / "inputs.pickle").write_bytes(pickle.dumps([_fed(model, inputs) for inputs, _ in suite.data_sets(case)]))
    return True


def write_net(model: Model, path: Path) -> None:
    """As a .keras file with its layers beside it, where Keras can be told the model."""
    with contextlib.suppress(UnsupportedError):
        write_keras(built(model, module=source_path(path).stem), path)


def _fed(model: Model, inputs: list[Any]) -> list[Any]:
    """The inputs as arrays of the dtypes that TensorFlow gets."""
    values = [value for value in model.ir.graph.inputs if not value.is_initializer()]
    found = conform(model.ir, dict(zip((value.name or "" for value in values), inputs, strict=False)))
    return [_plain(to_tensor(found.get(value.name or ""), DTYPES.get(value.dtype))) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value.numpy())


def print_row(answers: Path, names: list[str], kinds: list[str], failures: bool) -> None:
    found = {name: pickle.loads((answers / f"{name}.pickle").read_bytes()) for name in names}
    versions = json.loads((answers / "versions.json").read_text())
    cells, problems = [], []
    for kind in kinds:
        tried = {name: answer[kind] for name, answer in found.items() if kind in answer}
        wrong = {name: why for name, answer in tried.items() if (why := problem(name, answer))}
        problems += [f"  {kind} {name}: {why}" for name, why in wrong.items()]
        cells.append(f"{len(tried) - len(wrong):,} of {len(tried):,}")
    others = ", ".join(f"{name} {number}" for name, number in versions.items() if name != "tensorflow")
    print(f"| TensorFlow {versions['tensorflow']} ({others}) | {' | '.join(cells)} |", flush=True)
    if failures:
        print("\n".join(problems), flush=True)


def problem(name: str, answer: Any) -> str:
    """Why the answer to a case is not right; '' where it is."""
    if isinstance(answer, str):
        return answer
    case = suite.cases()[name]
    outputs = [dtype_of(value) for value in load(suite.model_of(case)).ir.graph.outputs]
    for (_, expected), values in zip(suite.data_sets(case), answer, strict=True):
        actual = [_typed(value, dtype) for value, dtype in zip(values, outputs, strict=True)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pairs = suite.with_lengths(list(expected), actual)
                Runner.assert_similar_outputs(*pairs, rtol=case.rtol, atol=case.atol, model_dir=case.model_dir)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""


def _typed(value: Any, dtype: np.dtype[Any] | None) -> Any:
    if isinstance(value, list):
        return [_typed(item, dtype) for item in value]
    kept = not isinstance(value, np.ndarray) or dtype is None or value.dtype == object
    return value if kept else value.astype(dtype)


if __name__ == "__main__":
    main()
