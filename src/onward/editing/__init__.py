"""ONNX files changed and compared as graphs: a part cut out, two joined, the difference of two."""
