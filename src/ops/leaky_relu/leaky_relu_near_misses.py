# Networks that resemble LeakyReLU but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS, constants, miss, same

PREFIX = "leaky"
OPERATOR = "LeakyReLU"
LOWERED = "LeakyRelu"  # the node that replaces the controls: TensorRT runs LeakyRelu natively

CONSTANTS = constants("""
    float zero = {0}; float one = {1}; float two = {2}; float minus_one = {-1}; float minus_two = {-2};
    float alpha = {0.1}; double alpha_double = {0.1}; double zero_double = {0};
    float[4,1,1] alpha_channels = {0.1, 0.2, 0.3, 0.4}; float[1,1,1,1,1] alpha_rank5 = {0.1}
""")

# fmt: off
MISSES = [
    miss("alpha_above_one", "Max(x, 2x) is 2x for positive x", "alpha is 2", IMAGE, "a = Mul(x, two) y = Max(x, a)"),
    miss("min_not_max", "Min(x, 0.1x) scales the positive side", "leaky ReLU for alpha >= 1",
         IMAGE, "a = Mul(x, alpha) y = Min(x, a)"),
    miss("where_another", "the negative side comes from another tensor", "is 'z'; the pattern needs x",
         TWO_INPUTS, "c = Greater(x, zero) a = Mul(z, alpha) y = Where(c, x, a)"),
    miss("where_reversed", "the branches are exchanged", "the pattern needs x, which is 'x'",
         IMAGE, "c = Greater(x, zero) a = Mul(x, alpha) y = Where(c, a, x)"),
    miss("where_threshold", "the threshold is 1, not 0", "is 1; the pattern needs 0",
         IMAGE, "c = Greater(x, one) a = Mul(x, alpha) y = Where(c, x, a)"),
    miss("where_condition_on_another", "another tensor decides", "the pattern needs x, which is 'z'",
         TWO_INPUTS, "c = Greater(z, zero) a = Mul(x, alpha) y = Where(c, x, a)"),
    miss("max_of_three", "a third tensor takes part in the maximum", None,
         TWO_INPUTS, "a = Mul(x, alpha) y = Max(x, a, z)"),
    miss("alpha_per_channel", "alpha differs between channels", "alpha has 4 values",
         IMAGE, "a = Mul(x, alpha_channels) y = Max(x, a)"),
    same("alpha_of_rank_5", "alpha has more dimensions than x, so the result gains one",
         "raises the rank of the result from 4 to 5", "(float[N,4,3,5] x) => (float[1,N,4,3,5] y)",
         "a = Mul(x, alpha_rank5) y = Max(x, a)"),
    same("alpha_at_run_time", "alpha is an input of the network", "not a constant; the pattern needs one for @alpha",
         "(float[N,4,3,5] x, float a) => (float[N,4,3,5] y)", "m = Mul(x, a) y = Max(x, m)"),
    miss("sum_not_product", "Max(x, x + 0.1) is x + 0.1", None, IMAGE, "a = Add(x, alpha) y = Max(x, a)"),
    same("product_is_output", "alpha * x is an output of the network", "is an output of the graph",
         "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] a)", "a = Mul(x, alpha) y = Max(x, a)"),
    miss("prelu_per_channel", "PRelu with a slope for each channel", "alpha has 4 values",
         IMAGE, "y = PRelu(x, alpha_channels)"),
    miss("elu", "exponential, not linear, on the negative side", None,
         IMAGE, "c = Greater(x, zero) e = Exp(x) d = Sub(e, one) a = Mul(d, alpha) y = Where(c, x, a)"),
    miss("relu_sign", "Relu(x) + 0.1 Relu(-x) is positive on both sides", "positive on both sides",
         IMAGE, "p = Relu(x) m = Neg(x) n = Relu(m) a = Mul(n, alpha) y = Add(p, a)"),
    miss("relu_of_double", "Relu(x) - 0.1 Relu(-2 x) is twice as steep below zero", "is -2; the pattern needs -1",
         IMAGE, "p = Relu(x) m = Mul(x, minus_two) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
    miss("clips_overlap", "the two clips overlap between 0 and 1", "is 1; the pattern needs 0",
         IMAGE, "p = Clip(x, zero) n = Clip(x, , one) a = Mul(n, alpha) y = Add(p, a)"),
    same("double", "double precision: the operator has no such type and would lose digits", "'x' is f64",
         "(double[N,4,3,5] x) => (double[N,4,3,5] y)",
         "c = Greater(x, zero_double) a = Mul(x, alpha_double) y = Where(c, x, a)"),
]

CONTROLS = [
    ("leaky_max", {"alpha": 0.1}, IMAGE, "a = Mul(x, alpha) y = Max(x, a)"),
    ("leaky_where", {"alpha": 0.1}, IMAGE, "c = Greater(x, zero) a = Mul(x, alpha) y = Where(c, x, a)"),
    ("leaky_clip", {"alpha": 0.1}, IMAGE, "p = Clip(x, zero) n = Clip(x, , zero) a = Mul(n, alpha) y = Add(p, a)"),
    ("leaky_relu", {"alpha": 0.1}, IMAGE, "p = Relu(x) m = Neg(x) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
    ("leaky_relu_of_product", {"alpha": 0.1}, IMAGE,
     "p = Relu(x) m = Mul(x, minus_one) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
]
# fmt: on


def resembled(x):
    x = x.astype(np.float64)
    return [np.where(x > 0, x, 0.1 * x), np.where(x > 0, x, 2.0 * x)]
