# Networks that resemble L2Normalize but compute something else, or must not be fused: see
# tests/golden/generators/make_near_misses.py.
import numpy as np
from near_miss_cases import IMAGE, TWO_INPUTS

PREFIX = "l2"
OPERATOR = "L2Normalize"
SQUARE = "(float[4,4] x) => (float[4,4] y)"
TWO_OUTPUTS = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,1,3,5] {})"

CONSTANTS = {
    "eps_double": "double eps_double = {1e-12}",
    "eps_int": "int32 eps_int = {1}",
    "eps_channels": "float[1,4,1,1] eps_channels = {1e-12, 1e-6, 1e-3, 1}",
    "eps_rank5": "float[1,1,1,1,1] eps_rank5 = {1e-12}",
    "cap": "float cap = {1e12}",
    "cap_channels": "float[1,4,1,1] cap_channels = {1e12, 1e6, 1e3, 1}",
    "ten": "float ten = {10}",
    "two": "float two = {2}",
    "three": "float three = {3}",
    "half": "float half = {0.5}",
    "powers": "float[4,1,1] powers = {2, 2, 2, 3}",
    "axes": "int64[1] axes = {1}",
    "axes2": "int64[1] axes2 = {2}",
    "no_axes": "int64[0] no_axes = {}",
    "larger": "int64[4] larger = {8, 4, 3, 5}",
}

SUM = "q = Mul(x, x) s = ReduceSum<keepdims=1>(q, axes) "
# The p-norm as PaddlePaddle writes it.
P_NORM = "b = Abs(x) q = Pow(b, two) s = ReduceSum<keepdims=1>(q, axes) r = Pow(s, half) m = Max(r, eps) "
TAIL = "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"
NORM = "r = ReduceL2<axes=[1], keepdims=1>(x) "

