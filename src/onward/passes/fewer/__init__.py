"""Passes that leave fewer nodes in an ONNX file."""
