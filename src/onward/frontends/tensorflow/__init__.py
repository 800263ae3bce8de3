"""TensorFlow to ONNX."""
