"""Random graphs on ONNX Runtime and as generated code; `python -m differential 7 1000` in `tests` tries many."""
