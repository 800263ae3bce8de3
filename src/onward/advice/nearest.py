"""'Did you mean …?', for a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

OTHER_NAMES = {
    "h5": "keras",
    "lite": "tflite",
    "litert": "tflite",
    "ort": "onnxruntime",
    "ov": "openvino",
    "pt": "torch",
    "tf": "tensorflow",
    "tf2": "tensorflow",
}
"""What people call some of the things that Onward knows, where the spelling does not tell."""


def meant(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word, such as '; did you mean torch?'; '' where nothing is like it."""
    by_case = {name.lower(): name for name in known}
    plain = word.strip().lower()
    near = [other] if (other := OTHER_NAMES.get(plain)) in by_case else get_close_matches(plain, by_case, n=1)
    return f"; did you mean {by_case[near[0]]}?" if near else ""
