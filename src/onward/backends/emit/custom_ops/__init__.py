"""Custom ops of plugins in generated code."""