MISSES = [
    (
        "wrong_axis_unsqueezed",
        "summed over axis 1 without keepdims, put back as axis 2: divides by another column's norm",
        "(float[N,4,4] x) => (float[N,4,4] y)",
        "r = ReduceL2<axes=[1], keepdims=0>(x) m = Clip(r, eps) u = Unsqueeze(m, axes2) y = Div(x, u)",
    ),
    (
        "wrong_axis_keepdims_0",
        "without keepdims the norm of row i is broadcast over column i",
        SQUARE,
        "r = ReduceL2<axes=[1], keepdims=0>(x) m = Clip(r, eps) y = Div(x, m)",
    ),
    (
        "wrong_axis_transposed",
        "the norm is transposed before the division",
        SQUARE,
        NORM + "m = Clip(r, eps) t = Transpose<perm=[1, 0]>(m) y = Div(x, t)",
    ),
    ("no_epsilon_div", "no epsilon: 0 / 0 must stay NaN", IMAGE, SUM + "r = Sqrt(s) y = Div(x, r)"),
    ("no_epsilon_reduce_l2", "no epsilon: 0 / 0 must stay NaN", IMAGE, NORM + "y = Div(x, r)"),
    (
        "no_epsilon_rsqrt",
        "no epsilon: 0 * inf must stay NaN",
        IMAGE,
        SUM + "r = Sqrt(s) i = Reciprocal(r) y = Mul(x, i)",
    ),
    (
        "squares_used_elsewhere",
        "the squares are needed by another node as well",
        "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,4,3,5] other)",
        SUM + TAIL + " other = Sigmoid(q)",
    ),
    ("sum_is_output", "the sum is an output of the network", TWO_OUTPUTS.format("s"), SUM + TAIL),
    (
        "norm_is_output",
        "the norm is an output of the network",
        TWO_OUTPUTS.format("r"),
        NORM + "m = Clip(r, eps) y = Div(x, m)",
    ),
    (
        "clamp_used_elsewhere",
        "the clamped sum is needed by another node as well",
        TWO_OUTPUTS.format("other"),
        SUM + TAIL + " other = Log(m)",
    ),
    ("power_3", "third power, not second", IMAGE, "q = Pow(x, three) s = ReduceSum<keepdims=1>(q, axes) " + TAIL),
    ("power_3_of_abs", "the norm of third powers", IMAGE, P_NORM.replace("two", "three") + "y = Div(x, m)"),
    (
        "power_half_twice",
        "the root is taken twice",
        IMAGE,
        P_NORM.replace("r = ", "t = Sqrt(s) r = ").replace("Pow(s, half", "Pow(t, half") + "y = Div(x, m)",
    ),
    ("abs_of_another", "the norm of another tensor", TWO_INPUTS, P_NORM.replace("Abs(x)", "Abs(z)") + "y = Div(x, m)"),
    (
        "power_at_run_time",
        "the exponent is an input of the network",
        "(float[N,4,3,5] x, float p) => (float[N,4,3,5] y)",
        "q = Pow(x, p) s = ReduceSum<keepdims=1>(q, axes) " + TAIL,
    ),
    (
        "power_per_channel",
        "the exponent differs between channels",
        IMAGE,
        "q = Pow(x, powers) s = ReduceSum<keepdims=1>(q, axes) " + TAIL,
    ),
    (
        "l1_norm",
        "ReduceL1, not ReduceL2",
        IMAGE,
        "r = ReduceL1<axes=[1], keepdims=1>(x) m = Clip(r, eps) y = Div(x, m)",
    ),
    (
        "sum_of_abs",
        "the absolute values are summed, not the squares",
        IMAGE,
        "q = Abs(x) s = ReduceSum<keepdims=1>(q, axes) " + TAIL,
    ),
    ("sqrt_missing", "divides by the sum of squares, not by its root", IMAGE, SUM + "m = Max(s, eps) y = Div(x, m)"),
    (
        "sqrt_before_sum",
        "the root is taken before the sum",
        IMAGE,
        "q = Mul(x, x) r = Sqrt(q) s = ReduceSum<keepdims=1>(r, axes) m = Max(s, eps) y = Div(x, m)",
    ),
    (
        "clamp_on_x",
        "x is clamped before it is squared",
        IMAGE,
        "k = Clip(x, eps) q = Mul(k, k) s = ReduceSum<keepdims=1>(q, axes) r = Sqrt(s) y = Div(x, r)",
    ),
    (
        "clamp_on_squares",
        "each square is clamped, not the sum",
        IMAGE,
        "q = Mul(x, x) m = Max(q, eps_large) s = ReduceSum<keepdims=1>(m, axes) r = Sqrt(s) y = Div(x, r)",
    ),
    (
        "clamp_after_reciprocal",
        "the reciprocal is clamped from below",
        IMAGE,
        SUM + "r = Sqrt(s) i = Reciprocal(r) m = Max(i, eps) y = Mul(x, m)",
    ),
    (
        "epsilon_per_channel",
        "epsilon differs between channels",
        IMAGE,
        SUM + "m = Max(s, eps_channels) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "epsilon_of_rank_5",
        "epsilon has more dimensions than x, so the result gains one",
        "(float[N,4,3,5] x) => (float[1,N,4,3,5] y)",
        SUM + "m = Max(s, eps_rank5) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "epsilon_negative_max",
        "a negative epsilon clamps nothing: 0 / 0 must stay NaN",
        IMAGE,
        SUM + "m = Max(s, eps_negative) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "epsilon_negative_add",
        "a negative epsilon under the root",
        IMAGE,
        SUM + "a = Add(s, eps_negative) r = Sqrt(a) y = Div(x, r)",
    ),
    ("epsilon_subtracted", "epsilon is subtracted", IMAGE, SUM + "a = Sub(s, eps_large) r = Sqrt(a) y = Div(x, r)"),
    (
        "epsilon_added_to_norm",
        "epsilon is added to the norm, which is not one of the three modes",
        IMAGE,
        NORM + "a = Add(r, eps_large) y = Div(x, a)",
    ),
    (
        "epsilon_at_run_time",
        "epsilon is an input of the network",
        "(float[N,4,3,5] x, float e) => (float[N,4,3,5] y)",
        SUM + "m = Max(s, e) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)",
    ),
    (
        "epsilon_computed",
        "epsilon is computed from x",
        IMAGE,
        "b = Abs(x) h = ReduceMax<keepdims=0>(b) e = Mul(h, eps_large) "
        + SUM
        + "m = Max(s, e) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "double",
        "double precision: the operator has no such type and would lose digits",
        "(double[N,4,3,5] x) => (double[N,4,3,5] y)",
        SUM + "m = Max(s, eps_double) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "int32",
        "integers: the division truncates",
        "(int32[N,4,3,5] x) => (int32[N,4,3,5] y)",
        NORM + "m = Max(r, eps_int) y = Div(x, m)",
    ),
    (
        "product_of_two",
        "x * z is summed, not x * x",
        TWO_INPUTS,
        "q = Mul(x, z) s = ReduceSum<keepdims=1>(q, axes) " + TAIL,
    ),
    ("divides_another", "the norm of x divides z", TWO_INPUTS, NORM + "m = Clip(r, eps) y = Div(z, m)"),
    (
        "norm_of_activation",
        "the norm is that of Relu(x), and divides x",
        IMAGE,
        "k = Relu(x) q = Mul(k, k) s = ReduceSum<keepdims=1>(q, axes) " + TAIL,
    ),
    ("division_upside_down", "the norm divided by x", IMAGE, NORM + "m = Clip(r, eps) y = Div(m, x)"),
    (
        "reduce_mean",
        "the mean of the squares, as in RMS normalization",
        IMAGE,
        "q = Mul(x, x) s = ReduceMean<axes=[1], keepdims=1>(q) " + TAIL,
    ),
    (
        "reduce_max",
        "the largest square, not the sum",
        IMAGE,
        "q = Mul(x, x) s = ReduceMax<axes=[1], keepdims=1>(q) " + TAIL,
    ),
    (
        "summed_twice",
        "summed over axis 1, then again over axis 2",
        IMAGE,
        SUM + "t = ReduceSum<keepdims=1>(s, axes2) m = Max(t, eps) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "reciprocal_twice",
        "multiplies by the norm: the two reciprocals cancel",
        IMAGE,
        SUM + "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) k = Reciprocal(i) y = Mul(x, k)",
    ),
    ("min_not_max", "Min(sum, epsilon) where Max belongs", IMAGE, SUM + "m = Min(s, eps) r = Sqrt(m) y = Div(x, r)"),
    (
        "max_of_three",
        "a third tensor takes part in the maximum",
        "(float[N,4,3,5] x, float[N,1,3,5] z) => (float[N,4,3,5] y)",
        SUM + "m = Max(s, eps, z) r = Sqrt(m) y = Div(x, r)",
    ),
    (
        "clip_above_only",
        "Clip limits the norm from above, not from below",
        IMAGE,
        NORM + "m = Clip(r, , ten) y = Div(x, m)",
    ),
    ("clip_both", "Clip limits the norm from above as well", IMAGE, NORM + "m = Clip(r, eps, ten) y = Div(x, m)"),
    (
        "cap_per_channel",
        "Keras' form, but the cap on the reciprocal differs between channels",
        IMAGE,
        SUM + "r = Sqrt(s) i = Reciprocal(r) m = Min(i, cap_channels) y = Mul(x, m)",
    ),
    (
        "axes_at_run_time",
        "the axes of the sum are an input of the network",
        "(float[N,4,3,5] x, int64[1] a) => (float[N,4,3,5] y)",
        "q = Mul(x, x) s = ReduceSum<keepdims=1>(q, a) " + TAIL,
    ),
    (
        "no_axes_no_sum",
        "no axes and noop_with_empty_axes=1: nothing is summed, the result is the sign of x",
        IMAGE,
        "q = Mul(x, x) s = ReduceSum<keepdims=1, noop_with_empty_axes=1>(q, no_axes) " + TAIL,
    ),
    (
        "expanded_further",
        "the norm is expanded to a larger batch than x has",
        "(float[1,4,3,5] x) => (float[8,4,3,5] y)",
        NORM + "m = Clip(r, eps) e = Expand(m, larger) y = Div(x, e)",
    ),
    (
        "expanded_as_another",
        "the norm is expanded to the shape of another, larger input",
        "(float[1,4,3,5] x, float[M,4,3,5] z) => (float[M,4,3,5] y)",
        NORM + "m = Clip(r, eps) h = Shape(z) e = Expand(m, h) y = Div(x, e)",
    ),
    (
        "used_in_if",
        "a branch of an If reads the sum from outside",
        "(float[N,4,3,5] x, bool c) => (float[N,4,3,5] y, float[N,1,3,5] other)",
        SUM + TAIL + " other = If(c) <then_branch = yes () => (float[N,1,3,5] a) { a = Log(s) }, "
        "else_branch = no () => (float[N,1,3,5] b) { b = Neg(x_first) }> ",
    ),
]

