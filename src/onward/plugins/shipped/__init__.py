"""Plugins that come with Onward: ops of other packages that real models have."""
