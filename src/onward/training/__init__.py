"""Training: any ONNX model becomes trainable, as an ordinary ONNX graph."""
