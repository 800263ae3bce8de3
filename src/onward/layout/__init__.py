"""Channels-last as a pass over the graph: `to_channels_last` for backends, `relayout` for ONNX → ONNX."""
