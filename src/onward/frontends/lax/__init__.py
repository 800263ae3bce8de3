"""What the ops of XLA mean, as functions on tensors that write ONNX nodes; they know nothing of JAX."""
