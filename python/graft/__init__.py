# The Python package of Graft (distribution `graft-tensorrt`).
"""Graft: custom layers for NVIDIA TensorRT, and the tools that bring a model there."""

__version__ = "0.1.0"

__all__ = ["__version__"]
