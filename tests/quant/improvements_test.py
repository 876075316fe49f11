# improvements_test.py - Checks with ONNX Runtime the changes of a network before and after it becomes int8.
"""The tool in GRAFT_IMPROVE_TOOL changes small networks that this test creates."""

import os
import subprocess

import numpy
import onnx
import onnx_models
import pytest
from onnx import helper, numpy_helper
from onnx_models import run_onnx, subgraph

GENERATOR = numpy.random.default_rng(7)
BEGINNING = GENERATOR.bit_generator.state


@pytest.fixture(autouse=True)
def begin_again():
    """Resets the generator, so that a test's values do not depend on earlier tests."""
    GENERATOR.bit_generator.state = BEGINNING


def normal(*shape, scale=1.0):
    return (GENERATOR.standard_normal(shape) * scale).astype(numpy.float32)


def make_model(inputs, nodes, outputs, constants, opset=17):
    """Returns a model. Nodes are (operator, inputs, outputs, attributes), with names separated by spaces."""
    model = onnx_models.make_model(
        [helper.make_node(op, names.split(), output.split(), **attributes) for op, names, output, attributes in nodes],
        [(name, shape) for name, shape in inputs.items()],
        [(name, None) for name in outputs],
        constants,
        opset=opset,
    )
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def run_tool(what, model, tmp_path, *more):
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.checker.check_model(model)
    onnx.save(model, source)
    command = [os.environ["GRAFT_IMPROVE_TOOL"], what, source, target, *more]
    result = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    changed = onnx.load(target)
    onnx.checker.check_model(changed)
    return changed, result.stdout.splitlines()


