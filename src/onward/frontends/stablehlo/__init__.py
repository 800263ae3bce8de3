"""Modules of StableHLO as ONNX models: each op is said in JAX, and what that traces is converted as any function is."""
