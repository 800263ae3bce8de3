"""Pieces of training graphs as C, compiled on the user's machine where there is a compiler, for the trainer only.

The ONNX graphs are the truth: what is compiled is printed from them, and they run as they are where it cannot be.
"""