def run(model, feeds, outputs=None):
    """Runs a model in ONNX Runtime without its graph optimizations."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for name in outputs or []:
        if name not in [value.name for value in model.graph.output]:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    found = run_onnx(model, feeds, is_optimized=False)
    return {name: found[name] for name in outputs or found}


def operators(model):
    return [node.op_type for node in model.graph.node]


def check_same(model, changed, feeds, tolerance=2e-6):
    expected = run(model, feeds)
    found = run(changed, feeds)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        numpy.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance * numpy.abs(array).max())


def normalization(prefix, channels):
    """Returns the constants of a BatchNormalization, and their names."""
    constants = {
        f"{prefix}_scale": normal(channels),
        f"{prefix}_shift": normal(channels),
        f"{prefix}_mean": normal(channels),
        f"{prefix}_var": numpy.abs(normal(channels)) + 0.1,
    }
    return constants, " ".join(constants)


def folding_cases():
    statistics, names = normalization("bn", 6)
    image = {"x": ["N", 4, 9, 8]}
    rows = {"x": ["N", 5]}
    return {
        "normalization": (
            image,
            [("Conv", "x w", "c", {}), ("BatchNormalization", f"c {names}", "y", {"epsilon": 1e-2})],
            {"w": normal(6, 4, 3, 3), **statistics},
            ["Conv"],
            1,
        ),
        "chain_behind_groups": (
            image,
            [
                ("Conv", "x w b", "c", {"group": 2, "pads": [1, 1, 1, 1]}),
                ("Mul", "s c", "m", {}),
                ("Sub", "m d", "a", {}),
                ("BatchNormalization", f"a {names}", "n", {}),
                ("Div", "n q", "e", {}),
                ("Relu", "e", "y", {}),
            ],
            {
                "w": normal(6, 2, 3, 3),
                "b": normal(6),
                "s": normal(6, 1, 1),
                "d": normal(1, 6, 1, 1),
                "q": numpy.float32([2.5]),
                **statistics,
            },
            ["Conv", "Relu"],
            4,
        ),
        "transposed_with_groups": (
            image,
            [
                ("ConvTranspose", "x w", "c", {"group": 2, "strides": [2, 2]}),
                ("BatchNormalization", f"c {names}", "y", {}),
            ],
            {"w": normal(4, 3, 2, 2), **statistics},
            ["ConvTranspose"],
            1,
        ),
        "gemm": (
            rows,
            [
                ("Gemm", "x w b", "g", {"transB": 1, "alpha": 0.5, "beta": 3.0}),
                ("BatchNormalization", f"g {names}", "n", {}),
                ("Add", "n t", "y", {}),
            ],
            {"w": normal(6, 5), "b": normal(1, 6), "t": normal(6), **statistics},
            ["Gemm"],
            2,
        ),
        "matrix_product": (
            {"x": ["N", 3, 5]},
            [("MatMul", "x w", "p", {}), ("Mul", "p s", "y", {})],
            {"w": normal(5, 6), "s": normal(1, 1, 6)},
            ["MatMul"],
            1,
        ),
        "matrix_product_with_sum": (
            {"x": ["N", 3, 5]},
            [("MatMul", "x w", "p", {}), ("Add", "b p", "a", {}), ("Mul", "a s", "m", {}), ("Add", "m t", "y", {})],
            {"w": normal(5, 6), "b": normal(6), "s": normal(6), "t": numpy.float32(0.25)},
            ["MatMul", "Add"],
            2,
        ),
        "matrix_product_and_normalization": (
            rows,
            [("MatMul", "x w", "p", {}), ("BatchNormalization", f"p {names}", "y", {})],
            {"w": normal(5, 6), **statistics},
            ["MatMul", "Add"],
            1,
        ),
        "shared_bias": (
            image,
            [
                ("Conv", "x w b", "c", {}),
                ("Mul", "c s", "m", {}),
                ("Conv", "x v b", "d", {}),
                ("Sub", "m d", "y", {}),
            ],
            {"w": normal(6, 4, 3, 3), "v": normal(6, 4, 3, 3), "b": normal(6), "s": normal(6, 1, 1)},
            ["Conv", "Conv", "Sub"],
            1,
        ),
    }


CASES = folding_cases()


def make_feeds(inputs):
    return {name: normal(*(3 if isinstance(size, str) else size for size in shape)) for name, shape in inputs.items()}


@pytest.mark.parametrize("case", CASES)
def test_scales_become_weights(case, tmp_path):
    inputs, nodes, constants, expected, folded = CASES[case]
    model = make_model(inputs, nodes, ["y"], constants)
    changed, printed = run_tool("fold", model, tmp_path)
    assert operators(changed) == expected
    assert printed == [str(folded)]
    check_same(model, changed, make_feeds(inputs))


@pytest.mark.parametrize(
    ("nodes", "more", "outputs"),
    [
        # Another node reads the tensor or the weights, the tensor is an output, or the factor is not one number per
        # channel.
        ([("Conv", "x w", "c", {}), ("Mul", "c s", "m", {}), ("Add", "m c", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Mul", "c s", "y", {}), ("Conv", "x w", "z", {})], {}, ["y", "z"]),
        ([("Conv", "x w", "c", {}), ("Mul", "c s", "y", {})], {}, ["y", "c"]),
        ([("Conv", "x w", "c", {}), ("Mul", "c r", "y", {})], {"r": normal(6)}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Mul", "c r", "y", {})], {"r": normal(1, 1, 6, 1, 1)}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Div", "s c", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Div", "c r", "y", {})], {"r": numpy.zeros((6, 1, 1), numpy.float32)}, ["y"]),
    ],
)
def test_what_is_no_scale_of_one_layer_stays(nodes, more, outputs, tmp_path):
    model = make_model({"x": ["N", 4, 8, 8]}, nodes, outputs, {"w": normal(6, 4, 3, 3), "s": normal(6, 1, 1), **more})
    changed, printed = run_tool("fold", model, tmp_path)
    assert printed == ["0"]
    assert operators(changed) == operators(model)


def uneven(*shape, axis=0):
    """Returns weights whose channels have ranges over three decades."""
    size = [1] * len(shape)
    size[axis] = shape[axis]
    return normal(*shape) * (10 ** GENERATOR.uniform(-1.5, 1.5, size)).astype(numpy.float32)


def largest_weights(array, axis):
    return numpy.abs(array).max(tuple(i for i in range(array.ndim) if i != axis))


def constants_of(model):
    return {constant.name: numpy_helper.to_array(constant) for constant in model.graph.initializer}


def make_equalizable():
    nodes = [
        ("Conv", "x w1 b1", "c1", {}),
        ("Relu", "c1", "r1", {}),
        ("Pad", "r1 pads", "p1", {}),
        ("Conv", "p1 w2 b2", "c2", {"group": 8}),
        ("LeakyRelu", "c2", "r2", {"alpha": 0.1}),
        ("MaxPool", "r2", "p2", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Conv", "p2 w3", "c3", {"group": 2}),
        ("AveragePool", "c3", "p3", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
        ("ConvTranspose", "p3 w4 b4", "c4", {"group": 3, "strides": [2, 2]}),
        ("Relu", "c4", "r4", {}),
        ("Flatten", "r4", "f", {}),
        ("Gemm", "f w5 b5", "g", {"transB": 1, "beta": 2.0}),
        ("Relu", "g", "r5", {}),
        ("MatMul", "r5 w6", "m", {}),
        ("Add", "m b6", "a", {}),
        ("Relu", "a", "r6", {}),
        ("MatMul", "r6 w7", "y", {}),
    ]
    constants = {
        "w1": uneven(8, 3, 3, 3),
        "b1": normal(8),
        "pads": numpy.int64([0, 0, 1, 1, 0, 0, 1, 1]),
        "w2": uneven(8, 1, 3, 3),
        "b2": normal(8),
        "w3": uneven(6, 4, 1, 1),
        "w4": uneven(6, 2, 2, 2, axis=1),
        "b4": normal(6),
        "w5": uneven(10, 6 * 8 * 8),
        "b5": normal(10),
        "w6": uneven(10, 7, axis=1),
        "b6": normal(7),
        "w7": uneven(7, 4),
    }
    return make_model({"x": ["N", 3, 8, 8]}, nodes, ["y"], constants)


def test_equalization_evens_ranges_and_changes_nothing_else(tmp_path):
    model = make_equalizable()
    changed, printed = run_tool("equalize", model, tmp_path)
    assert len(printed) == 6
    assert operators(changed) == operators(model)
    check_same(model, changed, make_feeds({"x": [3, 3, 8, 8]}))
    before, after = constants_of(model), constants_of(changed)
    # Compares, for each channel, the weights that produce it and the weights that read it.
    unevenness = []
    for made, axis, read in [(1, 0, 2), (3, 0, 4), (5, 0, 6), (6, 1, 7)]:
        for constants in (before, after):
            reading = constants[f"w{read}"]
            ranges = largest_weights(constants[f"w{made}"], axis) / largest_weights(reading, 0)
            unevenness.append(numpy.maximum(ranges, 1 / ranges).max())
    assert min(unevenness[0::2]) > 10
    assert max(unevenness[1::2]) < 1.05
    # After the Flatten, a channel of a plane is that number of columns.
    ranges = after["w4"].reshape(3, 2, 2, 4).transpose(0, 2, 1, 3).reshape(6, -1)
    made, read = numpy.abs(ranges).max(1), numpy.abs(after["w5"]).reshape(10, 6, 64).max((0, 2))
    assert numpy.maximum(made / read, read / made).max() < 1.05


@pytest.mark.parametrize(
    ("nodes", "more", "outputs"),
    [
        ([("Conv", "x w", "c", {}), ("Clip", "c low high", "r", {}), ("Conv", "r v", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Sigmoid", "c", "r", {}), ("Conv", "r v", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Relu", "c", "r", {}), ("Conv", "r v", "y", {})], {}, ["y", "r"]),
        ([("Conv", "x w", "c", {}), ("Conv", "c v", "d", {}), ("Mul", "c d", "y", {})], {}, ["y"]),
        ([("Conv", "x v", "c", {}), ("Relu", "c", "r", {}), ("Conv", "r v", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("Pad", "c pads one", "r", {}), ("Conv", "r v", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("LeakyRelu", "c", "r", {"alpha": -0.1}), ("Conv", "r v", "y", {})], {}, ["y"]),
        ([("Conv", "x w", "c", {}), ("MatMul", "c m", "y", {})], {"m": uneven(4, 4)}, ["y"]),
    ],
)
def test_what_a_factor_does_not_pass_stays(nodes, more, outputs, tmp_path):
    constants = {
        "w": uneven(4, 4, 1, 1),
        "v": uneven(4, 4, 1, 1),
        "low": numpy.float32(0),
        "high": numpy.float32(6),
        "one": numpy.float32(1),
        "pads": numpy.int64([0, 0, 1, 1, 0, 0, 1, 1]),
        **more,
    }
    model = make_model({"x": ["N", 4, 4, 4]}, nodes, outputs, constants)
    changed, printed = run_tool("equalize", model, tmp_path)
    assert printed == []
    for name, array in constants_of(changed).items():
        numpy.testing.assert_array_equal(array, constants[name])


WEIGHTED = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def quantize(model, feeds, bits=8):
    """Returns a symmetrically quantized model: one scale per channel for weights, and the largest magnitude for a
    layer's input."""
    constants = constants_of(model)
    layers = [node for node in model.graph.node if node.op_type in WEIGHTED and node.input[1] in constants]
    seen = {**run(model, feeds, [node.input[0] for node in layers if node.input[0] not in feeds]), **feeds}
    nodes, added = [], {}
    for node in model.graph.node:
        changed = onnx.NodeProto.FromString(node.SerializeToString())
        if node in layers:
            x, w = node.input[:2]
            if f"{x}_step" not in added:
                added[f"{x}_step"] = numpy.float32(numpy.abs(seen[x]).max() / 127)
                added[f"{x}_zero"] = numpy.int8(0)
                parameters = [f"{x}_step", f"{x}_zero"]
                nodes.append(helper.make_node("QuantizeLinear", [x, *parameters], [f"{x}_i8"]))
                nodes.append(helper.make_node("DequantizeLinear", [f"{x}_i8", *parameters], [f"{x}_dq"]))
            axis = 0 if node.op_type == "Conv" or any(a.name == "transB" and a.i for a in node.attribute) else 1
            limit = 2 ** (bits - 1) - 1
            step = (largest_weights(constants[w], axis) / limit).astype(numpy.float32)
            column = step.reshape([-1 if i == axis else 1 for i in range(constants[w].ndim)])
            added[f"{w}_i8"] = numpy.rint(constants[w] / column).clip(-limit, limit).astype(numpy.int8)
            added[f"{w}_step"] = step
            added[f"{w}_zero"] = numpy.zeros(step.shape, numpy.int8)
            inputs = [f"{w}_i8", f"{w}_step", f"{w}_zero"]
            nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{w}_dq"], axis=axis))
            changed.input[0], changed.input[1] = f"{x}_dq", f"{w}_dq"
        nodes.append(changed)
    read = {name for node in nodes for name in node.input}
    kept = {name: array for name, array in constants.items() if name in read}
    graph = subgraph(nodes, model.graph.input, model.graph.output, {**kept, **added})
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)


