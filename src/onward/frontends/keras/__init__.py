"""Keras to ONNX."""
