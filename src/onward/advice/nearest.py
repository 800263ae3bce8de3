"""'Did you mean …?', for a word that is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

OTHER_NAMES = {
    "channels-first": "nchw",
    "channels-last": "nhwc",
    "channels_first": "nchw",
    "channels_last": "nhwc",
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


def meant(word: str, known: Iterable[str], part: Callable[[str], str] = str) -> str:
    """The end of a message about an unknown word, such as '; did you mean torch?'; '' where nothing is like it.

    Of longer names, `part` is what makes the difference: beside `--` and `.onnx`, all others look alike.
    """
    word = part(word)
    by_case = {part(name).lower(): name for name in known}
    plain = word.strip().lower()
    near = [other] if (other := OTHER_NAMES.get(plain)) in by_case else get_close_matches(plain, by_case, n=1)
    return f"; did you mean {by_case[near[0]]}?" if near else ""