def make_classifier():
    """Returns a classifier with several kinds of layers, with and without a bias, in branches; and images with
    correlated pixels."""
    nodes = [
        ("Conv", "x w1 b1", "c1", {"pads": [1, 1, 1, 1]}),
        ("Relu", "c1", "r1", {}),
        ("Conv", "r1 w2", "c2", {"group": 8, "pads": [1, 1, 1, 1]}),
        ("Conv", "r1 w3 b1", "c3", {}),
        ("Add", "c2 c3", "s", {}),
        ("Relu", "s", "r2", {}),
        ("ConvTranspose", "r2 w4", "c4", {"strides": [2, 2]}),
        ("Relu", "c4", "r4", {}),
        ("GlobalAveragePool", "r4", "p", {}),
        ("Flatten", "p", "f", {}),
        ("Gemm", "f w5 b5", "g", {"transB": 1, "beta": 0.5}),
        ("Relu", "g", "r5", {}),
        ("MatMul", "r5 w6", "m", {}),
        ("Add", "m b6", "a", {}),
        ("Relu", "a", "r6", {}),
        ("MatMul", "r6 w7", "y", {}),
    ]
    constants = {
        "w1": normal(8, 3, 3, 3, scale=0.3),
        "b1": normal(8),
        "w2": normal(8, 1, 3, 3, scale=0.4),
        "w3": normal(8, 8, 1, 1, scale=0.4),
        "w4": normal(8, 6, 2, 2, scale=0.4),
        "w5": normal(12, 6, scale=0.5),
        "b5": normal(1, 12),
        "w6": normal(12, 9, scale=0.4),
        "b6": normal(9),
        "w7": normal(9, 4, scale=0.5),
    }
    return make_model({"x": ["N", 3, 10, 10]}, nodes, ["y"], constants)


