# Compares quantized models on the CPU engine bit by bit with integer arithmetic: NumPy's i64, and ONNX Runtime's
# ConvInteger.
"""The reference adds integers in i64 (in f64 below 2^53, which is exact too), rounds the sum to f32, multiplies with
the product of the scales and adds the bias, each in f32. ONNX Runtime gets u8 for both operands: its kernels for u8
and i8 saturate on some CPUs."""

import itertools
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import make_model, subgraph
from test_against_onnxruntime import run_graft, run_onnxruntime, runner

F32 = np.float32
ZERO = np.int8(0)


class Network:
    """A network, with the expected value of each tensor."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.expected, self.count = [], {}, {}, {}, 0

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def constant(self, value, kind="c"):
        name = self.name(kind)
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, inputs, expected=None, domain=None, **attributes):
        name = self.name("t")
        node = helper.make_node(op, inputs, [name], domain=domain)
        node.attribute.extend(helper.make_attribute(*attribute) for attribute in attributes.items())
        self.nodes.append(node)
        if expected is not None:
            self.expected[name] = expected
        return name

    def input(self, value):
        name = self.name("x")
        self.inputs[name] = value
        return name

    def quantized(self, x, scale, zero_point=ZERO, expected=None):
        """Returns the name of the tensor after DequantizeLinear, and its steps in i64 without the zero point."""
        parameters = [self.constant(scale), self.constant(zero_point)]
        value = self.inputs[x] if expected is None else expected
        steps = quantize(value, scale, zero_point)
        stored = self.node("QuantizeLinear", [x, *parameters], steps.astype(zero_point.dtype))
        steps = steps - int(zero_point)
        real = self.node("DequantizeLinear", [stored, *parameters], steps.astype("f4") * scale)
        return real, steps

    def weight(self, steps, scales, axis, zero_points=None):
        zero_points = np.zeros(np.shape(scales), "i1") if zero_points is None else zero_points
        names = [self.constant(value) for value in (steps, scales, zero_points)]
        return self.node("DequantizeLinear", names, axis=axis)

    def save(self, path, opset=21):
        graph = subgraph(
            self.nodes,
            [(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in self.inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in self.expected],
            self.constants,
        )
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("graft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))

    def check(self, folder):
        self.save(folder / "model.onnx")
        found = run_graft("functions", folder / "model.onnx", self.inputs, folder)
        assert found.keys() == self.expected.keys()
        for name, value in self.expected.items():
            producer = next(node.op_type for node in self.nodes if name in node.output)
            assert found[name].dtype == value.dtype, (name, producer)
            np.testing.assert_array_equal(found[name], value, err_msg=f"{name} ({producer})", strict=True)


def quantize(x, scale, zero_point):
    limits = np.iinfo(zero_point.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.rint(x.astype("f4") / scale)
    steps = np.where(np.isnan(steps), F32(0), steps) + F32(zero_point)
    return np.clip(steps, limits.min, limits.max).astype("i8")


def sum_of_convolution(x, w, strides, pads, dilations, group):
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((pads[i], pads[axes + i]) for i in range(axes))]).astype("f8")
    size = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    outputs, inputs = w.shape[0] // group, w.shape[1]
    for at in itertools.product(*(range(k) for k in w.shape[2:])):
        window = tuple(
            slice(at[i] * dilations[i], at[i] * dilations[i] + (size[i] - 1) * strides[i] + 1, strides[i])
            for i in range(axes)
        )
        for g in range(group):
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *window)]
            weights = w[(slice(g * outputs, (g + 1) * outputs), slice(None), *at)].astype("f8")
            y[:, g * outputs : (g + 1) * outputs] += np.moveaxis(np.tensordot(part, weights, ([1], [1])), -1, 1)
    return y


def sum_of_transposed_convolution(x, w, strides, pads, group):
    axes = x.ndim - 2
    outputs, inputs = w.shape[1], w.shape[0] // group
    full = [(x.shape[2 + i] - 1) * strides[i] + w.shape[2 + i] for i in range(axes)]
    y = np.zeros((x.shape[0], outputs * group, *full))
    for at in itertools.product(*(range(k) for k in w.shape[2:])):
        window = tuple(slice(at[i], at[i] + (x.shape[2 + i] - 1) * strides[i] + 1, strides[i]) for i in range(axes))
        for g in range(group):
            part = x[:, g * inputs : (g + 1) * inputs].astype("f8")
            weights = w[(slice(g * inputs, (g + 1) * inputs), slice(None), *at)].astype("f8")
            y[(slice(None), slice(g * outputs, (g + 1) * outputs), *window)] += np.moveaxis(
                np.tensordot(part, weights, ([1], [0])), -1, 1
            )
    return y[(slice(None), slice(None), *(slice(pads[i], full[i] - pads[axes + i]) for i in range(axes)))]


def spread(scales, axes):
    return np.reshape(scales, (-1, *[1] * axes)) if np.ndim(scales) else scales


def real(sums, x_scale, w_scales, bias=None):
    """Returns the real numbers of integer `sums`; w_scales and bias have the result's shape."""
    y = sums.astype("i8" if sums.dtype.kind == "i" else "f8").astype("f4") * (F32(x_scale) * w_scales)
    return y if bias is None else y + bias


