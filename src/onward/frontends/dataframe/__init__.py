"""Functions on data frames, as pandas, Polars and narwhals have them, as ONNX models."""
