"""Control flow, strings, tables, ragged and sparse tensors, linear algebra, random numbers, gradients."""

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

X = numbers(3, 4)
SQUARE = numbers(4, 4) + 4 * np.eye(4, dtype=np.float32)
SYMMETRIC = (SQUARE @ SQUARE.T).astype(np.float32)
WORDS = np.array(["Onward", "to", "ONNX runtime", ""])


def loop_sum(n):  # type: ignore[no-untyped-def]
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, 0.0])[1]


def grown(x):  # type: ignore[no-untyped-def]
    return tf.while_loop(
        lambda y: tf.shape(y)[0] < 10, lambda y: tf.concat([y, y], 0), [x], shape_invariants=[tf.TensorShape([None, 4])]
    )[0]


def array_written(x):  # type: ignore[no-untyped-def]
    out = tf.TensorArray(tf.float32, size=3)
    for i in tf.range(3):
        out = out.write(i, x[i] * tf.cast(i, tf.float32))
    return out.stack()


def array_grown(x):  # type: ignore[no-untyped-def]
    out = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        out = out.write(i, tf.reduce_sum(x[i]))
    return out.stack()


def breaks(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in tf.range(10):
        if total > 5.0:
            break
        total += tf.reduce_sum(tf.abs(x)) * 0.2 + tf.cast(i, tf.float32)
    return total


CONTROL = {
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x * 2), X),
    "cond_else": (lambda x: tf.cond(tf.reduce_sum(x) > 100, lambda: x + 1, lambda: x * 2), X),
    "cond_two": (lambda x: tf.cond(x[0, 0] > 0, lambda: (x, x[0]), lambda: (-x, x[1])), X),
    "case": (lambda i: tf.case([(i < 1, lambda: 10), (i < 3, lambda: 20)], default=lambda: 30), np.int32(2)),
    "switch_case": (lambda i, x: tf.switch_case(i, [lambda: x, lambda: -x, lambda: x * x]), np.int32(1), X),
    "switch_case_default": (lambda i, x: tf.switch_case(i, [lambda: x, lambda: -x]), np.int32(7), X),
    "while": (loop_sum, np.int32(7)),
    "while_never": (loop_sum, np.int32(0)),
    "while_grows": (grown, X),
    "map_fn": (lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), X),
    "map_fn_two": (lambda x: tf.map_fn(lambda rows: rows[0] + rows[1], (x, 2 * x), fn_output_signature=tf.float32), X),
    "map_fn_dtype": (lambda x: tf.map_fn(lambda row: tf.argmax(row), x, fn_output_signature=tf.int64), X),
    "scan": (lambda x: tf.scan(lambda a, row: a + row, x), X),
    "foldl": (lambda x: tf.foldl(lambda a, row: a * 0.5 + row, x), X),
    "foldr": (lambda x: tf.foldr(lambda a, row: a * 0.5 + row, x), X),
    "vectorized_map": (lambda x: tf.vectorized_map(lambda row: row / tf.reduce_sum(row), x), X),
    "tensor_array": (tf.function(array_written), X),
    "tensor_array_grown": (tf.function(array_grown), X),
    "break": (tf.function(breaks), X),
    "nested_function": (lambda x: tf.function(lambda y: tf.function(lambda z: z + 1)(y) * 2)(x), X),
    "recompute_grad": (lambda x: tf.recompute_grad(lambda y: tf.sin(y) * y)(x), X),
}

STRINGS = {
    "string_join": (lambda s: tf.strings.join([s, s], "-"), WORDS),
    "string_length": (tf.strings.length, WORDS),
    "string_lower": (tf.strings.lower, WORDS),
    "string_upper": (tf.strings.upper, WORDS),
    "string_equal": (lambda s: tf.equal(s, "to"), WORDS),
    "regex_full_match": (lambda s: tf.strings.regex_full_match(s, "[A-Z].*"), WORDS),
    "string_add": (lambda s: s + "!", WORDS),
    "as_string_int": (tf.strings.as_string, integers(4)),
    "to_number": (lambda s: tf.strings.to_number(s), np.array(["1.5", "-2", "3e2"])),
    "string_gather": (lambda s: tf.gather(s, [2, 0]), WORDS),
    "string_where": (lambda s: tf.where(s == "to", "two", s), WORDS),
    "string_split": (lambda s: tf.strings.split(s, " ").to_tensor("-"), WORDS),
    "reduce_join": (lambda s: tf.strings.reduce_join(s, separator=","), WORDS),
    "substr": (lambda s: tf.strings.substr(s, 0, 3), np.array(["Onward", "towards"])),
    "static_table": (
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["to", "Onward"], [7, 9]), -1).lookup,
        WORDS,
    ),
    "static_table_numbers": (
        tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), ["one", "two"]), "none"
        ).lookup,
        np.int64([2, 5, 1]),
    ),
}

