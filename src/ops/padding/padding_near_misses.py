# Networks that resemble Padding but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import miss, same

PREFIX = "padding"
OPERATOR = "Padding"
LOWERED = "Pad"  # the node that replaces the controls: TensorRT runs Pad natively
WIDE = "(float[N,4,3,5] x) => (float[N,4,3,{}] y)"
TWO_WIDE = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,9] y)"

CONSTANTS = {
    "i0": "int64[1] i0 = {0}",
    "i1": "int64[1] i1 = {1}",
    "i2": "int64[1] i2 = {2}",
    "i3": "int64[1] i3 = {3}",
    "i4": "int64[1] i4 = {4}",
    "i5": "int64[1] i5 = {5}",
    "minus1": "int64[1] minus1 = {-1}",
    "permuted": "int64[8] permuted = {0, 2, 1, 3, 4, 4, 3, 1}",
    "zeros_column": "float[4,4,3,1] zeros_column = {" + ", ".join(["0"] * 48) + "}",
    "ones_column": "float[4,4,3,1] ones_column = {" + ", ".join(["1"] * 48) + "}",
    "ones_of_two": "int64[2] ones_of_two = {1, 1}",
}

# Columns 2 and 1 of five, and columns 3 and 2: a reflection adds them on the left and on the right.
BEFORE = "l = Slice(x, i2, i0, i3, minus1) "
AFTER = "r = Slice(x, i3, i1, i3, minus1) "
CAT = "y = Concat<axis=3>(l, x, r)"
# A flip as PaddlePaddle writes it: columns 1 and 2, one by one.
SPLIT = "t = Slice(x, i1, i3, i3) c, k = Split<axis=3>(t, ones_of_two) "

# fmt: off
MISSES = [
    miss("reflect_and_edge", "reflected before the tensor, the edge repeated after it", "which is not a mode of Padding",
         WIDE.format(9), BEFORE + "e = Slice(x, i4, i5, i3) r = Concat<axis=3>(e, e) " + CAT),
    miss("not_flipped", "the columns before and after the tensor are not reversed", "becomes [1, 2, 0, 1, 2, 3, 4, 2, 3]",
         WIDE.format(9), "l = Slice(x, i1, i3, i3) r = Slice(x, i2, i4, i3) " + CAT),
    miss("one_off", "columns 3 and 2 are placed before column 0 instead of columns 2 and 1", "becomes [3, 2, 0, 1, 2, 3, 4, 3, 2]",
         WIDE.format(9), "l = Slice(x, i3, i1, i3, minus1) " + AFTER + CAT),
    miss("of_another", "the border is taken from another tensor", None,
         TWO_WIDE, "l = Slice(z, i2, i0, i3, minus1) r = Slice(z, i3, i1, i3, minus1) " + CAT),
    same("border_is_output", "the columns before x are an output of the network", "is an output of the graph",
         "(float[N,4,3,5] x) => (float[N,4,3,9] y, float[N,4,3,2] l)", BEFORE + AFTER + CAT),
    miss("split_not_flipped", "columns 1 and 2 stand before column 0 as they are, cut apart and joined again",
         "becomes [1, 2, 0, 1, 2, 3, 4]", WIDE.format(7), SPLIT + "l = Concat<axis=3>(c, k) y = Concat<axis=3>(l, x)"),
    same("split_used_elsewhere", "a column of the border is needed by another node as well", "is used by node 'Sigmoid",
         "(float[N,4,3,5] x) => (float[N,4,3,7] y, float[N,4,3,1] other)",
         SPLIT + "l = Concat<axis=3>(k, c) y = Concat<axis=3>(l, x) other = Sigmoid(c)"),
    same("border_used_elsewhere", "the columns before x are needed by another node as well", "is used by node 'Sigmoid",
         "(float[N,4,3,5] x) => (float[N,4,3,9] y, float[N,4,3,2] other)",
         BEFORE + AFTER + CAT + " other = Sigmoid(l)"),
    miss("permuted", "the columns change places", "which is not a mode of Padding",
         WIDE.format(8), "y = Gather<axis=3>(x, permuted)"),
    miss("zeros_and_ones", "zeros before the tensor, ones after it", "the padding contains both 0 and 1",
         "(float[4,4,3,5] x) => (float[4,4,3,7] y)",
         "a = Concat<axis=3>(zeros_column, x) y = Concat<axis=3>(a, ones_column)"),
    miss("negated", "the border changes its sign: an odd reflection", None, WIDE.format(9),
         "a = Slice(x, i2, i0, i3, minus1) l = Neg(a) b = Slice(x, i3, i1, i3, minus1) r = Neg(b) " + CAT),
    same("double", "double precision: the operator has no such type", None,
         "(double[N,4,3,5] x) => (double[N,4,3,9] y)", BEFORE + AFTER + CAT),
]

CONTROLS = [
    ("padding_reflect", {"mode": "reflect", "pads": [0, 0, 0, 2, 0, 0, 0, 2]}, WIDE.format(9), BEFORE + AFTER + CAT),
    ("padding_split", {"mode": "reflect", "pads": [0, 0, 0, 2, 0, 0, 0, 0]}, WIDE.format(7),
     SPLIT + "l = Concat<axis=3>(k, c) y = Concat<axis=3>(l, x)"),
]
# fmt: on


def resembled(x):
    x = x.astype(np.float64)
    modes = ["reflect", "symmetric", "edge", "wrap", "constant"]
    widths = [((0, 0), (2, 2)), ((0, 0), (2, 0)), ((0, 0), (1, 1)), ((1, 0), (2, 0)), ((0, 0), (0, 3))]
    return [np.pad(x, ((0, 0), (0, 0), *pads), mode=mode) for mode in modes for pads in widths]
