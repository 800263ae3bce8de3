"""TensorFlow Lite to ONNX."""
