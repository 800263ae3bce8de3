"""Data frames and the ONNX models that take and give their columns."""
