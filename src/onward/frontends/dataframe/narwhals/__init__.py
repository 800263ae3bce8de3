"""Functions on data frames of narwhals as ONNX models."""
