# Compares DeformableConvolution's reference kernel with ONNX Runtime on random problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]
NAMES = ["x", "weight", "offset", "bias", "mask"]


@functools.cache
def session(given, attributes):
    """Returns a session of a node with the inputs in `given`."""
    attributes = {name: list(value) if isinstance(value, tuple) else value for name, value in attributes}
    names = [name if name in given else "" for name in NAMES]
    while not names[-1]:
        names.pop()
    inputs = {name: [None] * (1 if name == "bias" else 4) for name in given}
    return node_session("DeformConv", names, inputs, {"y": [None] * 4}, 19, **attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    not_zero = 0
    for number in range(CASES // len(SEEDS)):
        attributes, arrays = random_problems.deformable_convolution(random)
        frozen = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in attributes.items())
        (expected,) = session(tuple(arrays), frozen).run(None, arrays)
        found = graft.ops.deformable_convolution(*random_problems.in_order(arrays, NAMES), **attributes)
        message = f"seed {seed}, problem {number}"
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4, err_msg=message)
        not_zero += np.count_nonzero(expected)
    assert not_zero > CASES


def test_a_position_that_is_no_number_lies_beyond_the_image():
    """Positions beyond the range of an integer are outside of the image, too."""
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
