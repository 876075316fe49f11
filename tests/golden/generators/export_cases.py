# export_cases.py - shared parts of the operators' lists of exported networks (src/ops/<op>/<op>_exports.py).
"""Defines expected results of the conversion, shapes of inputs, and modules that several lists use."""

import functools

import numpy as np

IMAGE, NHWC = (2, 4, 6, 8), (2, 6, 8, 4)
SMALL_IMAGE, SMALL_NHWC = (2, 4, 3, 5), (2, 4, 5, 3)
EMBEDDING, SEQUENCE = (3, 8), (2, 5, 6)
ODD_IMAGE, UNEVEN_IMAGE = (2, 3, 13, 13), (2, 3, 14, 14)
EVEN_IMAGE, EVEN_NHWC = (2, 3, 8, 8), (2, 8, 8, 3)
ANY_SIZE = (0, 2, 3)  # the dimensions that are dynamic

OPTIONAL = {"required": False}
NATIVE = "TensorRT has it itself"


def fused(operator, attributes, fusions=1, **more):
    return {"operator": operator, "attributes": attributes, "fusions": fusions} | more


def left(operator, reason):
    return {"operator": operator, "attributes": {}, "fusions": 0, "reason": reason}


def torch_scaled(function, shape):
    """Returns a module that calls the function with itself, and has the parameters `weight` and `bias` of this
    shape."""
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            generator = torch.Generator().manual_seed(5)
            self.weight = nn.Parameter(torch.rand(shape, generator=generator) + 0.5)
            self.bias = nn.Parameter(torch.randn(shape, generator=generator))

        def forward(self, x):
            return function(self, x)

    return Scaled()


@functools.cache
def square_kernel():
    return np.random.default_rng(5).standard_normal((3, 3, 4, 4)).astype(np.float32)


def tensorflow_convolution(x):
    """Returns a convolution from four channels to four."""
    import tensorflow as tf

    return tf.nn.conv2d(x, square_kernel(), 1, "SAME")
