"""Every case of every layer, what is refused of them, and the classes that there are."""

from __future__ import annotations

import inspect

from cases import Case, L
from cases_core import CORE
from cases_preprocessing import PREPROCESSING
from cases_sequence import SEQUENCE

CASES: dict[str, Case] = CORE | SEQUENCE | PREPROCESSING
"""By the name of the class, and what is special about the case."""

REFUSED_CASES = {
    "LSTM stateful": "what one call leaves for the next is not in a graph",
    "GRU stateful": "what one call leaves for the next is not in a graph",
    "SimpleRNN stateful": "what one call leaves for the next is not in a graph",
    "Hashing of texts": "ONNX has no op for the bytes of a string",
    "Hashing salted": "ONNX has no op for the bytes of a string",
    "Hashing with a mask": "ONNX has no op for the bytes of a string",
    "HashedCrossing": "ONNX has no op for the bytes of a string",
    "StringLookup more unknown": "ONNX has no op for the bytes of a string",
    "TextVectorization by letters": "ONNX has no op for the letters of a string",
}
"""Cases that are refused, each with the reason; that one converts after all is a failure too."""

REFUSED_CLASSES = {
    "JaxLayer": "jax2tf hands TensorFlow a StableHLO program (the op XlaCallModule)",
    "FlaxLayer": "as JaxLayer",
    "TorchModuleWrapper": "runs in Keras on PyTorch only; onward.from_torch takes the module itself",
}
"""Classes that nothing is tried of."""


def classes() -> list[str]:
    """Each layer class of `keras.layers` by one of its names there, its own if it has several."""
    names = {kind: name for name, kind in inspect.getmembers(L, inspect.isclass) if issubclass(kind, L.Layer)}
    return sorted(kind.__name__ if hasattr(L, kind.__name__) else name for kind, name in names.items())


def class_of(case: str) -> str:
    return case.split()[0]
