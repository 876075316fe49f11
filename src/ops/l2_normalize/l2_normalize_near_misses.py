# Networks that resemble L2Normalize but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS, constants, miss, same

PREFIX = "l2"
OPERATOR = "L2Normalize"
SQUARE = "(float[4,4] x) => (float[4,4] y)"
TWO_OUTPUTS = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,1,3,5] {})"

CONSTANTS = constants("""
    double eps_double = {1e-12}; int32 eps_int = {1}; float[1,4,1,1] eps_channels = {1e-12, 1e-6, 1e-3, 1};
    float[1,1,1,1,1] eps_rank5 = {1e-12}; float cap = {1e12}; float[1,4,1,1] cap_channels = {1e12, 1e6, 1e3, 1};
    float ten = {10}; float two = {2}; float three = {3}; float half = {0.5}; float[4,1,1] powers = {2, 2, 2, 3};
    int64[1] axes = {1}; int64[1] axes2 = {2}; int64[0] no_axes = {}; int64[4] larger = {8, 4, 3, 5}
""")

SUM = "q = Mul(x, x) s = ReduceSum<keepdims=1>(q, axes) "
# The p-norm as PaddlePaddle writes it.
P_NORM = "b = Abs(x) q = Pow(b, two) s = ReduceSum<keepdims=1>(q, axes) r = Pow(s, half) m = Max(r, eps) "
TAIL = "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"
NORM = "r = ReduceL2<axes=[1], keepdims=1>(x) "

