# near_miss_forms.py - the near misses of padding, upsampling, pyramid pooling and instance norm, for make_near_misses.py.
"""(name, reason, signature, body) as in make_near_misses.py, and the numbers that the operators would give."""

import numpy as np

WIDE = "(float[N,4,3,5] x) => (float[N,4,3,{}] y)"
LARGER = "(float[N,4,3,5] x) => (float[N,4,{},{}] y)"
SAME = "(float[N,4,3,5] x) => (float[N,4,3,5] y)"
SAME_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] other)"
STATISTIC_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,1,1] {})"
TWO = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,5] y)"
TWO_WIDE = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,9] y)"
FLAT = "(float[N,4,8,8] x) => (float[N,{}] y)"
FLAT_13 = "(float[N,4,13,13] x) => (float[N,{}] y)"
TWO_FLAT = "(float[N,4,8,8] x, float[N,4,8,8] z) => (float[N,{}] y)"


def numbers(values):
    return "{" + ", ".join(f"{float(v):.9g}" for v in np.ravel(values)) + "}"


def kernel(size, factor):
    line = [1 - abs(i - (size - 1) / 2) / factor for i in range(size)]
    return np.outer(line, line)


def weights(channels, one, outputs=1):
    return np.broadcast_to(one, (channels, outputs, *one.shape))


def diagonal(channels, one):
    full = np.zeros((channels, channels, *one.shape))
    for i in range(channels):
        full[i, i] = one
    return full


def tensor(name, array):
    return f"float[{','.join(str(d) for d in array.shape)}] {name} = {numbers(array)}"


mixing = diagonal(4, kernel(4, 2))
mixing[1, 2] = 0.25 * kernel(4, 2)
rounded = np.round(kernel(4, 2), 1)
CONSTANTS = {
    "i0": "int64[1] i0 = {0}",
    "i1": "int64[1] i1 = {1}",
    "i2": "int64[1] i2 = {2}",
    "i3": "int64[1] i3 = {3}",
    "i4": "int64[1] i4 = {4}",
    "i5": "int64[1] i5 = {5}",
    "minus1": "int64[1] minus1 = {-1}",
    "permuted": "int64[8] permuted = {0, 2, 1, 3, 4, 4, 3, 1}",
    "uneven": "int64[9] uneven = {0, 0, 1, 1, 2, 2, 3, 3, 4}",
    "twice_channels": "int64[4] twice_channels = {1, 2, 1, 1}",
    "by_two": "int64[6] by_two = {1, 1, 1, 1, 1, 2}",
    "wider": "int64[4] wider = {0, 4, 3, 10}",
    "taller": "int64[4] taller = {0, 8, 3, 5}",
    "repeats_channels": "int64[5] repeats_channels = {1, 1, 2, 1, 1}",
    "repeats_columns": "int64[5] repeats_columns = {1, 1, 1, 1, 2}",
    "repeats_before": "int64[5] repeats_before = {1, 1, 1, 2, 1}",
    "zeros_column": "float[4,4,3,1] zeros_column = {" + ", ".join(["0"] * 48) + "}",
    "ones_column": "float[4,4,3,1] ones_column = {" + ", ".join(["1"] * 48) + "}",
    "bilinear": tensor("bilinear", weights(4, kernel(4, 2))),
    "rounded": tensor("rounded", weights(4, rounded)),
    "doubled": tensor("doubled", weights(4, 2 * kernel(4, 2))),
    "mixing": tensor("mixing", mixing),
    "multiplied": tensor("multiplied", weights(4, kernel(4, 2), 2)),
    "bias4": "float[4] bias4 = {0.5, 0, 0, 0}",
    "unit_scale": "float[4] unit_scale = {1, 1, 1, 1}",
    "no_bias": "float[4] no_bias = {0, 0, 0, 0}",
    "unbias": "float unbias = {1.0714285714}",
    "eps5": "float eps5 = {1e-5}",
    "eps5_double": "double eps5_double = {1e-5}",
    "eps_each": "float[1,4,1,1] eps_each = {1e-5, 1e-3, 1e-2, 1}",
    "large": "float large = {10000}",
    "cubed": "float cubed = {3}",
    "one_less": "float one_less = {14}",
    "fifteen": "float fifteen = {15}",
    "spatial": "int64[2] spatial = {2, 3}",
    "ones_of_two": "int64[2] ones_of_two = {1, 1}",
}