def make_images(count):
    noise = normal(count, 3, 13, 13)
    blurred = sum(noise[:, :, i : i + 10, j : j + 10] for i in range(4) for j in range(4)) / 8
    return blurred + normal(count, 3, 1, 1)


def signal_to_noise(expected, found):
    expected = expected.astype(numpy.float64)
    return 10 * numpy.log10((expected**2).sum() / ((found - expected) ** 2).sum())


def channel_means(arrays):
    return {name: array.mean((0, 2, 3) if array.ndim == 4 else 0) for name, array in arrays.items()}


# With no memory, each layer is computed from the network's inputs; with little, from tensors that were small enough to
# keep.
@pytest.mark.parametrize(("bits", "memory"), [(8, 2**30), (4, 2**30), (8, 0), (8, 100000), (8, 400000)])
def test_bias_correction_makes_the_means_those_of_the_reference(bits, memory, tmp_path):
    model = make_classifier()
    images = make_images(96)
    seen, unseen = {"x": images[:48]}, {"x": images[48:]}
    quantized = quantize(model, seen, bits)
    onnx.save(model, tmp_path / "reference.onnx")
    numpy.savez(tmp_path / "data.npz", **seen)
    data = [tmp_path / "reference.onnx", tmp_path / "data.npz", "0", memory]
    changed, printed = run_tool("correct", quantized, tmp_path, *data)
    tensors = ["c1", "c2", "c3", "c4", "g", "a", "y"]
    assert [line.split(": ")[0].split()[-1] for line in printed] == tensors
    reference = run(model, seen, tensors)
    wanted = channel_means(reference)
    before, after = (channel_means(run(each, seen, tensors)) for each in (quantized, changed))
    for name in tensors:
        error = numpy.abs(before[name] - wanted[name]).max()
        left = numpy.abs(after[name] - wanted[name]).max()
        # Another engine may round a number between two int8 steps to the other step.
        assert left < 1e-3 * reference[name].std(), name
        assert left < 0.1 * error, name
    expected = run(model, unseen)["y"]
    gain = signal_to_noise(expected, run(changed, unseen)["y"]) - signal_to_noise(expected, run(quantized, unseen)["y"])
    assert gain > 0