RAGGED = {
    "ragged_sum": (lambda x: tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]), 1), numbers(5)),
    "ragged_mean": (lambda x: tf.reduce_mean(tf.RaggedTensor.from_row_lengths(x, [2, 1, 2]), 1), numbers(5)),
    "ragged_to_tensor": (lambda x: tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]).to_tensor(-1.0), numbers(5)),
    "ragged_from_tensor": (lambda x, n: tf.RaggedTensor.from_tensor(x, lengths=n).flat_values, X, np.int64([2, 4, 0])),
    "ragged_lengths": (lambda x: tf.RaggedTensor.from_row_splits(x, [0, 2, 5]).row_lengths(), numbers(5)),
    "ragged_gather": (
        lambda x: tf.gather(tf.RaggedTensor.from_row_lengths(x, [2, 0, 3]), [2, 0]).flat_values,
        numbers(5),
    ),
    "ragged_map": (
        lambda x: tf.ragged.map_flat_values(tf.sin, tf.RaggedTensor.from_row_lengths(x, [2, 3])).to_tensor(),
        numbers(5),
    ),
    "value_rowids": (lambda x: tf.RaggedTensor.from_value_rowids(x, [0, 0, 2]).to_tensor(), numbers(3)),
}


def sparse(values):  # type: ignore[no-untyped-def]
    return tf.SparseTensor([[0, 1], [1, 0], [2, 3]], values, [3, 4])


SPARSE = {
    "sparse_to_dense": (lambda v: tf.sparse.to_dense(sparse(v)), numbers(3)),
    "sparse_dense_matmul": (lambda v, d: tf.sparse.sparse_dense_matmul(sparse(v), d), numbers(3), numbers(4, 2)),
    "sparse_reduce_sum": (lambda v: tf.sparse.reduce_sum(sparse(v), 1), numbers(3)),
    "sparse_from_dense": (lambda x: tf.sparse.from_dense(x).values, np.maximum(X, 0)),
    "sparse_add": (lambda v: tf.sparse.to_dense(tf.sparse.add(sparse(v), sparse(2 * v))), numbers(3)),
    "sparse_transpose": (lambda v: tf.sparse.to_dense(tf.sparse.transpose(sparse(v))), numbers(3)),
    "embedding_lookup": (lambda i: tf.nn.embedding_lookup(tf.constant(numbers(5, 3)), i), np.int32([4, 0])),
    "embedding_sparse": (
        lambda w: tf.nn.embedding_lookup_sparse(
            w,
            tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 3, 0], tf.int64), [2, 2]),
            None,
            combiner="mean",
        ),
        numbers(5, 3),
    ),
}

LINALG = {
    "inv": (tf.linalg.inv, SQUARE),
    "det": (tf.linalg.det, SQUARE),
    "cholesky": (tf.linalg.cholesky, SYMMETRIC),
    "solve": (lambda a, b: tf.linalg.solve(a, b), SQUARE, numbers(4, 2)),
    "triangular_solve": (lambda a, b: tf.linalg.triangular_solve(a, b), SQUARE, numbers(4, 2)),
    "cholesky_solve": (lambda a, b: tf.linalg.cholesky_solve(a, b), SYMMETRIC, numbers(4, 2)),
    "qr": (lambda a: tf.abs(tf.linalg.qr(a)[1]), SQUARE),
    "slogdet": (tf.linalg.slogdet, SQUARE),
    "logdet": (tf.linalg.logdet, SYMMETRIC),
    "matrix_power": (lambda a: tf.linalg.matmul(a, a), SQUARE),
    "norm": (tf.linalg.norm, SQUARE),
    "cross": (lambda a, b: tf.linalg.cross(a, b), numbers(5, 3), numbers(5, 3, seed=1)),
    "adjoint": (tf.linalg.adjoint, X),
    "expm": (tf.linalg.expm, SQUARE / 8),
    "lstsq": (lambda a, b: tf.linalg.lstsq(a, b), numbers(6, 3), numbers(6, 2)),
    "pinv": (tf.linalg.pinv, SQUARE),
    "eigvalsh": (lambda a: tf.linalg.eigvalsh(a), SYMMETRIC),
    "svd_values": (lambda a: tf.linalg.svd(a, compute_uv=False), SQUARE),
}