# Columns 2 and 1 of five, then 3 and 2: what a reflection puts before and behind.
BEFORE = "l = Slice(x, i2, i0, i3, minus1) "
BEHIND = "r = Slice(x, i3, i1, i3, minus1) "
CAT = "y = Concat<axis=3>(l, x, r)"
# As PaddlePaddle flips: columns 1 and 2, one by one.
SPLIT = "t = Slice(x, i1, i3, i3) c, k = Split<axis=3>(t, ones_of_two) "
PADDING = [
    (
        "reflect_and_edge",
        "reflected before, the edge repeated behind",
        WIDE.format(9),
        BEFORE + "e = Slice(x, i4, i5, i3) r = Concat<axis=3>(e, e) " + CAT,
    ),
    (
        "not_flipped",
        "the columns before and behind are not turned round",
        WIDE.format(9),
        "l = Slice(x, i1, i3, i3) r = Slice(x, i2, i4, i3) " + CAT,
    ),
    (
        "one_off",
        "columns 3 and 2 stand before column 0, not 2 and 1",
        WIDE.format(9),
        "l = Slice(x, i3, i1, i3, minus1) " + BEHIND + CAT,
    ),
    (
        "of_another",
        "the border is that of another tensor",
        TWO_WIDE,
        "l = Slice(z, i2, i0, i3, minus1) r = Slice(z, i3, i1, i3, minus1) " + CAT,
    ),
    (
        "border_is_output",
        "the columns before x are an output of the network",
        "(float[N,4,3,5] x) => (float[N,4,3,9] y, float[N,4,3,2] l)",
        BEFORE + BEHIND + CAT,
    ),
    (
        "split_not_flipped",
        "columns 1 and 2 stand before column 0 as they are, cut apart and joined again",
        WIDE.format(7),
        SPLIT + "l = Concat<axis=3>(c, k) y = Concat<axis=3>(l, x)",
    ),
    (
        "split_used_elsewhere",
        "a column of the border is needed by another node as well",
        "(float[N,4,3,5] x) => (float[N,4,3,7] y, float[N,4,3,1] other)",
        SPLIT + "l = Concat<axis=3>(k, c) y = Concat<axis=3>(l, x) other = Sigmoid(c)",
    ),
    (
        "border_used_elsewhere",
        "the columns before x are needed by another node as well",
        "(float[N,4,3,5] x) => (float[N,4,3,9] y, float[N,4,3,2] other)",
        BEFORE + BEHIND + CAT + " other = Sigmoid(l)",
    ),
    ("permuted", "the columns change places", WIDE.format(8), "y = Gather<axis=3>(x, permuted)"),
    (
        "zeros_and_ones",
        "zeros before, ones behind",
        "(float[4,4,3,5] x) => (float[4,4,3,7] y)",
        "a = Concat<axis=3>(zeros_column, x) y = Concat<axis=3>(a, ones_column)",
    ),
    (
        "negated",
        "the border changes its sign: an odd reflection",
        WIDE.format(9),
        "a = Slice(x, i2, i0, i3, minus1) l = Neg(a) b = Slice(x, i3, i1, i3, minus1) r = Neg(b) " + CAT,
    ),
    (
        "double",
        "double precision: the operator has no such type",
        "(double[N,4,3,5] x) => (double[N,4,3,9] y)",
        BEFORE + BEHIND + CAT,
    ),
]