def with_outliers(*shape):
    """Returns activations whose channels (the last axis) have very different magnitudes, as in transformers."""
    return (normal(*shape) * 10 ** GENERATOR.uniform(-1, 1.5, shape[-1])).astype(numpy.float32)


def test_smoothing_is_the_formula_of_the_paper(tmp_path):
    nodes = [
        ("LayerNormalization", "x gamma beta", "n", {}),
        ("MatMul", "n w1", "m1", {}),
        ("MatMul", "n w2", "m2", {}),
        ("Concat", "m1 m2", "y", {"axis": -1}),
    ]
    constants = {"gamma": with_outliers(8), "beta": with_outliers(8), "w1": uneven(8, 5), "w2": uneven(8, 6)}
    model = make_model({"x": ["N", 4, 8]}, nodes, ["y"], constants)
    data = {"x": normal(20, 4, 8)}
    numpy.savez(tmp_path / "data.npz", **data)
    changed, printed = run_tool("smooth", model, tmp_path, tmp_path / "data.npz", "0.7")
    assert len(printed) == 1
    check_same(model, changed, data)
    activations = numpy.abs(run(model, data, ["n"])["n"]).max((0, 1))
    weights = numpy.maximum(largest_weights(constants["w1"], 0), largest_weights(constants["w2"], 0))
    divisors = activations**0.7 / weights**0.3
    assert divisors.max() > 10 * divisors.min()
    found = constants_of(changed)
    for name in ("gamma", "beta"):
        numpy.testing.assert_allclose(found[name], constants[name] / divisors, rtol=1e-5)
    for name in ("w1", "w2"):
        numpy.testing.assert_allclose(found[name], constants[name] * divisors[:, None], rtol=1e-5)