def steps_of(random, shape, kind):
    if kind == "extreme":  # all products have one sign, so that sums are as large as they can be
        return np.full(shape, 127, "i1")
    if kind == "alternating":  # odd numbers, at the other end of the range
        return np.where(random.integers(0, 8, shape) == 0, random.integers(-127, 128, shape), -127).astype("i1")
    return random.integers(-127, 128, shape).astype("i1")


def numbers(random, shape, kind):
    if kind in ("extreme", "alternating"):
        return random.uniform(0.9, 1.3, shape).astype("f4")
    return random.standard_normal(shape).astype("f4") / 2


def add_convolution(net, axes, channels, outputs, window, kind="random", batch=1, size=7, group=1, per_channel=True,
                    bias=True, backwards=False, symmetric=True, **attributes):  # fmt: skip
    random = net.random
    pads = attributes.setdefault("pads", [0] * 2 * axes)
    strides = attributes.setdefault("strides", [1] * axes)
    x = net.input(numbers(random, (batch, channels, *[size] * axes), kind))
    x_scale = F32(random.uniform(0.007, 0.009))
    x_real, x_steps = net.quantized(x, x_scale, np.int8(0) if symmetric else np.uint8(117))
    weights = (outputs, channels // group) if not backwards else (channels, outputs // group)
    steps = steps_of(random, (*weights, *[window] * axes), kind)
    axis = 1 if backwards else 0
    scaled = steps.shape[axis]
    scales = random.uniform(1e-3, 1e-2, scaled if per_channel else ()).astype("f4")
    zero_points = None if symmetric else random.integers(-9, 9, np.shape(scales)).astype("i1")
    inputs = [x_real, net.weight(steps, scales, axis, zero_points)]
    if bias:
        inputs.append(net.constant(random.standard_normal(outputs).astype("f4")))
    whole = steps.astype("i8")
    if not symmetric:
        zero_points = zero_points.astype("i8")
        whole -= np.reshape(zero_points, (1, -1, *[1] * axes)) if backwards else spread(zero_points, axes + 1)
    if backwards:
        sums = sum_of_transposed_convolution(x_steps, whole, strides, pads, group)
        scales = np.tile(scales, group) if per_channel else scales
    else:
        dilations = attributes.setdefault("dilations", [1] * axes)
        sums = sum_of_convolution(x_steps, whole, strides, pads, dilations, group)
    expected = real(sums, x_scale, spread(scales, axes), spread(net.constants[inputs[2]], axes) if bias else None)
    op = "ConvTranspose" if backwards else "Conv"
    return net.node(op, inputs, expected, group=group, **attributes), expected, sums


CONVOLUTIONS = {
    "plain": {"axes": 2, "channels": 16, "outputs": 24, "window": 3, "pads": [1, 1, 1, 1]},
    "few channels": {"axes": 2, "channels": 3, "outputs": 8, "window": 7, "strides": [2, 2], "size": 17},
    "pointwise": {"axes": 2, "channels": 64, "outputs": 32, "window": 1, "batch": 2},
    "pointwise, strides": {"axes": 2, "channels": 33, "outputs": 5, "window": 1, "strides": [2, 2]},
    "one scale, no bias": {"axes": 2, "channels": 8, "outputs": 8, "window": 3, "per_channel": False, "bias": False},
    "groups": {"axes": 2, "channels": 32, "outputs": 16, "window": 3, "group": 4, "pads": [0, 1, 1, 0]},
    "depthwise": {"axes": 2, "channels": 40, "outputs": 40, "window": 3, "group": 40, "pads": [1] * 4},
    "depthwise, two each": {"axes": 2, "channels": 8, "outputs": 16, "window": 5, "group": 8},
    "dilated": {"axes": 2, "channels": 16, "outputs": 16, "window": 3, "dilations": [2, 2], "size": 11},
    "1-D": {"axes": 1, "channels": 20, "outputs": 12, "window": 5, "size": 40, "strides": [3]},
    "3-D": {"axes": 3, "channels": 6, "outputs": 10, "window": 3, "pads": [1] * 6, "size": 5, "batch": 2},
    "3-D, groups": {"axes": 3, "channels": 8, "outputs": 4, "window": 2, "group": 2, "size": 4},
    "zero points": {"axes": 2, "channels": 16, "outputs": 8, "window": 3, "symmetric": False, "pads": [1] * 4},
    "large sums": {"axes": 2, "channels": 300, "outputs": 16, "window": 3, "kind": "extreme", "pads": [1] * 4},
    "large odd sums": {"axes": 2, "channels": 301, "outputs": 16, "window": 3, "kind": "alternating"},
    "large, pointwise": {"axes": 2, "channels": 2051, "outputs": 9, "window": 1, "kind": "alternating", "size": 3},
    "large, groups": {"axes": 2, "channels": 600, "outputs": 4, "window": 3, "group": 2, "kind": "alternating"},
    "large, zero points": {
        "axes": 2, "channels": 400, "outputs": 6, "window": 3, "kind": "alternating", "symmetric": False,
    },
    "larger than two digits": {"axes": 1, "channels": 30011, "outputs": 3, "window": 1, "kind": "alternating", "size": 2},
    "backwards": {"axes": 2, "channels": 16, "outputs": 8, "window": 3, "backwards": True, "strides": [2, 2]},
    "backwards, groups": {
        "axes": 2, "channels": 16, "outputs": 12, "window": 2, "backwards": True, "group": 4, "pads": [1, 0, 0, 1],
    },
    "backwards, 1-D": {"axes": 1, "channels": 9, "outputs": 6, "window": 4, "backwards": True, "strides": [3]},
    "large, backwards": {
        "axes": 2, "channels": 601, "outputs": 8, "window": 3, "backwards": True, "kind": "alternating", "size": 5,
    },
    "backwards, zero points": {
        "axes": 2, "channels": 10, "outputs": 6, "window": 3, "backwards": True, "symmetric": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("form", CONVOLUTIONS)
def test_convolution(form, tmp_path):
    net = Network(len(form))
    _, _, sums = add_convolution(net, **CONVOLUTIONS[form])
    if form.startswith("large"):  # sums that f32 cannot compute term by term
        assert np.abs(sums).max() > 2**24 and (sums.astype("f4") != sums).any()
    net.check(tmp_path)


def test_random_convolutions(tmp_path):
    net = Network(20)
    random = np.random.default_rng(21)
    for _ in range(60):
        axes = int(random.integers(1, 4))
        group = int(random.choice([1, 1, 2, 3, 8]))
        backwards = bool(random.integers(4) == 0)
        attributes = {"pads": [int(p) for p in random.integers(0, 2, 2 * axes)]}
        attributes["strides"] = [int(s) for s in random.integers(1, 4, axes)]
        if not backwards:
            attributes["dilations"] = [int(d) for d in random.integers(1, 3, axes)]
        add_convolution(
            net,
            axes,
            channels=group * int(random.integers(1, 40)),
            outputs=group * int(random.integers(1, 40)),
            window=int(random.integers(1, 4)),
            kind=str(random.choice(["random", "alternating", "extreme"])),
            batch=int(random.integers(1, 3)),
            size=int(random.integers(6, 10 if axes > 1 else 40)),
            group=group,
            per_channel=bool(random.integers(4)),
            bias=bool(random.integers(2)),
            backwards=backwards,
            symmetric=bool(random.integers(3)),
            **attributes,
        )
    net.check(tmp_path)


def add_matrix_product(net, left, right, kind="random", scaled=None, transposed=False, both_change=False, gemm=None):
    """Adds a matrix product. `right` is a constant unless `both_change`; `scaled` is its axis with one scale per
    index."""
    random = net.random
    a_scale, b_scale = F32(0.008), F32(0.0077)
    a_real, a_steps = net.quantized(net.input(numbers(random, left, kind)), a_scale)
    if both_change:
        b_real, b_steps = net.quantized(net.input(numbers(random, right, kind)), b_scale)
    else:
        b_steps = steps_of(random, right, kind)
        if scaled is not None:
            b_scale = random.uniform(1e-3, 1e-2, right[scaled]).astype("f4")
        b_real = net.weight(b_steps, b_scale, 0 if scaled is None else scaled)
    if gemm is None:
        sums = a_steps.astype("i8") @ b_steps.astype("i8")
        return net.node("MatMul", [a_real, b_real], real(sums, a_scale, b_scale))
    a, b = a_steps.astype("i8"), b_steps.astype("i8")
    sums = (a.T if gemm.get("transA") else a) @ (b.T if gemm.get("transB") else b)
    expected = real(sums, a_scale, b_scale) * F32(gemm.get("alpha", 1))
    inputs = [a_real, b_real]
    if gemm.get("bias"):
        bias = random.standard_normal(expected.shape[-1]).astype("f4")
        inputs.append(net.constant(bias))
        expected = expected + bias * F32(gemm.get("beta", 1))
    return net.node("Gemm", inputs, expected, **{k: v for k, v in gemm.items() if k != "bias"})


PRODUCTS = {
    "plain": {"left": (3, 50), "right": (50, 7), "scaled": 1},
    "one scale": {"left": (3, 50), "right": (50, 7)},
    "batch": {"left": (2, 4, 5, 32), "right": (32, 16), "scaled": 1},
    "vector": {"left": (40,), "right": (40, 6), "scaled": 1},
    "by a vector": {"left": (2, 5, 40), "right": (40,)},
    "large": {"left": (3, 5003), "right": (5003, 9), "scaled": 1, "kind": "alternating"},
    "three digits and more": {"left": (2, 40009), "right": (40009, 5), "scaled": 1, "kind": "alternating"},
    "two that change": {"left": (2, 3, 17, 64), "right": (2, 3, 64, 19), "both_change": True},
    "two that change, large": {"left": (2, 9, 3001), "right": (2, 3001, 5), "both_change": True, "kind": "alternating"},
    "two that change, larger": {"left": (9, 20001), "right": (20001, 5), "both_change": True, "kind": "alternating"},
    "Gemm": {"left": (4, 30), "right": (30, 10), "scaled": 1, "gemm": {"bias": True}},
    "Gemm, transB": {"left": (4, 30), "right": (10, 30), "scaled": 0, "gemm": {"bias": True, "transB": 1}},
    "Gemm, both transposed": {
        "left": (30, 4), "right": (10, 30), "scaled": 0, "gemm": {"transA": 1, "transB": 1, "alpha": 0.3},
    },
    "Gemm, alpha and beta": {
        "left": (4, 30), "right": (30, 10), "gemm": {"bias": True, "alpha": 1.7, "beta": 0.6},
    },
    "Gemm, large": {
        "left": (4, 4001), "right": (10, 4001), "scaled": 0, "kind": "alternating", "gemm": {"bias": True, "transB": 1},
    },
}  # fmt: skip


@pytest.mark.parametrize("form", PRODUCTS)
def test_matrix_product(form, tmp_path):
    net = Network(len(form))
    add_matrix_product(net, **PRODUCTS[form])
    net.check(tmp_path)


def test_a_constant_on_the_left(tmp_path):
    net = Network(3)
    x_real, x_steps = net.quantized(net.input(numbers(net.random, (2, 30, 5), "random")), F32(0.01))
    steps = steps_of(net.random, (7, 30), "random")
    scales = net.random.uniform(1e-3, 1e-2, 7).astype("f4")
    sums = steps.astype("i8") @ x_steps
    net.node("MatMul", [net.weight(steps, scales, 0), x_real], real(sums, F32(0.01), scales[:, None]))
    net.check(tmp_path)


def test_rounding(tmp_path):
    """Tests ties, their neighbors in f32, both ends of the range, infinities, and NaN, which becomes the zero point."""
    for zero_point in (np.int8(0), np.uint8(128), np.int8(-5)):
        net = Network(4)
        for scale in (F32(0.0173), F32(1) / 3, F32(3e-5), F32(1000)):
            ties = (np.arange(-300, 300) / 2).astype("f4") * scale
            around = [ties, np.nextafter(ties, F32(np.inf)), np.nextafter(ties, F32(-np.inf))]
            special = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-42, 0, -0.0], "f4")
            x = net.input(np.concatenate([*around, special, net.random.standard_normal(20000).astype("f4")]))
            net.quantized(x, scale, zero_point)
        net.check(tmp_path)


def test_one_scale_for_each_channel_of_the_input(tmp_path):
    net = Network(5)
    x = net.random.standard_normal((2, 3, 4, 4)).astype("f4")
    scales, zero_points = np.array([0.01, 0.02, 0.005], "f4"), np.array([0, 3, 9], "u1")
    steps = np.clip(np.rint(x / scales[:, None, None]) + zero_points[:, None, None].astype("f4"), 0, 255)
    parameters = [net.constant(scales), net.constant(zero_points)]
    stored = net.node("QuantizeLinear", [net.input(x), *parameters], steps.astype("u1"), axis=1)
    expected = (steps - zero_points[:, None, None]).astype("f4") * scales[:, None, None]
    net.node("DequantizeLinear", [stored, *parameters], expected, axis=-3)
    net.check(tmp_path)


def add_block(net, x, steps, scale, channels, step=1):
    """Adds Conv - Relu - QuantizeLinear - DequantizeLinear for given steps, and returns the name and steps of the
    result."""
    w = steps_of(net.random, (channels, steps.shape[1], 3, 3), "random")
    scales = net.random.uniform(1e-4, 1e-3, channels).astype("f4")
    bias = net.random.standard_normal(channels).astype("f4")
    inputs = [x, net.weight(w, scales, 0), net.constant(bias)]
    sums = sum_of_convolution(steps, w, [step] * 2, [1] * 4, [1, 1], 1)
    expected = real(sums, scale, spread(scales, 2), spread(bias, 2))
    y = net.node("Conv", inputs, expected, pads=[1] * 4, strides=[step] * 2)
    return net.node("Relu", [y], np.maximum(expected, 0)), np.maximum(expected, 0)


def test_a_network(tmp_path):
    """The network has a residual addition, pooling and concatenation between DequantizeLinear and QuantizeLinear."""
    net = Network(6)
    scale = F32(0.02)
    x, steps = net.quantized(net.input(net.random.standard_normal((2, 3, 12, 12)).astype("f4")), scale)
    real_0, value_0 = add_block(net, x, steps, scale, 24)
    scale_1 = F32(0.031)
    a, a_steps = net.quantized(real_0, scale_1, expected=value_0)
    real_1, value_1 = add_block(net, a, a_steps, scale_1, 24)
    scale_2 = F32(0.043)
    b, b_steps = net.quantized(real_1, scale_2, expected=value_1)
    added = a_steps.astype("f4") * scale_1 + b_steps.astype("f4") * scale_2
    total = net.node("Add", [a, b], added)
    scale_3 = F32(0.06)
    c, c_steps = net.quantized(total, scale_3, expected=added)
    pooled = (c_steps.reshape(2, 24, 6, 2, 6, 2).max(axis=(3, 5))).astype("f4") * scale_3
    pool = net.node("MaxPool", [c], pooled, kernel_shape=[2, 2], strides=[2, 2])
    d, d_steps = net.quantized(pool, scale_3, expected=pooled)
    real_2, value_2 = add_block(net, d, d_steps, scale_3, 8)
    e, e_steps = net.quantized(real_2, scale_3, expected=value_2)
    together = np.concatenate([d_steps, e_steps], axis=1)
    both = net.node("Concat", [d, e], together.astype("f4") * scale_3, axis=1)
    f, f_steps = net.quantized(both, scale_3, expected=together.astype("f4") * scale_3)
    flat = net.node("Flatten", [f])
    w = steps_of(net.random, (10, f_steps[0].size), "random")
    scales = net.random.uniform(1e-4, 1e-3, 10).astype("f4")
    bias = net.random.standard_normal(10).astype("f4")
    sums = f_steps.reshape(2, -1) @ w.astype("i8").T
    inputs = [flat, net.weight(w, scales, 0), net.constant(bias)]
    net.node("Gemm", inputs, real(sums, scale_3, scales, bias), transB=1)
    assert value_2.any() and np.abs(e_steps).max() > 20
    net.check(tmp_path)


def test_weights_that_the_file_holds_in_f32(tmp_path):
    """Exporters of quantization-aware training write weights in f32; here for a MatMul after a Transpose."""
    net = Network(7)
    x_real, x_steps = net.quantized(net.input(numbers(net.random, (3, 32), "random")), F32(0.01))
    w = net.random.standard_normal((12, 32)).astype("f4")
    scales = (np.abs(w).max(axis=1) / 127).astype("f4")
    steps = np.clip(np.rint(w / scales[:, None]), -128, 127).astype("i8")
    parameters = [net.constant(scales), net.constant(np.zeros(12, "i1"))]
    stored = net.node("QuantizeLinear", [net.constant(w), *parameters], steps.astype("i1"), axis=0)
    weight = net.node("DequantizeLinear", [stored, *parameters], axis=0)
    turned = net.node("Transpose", [weight], perm=[1, 0])
    net.node("MatMul", [x_real, turned], real(x_steps @ steps.T, F32(0.01), scales))
    net.check(tmp_path)


def test_movements_between(tmp_path):
    """Keys of an attention are transposed after their DequantizeLinear."""
    net = Network(8)
    q_real, q_steps = net.quantized(net.input(numbers(net.random, (2, 10, 4, 16), "random")), F32(0.011))
    k_real, k_steps = net.quantized(net.input(numbers(net.random, (2, 10, 4, 16), "random")), F32(0.012))
    q = net.node("Transpose", [q_real], perm=[0, 2, 1, 3])
    k = net.node("Transpose", [k_real], perm=[0, 2, 3, 1])
    sums = q_steps.transpose(0, 2, 1, 3) @ k_steps.transpose(0, 2, 3, 1)
    net.node("MatMul", [q, k], real(sums, F32(0.011), F32(0.012)))
    net.check(tmp_path)


def test_bias_of_whole_numbers(tmp_path):
    net = Network(9)
    x_real, x_steps = net.quantized(net.input(numbers(net.random, (1, 8, 6, 6), "random")), F32(0.01))
    w, scales = steps_of(net.random, (4, 8, 1, 1), "random"), np.array([1e-3, 2e-3, 3e-3, 4e-3], "f4")
    bias, scale = np.array([1000, -70000, 3, 2**24 + 1], "i4"), F32(0.01) * scales
    b = net.node("DequantizeLinear", [net.constant(bias), net.constant(scale)], axis=0)
    sums = sum_of_convolution(x_steps, w, [1, 1], [0] * 4, [1, 1], 1)
    expected = real(sums, F32(0.01), spread(scales, 2), spread(bias.astype("f4") * scale, 2))
    net.node("Conv", [x_real, net.weight(w, scales, 0), b], expected)
    net.check(tmp_path)


def test_inside_a_branch(tmp_path):
    net = Network(10)
    net_inside = Network(11)
    x = net.random.standard_normal((1, 4, 5, 5)).astype("f4")
    net.inputs["truth"] = np.array(True)
    net.inputs["x0"] = net_inside.inputs["x0"] = x
    x_real, x_steps = net_inside.quantized("x0", F32(0.02))
    w, scales = steps_of(net.random, (3, 4, 3, 3), "random"), np.array([1e-3, 2e-3, 3e-3], "f4")
    y = net_inside.node("Conv", [x_real, net_inside.weight(w, scales, 0)])
    sums = sum_of_convolution(x_steps, w, [1, 1], [0] * 4, [1, 1], 1)

    def body(nodes, output):
        return subgraph(nodes, [], [helper.make_empty_tensor_value_info(output)], net_inside.constants)

    other = [helper.make_node("Relu", ["x0"], ["other"])]
    expected = real(sums, F32(0.02), spread(scales, 2))
    net.node("If", ["truth"], expected, then_branch=body(net_inside.nodes, y), else_branch=body(other, "other"))
    net.check(tmp_path)


@pytest.mark.parametrize("opset", [19, 21])
def test_scales_in_f16(opset, tmp_path):
    """The real numbers of scales in f16 are f16, each rounded once from f32."""
    net = Network(12)
    half = np.float16
    scale, scales = half(0.013), np.array([1e-3, 2e-3, 5e-3], half)
    x = net.input((net.random.standard_normal((1, 6, 5, 5))).astype(half))
    steps = quantize(net.inputs[x], F32(scale), np.int8(0))
    parameters = [net.constant(scale), net.constant(np.int8(0))]
    stored = net.node("QuantizeLinear", [x, *parameters], steps.astype("i1"))
    x_real = net.node("DequantizeLinear", [stored, *parameters], (steps.astype("f4") * F32(scale)).astype(half))
    w, bias = steps_of(net.random, (3, 6, 3, 3), "random"), np.array([0.5, -1, 2], half)
    weight = net.node(
        "DequantizeLinear", [net.constant(w), net.constant(scales), net.constant(np.zeros(3, "i1"))], axis=0
    )
    sums = sum_of_convolution(steps, w, [1, 1], [0] * 4, [1, 1], 1)
    expected = real(sums, F32(scale), spread(scales.astype("f4"), 2), spread(bias.astype("f4"), 2))
    net.node("Conv", [x_real, weight, net.constant(bias)], expected.astype(half))
    net.save(tmp_path / "model.onnx", opset)
    net.check(tmp_path)


def test_inner_tensors_are_there_for_those_who_ask(tmp_path):
    net = Network(13)
    y, expected, _ = add_convolution(net, 2, 8, 4, 3)
    net.save(tmp_path / "model.onnx")
    weight = next(node for node in net.nodes if node.op_type == "Conv").input[1]
    net.expected = {y: expected}
    net.save(tmp_path / "model.onnx")
    found = run_graft("functions", tmp_path / "model.onnx", net.inputs, tmp_path, *[n.output[0] for n in net.nodes])
    names = next(node for node in net.nodes if weight in node.output).input
    steps, scales = net.constants[names[0]], net.constants[names[1]]
    np.testing.assert_array_equal(found[weight], steps.astype("f4") * spread(scales, 3), strict=True)
    np.testing.assert_array_equal(found[y], expected, strict=True)
    assert set(found) == {name for node in net.nodes for name in node.output}


def test_only_weights(tmp_path):
    """Where only the weights are quantized, the model computes in f32."""
    net = Network(14)
    x = net.input(net.random.standard_normal((5, 64)).astype("f4"))
    w, scales = steps_of(net.random, (64, 32), "random"), net.random.uniform(1e-3, 1e-2, 32).astype("f4")
    y = net.node("MatMul", [x, net.weight(w, scales, 1)], np.zeros(0))
    net.save(tmp_path / "model.onnx")
    found = run_graft("functions", tmp_path / "model.onnx", net.inputs, tmp_path)[y]
    expected = net.inputs[x].astype("f8") @ (w.astype("f4") * scales).astype("f8")
    # a sum of 64 terms in f32, whose largest are near 5
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=64 * 5 * 2**-24)


