# Graft's operators in PyTorch: custom operators with gradients, torch.compile and ONNX export.
"""Graft's operators as functions on PyTorch tensors: `graft.torch.l2_normalize(x, axes=[1])`. The same operators are
`torch.ops.graft.<name>`.

Tensors on the CPU are computed by the reference kernels, and tensors on a GPU by the CUDA kernels on the current
stream, without a copy and without waiting, so that the calls may be captured in a CUDA graph. Fake tensors,
`torch.compile` (also with dynamic shapes) and `torch.export` infer the shapes of the results. Each docstring lists the
gradients of the operator. `torch.vmap` is refused: the batch is the first axis of every operator. An operator with
several results returns a tuple. `graft.torch.export` writes an ONNX file with Graft's nodes and their functions;
`graft.torch.load_operators` returns functions for the operators of your own library.
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
