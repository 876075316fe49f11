# make_near_misses.py - writes networks that look like one of Graft's operators and are not, for the fusion tests.
"""Writes tests/golden/near_misses/*.onnx and manifest.json.

Every near miss is a valid network (onnx.checker, ONNX Runtime) that a careless pattern would fuse wrongly. Beside them
are a few controls, written the same way, which must be fused: they show that a near miss is left alone for its own
reason, not because the way it is written is unknown.

The script runs each network. A near miss must give something else than the operator it resembles, on an input with a
row of zeros, a tiny row and a long row; those where the numbers agree and another reason forbids the fusion are marked
same_values. A control must give the operator's own values.

Those of padding, upsampling, pyramid pooling and instance norm are written in near_miss_forms.py.

The manifest lists file, operator (what it resembles), reason, same_values; for controls file, operator, attributes.

Made with (Python 3.11): onnx==1.18.0 onnxruntime==1.22.1 numpy==2.1.3
Run: python tools/make_near_misses.py [--out tests/golden/near_misses]
"""

import argparse
import json
import pathlib
import re

import near_miss_forms
import numpy as np
import onnx
import onnx.parser
import onnxruntime

IMAGE = "(float[N,4,3,5] x) => (float[N,4,3,5] y)"
SQUARE = "(float[4,4] x) => (float[4,4] y)"
TWO_INPUTS = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,5] y)"
SIZES = {"N": 4, "M": 8, "H": 3, "W": 5}

# A network gets those of these initializers that its text names.
CONSTANTS = {
    "eps": "float eps = {1e-12}",
    "eps_double": "double eps_double = {1e-12}",
    "eps_int": "int32 eps_int = {1}",
    "eps_large": "float eps_large = {1e-3}",
    "eps_negative": "float eps_negative = {-1e-3}",
    "eps_channels": "float[1,4,1,1] eps_channels = {1e-12, 1e-6, 1e-3, 1}",
    "eps_rank5": "float[1,1,1,1,1] eps_rank5 = {1e-12}",
    "cap": "float cap = {1e12}",
    "cap_channels": "float[1,4,1,1] cap_channels = {1e12, 1e6, 1e3, 1}",
    "ten": "float ten = {10}",
    "zero": "float zero = {0}",
    "one": "float one = {1}",
    "two": "float two = {2}",
    "three": "float three = {3}",
    "half": "float half = {0.5}",
    "minus_one": "float minus_one = {-1}",
    "minus_two": "float minus_two = {-2}",
    "powers": "float[4,1,1] powers = {2, 2, 2, 3}",
    "axes": "int64[1] axes = {1}",
    "axes2": "int64[1] axes2 = {2}",
    "no_axes": "int64[0] no_axes = {}",
    "larger": "int64[4] larger = {8, 4, 3, 5}",
    "alpha": "float alpha = {0.1}",
    "alpha_double": "double alpha_double = {0.1}",
    "zero_double": "double zero_double = {0}",
    "alpha_channels": "float[4,1,1] alpha_channels = {0.1, 0.2, 0.3, 0.4}",
    "alpha_rank5": "float[1,1,1,1,1] alpha_rank5 = {0.1}",
}

