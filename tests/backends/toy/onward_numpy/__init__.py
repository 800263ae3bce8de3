"""A small backend of Onward: ONNX models as NumPy source code."""
