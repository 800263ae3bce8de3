"""Where TensorFlow's support of an op ends, in words: for the coverage page and `onward inspect`."""

from onward.backends.backend import Limit
from onward.backends.tensorflow._compat import IMAGE_FORMATS

PARTIAL = {
    "BitCast": Limit("not from or to floats of 6 and 8 bits, of which the values are kept and not the bits"),
    "ImageDecoder": Limit(IMAGE_FORMATS),
    "Loop": Limit("when traced, a sequence grows only in loops whose number of trips is known then"),
    "SplitToSequence": Limit("when traced, all parts together only where their number is known then"),
    "ai.onnx.ml::TreeEnsembleClassifier": Limit("not two classes of which some leaves score one only"),
    "ai.onnx.ml::ZipMap": Limit("when traced, only of a number of rows that is known then"),
}
"""Ops with a rule that refuses some of what ONNX allows."""