SUM = "q = Mul(x, x) s = ReduceSum<keepdims=1>(q, axes) "
# As PaddlePaddle writes its p-norm.
P_NORM = "b = Abs(x) q = Pow(b, two) s = ReduceSum<keepdims=1>(q, axes) r = Pow(s, half) m = Max(r, eps) "
CONTROLS = [
    ("max_rsqrt", "max", SUM + "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"),
    ("max_div", "max", SUM + "m = Clip(s, eps) r = Sqrt(m) y = Div(x, r)"),
    ("norm_sqrt", "norm", SUM + "r = Sqrt(s) m = Max(r, eps) y = Div(x, m)"),
    ("norm_reduce_l2", "norm", "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) y = Div(x, m)"),
    (
        "norm_expand",
        "norm",
        "r = ReduceL2<axes=[1], keepdims=1>(x) m = Clip(r, eps) h = Shape(x) e = Expand(m, h) y = Div(x, e)",
    ),
    ("norm_min_reciprocal", "norm", SUM + "r = Sqrt(s) i = Reciprocal(r) m = Min(i, cap) y = Mul(x, m)"),
    ("add", "add", SUM + "a = Add(s, eps) r = Sqrt(a) y = Div(x, r)"),
    ("norm_p_norm", "norm", P_NORM + "y = Div(x, m)"),
    ("leaky_max", None, "a = Mul(x, alpha) y = Max(x, a)"),
    ("leaky_where", None, "c = Greater(x, zero) a = Mul(x, alpha) y = Where(c, x, a)"),
    ("leaky_clip", None, "p = Clip(x, zero) n = Clip(x, , zero) a = Mul(n, alpha) y = Add(p, a)"),
    ("leaky_relu", None, "p = Relu(x) m = Neg(x) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
    ("leaky_relu_of_product", None, "p = Relu(x) m = Mul(x, minus_one) n = Relu(m) a = Mul(n, alpha) y = Sub(p, a)"),
]

TAIL = "m = Max(s, eps) r = Sqrt(m) i = Reciprocal(r) y = Mul(x, i)"
NORM = "r = ReduceL2<axes=[1], keepdims=1>(x) "
TWO_OUTPUTS = "(float[N,4,3,5] x) => (float[N,4,3,5] y, float[N,1,3,5] {})"

L2_MISSES = [
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
        "epsilon is added to the norm, which is none of the three modes",
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

LEAKY_MISSES = [
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

# The numbers agree with the operator's; something else forbids the fusion.
SAME_VALUES = {
    "l2_squares_used_elsewhere", "l2_sum_is_output", "l2_norm_is_output", "l2_clamp_used_elsewhere", "l2_used_in_if",
    "l2_double", "l2_epsilon_at_run_time", "l2_power_at_run_time", "l2_axes_at_run_time", "l2_epsilon_of_rank_5",
    "l2_expanded_further", "l2_expanded_as_another", "leaky_alpha_at_run_time", "leaky_alpha_of_rank_5",
    "leaky_product_is_output", "leaky_double",
}  # fmt: skip


def parse(signature, body):
    if "x_first" in body:
        body = "z0 = Constant<value = int64[1] {0}>() x_first = Gather<axis=1>(x, z0) " + body
    every = CONSTANTS | near_miss_forms.CONSTANTS
    constants = ", ".join(text for name, text in every.items() if re.search(rf"\b{name}\b(?!=)", body))
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nnetwork {signature}\n<{constants}>\n{{ {body} }}'
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{i}"
    return model


def example(value):
    """Input values: for x a row of zeros, a tiny one, a long one and an ordinary one in each batch."""
    kind = value.type.tensor_type
    shape = [d.dim_value or SIZES[d.dim_param] for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if value.name in ("x", "z"):
        data = np.random.default_rng(len(value.name) + ord(value.name[0])).standard_normal(shape) * 1.5
        if value.name == "x":
            if len(shape) == 2:
                data[0] = 0.0
            else:
                data[..., 0] = 0.0
                data[..., 1] *= 1e-4
                data[..., 2] *= 30.0
        return (data * 10).astype(dtype) if dtype == np.int32 else data.astype(dtype)
    if value.name == "w":
        return near_miss_forms.weights(4, near_miss_forms.kernel(4, 2)).astype(dtype)
    axes_or_alpha = [1] if dtype == np.int64 else 0.1
    return np.array({"p": 2.0, "e": 1e-12, "c": True, "a": axes_or_alpha}[value.name], dtype)


def resembled(operator, x):
    """What the operator would give: for L2Normalize one array per epsilon mode, over axis 1."""
    if operator not in ("L2Normalize", "LeakyReLU"):
        return near_miss_forms.resembled(operator, x)
    x = x.astype(np.float64)
    if operator == "LeakyReLU":
        return [np.where(x > 0, x, 0.1 * x), np.where(x > 0, x, 2.0 * x)]
    total = (x * x).sum(axis=1, keepdims=True)
    norms = [np.sqrt(np.maximum(total, e)) for e in (1e-12, 1e-3)] + [np.sqrt(total + e) for e in (1e-12, 1e-3)]
    norms += [np.maximum(np.sqrt(total), e) for e in (1e-12, 1e-3)]
    return [x / n for n in norms]


def run(model):
    onnx.checker.check_model(model, full_check=True)
    feeds = {v.name: example(v) for v in model.graph.input}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return feeds["x"], session.run(["y"], feeds)[0]


def close(actual, expected):
    try:
        expected = np.broadcast_to(expected, actual.shape)
    except ValueError:
        return False
    return np.allclose(actual, expected, rtol=1e-4, atol=1e-6, equal_nan=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/near_misses"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    misses, controls = [], []
    every = [("l2", "L2Normalize", *m) for m in L2_MISSES] + [("leaky", "LeakyReLU", *m) for m in LEAKY_MISSES]
    every += near_miss_forms.MISSES
    same_values = SAME_VALUES | near_miss_forms.SAME_VALUES
    for prefix, operator, name, reason, signature, body in every:
        model = parse(signature, body)
        x, y = run(model)
        same = any(close(y, other) for other in resembled(operator, x))
        assert same == (f"{prefix}_{name}" in same_values), f"{prefix}_{name}: same values as {operator}: {same}"
        file = f"{prefix}_{name}.onnx"
        onnx.save(model, out / file)
        misses.append({"file": file, "operator": operator, "reason": reason, "same_values": same})
    every_control = [
        (
            name,
            "L2Normalize" if mode else "LeakyReLU",
            {"axes": [1], "epsilon": 1e-12, "epsilon_mode": mode} if mode else {"alpha": 0.1},
            IMAGE,
            body,
        )
        for name, mode, body in CONTROLS
    ]
    for name, operator, attributes, signature, body in every_control + near_miss_forms.CONTROLS:
        model = parse(signature, body)
        x, y = run(model)
        assert any(close(y, other) for other in resembled(operator, x)), f"control {name} is not {operator}"
        file = f"control_{name}.onnx"
        onnx.save(model, out / file)
        controls.append({"file": file, "operator": operator, "attributes": attributes, "fusions": 1})

    def lines(entries):
        return ",\n".join("    " + json.dumps(entry) for entry in entries)

    (out / "manifest.json").write_text(
        f'{{\n  "made_by": "tools/make_near_misses.py",\n  "near_misses": [\n{lines(misses)}\n  ],\n'
        f'  "controls": [\n{lines(controls)}\n  ]\n}}\n'
    )
    print(f"{len(misses)} near misses ({len(L2_MISSES)} of l2_normalize), {len(controls)} controls")


if __name__ == "__main__":
    main()
