"""The C around kernels: how ONNX Runtime finds them, gives them tensors and lends them its threads.

A kernel with memory for its rows reads the same matrices in each of its parts, so there are no more than threads. ONNX
Runtime does not tell how many it lends: a node has an attribute for it, without which there are as many as cores.

ONNX Runtime hands a library a table of functions to which versions only append; what is needed is taken from it by
place. A library registers the ops of the domain `onward.kernels`.
"""

import onnx_ir as ir

from onward.graph.walk import all_nodes

DOMAIN = "onward.kernels"
PARTS = 16
"""The most parts of a kernel's work; they do not depend on the number of threads, so that sums do not either."""

MOST_TENSORS = 64
MOST_AXES = 8


def tell_threads(graph: ir.Graph, threads: int) -> None:
    """Tell the kernels of a graph how many threads its session has."""
    for node in all_nodes(graph):
        if node.domain == DOMAIN:
            node.attributes["threads"] = ir.AttrInt64("threads", threads)


DRIVER = """\
#include <stdlib.h>
#include <unistd.h>

enum { AXES = 8, TENSORS = 64, PARTS = 16, WORTH = 16384, VERSION = 18 };

typedef struct {
  const void *in[TENSORS];
  void *out[TENSORS];
  int64_t n[AXES];
} Call;

/* Tensors are inputs, outputs, then totals. Their axes are those of the frame, -1 where the size is 1. What comes last
   is for kernels that take the same memory for each of their rows, and have no totals then, or sizes as they were
   compiled for (0: any). */
typedef struct {
  const char *name;
  int inputs, outputs, totals, rank, rows, loops, pairs;
  const int *types, *ranks, *axes, *merged, *order;
  void (*run)(const Call *, int64_t, int64_t, char *);
  size_t (*pair)(int **, int **);
  int least;
  const int *sizes;
  size_t (*scratch)(int64_t);
} Kernel;

typedef struct { const Kernel *kernel; int64_t threads; } Node;
typedef void *(*Slot)();
typedef struct { const void *(*api)(uint32_t); const char *(*version)(void); } Base;

enum {
  CREATE_STATUS = 0, CREATE_DOMAIN = 26, DOMAIN_ADD = 27, ADD_DOMAIN = 28, DATA = 51, RANK = 61, SIZES = 62,
  SHAPE = 65, INTEGER = 86, INPUT = 90, OUTPUT = 91, RELEASE_STATUS = 93, RELEASE_SHAPE = 99, PARALLEL = 274
};

static const Slot *api;

static void *failed(const char *why) {
  return ((void *(*)(int, const char *))api[CREATE_STATUS])(1, why);
}

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
  const Kernel *kernel;
} Op;

typedef struct { const Kernel *kernel; const Call *call; int64_t total; size_t parts, width; char *sums; } Work;

static void part(void *given, size_t index) {
  const Work *work = given;
  int64_t begin, end;
  if (work->kernel->rows) {
    begin = work->total * (int64_t)index / (int64_t)work->parts;
    end = work->total * ((int64_t)index + 1) / (int64_t)work->parts;
  } else {
    const int64_t lines = (work->total + 63) / 64;
    begin = 64 * (lines * (int64_t)index / (int64_t)work->parts);
    end = 64 * (lines * ((int64_t)index + 1) / (int64_t)work->parts);
    if (end > work->total) end = work->total;
  }
  if (begin < end) work->kernel->run(work->call, begin, end, work->sums + index * work->width);
}

/* What rows need besides their results. It stays for the next call, since a system gives out large pieces page by page;
   calls at the same time get pieces of their own. */
typedef struct { size_t size; char room[]; } Scratch;
static Scratch *kept_scratch;

static Scratch *scratch_of(size_t size) {
  Scratch *found = __atomic_exchange_n(&kept_scratch, NULL, __ATOMIC_ACQ_REL);
  if (found && found->size >= size) return found;
  free(found);
  found = malloc(sizeof(Scratch) + size);
  if (found) found->size = size;
  return found;
}

static size_t bytes(int type) { return type == 9 ? 1 : type == 1 || type == 6 ? 4 : 8; }

static void *compute(void *given, void *context) {
  const Kernel *k = ((const Node *)given)->kernel;
  Call call;
  int64_t sizes[AXES];
  const int *axes = k->axes;
  void *status;
  int t, d;
  for (d = 0; d < k->rank; d++) sizes[d] = k->merged[d] < 0 ? 1 : k->sizes && k->sizes[d] ? k->sizes[d] : -1;
  for (t = 0; t < k->inputs; t++, axes += k->ranks[t - 1]) {
    const void *value;
    void *data, *shape;
    int64_t dims[AXES];
    size_t rank;
    if ((status = ((void *(*)(void *, size_t, const void **))api[INPUT])(context, t, &value))) return status;
    if ((status = ((void *(*)(const void *, void **))api[DATA])(value, &data))) return status;
    if ((status = ((void *(*)(const void *, void **))api[SHAPE])(value, &shape))) return status;
    status = ((void *(*)(const void *, size_t *))api[RANK])(shape, &rank);
    if (!status && rank == (size_t)k->ranks[t])
      status = ((void *(*)(const void *, int64_t *, size_t))api[SIZES])(shape, dims, rank);
    ((void (*)(void *))api[RELEASE_SHAPE])(shape);
    if (status) return status;
    if (rank != (size_t)k->ranks[t]) return failed("a tensor is not of the rank that its graph says");
    for (d = 0; d < (int)rank; d++) {
      if (axes[d] >= 0 && sizes[axes[d]] < 0) sizes[axes[d]] = dims[d];
      if (dims[d] != (axes[d] < 0 ? 1 : sizes[axes[d]]))
        return failed("a tensor is not of the shape that its graph says");
    }
    call.in[t] = data;
  }
  for (t = 0; t < k->outputs + k->totals; t++) {
    void *value, *data;
    int64_t dims[AXES];
    const int rank = k->ranks[k->inputs + t];
    for (d = 0; d < rank; d++) dims[d] = axes[d] < 0 ? 1 : sizes[axes[d]];
    axes += rank;
    status = ((void *(*)(void *, size_t, const int64_t *, size_t, void **))api[OUTPUT])(context, t, dims, rank, &value);
    if (status) return status;
    if ((status = ((void *(*)(void *, void **))api[DATA])(value, &data))) return status;
    call.out[t] = data;
  }
  for (d = 0; d < k->loops; d++) call.n[d] = 1;
  for (d = 0; d < k->rank; d++)
    if (k->merged[d] >= 0) call.n[k->merged[d]] *= sizes[d];
  int64_t total = 1, inner = 1;
  for (d = 0; d < k->loops; d++) *(d < k->rows ? &total : &inner) *= call.n[k->order[d]];
  if (!k->rows) total = inner;
  const int64_t work = k->rows ? total * inner : total;
  size_t parts = work / WORTH > PARTS ? PARTS : work / WORTH < 1 ? 1 : work / WORTH;
  if ((int64_t)parts > total) parts = total < 1 ? 1 : total;
  if (k->least) {
    const size_t threads = ((const Node *)given)->threads, most = (total + k->least - 1) / k->least;
    if (parts > most) parts = most < 1 ? 1 : most;
    if (parts > threads) parts = threads;
  }
  Scratch *scratch = NULL;
  size_t width = k->scratch ? k->scratch((total + parts - 1) / parts) : 0;
  if (width && !(scratch = scratch_of(parts * width))) return failed("there is no memory left");
  for (t = 0; t < k->totals; t++) width += bytes(k->types[k->inputs + k->outputs + t]) * inner;
  char *sums = scratch ? scratch->room : width ? calloc(parts, width) : NULL;
  if (width && !sums) return failed("there is no memory left");
  Work job = {k, &call, total, parts, width, sums};
  if (parts == 1) part(&job, 0);
  else if ((status = ((void *(*)(const void *, void (*)(void *, size_t), size_t, size_t, void *))api[PARALLEL])(
                context, part, parts, 0, &job))) {
    if (scratch) free(scratch);
    else free(sums);
    return status;
  }
  if (scratch) {
    free(__atomic_exchange_n(&kept_scratch, scratch, __ATOMIC_ACQ_REL));
    return NULL;
  }
  size_t offset = 0;
  for (t = 0; t < k->totals; t++) {
    const int type = k->types[k->inputs + k->outputs + t];
    for (int64_t j = 0; j < inner; j++) {
      double whole = 0;
      for (size_t p = 0; p < parts; p++) {
        const char *from = sums + p * width + offset + bytes(type) * j;
        whole += type == 1 ? *(const float *)from : *(const double *)from;
      }
      if (type == 1) ((float *)call.out[k->outputs + t])[j] = whole;
      else ((double *)call.out[k->outputs + t])[j] = whole;
    }
    offset += bytes(type) * inner;
  }
  free(sums);
  return NULL;
}

static void *create2(const Op *op, const void *table, const void *info, void **made) {
  Node *node = malloc(sizeof(Node));
  if (!node) return failed("there is no memory left");
  node->kernel = op->kernel;
  void *status = ((void *(*)(const void *, const char *, int64_t *))api[INTEGER])(info, "threads", &node->threads);
  if (status) ((void (*)(void *))api[RELEASE_STATUS])(status);
  if (status || node->threads < 1) node->threads = sysconf(_SC_NPROCESSORS_ONLN);
  *made = node;
  return NULL;
}
static void *create(const Op *op, const void *table, const void *info) {
  void *made = NULL, *status = create2(op, table, info, &made);
  if (status) ((void (*)(void *))api[RELEASE_STATUS])(status);
  return made;
}
static const char *name(const Op *op) { return op->kernel->name; }
static const char *provider(const Op *op) { return NULL; }
static int input_type(const Op *op, size_t i) { return op->kernel->types[i]; }
static size_t input_count(const Op *op) { return op->kernel->inputs; }
static int output_type(const Op *op, size_t i) { return op->kernel->types[op->kernel->inputs + i]; }
static size_t output_count(const Op *op) { return op->kernel->outputs + op->kernel->totals; }
static void compute1(void *node, void *context) { compute(node, context); }
static void destroy(void *node) { free(node); }
static int zero(const Op *op) { return 0; }
static int one(const Op *op) { return 1; }
static int latest(const Op *op) { return INT32_MAX; }
static int none(const Op *op, size_t i) { return 0; }
static size_t nothing(int **in, int **out) { return 0; }
static void kept(int *in, int *out) {}

static const Kernel *const kernels[];
static Op ops[];

void *RegisterCustomOps(void *options, const Base *base) {
  const int count = COUNT;
  void *domain, *status;
  api = base->api(VERSION);
  if (!api) return NULL;
  if ((status = ((void *(*)(const char *, void **))api[CREATE_DOMAIN])("onward.kernels", &domain))) return status;
  for (int i = 0; i < count; i++) {
    const Op op = {VERSION, create, name, provider, input_type, input_count, output_type, output_count, compute1,
                   destroy, none, none, none, {zero, zero, zero, zero}, create2, compute, NULL, one, latest,
                   kernels[i]->pairs ? kernels[i]->pair : nothing, kept, nothing, kept, kernels[i]};
    ops[i] = op;
    if ((status = ((void *(*)(void *, const void *))api[DOMAIN_ADD])(domain, &ops[i]))) return status;
  }
  return ((void *(*)(void *, void *))api[ADD_DOMAIN])(options, domain);
}
"""
