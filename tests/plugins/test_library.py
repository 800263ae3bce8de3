"""A custom op whose kernel is compiled: a library made with ONNX Runtime's C API, as its documentation describes it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from plugin_state import plugins_restored

import onward
from onward import plugins, runners, training
from onward.cli import main
from onward.errors import OnwardError
from onward.training.native.compiler import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

SOURCE = r"""
#include <stddef.h>
#include <stdint.h>

/* Functions by their place in OrtApi, to which versions only append. */
enum { CREATE_DOMAIN = 26, DOMAIN_ADD = 27, ADD_DOMAIN = 28, DATA = 51, COUNT = 64, RANK = 61, SIZES = 62, SHAPE = 65,
       NUMBER = 85, INPUT = 90, OUTPUT = 91, RELEASE_SHAPE = 99, VERSION = 18 };
typedef void *(*Slot)();
typedef struct { const void *(*api)(uint32_t); const char *(*version)(void); } Base;
static const Slot *api;

typedef struct Op {
  uint32_t version;
  void *(*create)(const struct Op *, const void *, const void *);
  const char *(*name)(const struct Op *);
  const char *(*provider)(const struct Op *);
  int (*input_type)(const struct Op *, size_t);
  size_t (*input_count)(const struct Op *);
  int (*output_type)(const struct Op *, size_t);
  size_t (*output_count)(const struct Op *);
  void (*compute)(void *, void *);
  void (*destroy)(void *);
  int (*input_kind)(const struct Op *, size_t);
  int (*output_kind)(const struct Op *, size_t);
  int (*input_memory)(const struct Op *, size_t);
  int (*variadic[4])(const struct Op *);
  void *(*create2)(const struct Op *, const void *, const void *, void **);
  void *(*compute2)(void *, void *);
  void *(*infer)(const struct Op *, void *);
  int (*first)(const struct Op *);
  int (*last)(const struct Op *);
  size_t (*pairs)(int **, int **);
  void (*release_pairs)(int *, int *);
  size_t (*aliases)(int **, int **);
  void (*release_aliases)(int *, int *);
} Op;

typedef struct { float by; } Kernel;
static Kernel kernels[64];
static int made;

static void *create2(const Op *op, const void *table, const void *info, void **kernel) {
  Kernel *k = &kernels[made++ % 64];
  *kernel = k;
  return ((void *(*)(const void *, const char *, float *))api[NUMBER])(info, "by", &k->by);
}
static void *create(const Op *op, const void *table, const void *info) { return NULL; }
static void *compute2(void *kernel, void *context) {
  const void *x;
  void *y, *shape;
  float *from, *to;
  int64_t dims[8];
  size_t rank, n = 1;
  ((void *(*)(void *, size_t, const void **))api[INPUT])(context, 0, &x);
  ((void *(*)(const void *, void **))api[SHAPE])(x, &shape);
  ((void *(*)(const void *, size_t *))api[RANK])(shape, &rank);
  ((void *(*)(const void *, int64_t *, size_t))api[SIZES])(shape, dims, rank);
  ((void (*)(void *))api[RELEASE_SHAPE])(shape);
  ((void *(*)(void *, size_t, const int64_t *, size_t, void **))api[OUTPUT])(context, 0, dims, rank, &y);
  ((void *(*)(const void *, void **))api[DATA])(x, (void **)&from);
  ((void *(*)(void *, void **))api[DATA])(y, (void **)&to);
  for (size_t d = 0; d < rank; d++) n *= dims[d];
  for (size_t i = 0; i < n; i++) to[i] = from[i] * from[i] * ((Kernel *)kernel)->by;
  return NULL;
}
static void compute(void *kernel, void *context) { compute2(kernel, context); }
static void destroy(void *kernel) {}
static const char *name(const Op *op) { return "Squares"; }
static const char *provider(const Op *op) { return NULL; }
static int type(const Op *op, size_t i) { return 1; }
static size_t count(const Op *op) { return 1; }
static int none(const Op *op, size_t i) { return 0; }
static int zero(const Op *op) { return 0; }
static int one(const Op *op) { return 1; }
static int latest(const Op *op) { return INT32_MAX; }
static size_t nothing(int **in, int **out) { return 0; }
static void kept(int *in, int *out) {}
static const Op squares = {VERSION, create, name, provider, type, count, type, count, compute, destroy, none, none,
                           none, {zero, zero, zero, zero}, create2, compute2, NULL, one, latest, nothing, kept, nothing,
                           kept};

void *RegisterCustomOps(void *options, const Base *base) {
  void *domain;
  api = base->api(VERSION);
  ((void *(*)(const char *, void **))api[CREATE_DOMAIN])("tests.native", &domain);
  ((void *(*)(void *, const void *))api[DOMAIN_ADD])(domain, &squares);
  return ((void *(*)(void *, void *))api[ADD_DOMAIN])(options, domain);
}
"""

PLUGIN = """
from onward.plugins import CustomOp