# Networks whose values equal the operator's, but that must not be fused for another reason.
SAME_VALUES = {
    "squares_used_elsewhere",
    "sum_is_output",
    "norm_is_output",
    "clamp_used_elsewhere",
    "used_in_if",
    "double",
    "epsilon_at_run_time",
    "power_at_run_time",
    "axes_at_run_time",
    "epsilon_of_rank_5",
    "expanded_further",
    "expanded_as_another",
}

# A part of the reason that `convert --explain` reports for each network.
EXPLAINED = {
    "wrong_axis_unsqueezed": "unsqueezed along other axes",
    "wrong_axis_keepdims_0": "`keepdims` is 0",
    "no_epsilon_div": "no epsilon",
    "no_epsilon_reduce_l2": "no epsilon",
    "no_epsilon_rsqrt": "no epsilon",
    "squares_used_elsewhere": "is used by node 'Sigmoid",
    "sum_is_output": "is an output of the graph",
    "norm_is_output": "is an output of the graph",
    "clamp_used_elsewhere": "is used by node 'Log",
    "power_3": "is 3, the pattern needs 2",
    "power_3_of_abs": "is 3, the pattern needs 2",
    "abs_of_another": "the pattern needs x",
    "power_at_run_time": "is not a constant, the pattern needs 2",
    "power_per_channel": "{2, 2, 2, 3}, the pattern needs 2",
    "l1_norm": "(ReduceL1)",
    "sum_of_abs": "(Abs): the pattern needs Mul",
    "sqrt_missing": "(ReduceSum)",
    "sqrt_before_sum": "(ReduceSum)",
    "clamp_on_x": "(ReduceSum): the pattern needs Max",
    "clamp_on_squares": "(ReduceSum): the pattern needs Max",
    "epsilon_per_channel": "epsilon has 4 values",
    "epsilon_of_rank_5": "raises the rank of the result from 4 to 5",
    "epsilon_negative_max": "allowed is at least 0",
    "epsilon_negative_add": "allowed is at least 0",
    "epsilon_subtracted": "(Sub)",
    "epsilon_added_to_norm": "epsilon is added to the norm",
    "epsilon_at_run_time": "not a constant, the pattern needs one for @epsilon",
    "epsilon_computed": "not a constant, the pattern needs one for @epsilon",
    "double": "'x' is f64",
    "int32": "'x' is i32",
    "product_of_two": "is 'z', the pattern needs x",
    "divides_another": "the pattern needs x, which is 'z'",
    "norm_of_activation": "the pattern needs x, which is 'x'",
    "division_upside_down": "the norm is divided by x",
    "reduce_mean": "(ReduceMean)",
    "reduce_max": "(ReduceMax)",
    "summed_twice": "(ReduceSum): the pattern needs Mul",
    "reciprocal_twice": "(Reciprocal)",
    "min_not_max": "(Min)",
    "max_of_three": "it has an input 2",
    "clip_above_only": "input 1 is absent",
    "clip_both": "also has an upper limit",
    "cap_per_channel": "the cap on the reciprocal has 4 values",
    "axes_at_run_time": "not a constant, the pattern needs one for @axes",
    "no_axes_no_sum": "no axes to sum over",
    "expanded_further": "may differ from the shape of x",
    "expanded_as_another": "may differ from the shape of x",
    "used_in_if": "'s' inside the match is used by",
}


