"""Data frames to ONNX: functions of pandas, Polars and narwhals become graphs."""
