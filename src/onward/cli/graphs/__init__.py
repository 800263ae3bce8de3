"""Commands on ONNX files as graphs."""
