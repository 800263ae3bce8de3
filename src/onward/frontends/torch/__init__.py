"""PyTorch to ONNX, through PyTorch's own exporter."""