def attributes(mode):
    return {"axes": [1], "epsilon": 1e-12, "epsilon_mode": mode}


CONTROLS = [
    ("max_rsqrt", attributes("max"), IMAGE, SUM + "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"),
    ("max_div", attributes("max"), IMAGE, SUM + "m = Clip(s, eps) r = Sqrt(m) y = Div(x, r)"),
    ("norm_sqrt", attributes("norm"), IMAGE, SUM + "r = Sqrt(s) m = Max(r, eps) y = Div(x, m)"),
    (
        "norm_reduce_l2",
        attributes("norm"),
        IMAGE,
        "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) y = Div(x, m)",
    ),
    (
        "norm_expand",
        attributes("norm"),
        IMAGE,
        "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) h = Shape(x) e = Expand(m, h) y = Div(x, e)",
    ),
    (
        "norm_min_reciprocal",
        attributes("norm"),
        IMAGE,
        SUM + "r = Sqrt(s) i = Reciprocal(r) m = Min(i, cap) y = Mul(x, m)",
    ),
    ("add", attributes("add"), IMAGE, SUM + "a = Add(s, eps) r = Sqrt(a) y = Div(x, r)"),
    ("norm_p_norm", attributes("norm"), IMAGE, P_NORM + "y = Div(x, m)"),
]


def resembled(x):
    """Returns x divided by its norm over axis 1, once for each epsilon mode and each epsilon."""
    x = x.astype(np.float64)
    total = (x * x).sum(axis=1, keepdims=True)
    norms = [np.sqrt(np.maximum(total, e)) for e in (1e-12, 1e-3)] + [np.sqrt(total + e) for e in (1e-12, 1e-3)]
    norms += [np.maximum(np.sqrt(total), e) for e in (1e-12, 1e-3)]
    return [x / n for n in norms]
