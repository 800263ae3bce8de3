"""ONNX models in fewer bits: 16-bit floats, weights in blocks of 4 bits, and 8-bit integers, each measured on data."""
