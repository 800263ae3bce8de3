"""Ops that ONNX does not define: one object says all that Onward has to know of one.

A plugin is a module that makes `CustomOp`s. One that is installed is found by the entry point group `onward.plugins`,
whose names are the domains of its ops; any other is named by the user, `--plugin` or `onward.plugins.load`.
"""

from onward.plugins.find import Plugin, load, loaded
from onward.plugins.kinds import TensorKind
from onward.plugins.op import CustomOp

__all__ = ["CustomOp", "Plugin", "TensorKind", "load", "loaded"]
