"""Where JAX's support of an op ends, in words: for the coverage page and `onward inspect`."""

from __future__ import annotations

from onward.backends.backend import Limit

RESULTS = Limit("under jax.jit, only with bounds on the number of results")
STRINGS = Limit("under jax.jit, strings are static arguments, and the model gives none")

PARTIAL: dict[str, Limit] = {
    "Compress": RESULTS,
    "If": Limit("under jax.jit, branches that give other shapes or types are chosen by a static argument"),
    "ImageDecoder": Limit("under jax.jit, the file is a static argument"),
    "Loop": Limit("under jax.jit, shapes stay as they are, and what trips collect is stacked if their number is known"),
    "NonMaxSuppression": RESULTS,
    "NonZero": RESULTS,
    "RegexFullMatch": Limit("patterns that Python's regular expressions can express"),
    "StringConcat": STRINGS,
    "StringNormalizer": STRINGS,
    "StringSplit": STRINGS,
    "Unique": RESULTS,
    "ai.onnx.ml::OneHotEncoder": Limit("under jax.jit, not where a value has to be one of the categories"),
    "ai.onnx.ml::TreeEnsembleClassifier": Limit("not two classes of which some leaves score one only"),
}
"""Ops with a rule that refuses some of what ONNX allows."""