def test_qlinear_matmul(tmp_path):
    """The sums are exact in f32, and the scale is a power of two: on processors with VNNI, OpenVINO's plugin would
    otherwise round the left operand once more."""
    net = Network(15)
    x = net.input(net.random.integers(0, 34, (8, 700)).astype("u1"))
    w = net.random.integers(0, 256, (700, 5)).astype("u1")
    sixteen = net.constant(np.uint8(16))
    scales = [net.constant(F32(scale)) for scale in (2**-6, 2**-6, 2)]
    sums = (net.inputs[x].astype("i8") - 16) @ (w.astype("i8") - 16)
    y = np.clip(np.rint(sums / 2**13) + 16, 0, 255).astype("u1")
    net.node("QLinearMatMul", [x, scales[0], sixteen, net.constant(w), scales[1], sixteen, scales[2], sixteen], y)
    net.check(tmp_path)


X_SCALE, Y_SCALE = F32(0.031), F32(0.023)
WEIGHTS = np.random.default_rng(1).integers(-127, 128, (6, 4, 3, 3)).astype("i1")
WEIGHT_SCALES = np.random.default_rng(2).uniform(1e-3, 4e-3, 6).astype("f4")
BIAS = np.random.default_rng(3).standard_normal(6).astype("f4")
FACTORS = np.array([0.5, 1, 1.5, 2], "f4")
# Attributes, and constants after the first input, in i8 and in f32. Shape of x: 2, 4, 9, 11.
OPERATORS = {
    "leaky ReLU": ("LeakyReLU", {"alpha": 0.2}, []),
    "L2 of channels": ("L2Normalize", {"axes": [1]}, []),
    "L2 of pixels": ("L2Normalize", {"axes": [2, 3], "epsilon": 0.5, "epsilon_mode": "add"}, []),
    "L2 helper": ("L2NormHelper", {"op_type": 1, "eps": 0.4}, []),
    "L2 helper, root": ("L2NormHelper", {"op_type": 0}, []),
    "instance norm": ("InstanceNorm", {}, []),
    "instance norm with factors": ("InstanceNorm", {"activation": "relu"}, [FACTORS, FACTORS - 1]),
    "instance norm with attributes": ("InstanceNorm", {"scales": [0.5, 1, 1.5, 2], "bias": [1.0, 0, -1, 2]}, []),
    "Normalize": ("Normalize", {}, []),
    "Normalize with factors": ("Normalize", {"across_spatial": 1}, [FACTORS * 10]),
    "Padding": ("Padding", {"mode": "reflect", "pads": [0, 0, 2, 1, 0, 0, 1, 3]}, []),
    "Padding by a value": ("Padding", {"mode": "constant", "value": -0.7, "pads": [0, 0, 1, 1, 0, 0, 1, 1]}, []),
    "Upsampling": ("Upsampling", {"mode": "nearest", "scales": [2.0]}, []),
    "Upsampling, linear": ("Upsampling", {"mode": "linear", "scales": [1.5]}, []),
    "Upsampling, cubic": ("Upsampling", {"mode": "cubic", "sizes": [13, 20], "coordinate_mode": "align_corners"}, []),
    "pyramid": ("SpatialPyramidPooling", {"levels": [3, 1]}, []),
    "pyramid of means": ("SpatialPyramidPooling", {"levels": [4, 2], "mode": "average"}, []),
    "Convolution": ("Convolution", {"activation": "relu"}, ["weight", BIAS, WEIGHT_SCALES]),
    "Convolution, strides": ("Convolution", {"stride": [2, 1], "pad": [1, 1]}, ["weight", BIAS, WEIGHT_SCALES]),
    "Convolution, attributes": (
        "Convolution", {"num_output": 6, "kernel": [3, 3], "kernel_weights": WEIGHTS, "weight_scale": WEIGHT_SCALES}, [],
    ),
    "Convolution, one scale": ("Convolution", {"weight_scale": WEIGHT_SCALES[:1]}, ["weight"]),
}  # fmt: skip


