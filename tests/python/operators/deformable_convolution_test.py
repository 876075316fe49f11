# DeformableConvolution's reference kernel against ONNX Runtime, on random problems.
import functools

import graft.ops
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

CASES = 10_000
SEEDS = [1, 2, 3, 4]
NAMES = ["x", "weight", "offset", "bias", "mask"]


@functools.cache
def session(given, attributes):
    """Of a node with those of the inputs that `given` names."""
    attributes = {name: list(value) if isinstance(value, tuple) else value for name, value in attributes}
    inputs = [name if name in given else "" for name in NAMES]
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("DeformConv", inputs, ["y"], **attributes)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * (1 if name == "bias" else 4)) for name in given
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    graph = helper.make_graph([node], "deform", values, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def problem(random):
    """Half of the offsets are whole or half numbers, so that positions hit pixels and the edges; some lie far away."""
    window = [int(random.integers(1, 4)) for _ in range(2)]
    strides = [int(random.integers(1, 4)) for _ in range(2)]
    dilations = [int(random.integers(1, 3)) for _ in range(2)]
    pads = [int(random.integers(0, 3)) for _ in range(4)]
    group, offset_group = (int(random.integers(1, 4)) for _ in range(2))
    channels = int(np.lcm(group, offset_group)) * int(random.integers(1, 3))
    outputs = group * int(random.integers(1, 4))
    items = int(random.integers(1, 3))
    reach = [(window[i] - 1) * dilations[i] + 1 for i in range(2)]
    image = [max(int(random.integers(1, 9)), reach[i] - pads[i] - pads[2 + i]) for i in range(2)]
    size = [(image[i] + pads[i] + pads[2 + i] - reach[i]) // strides[i] + 1 for i in range(2)]
    samples = offset_group * window[0] * window[1]
    arrays = {
        "x": random.standard_normal((items, channels, *image), np.float32),
        "weight": random.standard_normal((outputs, channels // group, *window), np.float32),
        "offset": random.standard_normal((items, 2 * samples, *size), np.float32) * float(random.choice([1, 2, 8])),
        "bias": random.standard_normal(outputs, np.float32),
        "mask": random.standard_normal((items, samples, *size), np.float32),
    }
    if random.integers(2):
        arrays["offset"] = np.round(arrays["offset"] * 2) / 2
    for name in ("bias", "mask"):
        if random.integers(2):
            del arrays[name]
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
        "offset_group": offset_group,
    }
    if random.integers(2):
        attributes["kernel_shape"] = window
    return attributes, arrays


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    not_zero = 0
    for number in range(CASES // len(SEEDS)):
        attributes, arrays = problem(random)
        frozen = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in attributes.items())
        (expected,) = session(tuple(arrays), frozen).run(None, arrays)
        given = dict(arrays)
        if "mask" in given and "bias" not in given:
            given["bias"] = np.zeros(0, np.float32)
        found = graft.ops.deformable_convolution(*(given[name] for name in NAMES if name in given), **attributes)
        message = f"seed {seed}, problem {number}"
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4, err_msg=message)
        not_zero += np.count_nonzero(expected)
    assert not_zero > CASES


def test_a_position_that_is_no_number_lies_beyond_the_image():
    """And one that is further away than an integer reaches."""
    x = np.ones((1, 1, 4, 4), np.float32)
    weight = np.ones((1, 1, 1, 1), np.float32)
    for far in (np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**31, -(2.0**31), 1e20):
        for axis in (0, 1):
            offset = np.zeros((1, 2, 4, 4), np.float32)
            offset[0, axis, 1, 2] = far
            expected = np.ones((1, 1, 4, 4), np.float32)
            expected[0, 0, 1, 2] = 0
            assert np.array_equal(graft.ops.deformable_convolution(x, weight, offset), expected), (far, axis)


def test_pixels_beyond_the_image_do_not_count_whatever_lies_at_its_edge():
    x = np.full((1, 1, 2, 2), np.nan, np.float32)
    x[0, 0, 0, 0] = 4
    weight = np.ones((1, 1, 1, 1), np.float32)
    offset = np.full((1, 2, 2, 2), -0.5, np.float32)
    y = graft.ops.deformable_convolution(x, weight, offset)
    assert y[0, 0, 0, 0] == 1
    assert np.isnan(y[0, 0, 1, 1])
    y = graft.ops.deformable_convolution(x, weight, np.full((1, 2, 2, 2), -1, np.float32))
    assert np.array_equal(y[0, 0, 0], np.zeros(2))