# fmt: off
MISSES = [
    miss("wrong_axis_unsqueezed",
         "summed over axis 1 without keepdims, put back as axis 2: divides by another column's norm",
         "inserts other axes", "(float[N,4,4] x) => (float[N,4,4] y)",
         "r = ReduceL2<axes=[1], keepdims=0>(x) m = Clip(r, eps) u = Unsqueeze(m, axes2) y = Div(x, u)"),
    miss("wrong_axis_keepdims_0", "without keepdims the norm of row i is broadcast over column i", "`keepdims` is 0",
         SQUARE, "r = ReduceL2<axes=[1], keepdims=0>(x) m = Clip(r, eps) y = Div(x, m)"),
    miss("wrong_axis_transposed", "the norm is transposed before the division", None,
         SQUARE, NORM + "m = Clip(r, eps) t = Transpose<perm=[1, 0]>(m) y = Div(x, t)"),
    miss("no_epsilon_div", "no epsilon: 0 / 0 must stay NaN", "no epsilon", IMAGE, SUM + "r = Sqrt(s) y = Div(x, r)"),
    miss("no_epsilon_reduce_l2", "no epsilon: 0 / 0 must stay NaN", "no epsilon", IMAGE, NORM + "y = Div(x, r)"),
    miss("no_epsilon_rsqrt", "no epsilon: 0 * inf must stay NaN", "no epsilon",
         IMAGE, SUM + "r = Sqrt(s) i = Reciprocal(r) y = Mul(x, i)"),
    same("squares_used_elsewhere", "the squares are needed by another node as well", "is used by node 'Sigmoid",
         "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] other)", SUM + TAIL + " other = Sigmoid(q)"),
    same("sum_is_output", "the sum is an output of the network", "is an output of the graph",
         TWO_OUTPUTS.format("s"), SUM + TAIL),
    same("norm_is_output", "the norm is an output of the network", "is an output of the graph",
         TWO_OUTPUTS.format("r"), NORM + "m = Clip(r, eps) y = Div(x, m)"),
    same("clamp_used_elsewhere", "the clamped sum is needed by another node as well", "is used by node 'Log",
         TWO_OUTPUTS.format("other"), SUM + TAIL + " other = Log(m)"),
    miss("power_3", "third power, not second", "is 3; the pattern needs 2",
         IMAGE, "q = Pow(x, three) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("power_3_of_abs", "the norm of third powers", "is 3; the pattern needs 2",
         IMAGE, P_NORM.replace("two", "three") + "y = Div(x, m)"),
    miss("power_half_twice", "the root is taken twice", None,
         IMAGE, P_NORM.replace("r = ", "t = Sqrt(s) r = ").replace("Pow(s, half", "Pow(t, half") + "y = Div(x, m)"),
    miss("abs_of_another", "the norm of another tensor", "the pattern needs x",
         TWO_INPUTS, P_NORM.replace("Abs(x)", "Abs(z)") + "y = Div(x, m)"),
    same("power_at_run_time", "the exponent is an input of the network", "is not a constant; the pattern needs 2",
         "(float[N,4,3,5] x, float p) => (float[N,4,3,5] y)",
         "q = Pow(x, p) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("power_per_channel", "the exponent differs between channels", "{2, 2, 2, 3}; the pattern needs 2",
         IMAGE, "q = Pow(x, powers) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("l1_norm", "ReduceL1, not ReduceL2", "(ReduceL1)",
         IMAGE, "r = ReduceL1<axes=[1], keepdims=1>(x) m = Clip(r, eps) y = Div(x, m)"),
    miss("sum_of_abs", "the absolute values are summed, not the squares", "(Abs): the pattern needs Mul",
         IMAGE, "q = Abs(x) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("sqrt_missing", "divides by the sum of squares, not by its root", "(ReduceSum)",
         IMAGE, SUM + "m = Max(s, eps) y = Div(x, m)"),
    miss("sqrt_before_sum", "the root is taken before the sum", "(ReduceSum)",
         IMAGE, "q = Mul(x, x) r = Sqrt(q) s = ReduceSum<keepdims=1>(r, axes) m = Max(s, eps) y = Div(x, m)"),
    miss("clamp_on_x", "x is clamped before it is squared", "(ReduceSum): the pattern needs Max",
         IMAGE, "k = Clip(x, eps) q = Mul(k, k) s = ReduceSum<keepdims=1>(q, axes) r = Sqrt(s) y = Div(x, r)"),
    miss("clamp_on_squares", "each square is clamped, not the sum", "(ReduceSum): the pattern needs Max",
         IMAGE, "q = Mul(x, x) m = Max(q, eps_large) s = ReduceSum<keepdims=1>(m, axes) r = Sqrt(s) y = Div(x, r)"),
    miss("clamp_after_reciprocal", "the reciprocal is clamped from below", None,
         IMAGE, SUM + "r = Sqrt(s) i = Reciprocal(r) m = Max(i, eps) y = Mul(x, m)"),
    miss("epsilon_per_channel", "epsilon differs between channels", "epsilon has 4 values",
         IMAGE, SUM + "m = Max(s, eps_channels) r = Sqrt(m) y = Div(x, r)"),
    same("epsilon_of_rank_5", "epsilon has more dimensions than x, so the result gains one",
         "raises the rank of the result from 4 to 5", "(float[N,4,3,5] x) => (float[1,N,4,3,5] y)",
         SUM + "m = Max(s, eps_rank5) r = Sqrt(m) y = Div(x, r)"),
    miss("epsilon_negative_max", "a negative epsilon clamps nothing: 0 / 0 must stay NaN", "it must be at least 0",
         IMAGE, SUM + "m = Max(s, eps_negative) r = Sqrt(m) y = Div(x, r)"),
    miss("epsilon_negative_add", "a negative epsilon under the root", "it must be at least 0",
         IMAGE, SUM + "a = Add(s, eps_negative) r = Sqrt(a) y = Div(x, r)"),
    miss("epsilon_subtracted", "epsilon is subtracted", "(Sub)",
         IMAGE, SUM + "a = Sub(s, eps_large) r = Sqrt(a) y = Div(x, r)"),
    miss("epsilon_added_to_norm", "epsilon is added to the norm, which is not one of the three modes",
         "epsilon is added to the norm", IMAGE, NORM + "a = Add(r, eps_large) y = Div(x, a)"),
    same("epsilon_at_run_time", "epsilon is an input of the network",
         "not a constant; the pattern needs one for @epsilon", "(float[N,4,3,5] x, float e) => (float[N,4,3,5] y)",
         SUM + "m = Max(s, e) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"),
    miss("epsilon_computed", "epsilon is computed from x", "not a constant; the pattern needs one for @epsilon", IMAGE,
         "b = Abs(x) h = ReduceMax<keepdims=0>(b) e = Mul(h, eps_large) " + SUM
         + "m = Max(s, e) r = Sqrt(m) y = Div(x, r)"),
    same("double", "double precision: the operator has no such type and would lose digits", "'x' is f64",
         "(double[N,4,3,5] x) => (double[N,4,3,5] y)", SUM + "m = Max(s, eps_double) r = Sqrt(m) y = Div(x, r)"),
    miss("int32", "integers: the division truncates", "'x' is i32",
         "(int32[N,4,3,5] x) => (int32[N,4,3,5] y)", NORM + "m = Max(r, eps_int) y = Div(x, m)"),
    miss("product_of_two", "x * z is summed, not x * x", "is 'z'; the pattern needs x",
         TWO_INPUTS, "q = Mul(x, z) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("divides_another", "the norm of x divides z", "the pattern needs x, which is 'z'",
         TWO_INPUTS, NORM + "m = Clip(r, eps) y = Div(z, m)"),
    miss("norm_of_activation", "the norm is that of Relu(x), and divides x", "the pattern needs x, which is 'x'",
         IMAGE, "k = Relu(x) q = Mul(k, k) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    miss("division_upside_down", "the norm divided by x", "the norm is divided by x",
         IMAGE, NORM + "m = Clip(r, eps) y = Div(m, x)"),
    miss("reduce_mean", "the mean of the squares, as in RMS normalization", "(ReduceMean)",
         IMAGE, "q = Mul(x, x) s = ReduceMean<axes=[1], keepdims=1>(q) " + TAIL),
    miss("reduce_max", "the largest square, not the sum", "(ReduceMax)",
         IMAGE, "q = Mul(x, x) s = ReduceMax<axes=[1], keepdims=1>(q) " + TAIL),
    miss("summed_twice", "summed over axis 1, then again over axis 2", "(ReduceSum): the pattern needs Mul",
         IMAGE, SUM + "t = ReduceSum<keepdims=1>(s, axes2) m = Max(t, eps) r = Sqrt(m) y = Div(x, r)"),
    miss("reciprocal_twice", "multiplies by the norm: the two reciprocals cancel", "(Reciprocal)",
         IMAGE, SUM + "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) k = Reciprocal(i) y = Mul(x, k)"),
    miss("min_not_max", "Min(sum, epsilon) where Max belongs", "(Min)",
         IMAGE, SUM + "m = Min(s, eps) r = Sqrt(m) y = Div(x, r)"),
    miss("max_of_three", "a third tensor takes part in the maximum", "it has an input 2",
         "(float[N,4,3,5] x, float[N,1,3,5] z) => (float[N,4,3,5] y)",
         SUM + "m = Max(s, eps, z) r = Sqrt(m) y = Div(x, r)"),
    miss("clip_above_only", "Clip limits the norm from above, not from below", "input 1 is absent",
         IMAGE, NORM + "m = Clip(r, , ten) y = Div(x, m)"),
    miss("clip_both", "Clip limits the norm from above as well", "also has an upper limit",
         IMAGE, NORM + "m = Clip(r, eps, ten) y = Div(x, m)"),
    miss("cap_per_channel", "Keras' form, but the cap on the reciprocal differs between channels",
         "the cap on the reciprocal has 4 values", IMAGE,
         SUM + "r = Sqrt(s) i = Reciprocal(r) m = Min(i, cap_channels) y = Mul(x, m)"),
    same("axes_at_run_time", "the axes of the sum are an input of the network",
         "not a constant; the pattern needs one for @axes", "(float[N,4,3,5] x, int64[1] a) => (float[N,4,3,5] y)",
         "q = Mul(x, x) s = ReduceSum<keepdims=1>(q, a) " + TAIL),
    miss("no_axes_no_sum", "no axes and noop_with_empty_axes=1: nothing is summed, the result is the sign of x",
         "the sum has no axes", IMAGE,
         "q = Mul(x, x) s = ReduceSum<keepdims=1, noop_with_empty_axes=1>(q, no_axes) " + TAIL),
    same("expanded_further", "the norm is expanded to a larger batch than x has", "may differ from the shape of x",
         "(float[1,4,3,5] x) => (float[8,4,3,5] y)", NORM + "m = Clip(r, eps) e = Expand(m, larger) y = Div(x, e)"),
    same("expanded_as_another", "the norm is expanded to the shape of another, larger input",
         "may differ from the shape of x", "(float[1,4,3,5] x, float[M,4,3,5] z) => (float[M,4,3,5] y)",
         NORM + "m = Clip(r, eps) h = Shape(z) e = Expand(m, h) y = Div(x, e)"),
    same("used_in_if", "a branch of an If reads the sum from outside", "'s' inside the match is used by",
         "(float[N,4,3,5] x, bool c) => (float[N,4,3,5] y, float[N,1,3,5] other)",
         SUM + TAIL + " other = If(c) <then_branch = yes () => (float[N,1,3,5] a) { a = Log(s) }, "
         "else_branch = no () => (float[N,1,3,5] b) { b = Neg(x_first) }> "),
]
# fmt: on