def operator_model(path, form, element, x):
    """Saves a model of the operator. `element` i8: QuantizeLinear - operator - DequantizeLinear; f32: the operator
    alone."""
    op, attributes, more = OPERATORS[form]
    net, narrow = Network(17), element == "i8"
    scales = more[2] if len(more) > 2 else attributes.get("weight_scale")
    steps = np.atleast_1d(scales)[:, None, None, None] if scales is not None else None
    attributes = dict(attributes)
    if "kernel_weights" in attributes:
        attributes["kernel_weights"] = (WEIGHTS * steps).ravel().tolist()
        attributes["weight_scale"] = attributes["weight_scale"].tolist()
    elif "weight_scale" in attributes:
        attributes["weight_scale"] = attributes["weight_scale"].tolist()
    if narrow:
        attributes |= {"x_scale": float(X_SCALE), "y_scale": float(Y_SCALE)}
    given = [value if not isinstance(value, str) else WEIGHTS if narrow else WEIGHTS * steps for value in more]
    constants = [net.constant(value) for value in (given if narrow else given[:2])]
    first = net.input(x)
    if narrow:
        zero = net.constant(np.int8(0))
        stored = net.node("QuantizeLinear", [first, net.constant(X_SCALE), zero])
        y = net.node(op, [stored, *constants], np.int8(0), domain="graft", **attributes)
        net.node("DequantizeLinear", [y, net.constant(Y_SCALE), zero], F32(0))
    else:
        net.node(op, [first, *constants], F32(0), domain="graft", **attributes)
    net.save(path)
    return list(net.expected), net.inputs


