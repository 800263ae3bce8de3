"""The rules that keep the code easy to find one's way in, held by reading it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import onnx
import pytest

from onward.backends.backend import backends
from onward.backends.emit.helpers import COMMON
from onward.backends.torch.convert import load_rules
from onward.backends.torch.target import TARGET
from onward.spec.meaning import SPECS, load_specs

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/onward"
LONGEST = 500

SHARED = {
    "onnx_part": "parts of a model that stay ONNX inside a module, whatever their ops",
    "dtypes": "what rules of every family use for dtypes that PyTorch has few kernels for",
    "host": "helpers for numbers computed from shapes, called by the emitter",
    "layer_weights": "weights of layers in frameworks without modules, whatever the family",
    "meaning": "what a spec is, and how the one of a node is found",
    "ml_scores": "what scores become, for the tree ensembles, linear models and support vector machines of ai.onnx.ml",
    "weights": "how a generated model of TensorFlow gets its weights",
    "window": "sliding windows, for conv and pool",
}
"""Files of runtime helpers or specs that belong to no single family of ops, and why."""

LAYERS = [
    ("deferred", "errors", "looks", "registry", "version"),
    ("advice",),
    ("cluster", "gate", "writing"),
    ("engine",),
    ("zoo.results",),
    ("zoo.outline",),
    ("hub",),
    ("plugins",),
    ("model",),
    ("graph",),
    ("spec",),
    ("canon",),
    ("passes",),
    ("layout",),
    ("training.autodiff",),
    ("runners.calls", "runners.undisturbed"),
    ("runners.isolate",),
    ("backends", "backends.emit"),
    ("backends.backend",),
    ("backends.shared", "backends.shared.runtime"),
    ("backends.*.runtime",),
    ("backends.*",),
    ("backends.coverage",),
    ("formats",),
    ("runners",),
    ("frontends",),
    ("verification",),
    ("training",),
    ("partitioning",),
    ("editing",),
    ("plugins.trial", "plugins.skeleton"),
    ("plugins.check",),
    ("report", "scoreboard"),
    ("dataframes",),
    ("bits", "exporters"),
    ("conversion",),
    ("importers", "scoring"),
    ("zoo",),
    ("cli",),
    ("__init__",),
    ("__main__",),
]
"""The parts of the package, the lowest first. A part imports itself and what is in a lower layer, and no part beside it
in its own; what is in no part listed more closely belongs to the part around it. `*` is any one name."""

BESIDE = {("backends.keras", "backends.tensorflow"): "what Keras has no layer for, a model of Keras says in TensorFlow"}
"""Parts that import one beside them, and why."""

MOST_FILES = 22
FAMILIES = ("rules", "runtime", "vjp", "spec", "shared")
"""Folders with a file for each family of ops, of which there are many."""


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


PYTHON = files("src", "tests", "benchmarks", "examples")


MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path for path in files("src")
}
"""The files of the package by the names of their modules, without `onward.`; the package itself is `__init__`."""


def imported_names(tree: ast.AST) -> Iterator[str]:
    """What is imported anywhere in a file, `a.b` for `from a import b` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports(path: Path) -> set[str]:
    return set(imported_names(ast.parse(path.read_text())))


def own(imported: Iterable[str]) -> set[str]:
    """The modules of the package among what is imported."""
    found = set()
    for name in imported:
        inner = name.removeprefix("onward.")
        if inner != name:
            found.add(next((m for m in (inner, inner.rpartition(".")[0]) if m in MODULES), "__init__"))
    return found | ({"__init__"} if "onward" in imported else set())


def without_types(path: Path) -> ast.AST:
    """A file without what it imports for the type checker alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


def place(module: str) -> tuple[int, str]:
    """The layer that a module is in, and its part: the longest name that fits, rather one without `*`."""
    steps = module.split(".")
    for length in range(len(steps), 0, -1):
        start = steps[:length]
        fitting = [(part, i) for i, layer in enumerate(LAYERS) for part in layer if fits(start, part.split("."))]
        if fitting:
            return max(fitting)[1], ".".join(start)
    raise AssertionError(f"{module} is in no layer: add it to LAYERS")


def fits(steps: list[str], pattern: list[str]) -> bool:
    return len(steps) == len(pattern) and all(
        wanted in ("*", step) for step, wanted in zip(steps, pattern, strict=True)
    )


def names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def test_no_file_is_long() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in PYTHON}
    assert not {str(path): n for path, n in lengths.items() if n > LONGEST}


def test_nothing_is_left_for_later() -> None:
    word = re.compile("TO" + "DO|FIX" + r"ME|\bXX" + "X")
    assert not [str(path) for path in PYTHON if word.search(path.read_text())]


def test_parts_import_only_lower_ones() -> None:
    wrong = []
    for module, path in MODULES.items():
        layer, part = place(module)
        for other in own(imports(path)):
            lower, its_part = place(other)
            if lower > layer or (lower == layer and its_part != part and (part, its_part) not in BESIDE):
                wrong.append(f"{module} imports {other}")
    assert not wrong


def test_nothing_is_imported_from_outside_the_package() -> None:
    outside = {"tests", "benchmarks", "examples", "pytest"}
    assert not [path for path in files("src") if outside & {name.partition(".")[0] for name in imports(path)}]


def test_every_layer_is_there() -> None:
    parts = {place(module)[1] for module in MODULES}
    listed = [part for layer in LAYERS for part in layer]
    assert not [part for part in listed if not any(fits(found.split("."), part.split(".")) for found in parts)]
    assert {name for pair in BESIDE for name in pair} <= parts


def test_only_pipelines_join_canonical_form_and_passes() -> None:
    passes = [module for module in MODULES if module.startswith("passes.")]
    joining = {
        module for module in passes if any(other.startswith("canon.") for other in own(imports(MODULES[module])))
    }
    assert joining == {"passes.pipelines"}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, if there are any: what is left of leaves taken away."""
    left = dict(graph)
    while leaves := [module for module, others in left.items() if not others & left.keys()]:
        for leaf in leaves:
            del left[leaf]
    while roots := [module for module in left if not any(module in others for others in left.values())]:
        for root in roots:
            del left[root]
    return sorted(left)


