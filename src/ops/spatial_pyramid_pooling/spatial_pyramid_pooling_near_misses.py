# Networks that resemble SpatialPyramidPooling and must not be fused: see tests/golden/generators/make_near_misses.py.
import numpy as np

PREFIX = "pyramid"
OPERATOR = "SpatialPyramidPooling"
FLAT = "(float[N,4,8,8] x) => (float[N,{}] y)"
FLAT_13 = "(float[N,4,13,13] x) => (float[N,{}] y)"
TWO_FLAT = "(float[N,4,8,8] x, float[N,4,8,8] z) => (float[N,{}] y)"

CONSTANTS = {}

HALVES = "a = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) f = Flatten(a) "
WHOLE = "b = GlobalMaxPool(x) g = Flatten(b) "
LEVELS = "y = Concat<axis=1>(f, g)"

MISSES = [
    (
        "of_two",
        "another tensor is pooled for the second level",
        TWO_FLAT.format(20),
        HALVES + "b = GlobalMaxPool(z) g = Flatten(b) " + LEVELS,
    ),
    (
        "max_and_average",
        "the second level takes the average",
        FLAT.format(20),
        HALVES + "b = GlobalAveragePool(x) g = Flatten(b) " + LEVELS,
    ),
    (
        "wrong_stride",
        "the two bins cover 0..3 and 3..6",
        FLAT.format(20),
        "a = MaxPool<kernel_shape=[4,4], strides=[3,3]>(x) f = Flatten(a) " + WHOLE + LEVELS,
    ),
    (
        "wrong_kernel",
        "bins of three where two have to cover eight",
        FLAT.format(20),
        "a = MaxPool<kernel_shape=[3,3], strides=[4,4]>(x) f = Flatten(a) " + WHOLE + LEVELS,
    ),
    (
        "not_square",
        "two bins along the height, one along the width",
        FLAT.format(12),
        "a = MaxPool<kernel_shape=[4,8], strides=[4,8]>(x) f = Flatten(a) " + WHOLE + LEVELS,
    ),
    (
        "by_cells",
        "flattened cell by cell, not channel by channel",
        FLAT.format(20),
        "a = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) t = Transpose<perm=[0,2,3,1]>(a) f = Flatten(t) "
        + WHOLE
        + LEVELS,
    ),
    (
        "not_flattened",
        "pools of stride 1 side by side, as in detectors",
        "(float[N,4,8,8] x) => (float[N,8,8,8] y)",
        "f = MaxPool<kernel_shape=[5,5], pads=[2,2,2,2]>(x) g = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) "
        + LEVELS,
    ),
    (
        "along_the_batch",
        "concatenated along the batch",
        "(float[N,4,8,8] x) => (float[M,16] y)",
        HALVES + "b = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) g = Flatten(b) y = Concat<axis=0>(f, g)",
    ),
    (
        "two_rules",
        "four bins as Caffe has them, three windows as He et al.",
        FLAT_13.format(100),
        "a = MaxPool<kernel_shape=[4,4], strides=[4,4], pads=[2,2,2,2]>(x) f = Flatten(a) "
        "b = MaxPool<kernel_shape=[5,5], strides=[4,4]>(x) g = Flatten(b) " + LEVELS,
    ),
    (
        "pool_is_output",
        "a pool is an output of the network",
        "(float[N,4,8,8] x) => (float[N,20] y, float[N,4,2,2] a)",
        HALVES + WHOLE + LEVELS,
    ),
    (
        "average_without_padding",
        "Caffe's bins, but the average leaves the padding out",
        FLAT_13.format(68),
        "a = AveragePool<kernel_shape=[4,4], strides=[4,4], pads=[2,2,2,2], count_include_pad=0>(x) f = Flatten(a) "
        "b = GlobalAveragePool(x) g = Flatten(b) " + LEVELS,
    ),
]

# Networks whose values agree with the operator, but which must not be fused for another reason.
SAME_VALUES = {
    "pool_is_output",
}

# Words of the reason that `convert --explain` prints.
EXPLAINED = {
    "of_two": "'x' and 'z' are pooled",
    "max_and_average": "one level computes the maximum",
    "wrong_stride": "no binning rule results in 2 x 2 bins of 8 x 8",
    "wrong_kernel": "no binning rule results in 2 x 2 bins of 8 x 8",
    "not_square": "2 x 1 bins",
    "by_cells": "is not a pooled image",
    "not_flattened": "as one vector for each item",
    "along_the_batch": "concatenated along axis 0",
    "two_rules": "different rules of binning",
    "pool_is_output": "is an output of the graph",
    "average_without_padding": "no binning rule results in 4 x 4 bins of 13 x 13",
}

CONTROLS = [
    (
        "pyramid_max",
        {"levels": [2, 1], "mode": "max", "binning": "adaptive"},
        FLAT.format(20),
        HALVES + WHOLE + LEVELS,
    ),
]


def resembled(x):
    """Returns the pyramids of levels 2 and 1 over x, by maximum and by average."""
    x = x.astype(np.float64)
    flat = []
    for pool in (np.max, np.mean):
        levels = []
        for n in (2, 1):
            size = x.shape[2]
            bins = [(i * size // n, -(-(i + 1) * size // n)) for i in range(n)]
            cells = [[pool(x[:, :, a:b, c:d], axis=(2, 3)) for c, d in bins] for a, b in bins]
            levels.append(np.moveaxis(np.array(cells), (0, 1), (2, 3)).reshape(x.shape[0], -1))
        flat.append(np.concatenate(levels, axis=1))
    return flat
