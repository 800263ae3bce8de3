"""Every runner on ONNX's own suite, on the suite with unknown shapes, and on every op in every dtype."""