ROWS = {"x": ["N", 4, 6]}
FLAT = {"x": ["N", 6]}
PLANES = {"x": ["N", 6, 5, 5]}
STATISTICS, STATISTICS_NAMES = normalization("bn", 6)
SMOOTHING = {
    "rms": (
        ROWS,
        [("RMSNormalization", "x s", "n", {}), ("MatMul", "n w", "y", {})],
        {"s": with_outliers(6), "w": normal(6, 5)},
    ),
    "statistics": (
        FLAT,
        [("BatchNormalization", f"x {STATISTICS_NAMES}", "n", {}), ("Gemm", "n w b", "y", {"transB": 1})],
        {**STATISTICS, "w": normal(5, 6), "b": normal(5)},
    ),
    "scale_and_sum": (
        ROWS,
        [("Mul", "s x", "m", {}), ("Add", "m b", "a", {}), ("Relu", "a", "r", {}), ("MatMul", "r w", "y", {})],
        {"s": with_outliers(1, 6), "b": numpy.float32(0.5), "w": normal(6, 5)},
    ),
    "one_factor": (ROWS, [("Mul", "x s", "m", {}), ("MatMul", "m w", "y", {})], {"s": normal(1), "w": normal(6, 5)}),
    "positions": (
        ROWS,
        [("MatMul", "x w1", "m", {}), ("Add", "p m", "a", {}), ("MatMul", "a w2", "y", {})],
        {"w1": with_outliers(6, 7), "p": normal(4, 7), "w2": normal(7, 5)},
    ),
    "gemm": (
        FLAT,
        [("Gemm", "x w1 b1", "g", {"beta": 2.0}), ("LeakyRelu", "g", "r", {}), ("Gemm", "r w2", "y", {})],
        {"w1": with_outliers(6, 7), "b1": normal(7), "w2": normal(7, 5)},
    ),
    "heads": (
        ROWS,
        [
            ("MatMul", "x w1", "m", {}),
            ("Add", "m b", "a", {}),
            ("Reshape", "a shape", "r", {}),
            ("MatMul", "r w2", "y", {}),
        ],
        {"w1": with_outliers(6, 7), "b": normal(7), "shape": numpy.int64([-1, 7]), "w2": normal(7, 5)},
    ),
    "gate": (
        ROWS,
        [
            ("MatMul", "x w1", "g", {}),
            ("Sigmoid", "g", "o", {}),
            ("MatMul", "x w2", "u", {}),
            ("Mul", "o u", "p", {}),
            ("Add", "p b", "a", {}),
            ("MatMul", "a w3", "y", {}),
        ],
        {"w1": normal(6, 7), "w2": with_outliers(6, 7), "b": normal(7), "w3": normal(7, 5)},
    ),
    "flattened": (
        PLANES,
        [
            ("Conv", "x w1 b1", "c", {}),
            ("LeakyRelu", "c", "r", {}),
            ("Flatten", "r", "f", {}),
            ("Gemm", "f w2", "y", {}),
        ],
        {"w1": uneven(3, 6, 2, 2), "b1": normal(3), "w2": normal(3 * 4 * 4, 5)},
    ),
    "planes": (
        PLANES,
        [
            ("Conv", "x w1 b1", "c", {"group": 2}),
            ("Relu", "c", "r", {}),
            ("MaxPool", "r", "p", {"kernel_shape": [2, 2]}),
            ("Conv", "p w2", "y", {"group": 4}),
        ],
        {"w1": uneven(8, 3, 1, 1), "b1": normal(8), "w2": uneven(4, 2, 2, 2)},
    ),
}


