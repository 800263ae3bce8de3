"""Functions that ONNX has no op for, by ops that it has: what frontends of several frameworks write."""