@pytest.mark.parametrize("form", OPERATORS)
def test_operators_of_graft(form, tmp_path):
    """Compares with ONNX Runtime, which runs the operator's function in f32; its result is rounded here. A step
    differs only where the f32 result is within rounding of a tie."""
    x = np.random.default_rng(5).standard_normal((2, 4, 9, 11)).astype("f4")
    if form == "L2 helper, root":
        x = np.abs(x) + F32(0.2)
    wide = quantize(x, X_SCALE, ZERO).astype("f4") * X_SCALE
    names, inputs = operator_model(tmp_path / "wide.onnx", form, "f32", wide)
    attach = [runner, "attach", tmp_path / "wide.onnx", tmp_path / "attached.onnx"]
    subprocess.run(attach, check=True)
    real_y = run_onnxruntime(tmp_path / "attached.onnx", inputs)[names[0]]
    steps = np.clip(real_y.astype("f8") / Y_SCALE, -128, 127)
    assert len(np.unique(np.rint(steps))) > 8
    names, inputs = operator_model(tmp_path / "narrow.onnx", form, "i8", x)
    for mode in ("functions", "own"):
        found = run_graft(mode, tmp_path / "narrow.onnx", inputs, tmp_path)
        stored, real_numbers = (found[name] for name in names)
        assert stored.dtype == np.int8
        np.testing.assert_array_equal(real_numbers, stored.astype("f4") * Y_SCALE, strict=True)
        np.testing.assert_allclose(stored, steps, rtol=0, atol=0.5 + 2e-4, err_msg=mode)