@pytest.mark.parametrize("case", SMOOTHING)
def test_what_takes_the_division(case, tmp_path):
    inputs, nodes, constants = SMOOTHING[case]
    model = make_model(inputs, nodes, ["y"], constants, opset=23 if case == "rms" else 17)
    data = {"x": normal(*(20 if isinstance(size, str) else size for size in inputs["x"]))}
    numpy.savez(tmp_path / "data.npz", **data)
    more = ["convolutions"] if case == "planes" else []
    changed, printed = run_tool("smooth", model, tmp_path, tmp_path / "data.npz", "0.5", *more)
    assert operators(changed) == operators(model)
    check_same(model, changed, data)
    last = model.graph.node[-1]
    assert [line.startswith(last.input[0] + ",") and line.endswith(" ") for line in printed][-1], printed
    before, after = (run(each, data, [last.input[0]])[last.input[0]] for each in (model, changed))
    axis = 1 if case == "planes" else before.ndim - 1
    # The scales are split equally (0.5), so input and weights have the same magnitudes.
    weights = constants_of(changed)[last.input[1]]
    if case == "planes":
        largest = numpy.abs(weights).max((2, 3)).reshape(4, 1, 2).max(1).reshape(8)
    else:
        largest = largest_weights(weights, 1 if case == "statistics" else 0)
    found = largest_weights(after, axis)
    if case == "flattened":
        found, largest = (sizes.reshape(3, 16).max(1) for sizes in (found, largest))
    assert (found > 0).sum() >= 3
    numpy.testing.assert_allclose(found[found > 0], largest[found > 0], rtol=1e-4)
    assert numpy.abs(before).max() != pytest.approx(numpy.abs(after).max(), rel=1e-2)


@pytest.mark.parametrize(
    ("nodes", "outputs", "reason"),
    [
        ([("MatMul", "x w", "y", {})], ["y"], "no node computes 'x'"),
        ([("Mul", "x s", "m", {}), ("MatMul", "m w", "z", {}), ("Add", "z m", "y", {})], ["y"], "other nodes read 'm'"),
        ([("Mul", "x s", "m", {}), ("MatMul", "m w", "y", {})], ["y", "m"], "other nodes read 'm'"),
        (
            [("Mul", "x s", "m", {}), ("Tanh", "m", "t", {}), ("MatMul", "t w", "y", {})],
            ["y"],
            "cannot be scaled by channel",
        ),
        ([("Mul", "x s", "m", {}), ("Add", "m x", "a", {}), ("MatMul", "a w", "y", {})], ["y"], "adds two tensors"),
        (
            [("Mul", "x s", "m", {}), ("Add", "m s", "a", {}), ("MatMul", "a w", "z", {}), ("Mul", "z m", "y", {})],
            ["y"],
            "other nodes read 'm'",
        ),
        ([("MatMul", "x w", "m", {}), ("MatMul", "m w", "y", {})], ["y"], "its weights are shared"),
    ],
)
def test_what_takes_no_division_stays(nodes, outputs, reason, tmp_path):
    constants = {"s": with_outliers(6), "w": normal(6, 6)}
    model = make_model({"x": ["N", 6]}, nodes, outputs, constants)
    numpy.savez(tmp_path / "data.npz", x=normal(20, 6))
    changed, printed = run_tool("smooth", model, tmp_path, tmp_path / "data.npz", "0.5")
    assert printed[-1].endswith(reason), printed
    for name, array in constants_of(changed).items():
        numpy.testing.assert_array_equal(array, constants[name])