def attributes(mode):
    return {"axes": [1], "epsilon": 1e-12, "epsilon_mode": mode}


# fmt: off
CONTROLS = [
    ("max_rsqrt", attributes("max"), IMAGE, SUM + "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"),
    ("max_div", attributes("max"), IMAGE, SUM + "m = Clip(s, eps) r = Sqrt(m) y = Div(x, r)"),
    ("norm_sqrt", attributes("norm"), IMAGE, SUM + "r = Sqrt(s) m = Max(r, eps) y = Div(x, m)"),
    ("norm_reduce_l2", attributes("norm"), IMAGE,
     "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) y = Div(x, m)"),
    ("norm_expand", attributes("norm"), IMAGE,
     "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) h = Shape(x) e = Expand(m, h) y = Div(x, e)"),
    ("norm_min_reciprocal", attributes("norm"), IMAGE,
     SUM + "r = Sqrt(s) i = Reciprocal(r) m = Min(i, cap) y = Mul(x, m)"),
    ("add", attributes("add"), IMAGE, SUM + "a = Add(s, eps) r = Sqrt(a) y = Div(x, r)"),
    ("norm_p_norm", attributes("norm"), IMAGE, P_NORM + "y = Div(x, m)"),
]
# fmt: on


def resembled(x):
    """Returns x divided by its norm over axis 1, once for each epsilon mode and each epsilon."""
    x = x.astype(np.float64)
    total = (x * x).sum(axis=1, keepdims=True)
    norms = [np.sqrt(np.maximum(total, e)) for e in (1e-12, 1e-3)] + [np.sqrt(total + e) for e in (1e-12, 1e-3)]
    norms += [np.maximum(np.sqrt(total), e) for e in (1e-12, 1e-3)]
    return [x / n for n in norms]
