# Networks that resemble InstanceNorm but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS

PREFIX = "instance"
OPERATOR = "InstanceNorm"
SAME_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] other)"
STATISTIC_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,1,1] {})"

CONSTANTS = {
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
}

MEAN = "m = ReduceMean<axes=[2,3]>(x) d = Sub(x, m) "
VARIANCE = MEAN + "q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) "
TAIL = "e = Add(v, eps5) s = Sqrt(e) y = Div(d, s)"
# The variance as PaddlePaddle writes it: the sum of squares, and the count as a quotient of sizes.
SQUARES = MEAN + "q = Mul(d, d) t = ReduceSum(q, spatial) "
COUNT = "all = Size({}) each = Size({}) above = Cast<to=1>(all) below = Cast<to=1>(each) n = Div(above, below) "
BY_COUNT = "v = Div(t, n) "

MISSES = [
    (
        "unbiased",
        "the variance is divided by the count less one",
        IMAGE,
        VARIANCE + "u = Mul(v, unbias) e = Add(u, eps5) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "sum_by_one_less",
        "the sum is divided by the count less one",
        IMAGE,
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
        IMAGE,
        VARIANCE + "s = Sqrt(v) e = Add(s, eps_large) y = Div(d, e)",
    ),
    ("no_epsilon", "no epsilon: 0 / 0 must stay NaN", IMAGE, VARIANCE + "s = Sqrt(v) y = Div(d, s)"),
    (
        "epsilon_per_channel",
        "epsilon differs between channels",
        IMAGE,
        VARIANCE + "e = Add(v, eps_each) s = Sqrt(e) y = Div(d, s)",
    ),
    (
        "epsilon_negative",
        "a negative epsilon",
        IMAGE,
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
        IMAGE,
        "m = ReduceMean<axes=[3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL,
    ),
    (
        "variance_of_rows",
        "the mean is that of a channel, the variance that of a row",
        IMAGE,
        MEAN + "q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL,
    ),
    (
        "layer",
        "over all channels: layer normalization",
        IMAGE,
        "m = ReduceMean<axes=[1,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[1,2,3]>(q) " + TAIL,
    ),
    (
        "batch",
        "over the batch: batch normalization",
        IMAGE,
        "m = ReduceMean<axes=[0,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[0,2,3]>(q) " + TAIL,
    ),
    (
        "not_centered",
        "x itself is divided by the deviation",
        IMAGE,
        VARIANCE + "e = Add(v, eps5) s = Sqrt(e) y = Div(x, s)",
    ),
    (
        "mean_added",
        "the mean is added, not taken away",
        IMAGE,
        "m = ReduceMean<axes=[2,3]>(x) d = Add(x, m) q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "mean_of_squares",
        "the root of the mean of squares, not of the variance",
        IMAGE,
        MEAN + "q = Mul(x, x) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "mean_of_another",
        "the mean of another tensor is taken away in the end",
        TWO_INPUTS,
        VARIANCE + "e = Add(v, eps5) s = Sqrt(e) n = ReduceMean<axes=[2,3]>(z) c = Sub(x, n) y = Div(c, s)",
    ),
    (
        "deviation_of_another",
        "the deviation of another tensor divides",
        TWO_INPUTS,
        MEAN + "n = ReduceMean<axes=[2,3]>(z) c = Sub(z, n) q = Mul(c, c) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "cubes",
        "the third power of the differences",
        IMAGE,
        MEAN + "q = Pow(d, cubed) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "absolute",
        "the mean of absolute differences",
        IMAGE,
        MEAN + "q = Abs(d) v = ReduceMean<axes=[2,3]>(q) " + TAIL,
    ),
    (
        "variance_limited",
        "the variance is kept above 1e4",
        IMAGE,
        VARIANCE + "w = Max(v, large) e = Add(w, eps5) s = Sqrt(e) y = Div(d, s)",
    ),
    ("root_missing", "divides by the variance", IMAGE, VARIANCE + "e = Add(v, eps5) y = Div(d, e)"),
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

# Networks whose values equal the operator's, but that must not be fused for another reason.
SAME_VALUES = {
    "epsilon_at_run_time",
    "variance_is_output",
    "mean_is_output",
    "centered_used_elsewhere",
    "double",
    "before_the_activation",
    "no_epsilon",
    "epsilon_negative",
}

# A part of the reason that `convert --explain` reports for each network.
EXPLAINED = {
    "unbiased": "the variance is not divided by the count",
    "sum_by_one_less": "not divided by the number of its elements",
    "sum_by_count_of_rows": "not divided by the number of its elements",
    "sum_by_count_of_another": "not divided by the number of its elements",
    "sum_by_inverse_count": "not divided by the number of its elements",
    "epsilon_outside": "epsilon is added to the deviation",
    "no_epsilon": "there is no epsilon",
    "epsilon_per_channel": "epsilon differs between channels",
    "epsilon_negative": "epsilon is -0.001",
    "epsilon_at_run_time": "is not computed from 'x' and constants only",
    "rows": "over the axes [3], not",
    "variance_of_rows": "over the axes [3] of",
    "layer": "over the axes [1, 2, 3], not",
    "batch": "over the axes [0, 2, 3], not",
    "not_centered": "x is divided by the deviation, but 0 is added",
    "mean_added": "4 mean^2",
    "mean_of_squares": "the square root is of mean^2 + variance",
    "mean_of_another": "is not computed from 'x' and constants only",
    "deviation_of_another": "is not computed from 'z' and constants only",
    "variance_limited": "the variance is clipped",
    "root_missing": "it divides by variance + 1e-05",
    "variance_is_output": "is an output of the graph",
    "mean_is_output": "is an output of the graph",
    "centered_used_elsewhere": "is used by node 'Sigmoid",
    "double": "'x' is f64",
    "before_the_activation": "is an output of the graph",
}

CONTROLS = [
    ("instance_div", {"epsilon": 1e-5, "activation": "none"}, IMAGE, VARIANCE + TAIL),
    (
        "instance_sum_by_count",
        {"epsilon": 1e-5, "activation": "none"},
        "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
        SQUARES + COUNT.format("x", "t") + BY_COUNT + TAIL,
    ),
    (
        "instance_sum_by_constant",
        {"epsilon": 1e-5, "activation": "none"},
        IMAGE,
        SQUARES + "v = Div(t, fifteen) " + TAIL,
    ),
    (
        "instance_relu",
        {"epsilon": 1e-5, "activation": "relu"},
        IMAGE,
        "n = InstanceNormalization(x, unit_scale, no_bias) y = Relu(n)",
    ),
]


def resembled(x):
    x = x.astype(np.float64)
    centered = x - x.mean(axis=(2, 3), keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axis=(2, 3), keepdims=True) + 1e-5)
    return [normalized, np.maximum(normalized, 0)]
