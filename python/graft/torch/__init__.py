# Graft's operators in PyTorch: custom operators with gradients, torch.compile and ONNX export.
"""One function for each operator, and the same as `torch.ops.graft.<name>`: `graft.torch.l2_normalize(x, axes=[1])`.

On the CPU they run the reference kernels, on a GPU the CUDA kernels on the current stream, without a copy or a wait; both
may be captured in a CUDA graph. Fake tensors, `torch.compile` (also with dynamic shapes) and `torch.export` know their
shapes. Each docstring says which gradients there are. `torch.vmap` is refused: the batch is the first axis of every operator.
An operator of several results returns a tuple. `graft.torch.export` writes an ONNX file with Graft's nodes and their functions;
`graft.torch.load_operators` makes functions of your own operators.
"""

from __future__ import annotations

from typing import Any

from graft._definitions import DEFINITIONS
from graft.torch._library import FUNCTIONS, load_operators, no_such_function
from graft.torch._onnx import add_functions, export, onnx_translations

globals().update(FUNCTIONS)

__all__ = [*FUNCTIONS, "add_functions", "export", "load_operators", "onnx_translations"]


def __getattr__(name: str) -> Any:
    raise no_such_function(__name__, name, DEFINITIONS)
