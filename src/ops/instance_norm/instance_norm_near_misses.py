# Networks that resemble InstanceNorm but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS, constants, miss, same

PREFIX = "instance"
OPERATOR = "InstanceNorm"
SAME_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] other)"
STATISTIC_OUT = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,1,1] {})"

CONSTANTS = constants("""
    float[4] unit_scale = {1, 1, 1, 1}; float[4] no_bias = {0, 0, 0, 0}; float unbias = {1.0714285714};
    float eps5 = {1e-5}; double eps5_double = {1e-5}; float[1,4,1,1] eps_each = {1e-5, 1e-3, 1e-2, 1};
    float large = {10000}; float cubed = {3}; float one_less = {14}; float fifteen = {15};
    int64[2] spatial = {2, 3}
""")

MEAN = "m = ReduceMean<axes=[2,3]>(x) d = Sub(x, m) "
VARIANCE = MEAN + "q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) "
TAIL = "e = Add(v, eps5) s = Sqrt(e) y = Div(d, s)"
# The variance as PaddlePaddle writes it: the sum of squares, and the count as a quotient of sizes.
SQUARES = MEAN + "q = Mul(d, d) t = ReduceSum(q, spatial) "
COUNT = "all = Size({}) each = Size({}) above = Cast<to=1>(all) below = Cast<to=1>(each) n = Div(above, below) "
BY_COUNT = "v = Div(t, n) "

