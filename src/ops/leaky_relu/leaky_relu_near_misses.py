# Networks that resemble LeakyReLU but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS

PREFIX = "leaky"
OPERATOR = "LeakyReLU"
LOWERED = "LeakyRelu"  # the node that replaces the controls: TensorRT runs LeakyRelu natively

CONSTANTS = {
    "zero": "float zero = {0}",
    "one": "float one = {1}",
    "two": "float two = {2}",
    "minus_one": "float minus_one = {-1}",
    "minus_two": "float minus_two = {-2}",
    "alpha": "float alpha = {0.1}",
    "alpha_double": "double alpha_double = {0.1}",
    "zero_double": "double zero_double = {0}",
    "alpha_channels": "float[4,1,1] alpha_channels = {0.1, 0.2, 0.3, 0.4}",
    "alpha_rank5": "float[1,1,1,1,1] alpha_rank5 = {0.1}",
}

MISSES = [
    ("alpha_above_one", "Max(x, 2x) is 2x for positive x", IMAGE, "a = Mul(x, two) y = Max(x, a)"),
    ("min_not_max", "Min(x, 0.1x) scales the positive side", IMAGE, "a = Mul(x, alpha) y = Min(x, a)"),
    (
        "where_another",
        "the negative side comes from another tensor",
        TWO_INPUTS,
        "c = Greater(x, zero) a = Mul(z, alpha) y = Where(c, x, a)",
    ),
    (
        "where_reversed",
        "the branches are exchanged",
        IMAGE,
        "c = Greater(x, zero) a = Mul(x, alpha) y = Where(c, a, x)",
    ),
    ("where_threshold", "the threshold is 1, not 0", IMAGE, "c = Greater(x, one) a = Mul(x, alpha) y = Where(c, x, a)"),
    (
        "where_condition_on_another",
        "another tensor decides",
        TWO_INPUTS,
        "c = Greater(z, zero) a = Mul(x, alpha) y = Where(c, x, a)",
    ),
    ("max_of_three", "a third tensor takes part in the maximum", TWO_INPUTS, "a = Mul(x, alpha) y = Max(x, a, z)"),
    ("alpha_per_channel", "alpha differs between channels", IMAGE, "a = Mul(x, alpha_channels) y = Max(x, a)"),
    (
        "alpha_of_rank_5",
        "alpha has more dimensions than x, so the result gains one",
        "(float[N,4,3,5] x) => (float[1,N,4,3,5] y)",
        "a = Mul(x, alpha_rank5) y = Max(x, a)",
    ),
    (
        "alpha_at_run_time",
        "alpha is an input of the network",
        "(float[N,4,3,5] x, float a) => (float[N,4,3,5] y)",
        "m = Mul(x, a) y = Max(x, m)",
    ),
    ("sum_not_product", "Max(x, x + 0.1) is x + 0.1", IMAGE, "a = Add(x, alpha) y = Max(x, a)"),
    (
        "product_is_output",
        "alpha * x is an output of the network",
        "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] a)",
        "a = Mul(x, alpha) y = Max(x, a)",
    ),
    ("prelu_per_channel", "PRelu with a slope for each channel", IMAGE, "y = PRelu(x, alpha_channels)"),
    (
        "elu",
        "exponential, not linear, on the negative side",
        IMAGE,
        "c = Greater(x, zero) e = Exp(x) d = Sub(e, one) a = Mul(d, alpha) y = Where(c, x, a)",
    ),
    (
        "relu_sign",
        "Relu(x) + 0.1 Relu(-x) is positive on both sides",
        IMAGE,
        "p = Relu(x) m = Neg(x) n = Relu(m) a = Mul(n, alpha) y = Add(p, a)",
    ),
    (
        "relu_of_double",
        "Relu(x) - 0.1 Relu(-2 x) is twice as steep below zero",
        IMAGE,
        "p = Relu(x) m = Mul(x, minus_two) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)",
    ),
    (
        "clips_overlap",
        "the two clips overlap between 0 and 1",
        IMAGE,
        "p = Clip(x, zero) n = Clip(x, , one) a = Mul(n, alpha) y = Add(p, a)",
    ),
    (
        "double",
        "double precision: the operator has no such type and would lose digits",
        "(double[N,4,3,5] x) => (double[N,4,3,5] y)",
        "c = Greater(x, zero_double) a = Mul(x, alpha_double) y = Where(c, x, a)",
    ),
]

# Networks whose values equal the operator's, but that must not be fused for another reason.
SAME_VALUES = {
    "alpha_at_run_time",
    "alpha_of_rank_5",
    "product_is_output",
    "double",
}

# A part of the reason that `convert --explain` reports for each network.
EXPLAINED = {
    "alpha_above_one": "alpha is 2",
    "min_not_max": "leaky ReLU for alpha >= 1",
    "where_another": "is 'z', the pattern needs x",
    "where_reversed": "the pattern needs x, which is 'x'",
    "where_threshold": "is 1, the pattern needs 0",
    "where_condition_on_another": "the pattern needs x, which is 'z'",
    "alpha_per_channel": "alpha has 4 values",
    "alpha_of_rank_5": "raises the rank of the result from 4 to 5",
    "alpha_at_run_time": "not a constant, the pattern needs one for @alpha",
    "product_is_output": "is an output of the graph",
    "prelu_per_channel": "alpha has 4 values",
    "relu_sign": "positive on both sides",
    "relu_of_double": "is -2, the pattern needs -1",
    "clips_overlap": "is 1, the pattern needs 0",
    "double": "'x' is f64",
}

CONTROLS = [
    ("leaky_max", {"alpha": 0.1}, IMAGE, "a = Mul(x, alpha) y = Max(x, a)"),
    ("leaky_where", {"alpha": 0.1}, IMAGE, "c = Greater(x, zero) a = Mul(x, alpha) y = Where(c, x, a)"),
    ("leaky_clip", {"alpha": 0.1}, IMAGE, "p = Clip(x, zero) n = Clip(x, , zero) a = Mul(n, alpha) y = Add(p, a)"),
    ("leaky_relu", {"alpha": 0.1}, IMAGE, "p = Relu(x) m = Neg(x) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
    (
        "leaky_relu_of_product",
        {"alpha": 0.1},
        IMAGE,
        "p = Relu(x) m = Mul(x, minus_one) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)",
    ),
]


def resembled(x):
    x = x.astype(np.float64)
    return [np.where(x > 0, x, 0.1 * x), np.where(x > 0, x, 2.0 * x)]
