"""Functions and modules of JAX as ONNX models."""