op = CustomOp("tests.native::Squares", inputs="x:float", outputs="y:float", attributes={"by": 1.0})
op.library("libsquares.so")
op.infer(lambda x, *, by: x)


@op.vjp
def _(c, g, x, *, by):
    return g * x * (2 * by)
"""
REFERENCE = """

@op.numpy
def _(x, *, by):
    return x * x * x.dtype.type(by)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin with its library beside it, and a model that has its op."""
    path = tmp_path_factory.mktemp("native")
    (path / "squares.c").write_text(SOURCE)
    command = [compiler() or "cc", "-O1", "-shared", "-fPIC", "-w", path / "squares.c", "-o", path / "libsquares.so"]
    subprocess.run(command, check=True, timeout=120)
    (path / "only.py").write_text(PLUGIN)
    (path / "both.py").write_text(PLUGIN + REFERENCE)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Squares", ["h"], ["y"], name="act", domain="tests.native", by=3.0),
    ]
    tensors = [helper.make_tensor_value_info(n, 1, ["n", 2]) for n in "xy"]
    weight = onnx.numpy_helper.from_array(np.float32([[1, 2], [0, -1]]), "w")
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], [weight])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("tests.native", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path / "m.onnx")
    return path


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with plugins_restored():
        yield


X = np.float32([[1, 2], [-1, 0.5]])
Y = 3 * (X @ np.float32([[1, 2], [0, -1]])) ** 2


def test_the_kernel_runs_here_and_in_a_process_of_its_own(folder: Path) -> None:
    plugins.load(str(folder / "only.py"))
    found = onward.load(folder / "m.onnx")
    np.testing.assert_allclose(runners.prepare("onnxruntime", found)({"x": X})["y"], Y)
    apart = runners.isolated("onnxruntime", found)
    try:
        np.testing.assert_allclose(apart({"x": X})["y"], Y)
    finally:
        apart.close()


def test_it_is_checked_and_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = str(folder / "both.py")
    assert main(["plugins", "check", plugin]) == 0
    said = capsys.readouterr().out
    assert "✓ tests.native::Squares  numpy ↔ onnxruntime: the same" in said
    assert "✓ tests.native::Squares  gradient ↔ finite differences: the same" in said
    model = str(folder / "m.onnx")
    assert main(["verify", model, "--on", "onnxruntime,reference", "--isolate", "--plugin", plugin]) == 0


def test_training_through_it(folder: Path) -> None:
    """The kernel computes the step, beside Onward's own."""
    plugins.load(str(folder / "only.py"))
    derived = training.gradient(folder / "m.onnx", of="y", wrt=["w"])
    found = runners.prepare("onnxruntime", derived)({"x": X})["w.grad"]
    np.testing.assert_allclose(found, X.T @ (6 * (X @ np.float32([[1, 2], [0, -1]]))), rtol=1e-6)
    recipe = training.prepare(folder / "m.onnx", loss="mse", optimizer=training.SGD(lr=1e-3))
    trainer = training.Trainer(recipe)
    losses = [trainer.step({"x": X, "labels": np.zeros_like(X)}) for _ in range(5)]
    assert losses[-1] < losses[0]


def test_nothing_beside_a_model_is_loaded(folder: Path) -> None:
    """A library is code: only a plugin names one."""
    with pytest.raises(OnwardError, match=r"no plugin knows this op: `onward plugins new tests\.native::Squares"):
        runners.prepare("onnxruntime", onward.load(folder / "m.onnx"))


def test_what_is_no_library(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # where there is one of that name
    (tmp_path / "lost.py").write_text(PLUGIN)
    with pytest.raises(OnwardError, match=f"there is no library {tmp_path / 'libsquares.so'}; build it first"):
        plugins.load(str(tmp_path / "lost.py"))
    (tmp_path / "libsquares.so").write_bytes(b"no library")
    plugins.load(str(tmp_path / "lost.py"))
    with pytest.raises(OnwardError, match=r"libsquares\.so is no library of custom ops for ONNX Runtime"):
        runners.prepare("onnxruntime", onward.load(folder / "m.onnx"))


def test_a_framework_needs_a_function_of_its_own(folder: Path, tmp_path: Path) -> None:
    plugins.load(str(folder / "only.py"))
    with pytest.raises(OnwardError, match=r"torch has no rule for tests\.native::Squares; its plugin says nothing of"):
        onward.to_torch(folder / "m.onnx")
    with pytest.raises(OnwardError, match=r"only beside Onward.* add @op\.torch or @op\.body to its plugin, or divide"):
        onward.convert(folder / "m.onnx", to="torch", out=tmp_path / "net", fallback="onnxruntime")
    result: Any = onward.partition(folder / "m.onnx", "torch", tmp_path / "split")
    assert [part.side for part in result.parts] and result.result.status == "same"
