"""`import onward` is quick and loads no framework; every module can be imported by itself."""

import ast
import importlib.util
import itertools
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import onward

FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "xgboost", "lightgbm", "openvino")
"""What models come from, go to, or run on."""
LIBRARIES = ("pandas", "polars", "narwhals", "scipy", "joblib", "skops", "skl2onnx", "onnxscript", "h5py", "PIL")
"""What comes with them, or reads their files."""
NOT_NEEDED = (*FRAMEWORKS, *LIBRARIES)
"""Without these, every module can be imported, those that are a framework's own aside."""

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
LIMIT = 0.3
"""Seconds of processor time, which other programs on a busy machine do not add to."""
CONVERT_LIMIT, INSPECT_LIMIT = 1.6, 0.6
"""What a whole command on a small model may take, in imports of PyTorch: processors differ, and share their caches."""
HELP_LIMIT, FILE_LIMIT = 2.2, 4.5
"""The same of a help text, in imports of numpy, and of a look at a small file, in imports of onnx."""

OWN = {name: (f"onward.backends.{name}.load", f"onward.backends.{name}.runtime.") for name in ("torch", "keras")} | {
    "tensorflow": tuple(
        f"onward.backends.tensorflow.{name}" for name in ("load", "runtime.", "lite.runtime.", "lite.single.")
    ),
    "jax": (
        *(f"onward.backends.jax.{name}" for name in ("load", "runtime.", "stablehlo")),
        "onward.frontends.jax.layers",
        "onward.frontends.jax.linen",
        "onward.frontends.stablehlo.",
    ),
    "polars": ("onward.frontends.dataframe.polars.", "onward.formats.dataframe.polars"),
    "narwhals": ("onward.frontends.dataframe.narwhals.",),
}
"""The modules that run the code of a framework, or are code of it."""


MODULES = frozenset(
    info.name for info in pkgutil.walk_packages(onward.__path__, "onward.") if "__main__" not in info.name
)


def python(code: str, *arguments: str, given: str = "") -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, input=given
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_quick() -> None:
    code = "import time; t = time.process_time(); import onward; print(time.process_time() - t)"
    assert min(float(python(code)) for _ in range(5)) < LIMIT


@pytest.mark.parametrize(
    "code",
    [
        "import onward",
        "import onward; onward.load, onward.Model, onward.OnwardError, onward.to_torch",
        "from onward.cli import parser; parser()",
        f"from onward.cli import main; main(['inspect', {str(DIGITS)!r}])",
    ],
)
def test_no_framework_is_loaded(code: str) -> None:
    names = (*NOT_NEEDED, "onnxruntime", "sympy", "jinja2")
    probe = f"import sys; {code}; print([name for name in {names} if name in sys.modules])"
    assert python(probe).splitlines()[-1] == "[]"


SIZES = """
import sys, onward
import onnx_ir as ir
assert "sympy" not in sys.modules, "onnx-ir has imported it"
import sympy.abc
assert str(ir.SymbolicDim("n") + 1) == "n + 1" and ir.SymbolicDim(sympy.abc.n * 2).value == "2*n"
assert "onnx_ir._symbolic_shapes" in sys.modules
"""


def test_sympy_is_loaded_when_sizes_are_computed_with() -> None:
    """It takes as long as all the rest of `onward inspect`; whoever imports it gets the real one."""
    python(SIZES)
    python("import sympy, onward, onnx_ir; assert onnx_ir._core.sympy is sympy")


EMBEDDING = """
import sys, numpy, onnx, onward
from pathlib import Path
from onward.backends.torch.convert import generate, write_package
proto = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["": 20], producer_name: "pytorch"> g (int64[n] x) => (float[n, 3] y)'
    '{ y = Gather("embed.weight", x) }'
)
proto.graph.initializer.append(onnx.numpy_helper.from_array(numpy.ones((5, 3), "float32"), "embed.weight"))
in_memory = onward.to_torch(proto)
sys.path.insert(0, str(write_package(generate(onward.load(proto)), Path(sys.argv[1]) / "generated").parent))
import generated.model
loaded = generated.model.load()
print(type(in_memory.embed).__name__, type(loaded.embed).__name__, loaded.embed.weight.sum().item())
print("torch._dynamo" in sys.modules)
"""


def test_an_embedding_does_not_load_the_compiler(tmp_path: Path) -> None:
    """Which takes a second, for random numbers that no one reads."""
    assert python(EMBEDDING, str(tmp_path)).split() == ["Embedding", "Embedding", "15.0", "False"]


CONVERT = """
import sys, torch
before = set(sys.modules)
from onward.cli import main
code = main(["convert", sys.argv[1], "--to", "torch", "--out", sys.argv[2]])
more = sorted({name for name in sys.modules if name.startswith(("torch", "sympy", "tensorflow"))} - before)
print(code, *more)
"""


