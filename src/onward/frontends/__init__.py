"""Frontends: models of other frameworks become ONNX."""
