# Networks that resemble SpatialPyramidPooling and must not be fused: see tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import miss, same

PREFIX = "pyramid"
OPERATOR = "SpatialPyramidPooling"
FLAT = "(float[N,4,8,8] x) => (float[N,{}] y)"
FLAT_13 = "(float[N,4,13,13] x) => (float[N,{}] y)"
TWO_FLAT = "(float[N,4,8,8] x, float[N,4,8,8] z) => (float[N,{}] y)"

CONSTANTS = {}

HALVES = "a = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) f = Flatten(a) "
WHOLE = "b = GlobalMaxPool(x) g = Flatten(b) "
LEVELS = "y = Concat<axis=1>(f, g)"

# fmt: off
MISSES = [
    miss("of_two", "another tensor is pooled for the second level", "'x' and 'z' are pooled",
         TWO_FLAT.format(20), HALVES + "b = GlobalMaxPool(z) g = Flatten(b) " + LEVELS),
    miss("max_and_average", "the second level takes the average", "one level computes the maximum",
         FLAT.format(20), HALVES + "b = GlobalAveragePool(x) g = Flatten(b) " + LEVELS),
    miss("wrong_stride", "the two bins cover 0..3 and 3..6", "no binning rule results in 2 x 2 bins of 8 x 8",
         FLAT.format(20), "a = MaxPool<kernel_shape=[4,4], strides=[3,3]>(x) f = Flatten(a) " + WHOLE + LEVELS),
    miss("wrong_kernel", "bins of three where two have to cover eight",
         "no binning rule results in 2 x 2 bins of 8 x 8", FLAT.format(20),
         "a = MaxPool<kernel_shape=[3,3], strides=[4,4]>(x) f = Flatten(a) " + WHOLE + LEVELS),
    miss("not_square", "two bins along the height, one along the width", "2 x 1 bins",
         FLAT.format(12), "a = MaxPool<kernel_shape=[4,8], strides=[4,8]>(x) f = Flatten(a) " + WHOLE + LEVELS),
    miss("by_cells", "flattened cell by cell, not channel by channel", "is not a pooled image", FLAT.format(20),
         "a = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) t = Transpose<perm=[0,2,3,1]>(a) f = Flatten(t) " + WHOLE
         + LEVELS),
    miss("not_flattened", "pools of stride 1 side by side, as in detectors", "as one vector for each item",
         "(float[N,4,8,8] x) => (float[N,8,8,8] y)",
         "f = MaxPool<kernel_shape=[5,5], pads=[2,2,2,2]>(x) g = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) "
         + LEVELS),
    miss("along_the_batch", "concatenated along the batch", "concatenated along axis 0",
         "(float[N,4,8,8] x) => (float[M,16] y)",
         HALVES + "b = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) g = Flatten(b) y = Concat<axis=0>(f, g)"),
    miss("two_rules", "four bins as Caffe has them, three windows as He et al.", "different rules of binning",
         FLAT_13.format(100),
         "a = MaxPool<kernel_shape=[4,4], strides=[4,4], pads=[2,2,2,2]>(x) f = Flatten(a) "
         "b = MaxPool<kernel_shape=[5,5], strides=[4,4]>(x) g = Flatten(b) " + LEVELS),
    same("pool_is_output", "a pool is an output of the network", "is an output of the graph",
         "(float[N,4,8,8] x) => (float[N,20] y, float[N,4,2,2] a)", HALVES + WHOLE + LEVELS),
    miss("average_without_padding", "Caffe's bins, but the average leaves the padding out",
         "no binning rule results in 4 x 4 bins of 13 x 13", FLAT_13.format(68),
         "a = AveragePool<kernel_shape=[4,4], strides=[4,4], pads=[2,2,2,2], count_include_pad=0>(x) f = Flatten(a) "
         "b = GlobalAveragePool(x) g = Flatten(b) " + LEVELS),
]

CONTROLS = [
    ("pyramid_max", {"levels": [2, 1], "mode": "max", "binning": "adaptive"}, FLAT.format(20), HALVES + WHOLE + LEVELS),
]
# fmt: on


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
