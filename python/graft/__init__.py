# The Python package of Graft (distribution `graft-tensorrt`).
"""Graft: custom layers for NVIDIA TensorRT, and the tools that bring a model there."""

from graft import plugins
from graft.quantization import Error, quantize

__version__ = "0.1.0"

__all__ = ["Error", "__version__", "plugins", "quantize"]
