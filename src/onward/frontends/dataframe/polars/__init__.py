"""Functions on data frames of Polars as ONNX models."""