UPSAMPLING = [
    (
        "tiled",
        "the whole row is repeated, not each element",
        WIDE.format(10),
        "u = Unsqueeze(x, i3) t = Tile(u, repeats_before) y = Reshape(t, wider)",
    ),
    (
        "channels",
        "each channel is repeated, as grouped attention repeats its heads",
        "(float[N,4,3,5] x) => (float[N,8,3,5] y)",
        "u = Unsqueeze(x, i2) t = Tile(u, repeats_channels) y = Reshape(t, taller)",
    ),
    ("uneven", "the last column is there once only", WIDE.format(9), "y = Gather<axis=3>(x, uneven)"),
    (
        "repeat_used_elsewhere",
        "the repeated elements are needed by another node as well",
        "(float[N,4,3,5] x) => (float[N,4,3,10] y, float[N,4,3,5,2] other)",
        "u = Unsqueeze(x, i4) t = Tile(u, repeats_columns) y = Reshape(t, wider) other = Sigmoid(t)",
    ),
    (
        "of_two",
        "two tensors alternate",
        "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,10] y)",
        "a = Unsqueeze(x, i4) b = Unsqueeze(z, i4) t = Concat<axis=4>(a, b) y = Reshape(t, wider)",
    ),
    (
        "weights_rounded",
        "deconvolution: the weights are bilinear to one digit only",
        LARGER.format(6, 10),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, rounded)",
    ),
    (
        "weights_doubled",
        "deconvolution: the weights are twice the bilinear ones",
        LARGER.format(6, 10),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, doubled)",
    ),
    (
        "wrong_stride",
        "deconvolution: a kernel of 4 for stride 3",
        LARGER.format(8, 14),
        "y = ConvTranspose<strides=[3,3], pads=[1,1,1,1], group=4>(x, bilinear)",
    ),
    (
        "channels_mixed",
        "deconvolution: one channel takes a part of another",
        LARGER.format(6, 10),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(x, mixing)",
    ),
    (
        "channels_multiplied",
        "deconvolution: each channel becomes two",
        "(float[N,4,3,5] x) => (float[N,8,6,10] y)",
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, multiplied)",
    ),
    (
        "with_bias",
        "deconvolution: a bias is added",
        LARGER.format(6, 10),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, bilinear, bias4)",
    ),
    (
        "dilated",
        "deconvolution: the kernel is dilated",
        LARGER.format(9, 13),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], dilations=[2,2], group=4>(x, bilinear)",
    ),
    (
        "weights_at_run_time",
        "deconvolution: the weights are an input of the network",
        "(float[N,4,3,5] x, float[4,1,4,4] w) => (float[N,4,6,10] y)",
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, w)",
    ),
]