# fmt: off
MISSES = [
    miss("unbiased", "the variance is divided by the count less one", "the variance is not divided by the count",
         IMAGE, VARIANCE + "u = Mul(v, unbias) e = Add(u, eps5) s = Sqrt(e) y = Div(d, s)"),
    miss("sum_by_one_less", "the sum is divided by the count less one", "not divided by the number of its elements",
         IMAGE, SQUARES + "v = Div(t, one_less) " + TAIL),
    miss("sum_by_count_of_rows", "the sum over rows and columns is divided by the count of rows",
         "not divided by the number of its elements", "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
         SQUARES + "c = ReduceMax<axes=[2]>(x) " + COUNT.format("x", "c") + BY_COUNT + TAIL),
    miss("sum_by_count_of_another", "the sum is divided by the count of another, larger tensor",
         "not divided by the number of its elements", "(float[N,4,3,5] x, float[N,4,3,10] z) => (float[N,4,3,5] y)",
         SQUARES + COUNT.format("z", "t") + BY_COUNT + TAIL),
    miss("sum_by_inverse_count", "the quotient of the sizes is upside down",
         "not divided by the number of its elements", "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
         SQUARES + COUNT.format("t", "x") + BY_COUNT + TAIL),
    miss("epsilon_outside", "epsilon is added to the deviation", "epsilon is added to the deviation",
         IMAGE, VARIANCE + "s = Sqrt(v) e = Add(s, eps_large) y = Div(d, e)"),
    same("no_epsilon", "no epsilon: 0 / 0 must stay NaN", "there is no epsilon",
         IMAGE, VARIANCE + "s = Sqrt(v) y = Div(d, s)"),
    miss("epsilon_per_channel", "epsilon differs between channels", "epsilon differs between channels",
         IMAGE, VARIANCE + "e = Add(v, eps_each) s = Sqrt(e) y = Div(d, s)"),
    same("epsilon_negative", "a negative epsilon", "epsilon is -0.001",
         IMAGE, VARIANCE + "e = Add(v, eps_negative) s = Sqrt(e) y = Div(d, s)"),
    same("epsilon_at_run_time", "epsilon is an input of the network", "is not computed from 'x' and constants only",
         "(float[N,4,3,5] x, float e) => (float[N,4,3,5] y)", VARIANCE + "t = Add(v, e) s = Sqrt(t) y = Div(d, s)"),
    miss("rows", "over each row", "over the axes [3], not",
         IMAGE, "m = ReduceMean<axes=[3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL),
    miss("variance_of_rows", "the mean is that of a channel, the variance that of a row", "over the axes [3] of",
         IMAGE, MEAN + "q = Mul(d, d) v = ReduceMean<axes=[3]>(q) " + TAIL),
    miss("layer", "over all channels: layer normalization", "over the axes [1, 2, 3], not",
         IMAGE, "m = ReduceMean<axes=[1,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[1,2,3]>(q) " + TAIL),
    miss("batch", "over the batch: batch normalization", "over the axes [0, 2, 3], not",
         IMAGE, "m = ReduceMean<axes=[0,2,3]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[0,2,3]>(q) " + TAIL),
    miss("not_centered", "x itself is divided by the deviation", "x is divided by the deviation, but 0 is added",
         IMAGE, VARIANCE + "e = Add(v, eps5) s = Sqrt(e) y = Div(x, s)"),
    miss("mean_added", "the mean is added, not taken away", "4 mean^2",
         IMAGE, "m = ReduceMean<axes=[2,3]>(x) d = Add(x, m) q = Mul(d, d) v = ReduceMean<axes=[2,3]>(q) " + TAIL),
    miss("mean_of_squares", "the root of the mean of squares, not of the variance",
         "the square root is of mean^2 + variance", IMAGE,
         MEAN + "q = Mul(x, x) v = ReduceMean<axes=[2,3]>(q) " + TAIL),
    miss("mean_of_another", "the mean of another tensor is taken away in the end",
         "is not computed from 'x' and constants only", TWO_INPUTS,
         VARIANCE + "e = Add(v, eps5) s = Sqrt(e) n = ReduceMean<axes=[2,3]>(z) c = Sub(x, n) y = Div(c, s)"),
    miss("deviation_of_another", "the deviation of another tensor divides",
         "is not computed from 'z' and constants only", TWO_INPUTS,
         MEAN + "n = ReduceMean<axes=[2,3]>(z) c = Sub(z, n) q = Mul(c, c) v = ReduceMean<axes=[2,3]>(q) " + TAIL),
    miss("cubes", "the third power of the differences", None,
         IMAGE, MEAN + "q = Pow(d, cubed) v = ReduceMean<axes=[2,3]>(q) " + TAIL),
    miss("absolute", "the mean of absolute differences", None,
         IMAGE, MEAN + "q = Abs(d) v = ReduceMean<axes=[2,3]>(q) " + TAIL),
    miss("variance_limited", "the variance is kept above 1e4", "the variance is clipped",
         IMAGE, VARIANCE + "w = Max(v, large) e = Add(w, eps5) s = Sqrt(e) y = Div(d, s)"),
    miss("root_missing", "divides by the variance", "it divides by variance + 1e-05",
         IMAGE, VARIANCE + "e = Add(v, eps5) y = Div(d, e)"),
    same("variance_is_output", "the variance is an output of the network", "is an output of the graph",
         STATISTIC_OUT.format("v"), VARIANCE + TAIL),
    same("mean_is_output", "the mean is an output of the network", "is an output of the graph",
         STATISTIC_OUT.format("m"), VARIANCE + TAIL),
    same("centered_used_elsewhere", "the differences are needed by another node as well", "is used by node 'Sigmoid",
         SAME_OUT, VARIANCE + TAIL + " other = Sigmoid(d)"),
    same("double", "double precision: the operator has no such type", "'x' is f64",
         "(double[N,4,3,5] x) => (double[N,4,3,5] y)", VARIANCE + "e = Add(v, eps5_double) s = Sqrt(e) y = Div(d, s)"),
    same("before_the_activation", "an InstanceNormalization is an output of the network, so Relu has to stay",
         "is an output of the graph", "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] n)",
         "n = InstanceNormalization(x, unit_scale, no_bias) y = Relu(n)"),
]

CONTROLS = [
    ("instance_div", {"epsilon": 1e-5, "activation": "none"}, IMAGE, VARIANCE + TAIL),
    ("instance_sum_by_count", {"epsilon": 1e-5, "activation": "none"}, "(float[N,4,H,W] x) => (float[N,4,H,W] y)",
     SQUARES + COUNT.format("x", "t") + BY_COUNT + TAIL),
    ("instance_sum_by_constant", {"epsilon": 1e-5, "activation": "none"}, IMAGE,
     SQUARES + "v = Div(t, fifteen) " + TAIL),
    ("instance_relu", {"epsilon": 1e-5, "activation": "relu"}, IMAGE,
     "n = InstanceNormalization(x, unit_scale, no_bias) y = Relu(n)"),
]
# fmt: on


def resembled(x):
    x = x.astype(np.float64)
    centered = x - x.mean(axis=(2, 3), keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axis=(2, 3), keepdims=True) + 1e-5)
    return [normalized, np.maximum(normalized, 0)]
