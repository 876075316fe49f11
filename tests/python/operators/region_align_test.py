# Compares RegionAlign's reference kernel with ONNX Runtime on random problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session(attributes):
    inputs = {"x": [None] * 4, "rois": [None, 4], "items": (np.int64, [None])}
    return node_session("RoiAlign", list(inputs), inputs, {"y": [None] * 4}, 16, **dict(attributes))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    not_zero = 0
    for number in range(CASES // len(SEEDS)):
        attributes, inputs = random_problems.region_align(random)
        feeds = dict(zip(("x", "rois", "items"), inputs, strict=True))
        (expected,) = session(tuple(attributes.items())).run(None, feeds)
        found = graft.ops.region_align(*inputs, **attributes)
        message = f"seed {seed}, problem {number}"
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=message)
        not_zero += np.count_nonzero(expected)
    assert not_zero > CASES


def test_what_onnx_runtime_refuses_is_zero():
    """Invalid items, corners that are NaN, and an inverted region without samples yield zeros."""
    x = np.ones((2, 1, 8, 8), np.float32)
    box, large = [1, 1, 5, 5], np.float32(3e38)
    rois = np.array([box, box, box, [np.nan, 1, 5, 5], [1, 1, np.inf, 5], [-np.inf, 1, np.inf, 5]], np.float32)
    items = np.array([-1, 2, 2**62, 0, 1, 1], np.int64)
    for mode in ("avg", "max"):
        for ratio in (0, 2):
            y = graft.ops.region_align(x, rois, items, mode=mode, output_height=2, output_width=2, sampling_ratio=ratio)
            assert not y.any(), (mode, ratio)
    y = graft.ops.region_align(x, np.array([[5, 5, 1, 1]], np.float32), items[3:4], output_height=2)
    assert y.shape == (1, 1, 2, 1)
    assert not y.any()
    huge = np.array([[-large, -large, large, large], [-1e9, -1e9, 1e9, 1e9]], np.float32)
    y = graft.ops.region_align(x, huge, np.zeros(2, np.int64), output_height=3, output_width=3)
    assert np.isfinite(y).all()


def test_a_pixel_of_no_weight_does_not_count_in_a_mean():
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, :, 2:] = np.nan
    y = graft.ops.region_align(x, np.array([[1, 1, 2, 2]], np.float32), np.zeros(1, np.int64))
    assert np.array_equal(y, np.zeros((1, 1, 1, 1)))  # one sample, in the middle of pixel 1,1
    x[0, 0, 1, 1] = np.nan
    for mode in ("avg", "max"):
        y = graft.ops.region_align(x, np.array([[1, 1, 2, 2]], np.float32), np.zeros(1, np.int64), mode=mode)
        assert np.isnan(y).all()