def layer_errors(layers, reference, candidate, feeds):
    """Returns the error that the weights cause in each layer's output, without its mean, for the inputs of the
    candidate's layer."""
    nodes = {node.output[0]: node for node in reference.graph.node}
    changed = {node.output[0]: node for node in candidate.graph.node}
    errors = {}
    for output in layers:
        x = changed[output].input[0]
        seen = run(candidate, feeds, [x, output])
        alone = subgraph(
            [onnx.NodeProto.FromString(nodes[output].SerializeToString())],
            [(nodes[output].input[0], seen[x].shape)],
            [(output, None)],
            [constant for constant in reference.graph.initializer if constant.name in nodes[output].input],
        )
        model = helper.make_model(alone, opset_imports=reference.opset_import, ir_version=8)
        exact = run(onnx.shape_inference.infer_shapes(model), {nodes[output].input[0]: seen[x]})[output]
        difference = seen[output] - exact
        axes = (0, 2, 3) if exact.ndim == 4 else tuple(range(exact.ndim - 1))
        errors[output] = float(numpy.sqrt(((difference - difference.mean(axes, keepdims=True)) ** 2).mean()))
    return errors


@pytest.mark.parametrize("bits", [8, 4])
def test_adaptive_rounding_lowers_the_error_on_other_data(bits, tmp_path):
    model = make_classifier()
    images = make_images(192)
    seen, unseen = {"x": images[:128]}, {"x": images[128:]}
    quantized = quantize(model, seen, bits)
    onnx.save(model, tmp_path / "reference.onnx")
    numpy.savez(tmp_path / "data.npz", **seen)
    changed, printed = run_tool(
        "round", quantized, tmp_path, tmp_path / "reference.onnx", tmp_path / "data.npz", "4096"
    )
    assert [line for line in printed if "overlap" in line] == [line for line in printed if "ConvTranspose" in line]
    layers = ["c1", "c2", "c3", "g", "m", "y"]
    before, after = (layer_errors(layers, model, each, unseen) for each in (quantized, changed))
    # The depthwise layer has few choices: nine weights for each channel.
    assert all(after[name] < before[name] for name in layers), (before, after)
    assert sum(after[name] < 0.8 * before[name] for name in layers) >= 4, (before, after)
    originals, old, new = constants_of(model), constants_of(quantized), constants_of(changed)
    for name in (name for name in old if name.endswith("_i8")):
        weights = originals[name.removesuffix("_i8")]
        axis = 0 if name in ("w1_i8", "w2_i8", "w3_i8", "w5_i8") else 1
        steps = old[name.replace("_i8", "_step")].reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
        assert numpy.abs(new[name] - weights / steps).max() < 1.00001
        assert numpy.abs(new[name].astype(int)).max() <= 127
        assert name == "w4_i8" or (new[name] != old[name]).any()
    for name in (name for name in old if not name.endswith("_i8")):
        numpy.testing.assert_array_equal(new[name], old[name])


def test_adaptive_rounding_knows_strides_dilations_pads_and_groups(tmp_path):
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 2, 0, 1], "group": 2}
    model = make_model({"x": ["N", 4, 9, 11]}, [("Conv", "x w", "y", attributes)], ["y"], {"w": normal(6, 2, 3, 2)})
    noise = normal(400, 4, 11, 13)
    images = sum(noise[:, :, i : i + 9, j : j + 11] for i in range(3) for j in range(3)) + normal(400, 4, 1, 1)
    seen, unseen = {"x": images[:200]}, {"x": images[200:]}
    quantized = quantize(model, seen, 4)
    onnx.save(model, tmp_path / "reference.onnx")
    numpy.savez(tmp_path / "data.npz", **seen)
    changed, printed = run_tool(
        "round", quantized, tmp_path, tmp_path / "reference.onnx", tmp_path / "data.npz", "20000"
    )
    before, after = (layer_errors(["y"], model, each, seen)["y"] for each in (quantized, changed))
    assert after < 0.9 * before
    assert layer_errors(["y"], model, changed, unseen)["y"] < 0.9 * layer_errors(["y"], model, quantized, unseen)["y"]
    # The error that the tool reports for its rows is the error in ONNX Runtime over all rows, relative to the output's
    # magnitude.
    exact = run(model, seen)["y"]
    size = numpy.sqrt(((exact - exact.mean((0, 2, 3), keepdims=True)) ** 2).mean())
    said = [float(word) for word in printed[0].split(", ")[1].split(" to ")]
    assert said[0] == pytest.approx(before / size, rel=0.05)
    assert said[1] == pytest.approx(after / size, rel=0.05)