def test_conversion_loads_no_more_of_pytorch_than_its_import_does(tmp_path: Path) -> None:
    """The mode in which modules are made without memory is all that is added."""
    assert python(CONVERT, str(DIGITS), str(tmp_path / "out")).split() == ["0", "torch.utils._device"]


def processor_time(*arguments: str) -> float:
    """Seconds that a command takes, the compilation of what it imports aside: the least of several times."""
    import resource

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def test_commands_are_quick(tmp_path: Path) -> None:
    """Beside the import of a framework, which any program of that framework pays."""
    framework = processor_time("-c", "import torch")
    words = ("-m", "onward", "convert", str(DIGITS), "--to", "torch", "--out", str(tmp_path / "out"))
    assert processor_time(*words) < CONVERT_LIMIT * framework
    assert processor_time("-m", "onward", "inspect", str(DIGITS)) < INSPECT_LIMIT * framework


@pytest.mark.parametrize("words", [["--help"], ["inspect", "--help"], ["convert", "--help"], ["completion", "bash"]])
def test_help_is_quick(words: list[str]) -> None:
    """Beside the import of numpy, a part of what any command on a model loads."""
    assert processor_time("-m", "onward", *words) < HELP_LIMIT * processor_time("-c", "import numpy")


def test_a_small_file_is_inspected_quickly() -> None:
    """Beside the import of onnx, without which no file can be read."""
    assert processor_time("-m", "onward", "inspect", str(DIGITS)) < FILE_LIMIT * processor_time("-c", "import onnx")


def test_help_loads_nothing_that_is_only_used_later() -> None:
    names = ("numpy", "onnx", "onnx_ir", "rich", "onward.hub", "onward.model", "onward.spec")
    probe = f"import sys; from onward.cli import parser; parser(); print([n for n in {names} if n in sys.modules])"
    assert python(probe).strip() == "[]"


def test_public_names_exist() -> None:
    for name in onward.__all__:
        assert getattr(onward, name) is not None and name in dir(onward)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onward.nothing


ALONE = """
import gc, importlib, json, os, sys
gc.disable()  # to look for garbage, a copy would copy nearly all memory
libraries, blocked = sys.argv[1:]
for library in libraries.split(","):
    importlib.import_module(library)

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked.split(","):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
assert "onward" not in sys.modules

def visit(after, module):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        importlib.import_module(module)
        for following in after.get(module, []):
            visit(after, following)
    except BaseException as error:
        print(module, repr(error), flush=True)
    os._exit(0)

after = json.load(sys.stdin)
for module in after[""]:
    visit(after, module)
"""
"""Imports each module in a copy of a process that has libraries and one of the modules that it imports itself."""


def imported(tree: ast.AST) -> Iterator[str]:
    """What a module imports when it is imported itself, `a.b` for `from a import b` too."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
                yield str(node.module)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass
            case ast.If() if ast.unparse(node.test) == "TYPE_CHECKING":
                pass
            case ast.Try():  # what is there only if a library is
                pass
            case _:
                yield from imported(node)


@cache
def direct(module: str) -> frozenset[str]:
    """The modules of the package that one imports itself, its package among them."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    wanted = {*imported(ast.parse(Path(spec.origin).read_text())), module.rpartition(".")[0]}
    return frozenset(MODULES & wanted)


@cache
def needs(module: str) -> frozenset[str]:
    """A module, and all that is imported for it."""
    found, ahead = {module}, [module]
    while ahead:
        new = direct(ahead.pop()) - found
        found |= new
        ahead += new
    return frozenset(found)


def alone(libraries: str, blocked: str, modules: Iterable[str]) -> str:
    """What is wrong with modules, each imported after none but the one, of those it needs, that needs most itself."""
    chosen = set(modules)
    after: dict[str, list[str]] = {"": []}
    for name in sorted(chosen):
        lower = [other for other in needs(name) & chosen if len(needs(other)) < len(needs(name))]
        first = max(lower, key=lambda other: (len(needs(other)), other), default="")
        after.setdefault(first, []).append(name)
    assert sum(map(len, after.values())) == len(chosen)
    return python(ALONE, libraries, blocked, given=json.dumps(after))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_each_module_can_be_imported_alone() -> None:
    """One that needs another is imported after it, as it would be by itself: none imports its importers."""
    assert len(MODULES) > 50
    others = [name for name in MODULES if not name.startswith(tuple(itertools.chain(*OWN.values())))]
    assert alone("onnx,onnx_ir,numpy", ",".join(NOT_NEEDED), others) == ""
    for framework, needing in OWN.items():
        if importlib.util.find_spec(framework) is not None:
            names = [name for name in MODULES if name.startswith(needing)]
            assert alone(f"onnx,onnx_ir,numpy,{framework}", "none", names) == ""


def test_package_is_typed() -> None:
    assert (Path(onward.__file__).parent / "py.typed").exists()
