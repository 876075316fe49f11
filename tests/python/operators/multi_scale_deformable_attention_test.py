# Compares MultiScaleDeformableAttention's reference kernel with ONNX Runtime's GridSample on random problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session():
    x, grid, y = ({name: (np.float64, [None] * 4)} for name in ("x", "grid", "y"))
    attributes = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    return node_session("GridSample", ["x", "grid"], x | grid, y, 20, **attributes)


def expected_sums(value, shapes, locations, weights, points):
    """Returns the weighted sum of a GridSample of each map, in double precision."""
    items, _, heads, channels = value.shape
    queries = locations.shape[1]
    sums = np.zeros((items * heads, channels, queries))
    locations = locations.reshape(items, queries, heads, -1, 2).transpose(0, 2, 1, 3, 4).astype(np.float64)
    weights = weights.reshape(items, queries, heads, -1).transpose(0, 2, 1, 3).astype(np.float64)
    pixel = point = 0
    for (height, width), count in zip(shapes.tolist(), points, strict=True):
        of_map = value[:, pixel : pixel + height * width].astype(np.float64).transpose(0, 2, 3, 1)
        grid = 2 * locations[:, :, :, point : point + count] - 1
        feeds = {
            "x": of_map.reshape(items * heads, channels, height, width),
            "grid": grid.reshape(items * heads, queries, count, 2),
        }
        (samples,) = session().run(None, feeds)
        parts = weights[:, :, :, point : point + count].reshape(items * heads, 1, queries, count)
        sums += (samples * parts).sum(-1)
        pixel += height * width
        point += count
    return sums.reshape(items, heads, channels, queries).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    not_zero = 0
    for number in range(CASES // len(SEEDS)):
        points, inputs = random_problems.multi_scale_deformable_attention(random)
        expected = expected_sums(*inputs, points)
        found = graft.ops.multi_scale_deformable_attention(*inputs, points=points)
        # A position of up to 20 pixels is rounded to f32 twice.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4, err_msg=f"seed {seed}, problem {number}")
        not_zero += np.count_nonzero(expected)
    assert not_zero > CASES


def attend(value, shapes, locations, weights=None):
    """Runs one query of one head with one channel, with all points in one map."""
    locations = np.array(locations, np.float32).reshape(1, 1, 1, -1, 2)
    count = locations.shape[3]
    weights = np.array([1] * count if weights is None else weights, np.float32).reshape(1, 1, 1, count)
    value = np.array(value, np.float32).reshape(1, -1, 1, 1)
    return graft.ops.multi_scale_deformable_attention(
        value, np.array(shapes, np.int64), locations, weights, points=[count]
    ).item()


def test_points_that_are_nowhere_add_nothing():
    nowhere = [[np.nan, 0.5], [0.5, np.nan], [np.inf, 0.5], [0.5, -np.inf], [3e38, 0.5], [-1, 0.5], [0.5, 2]]
    assert attend([1, 2, 3, 4], [[2, 2]], [*nowhere, [0.25, 0.25]], [np.nan] * len(nowhere) + [1]) == 1
    assert attend([1, 2, 3, 4], [[2, 2]], nowhere) == 0


def test_a_pixel_that_is_not_sampled_does_not_matter():
    assert attend([1, np.nan, np.inf, np.nan], [[2, 2]], [[-0.05, -0.05]]) == pytest.approx(0.4 * 0.4)
    assert np.isnan(attend([1, np.nan, 3, 4], [[2, 2]], [[0.5, 0.25]]))


def test_maps_that_value_does_not_hold():
    """The sizes of maps are data: for any sizes, the kernel reads nothing beyond `value`."""
    assert attend([1, 2, 3, 4], [[4, 2]], [[0.25, 0.125]]) == 1
    assert attend([1, 2, 3, 4], [[4, 2]], [[0.25, 0.875]]) == 0
    assert attend([1, 2, 3, 4], [[0, 2]], [[0.25, 0.5]]) == 0
    assert attend([1, 2, 3, 4], [[-2, 2]], [[0.25, 0.5]]) == 0
    assert attend([1, 2, 3, 4], [[2**62, 2**62]], [[0.999, 0.999]]) == 0
    assert attend([1, 2, 3, 4], [[-(2**63), 2**63 - 1]], [[0.5, 0.5]]) == 0


def test_levels_follow_each_other():
    value = np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1)
    shapes = np.array([[2, 2], [1, 1], [-3, 5], [1, 1]], np.int64)
    locations = np.full((1, 1, 1, 4, 2), 0.5, np.float32)
    for level, expected in enumerate([1.5, 4, 0, 5]):
        weights = np.zeros((1, 1, 1, 4), np.float32)
        weights[..., level] = 1
        y = graft.ops.multi_scale_deformable_attention(value, shapes, locations, weights, points=[1] * 4)
        assert y.item() == expected