def test_no_modules_import_one_another() -> None:
    """Also not inside functions; imports for the type checker are no imports when it runs."""
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    graph = {module: own(imported_names(without_types(path))) - {module} for module, path in MODULES.items()}
    assert cycle(graph) == []


def test_compiled_kernels_have_one_interface() -> None:
    """Only `onward.training.native` itself is imported from outside of it."""
    inside = SOURCE / "training/native"
    for path in files("src"):
        if inside not in path.parents:
            deeper = [name for name in imports(path) if name.startswith("onward.training.native.")]
            assert {name.rpartition(".")[0] for name in deeper} <= {"onward.training.native"}, path
            assert not {name.rpartition(".")[2] for name in deeper} & names(inside), path


def test_no_folder_is_crowded() -> None:
    folders = [folder for folder in SOURCE.rglob("*") if folder.is_dir() and folder.name not in FAMILIES]
    counts = {str(folder.relative_to(SOURCE)): len(names(folder)) for folder in (SOURCE, *folders)}
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}


RUNTIMES = {folder.parent.name: folder for folder in (SOURCE / "backends").glob("*/runtime")}
"""The runtime helpers of each backend that has its own, and `shared` ones; a backend is named after its framework."""


@pytest.mark.parametrize("backend", sorted(RUNTIMES))
def test_runtime_helpers_depend_on_nothing_but_the_framework(backend: str) -> None:
    """They are copied into generated code, which needs numpy and safetensors beside it, and Pillow to decode images."""
    allowed = {backend, "numpy", "safetensors", "PIL", *sys.stdlib_module_names}
    for path in RUNTIMES[backend].glob("*.py"):
        for imported in imports(path):
            beside = imported.startswith((f"onward.backends.{backend}.runtime.", f"{COMMON}."))
            runs = path.stem == "onnx_part" and imported.startswith("onnxruntime")  # which a user has asked for
            assert beside or runs or imported.partition(".")[0] in allowed, f"{path} imports {imported}"


def test_backends_with_runtime_helpers() -> None:
    assert {"torch", "tensorflow"} <= RUNTIMES.keys()


NO_FAMILY = {"onnx_part": "parts that stay ONNX are of no family; tests/partitioning has their tests"}
"""Files of rules that belong to no family of ops, and why."""


def families() -> set[str]:
    """The files of the backend that rules come from."""
    load_rules()
    return {TARGET.rules.get(op).__module__.rpartition(".")[2] for op in TARGET.rules} - NO_FAMILY.keys()


def test_every_family_has_its_tests() -> None:
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests/ops").glob("test_*.py")}
    assert len(families()) > 15
    assert families() - tested == set()


GRADIENTS = SOURCE / "training/autodiff/vjp"
MATLAB = SOURCE / "backends/matlab/rules"
NO_FILE = {
    (GRADIENTS, "ml_classify"): "labels and scores of classifiers are not differentiated",
    (GRADIENTS, "ml_encode"): "tables of strings and integers are not differentiated",
    (GRADIENTS, "ml_trees"): "trees are constant between their thresholds",
    (GRADIENTS, "training"): "a Gradient is expanded before anything is differentiated again",
    (SOURCE / "spec", "ml_classify"): "what has rules in it has no parameters",
    (MATLAB, "attention"): "attention is written in simpler ops",
    (MATLAB, "image"): "images are not decoded",
    (MATLAB, "loss"): "losses are written in simpler ops",
}
"""Families that have no file in a folder where the others have one, and why."""


def folders_of_families() -> list[Path]:
    """The folders in which a file is a family: its meaning, its gradients, its rules and helpers in each backend."""
    inside = (SOURCE / "backends").glob("*/*/")
    return [SOURCE / "spec", GRADIENTS, SOURCE / "backends/shared", *(f for f in inside if f.name in FAMILIES)]


def test_families_have_one_name_everywhere() -> None:
    """Or a name that begins with it, where one file would be too long: ml_classify, ml_trees."""
    assert len(folders_of_families()) > 7
    for folder in folders_of_families():
        found = {name for name in names(folder) if not name.startswith(tuple(f"{family}_" for family in families()))}
        assert found - families() - SHARED.keys() == set(), folder
    assert SHARED.keys() & families() == set()


def test_families_are_complete() -> None:
    """Each has its meaning, its gradients, and its rules in every backend that has rules for all of ONNX."""
    covered = [SOURCE / "backends" / one.name / "rules" for one in backends() if one.is_covered]
    missing = {(folder, name) for folder in (SOURCE / "spec", GRADIENTS, *covered) for name in families()}
    assert {(folder, name) for folder, name in missing if not (folder / f"{name}.py").exists()} == NO_FILE.keys()


def test_what_has_parameters_has_a_meaning() -> None:
    load_specs()
    standard = [op for op in TARGET.rules if not op.startswith(("onward", "com.microsoft"))]
    parameters = {op: onnx.defs.get_schema(*reversed(op.rpartition("::")[::2])).attributes for op in standard}
    assert sum(map(bool, parameters.values())) > 80
    assert not [op for op, attributes in parameters.items() if attributes and op not in SPECS]


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