HALVES = "a = MaxPool<kernel_shape=[4,4], strides=[4,4]>(x) f = Flatten(a) "
WHOLE = "b = GlobalMaxPool(x) g = Flatten(b) "
LEVELS = "y = Concat<axis=1>(f, g)"
PYRAMID = [
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

MEAN = "m = ReduceMean<axes=[2,3]>(x) d = Sub(x, m) "
VARIANCE = MEAN + "q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) "
TAIL = "e = Add(v, eps5) s = Sqrt(e) y = Div(d, s)"
# As PaddlePaddle writes its variance: the sum of squares, and its count as a quotient of sizes.
SQUARES = MEAN + "q = Mul(d, d) t = ReduceSum(q, spatial) "
COUNT = "all = Size({}) each = Size({}) above = Cast<to=1>(all) below = Cast<to=1>(each) n = Div(above, below) "
BY_COUNT = "v = Div(t, n) "
INSTANCE = [
    (
        "unbiased",
        "the variance is divided by the count less one",
        SAME,
        VARIANCE + "u = Mul(v, unbias) e = Add(u, eps5) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "sum_by_one_less",
        "the sum is divided by the count less one",
        SAME,
        SQUARES + "v = Div(t, one_less) " + TAIL,
    ),
    (
        "sum_by_count_of_rows",
        "the sum over rows and columns is divided by the count of rows",
        "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
        SQUARES + "c = ReduceMax<axes=[2]>(x) " + COUNT.format("x", "c") + BY_COUNT + TAIL,
    ),
    (
        "sum_by_count_of_another",
        "the sum is divided by the count of another, larger tensor",
        "(float[N,4,3,5] x, float[N,4,3,10] z) => (float[N,4,3,5] y)",
        SQUARES + COUNT.format("z", "t") + BY_COUNT + TAIL,
    ),
    (
        "sum_by_inverse_count",
        "the quotient of the sizes is upside down",
        "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
        SQUARES + COUNT.format("t", "x") + BY_COUNT + TAIL,
    ),
    (
        "epsilon_outside",
        "epsilon is added to the deviation",
        SAME,
        VARIANCE + "s = Sqrt(v) e = Add(s, eps_large) y = Div(d, e)",
    ),
    ("no_epsilon", "no epsilon: 0 / 0 must stay NaN", SAME, VARIANCE + "s = Sqrt(v) y = Div(d, s)"),
    (
        "epsilon_per_channel",
        "epsilon differs between channels",
        SAME,
        VARIANCE + "e = Add(v, eps_each) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "epsilon_negative",
        "a negative epsilon",
        SAME,
        VARIANCE + "e = Add(v, eps_negative) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "epsilon_at_run_time",
        "epsilon is an input of the network",
        "(float[N,4,3,5] x, float e) => (float[N,4,3,5] y)",
        VARIANCE + "t = Add(v, e) s = Sqrt(t) y = Div(d, s)",
    ),
    (
        "rows",
        "over each row",
        SAME,
        "m = ReduceMean<axes=[3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL,
    ),
    (
        "variance_of_rows",
        "the mean is that of a channel, the variance that of a row",
        SAME,
        MEAN + "q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL,
    ),
    (
        "layer",
        "over all channels: layer normalization",
        SAME,
        "m = ReduceMean<axes=[1,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[1,2,3]>(q) " + TAIL,
    ),
    (
        "batch",
        "over the batch: batch normalization",
        SAME,
        "m = ReduceMean<axes=[0,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[0,2,3]>(q) " + TAIL,
    ),
    (
        "not_centered",
        "x itself is divided by the deviation",
        SAME,
        VARIANCE + "e = Add(v, eps5) s = Sqrt(e) y = Div(x, s)",
    ),
    (
        "mean_added",
        "the mean is added, not taken away",
        SAME,
        "m = ReduceMean<axes=[2,3]>(x) d = Add(x, m) q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "mean_of_squares",
        "the root of the mean of squares, not of the variance",
        SAME,
        MEAN + "q = Mul(x, x) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "mean_of_another",
        "the mean of another tensor is taken away in the end",
        TWO,
        VARIANCE + "e = Add(v, eps5) s = Sqrt(e) n = ReduceMean<axes=[2,3]>(z) c = Sub(x, n) y = Div(c, s)",
    ),
    (
        "deviation_of_another",
        "the deviation of another tensor divides",
        TWO,
        MEAN + "n = ReduceMean<axes=[2,3]>(z) c = Sub(z, n) q = Mul(c, c) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "cubes",
        "the third power of the differences",
        SAME,
        MEAN + "q = Pow(d, cubed) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "absolute",
        "the mean of absolute differences",
        SAME,
        MEAN + "q = Abs(d) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "variance_limited",
        "the variance is kept above 1e4",
        SAME,
        VARIANCE + "w = Max(v, large) e = Add(w, eps5) s = Sqrt(e) y = Div(d, s)",
    ),
    ("root_missing", "divides by the variance", SAME, VARIANCE + "e = Add(v, eps5) y = Div(d, e)"),
    ("variance_is_output", "the variance is an output of the network", STATISTIC_OUT.format("v"), VARIANCE + TAIL),
    ("mean_is_output", "the mean is an output of the network", STATISTIC_OUT.format("m"), VARIANCE + TAIL),
    (
        "centered_used_elsewhere",
        "the differences are needed by another node as well",
        SAME_OUT,
        VARIANCE + TAIL + " other = Sigmoid(d)",
    ),
    (
        "double",
        "double precision: the operator has no such type",
        "(double[N,4,3,5] x) => (double[N,4,3,5] y)",
        VARIANCE + "e = Add(v, eps5_double) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "before_the_activation",
        "an InstanceNormalization is an output of the network, so Relu has to stay",
        "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] n)",
        "n = InstanceNormalization(x, unit_scale, no_bias) y = Relu(n)",
    ),
]

MISSES = (
    [("padding", "Padding", *miss) for miss in PADDING]
    + [("upsampling", "Upsampling", *miss) for miss in UPSAMPLING]
    + [("pyramid", "SpatialPyramidPooling", *miss) for miss in PYRAMID]
    + [("instance", "InstanceNorm", *miss) for miss in INSTANCE]
)

# Another reason than the numbers forbids the fusion.
SAME_VALUES = {
    "padding_border_is_output", "padding_border_used_elsewhere", "padding_double", "padding_split_used_elsewhere", "upsampling_repeat_used_elsewhere",
    "upsampling_weights_at_run_time", "pyramid_pool_is_output", "instance_epsilon_at_run_time",
    "instance_variance_is_output", "instance_mean_is_output", "instance_centered_used_elsewhere", "instance_double",
    "instance_before_the_activation", "instance_no_epsilon", "instance_epsilon_negative",
}  # fmt: skip

CONTROLS = [
    (
        "padding_reflect",
        "Padding",
        {"mode": "reflect", "pads": [0, 0, 0, 2, 0, 0, 0, 2]},
        WIDE.format(9),
        BEFORE + BEHIND + CAT,
    ),
    (
        "padding_split",
        "Padding",
        {"mode": "reflect", "pads": [0, 0, 0, 2, 0, 0, 0, 0]},
        WIDE.format(7),
        SPLIT + "l = Concat<axis=3>(k, c) y = Concat<axis=3>(l, x)",
    ),
    (
        "upsampling_repeat",
        "Upsampling",
        {"mode": "nearest", "scales": [1.0, 2.0]},
        WIDE.format(10),
        "u = Unsqueeze(x, i4) t = Tile(u, repeats_columns) y = Reshape(t, wider)",
    ),
    (
        "upsampling_deconvolution",
        "Upsampling",
        {"mode": "linear", "scales": [2.0, 2.0], "coordinate_mode": "half_pixel"},
        LARGER.format(6, 10),
        "y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=4>(x, bilinear)",
    ),
    (
        "pyramid_max",
        "SpatialPyramidPooling",
        {"levels": [2, 1], "mode": "max", "binning": "adaptive"},
        FLAT.format(20),
        HALVES + WHOLE + LEVELS,
    ),
    ("instance_div", "InstanceNorm", {"epsilon": 1e-5, "activation": "none"}, SAME, VARIANCE + TAIL),
    (
        "instance_sum_by_count",
        "InstanceNorm",
        {"epsilon": 1e-5, "activation": "none"},
        "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
        SQUARES + COUNT.format("x", "t") + BY_COUNT + TAIL,
    ),
    (
        "instance_sum_by_constant",
        "InstanceNorm",
        {"epsilon": 1e-5, "activation": "none"},
        SAME,
        SQUARES + "v = Div(t, fifteen) " + TAIL,
    ),
    (
        "instance_relu",
        "InstanceNorm",
        {"epsilon": 1e-5, "activation": "relu"},
        SAME,
        "n = InstanceNormalization(x, unit_scale, no_bias) y = Relu(n)",
    ),
]


def deconvolved(x, factor, size, pads):
    """Each element spread over its neighborhood with bilinear weights."""
    line = np.array([1 - abs(i - (size - 1) / 2) / factor for i in range(size)])
    for axis in (2, 3):
        count = x.shape[axis]
        full = np.zeros((count, factor * (count - 1) + size))
        for i in range(count):
            full[i, factor * i : factor * i + size] = line
        x = np.moveaxis(np.tensordot(x, full[:, pads : full.shape[1] - pads], (axis, 0)), -1, axis)
    return x


def resembled(operator, x):
    """What the operator would give with the attributes that the near misses are nearest to."""
    x = x.astype(np.float64)
    if operator == "Padding":
        modes = ["reflect", "symmetric", "edge", "wrap", "constant"]
        widths = [((0, 0), (2, 2)), ((0, 0), (2, 0)), ((0, 0), (1, 1)), ((1, 0), (2, 0)), ((0, 0), (0, 3))]
        return [np.pad(x, ((0, 0), (0, 0), *pads), mode=mode) for mode in modes for pads in widths]
    if operator == "Upsampling":
        both = np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)
        return [np.repeat(x, 2, axis=3), both, deconvolved(x, 2, 4, 1), deconvolved(x, 3, 4, 1)]
    if operator == "SpatialPyramidPooling":
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
    centered = x - x.mean(axis=(2, 3), keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axis=(2, 3), keepdims=True) + 1e-5)
    return [normalized, np.maximum(normalized, 0)]