def test_what_is_left_alone_still_runs(tmp_path):
    """Graft's integer arithmetic does not apply to a scale for each row of the summed axis, nor to a computed scale."""
    net = Network(15)
    x_real, x_steps = net.quantized(net.input(numbers(net.random, (3, 20), "random")), F32(0.01))
    w, scales = steps_of(net.random, (20, 6), "random"), net.random.uniform(1e-3, 1e-2, 20).astype("f4")
    y = net.node("MatMul", [x_real, net.weight(w, scales, 0)], np.zeros(0))
    net.inputs["s"] = F32([0.02])[0:1].reshape(())
    stored = net.node("QuantizeLinear", [x_real, "s", net.constant(np.int8(0))])
    z = net.node("DequantizeLinear", [stored, "s", net.constant(np.int8(0))], np.zeros(0))
    net.expected = {y: 0, z: 0}
    net.save(tmp_path / "model.onnx")
    found = run_graft("functions", tmp_path / "model.onnx", net.inputs, tmp_path)
    expected = run_onnxruntime(tmp_path / "model.onnx", net.inputs)
    np.testing.assert_allclose(found[y], expected[y], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[z], expected[z], rtol=1e-5, atol=0.0201)  # one step, where it rounds differently


def test_scales_that_are_not_seen(tmp_path):
    """Scales after a node are not constants for Graft, but OpenVINO folds them, and its i8 kernels are off by one
    percent."""
    net = Network(16)
    x = net.input(net.random.standard_normal((1, 32, 9, 9)).astype("f4"))
    parameters = [net.node("Abs", [net.constant(F32(0.02))]), net.constant(np.int8(0))]
    stored = net.node("QuantizeLinear", [x, *parameters])
    x_real = net.node("DequantizeLinear", [stored, *parameters])
    w, scales = steps_of(net.random, (16, 32, 3, 3), "random"), net.random.uniform(1e-3, 1e-2, 16).astype("f4")
    unseen = net.node("Abs", [net.constant(scales)])
    weight = net.node("DequantizeLinear", [net.constant(w), unseen, net.constant(np.zeros(16, "i1"))], axis=0)
    y = net.node("Conv", [x_real, weight], np.zeros(0))
    net.save(tmp_path / "model.onnx")
    found = run_graft("functions", tmp_path / "model.onnx", net.inputs, tmp_path)[y]
    steps = quantize(net.inputs[x], F32(0.02), np.int8(0))
    expected = real(sum_of_convolution(steps, w, [1, 1], [0] * 4, [1, 1], 1), F32(0.02), spread(scales, 2))
    # each of the 288 products is rounded, and each sum
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=288 * 2**-24 * np.abs(expected).max())


