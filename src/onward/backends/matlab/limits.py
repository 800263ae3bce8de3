"""Where MATLAB's support of an op ends, in words: for the coverage page and `onward inspect`."""

from __future__ import annotations

from onward.backends.backend import Limit

RANKS = Limit("where the ranks of its results are known")
WIDTH = Limit("where the number of axes that the indices are for is known")

PARTIAL: dict[str, Limit] = {
    "BitCast": Limit("not of floats of 16 bits or fewer, nor integers of fewer than 8: they are held in wider classes"),
    "Dropout": Limit("no seed, where the file switches it on"),
    "GatherND": WIDTH,
    "If": RANKS,
    "Loop": RANKS,
    "OptionalHasElement": Limit("not where a matrix of doubles may have neither rows nor columns"),
    "RegexFullMatch": Limit("no letters beyond ASCII in any case (`(?i)`)"),
    "Scan": RANKS,
    "SequenceAt": RANKS,
}
"""Ops with a rule that refuses some of what ONNX allows."""

MAPS = "MATLAB source has no maps: of a classifier, ask for scores without ZipMap"

UNSUPPORTED: dict[str, str] = {
    "ImageDecoder": "the libraries by which MATLAB and Octave decode images differ in the last bit",
    "ai.onnx.ml::CastMap": MAPS,
    "ai.onnx.ml::DictVectorizer": MAPS,
    "ai.onnx.ml::ZipMap": MAPS,
    "ai.onnx.preview.training::Gradient": "gradients are not written as MATLAB source",
}
"""Ops without a rule, where there is more to say than that."""
