"""The rules that keep the code easy to find one's way in, held by reading it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.backends.torch.convert import load_rules
from onward.backends.torch.target import TARGET

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/onward"
LONGEST = 500

SHARED = {
    "dtypes": "what rules of every family use for dtypes that PyTorch has few kernels for",
    "host": "helpers for numbers computed from shapes, called by the emitter",
    "ml_scores": "what scores become, for the tree ensembles, linear models and support vector machines of ai.onnx.ml",
    "weights": "how a generated model of TensorFlow gets its weights",
    "window": "sliding windows, for conv and pool",
}
"""Files of runtime helpers or specs that belong to no single family of ops, and why."""

BASE = {"errors", "registry", "gate", "writing"}
MAY_IMPORT = {
    "errors": set(),
    "registry": set(),
    "gate": {"errors"},
    "writing": {"errors"},
    "hub": BASE,
    "model": BASE | {"hub"},
    "spec": BASE | {"hub", "model"},
    "passes": BASE | {"hub", "model", "spec", "canon"},
    "canon": BASE | {"hub", "model", "spec", "passes"},
    "layout": BASE | {"hub", "model", "spec", "canon", "passes", "verification"},
    "backends": set(),
    "backends.emit": BASE | {"hub", "model", "spec", "canon"},
    "backends.coverage": BASE | {"hub", "model", "canon", "backends.torch", "backends.tensorflow"},
    "backends.torch": BASE | {"hub", "model", "spec", "canon", "passes", "backends.emit", "backends.coverage"},
    "backends.torch.runtime": set(),
    "backends.tensorflow": BASE
    | {"hub", "model", "spec", "canon", "passes", "layout", "backends.emit", "backends.coverage"},
    "backends.tensorflow.runtime": set(),
    "backends.keras": BASE
    | {"hub", "model", "spec", "canon", "passes", "layout", "backends.emit", "backends.tensorflow"},
    "verification": BASE
    | {"hub", "model", "spec", "canon", "backends.torch", "backends.torch.runtime"}
    | {"backends.tensorflow", "backends.keras"},
    "importers": {"model", "verification", "backends.emit", "backends.torch", "backends.tensorflow", "backends.keras"},
    "frontends": BASE | {"hub", "model", "canon", "passes", "layout", "training", "verification"},
    "training": BASE | {"hub", "model", "spec", "canon", "passes", "verification", "frontends", "training.export"},
    "training.export": BASE | {"hub", "model", "canon", "training", "backends.emit", "backends.torch"},
    "scoreboard": BASE | {"", "hub", "model", "verification"},
    "report": BASE | {"hub", "model", "canon", "verification", "training", "backends.coverage"},
    "cli": BASE
    | {"", "hub", "model", "canon", "layout", "report", "scoreboard", "verification", "training", "training.export"}
    | {"frontends", "backends.emit", "backends.torch", "backends.tensorflow", "backends.keras", "backends.coverage"},
    "": {"errors", "model", "training", "verification", "frontends", "importers"},
    "__main__": {"cli"},
}
"""Which part of the package may import which; every part may import itself."""


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


PYTHON = files("src", "tests", "benchmarks", "examples")


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            assert node.module is not None
            yield node.module


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def part_of(module: str) -> str:
    """The part of the package that a module belongs to, as in MAY_IMPORT: the longest name that fits."""
    name = module.removeprefix("onward").removeprefix(".")
    return max((part for part in MAY_IMPORT if name == part or name.startswith(f"{part}." if part else "?")), key=len)


def names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def test_no_file_is_long() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in PYTHON}
    assert not {str(path): n for path, n in lengths.items() if n > LONGEST}


def test_nothing_is_left_for_later() -> None:
    word = re.compile("TO" + "DO|FIX" + r"ME|\bXX" + "X")
    assert not [str(path) for path in PYTHON if word.search(path.read_text())]


def test_parts_import_only_what_they_may() -> None:
    wrong = []
    for path in files("src"):
        module = module_of(path)
        part = part_of(module)
        for imported in imports(path):
            top = imported.partition(".")[0]
            if top == "onward" and part_of(imported) not in MAY_IMPORT[part] | {part}:
                wrong.append(f"{module} imports {imported}")
            if top in {"tests", "benchmarks", "examples", "pytest"}:
                wrong.append(f"{module} imports {imported}")
    assert not wrong


RUNTIMES = {folder.parent.name: folder for folder in (SOURCE / "backends").glob("*/runtime")}
"""The runtime helpers of each backend that has its own; a backend is named after its framework."""


@pytest.mark.parametrize("backend", sorted(RUNTIMES))
def test_runtime_helpers_depend_on_nothing_but_the_framework(backend: str) -> None:
    """They are copied into generated code, which needs numpy and safetensors beside it, and Pillow to decode images."""
    allowed = {backend, "numpy", "safetensors", "PIL", *sys.stdlib_module_names}
    for path in RUNTIMES[backend].glob("*.py"):
        for imported in imports(path):
            own = imported.startswith(f"onward.backends.{backend}.runtime.")
            assert own or imported.partition(".")[0] in allowed, f"{path} imports {imported}"


def test_backends_with_runtime_helpers() -> None:
    assert {"torch", "tensorflow"} <= RUNTIMES.keys()


def families() -> set[str]:
    """The files of the backend that rules come from."""
    load_rules()
    return {TARGET.rules.get(op).__module__.rpartition(".")[2] for op in TARGET.rules}


def test_every_family_has_its_tests() -> None:
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests/ops").glob("test_*.py")}
    assert len(families()) > 15
    assert families() - tested == set()


def test_families_have_one_name_everywhere() -> None:
    """Or a name that begins with it, where one file would be too long: ml_classify, ml_trees."""
    for folder in (*RUNTIMES.values(), SOURCE / "spec"):
        found = {name for name in names(folder) if not name.startswith(tuple(f"{family}_" for family in families()))}
        assert found - families() - SHARED.keys() == set(), folder
    assert SHARED.keys() & families() == set()


def test_makefile_has_the_commands_of_the_readme() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    wanted = {name for page in pages for name in re.findall(r"(?:`|^)make (\w+)", page.read_text(), re.MULTILINE)}
    assert wanted <= targets
    assert {"demo", "test"} <= targets
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "make test"


def test_version_is_one() -> None:
    import onward

    text = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{onward.__version__}"' in text


@pytest.mark.parametrize("module", ["onward", "onward.cli"])
def test_runs_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("onward ")