RANDOM = {
    "stateless_shape": (lambda x: tf.shape(tf.random.normal(tf.shape(x))), X),
    "uniform_range": (lambda x: tf.reduce_all(tf.random.uniform(tf.shape(x), 2, 3) >= 2), X),
    "shuffle_sum": (lambda x: tf.round(tf.reduce_sum(tf.random.shuffle(x)) * 100), X),
}


def gradient_of(function):  # type: ignore[no-untyped-def]
    def taken(x):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(function(x))
        return tape.gradient(y, x)

    return taken


GRADIENTS = {
    f"gradient_of_{name}": (gradient_of(function), data)
    for name, function, data in [
        ("relu", tf.nn.relu, X),
        ("relu6", lambda x: tf.nn.relu6(x * 5), X),
        ("elu", tf.nn.elu, X),
        ("selu", tf.nn.selu, X),
        ("leaky_relu", tf.nn.leaky_relu, X),
        ("sigmoid", tf.sigmoid, X),
        ("tanh", tf.tanh, X),
        ("softplus", tf.nn.softplus, X),
        ("softsign", tf.nn.softsign, X),
        ("softmax", lambda x: tf.nn.softmax(x)[:, 0], X),
        ("gelu", tf.nn.gelu, X),
        ("sqrt", lambda x: tf.sqrt(tf.abs(x) + 1), X),
        ("matmul", lambda x: tf.matmul(x, x, transpose_b=True), X),
        ("mean", lambda x: tf.reduce_mean(x * x, 1), X),
        ("max", lambda x: tf.reduce_max(x, 1), X),
        ("concat", lambda x: tf.concat([x, x * x], 0), X),
        ("gather", lambda x: tf.gather(x * x, [0, 2, 2]), X),
        ("slice", lambda x: x[1:, ::2] ** 2, X),
        ("pad", lambda x: tf.pad(x, [[1, 1], [0, 0]]) ** 2, X),
        ("loss", lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 0, 3], x), X),
        ("broadcast", lambda x: x * x[:, :1], X),
    ]
}

STATIC_GRADIENTS = {
    f"gradient_of_{name}": (gradient_of(function), data)
    for name, function, data in [
        ("conv2d", lambda x: tf.nn.conv2d(x, numbers(3, 3, 3, 4), 2, "SAME") ** 2, numbers(2, 8, 9, 3)),
        (
            "depthwise",
            lambda x: tf.nn.depthwise_conv2d(x, numbers(3, 3, 3, 2), [1, 1, 1, 1], "SAME") ** 2,
            numbers(2, 8, 9, 3),
        ),
        ("max_pool", lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID") ** 2, numbers(2, 8, 8, 3)),
        ("avg_pool", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID") ** 2, numbers(2, 8, 8, 3)),
        ("bias_add", lambda x: tf.nn.bias_add(numbers(2, 8, 9, 4), x) ** 2, numbers(4)),
        (
            "batch_norm",
            lambda x: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(3), tf.zeros(3), is_training=True)[0] ** 3,
            numbers(2, 8, 8, 3),
        ),
        ("resize", lambda x: tf.image.resize(x, [12, 12]) ** 2, numbers(1, 6, 6, 2)),
    ]
}

CASES = cases({**CONTROL, **STRINGS, **RAGGED, **SPARSE, **RANDOM, **GRADIENTS}) + cases(
    {**LINALG, **STATIC_GRADIENTS}, static=True
)