@pytest.mark.parametrize("form", [form for form in CONVOLUTIONS if "backwards" not in form and "3-D" not in form])
def test_reference_against_onnxruntime(form, tmp_path):
    """ConvInteger of u8 and u8, with zero points 128 above those of i8, computes the same sums as the reference
    above."""
    net = Network(len(form))
    _, _, sums = add_convolution(net, **CONVOLUTIONS[form])
    conv = next(node for node in net.nodes if node.op_type == "Conv")
    stored = [next(node for node in net.nodes if name in node.output) for name in conv.input[:2]]
    x, w = net.expected[stored[0].input[0]], net.constants[stored[1].input[0]]
    zero_points = [net.constants[node.input[2]] for node in stored]
    as_u8 = lambda value: value if value.dtype == np.uint8 else (value.astype("i2") + 128).astype("u1")  # noqa: E731
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"])
    node.attribute.extend(conv.attribute)
    zeros = as_u8(np.atleast_1d(zero_points[1]))
    if len(set(zeros)) > 1:
        pytest.skip("ONNX Runtime takes one zero point for all weights")
    inputs = {"x": as_u8(x)}
    constants = {"w": as_u8(w), "xz": as_u8(zero_points[0]), "wz": zeros[0]}
    model = make_model(
        [node],
        [("x", TensorProto.UINT8, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        constants,
        opset=21,
        ir_version=10,
    )
    onnx.save(model, str(tmp_path / "sums.onnx"))
    np.testing.assert_array_equal(run_onnxruntime(tmp_path / "sums.onnx", inputs)["y"], sums)
