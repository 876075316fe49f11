# Compares LargestK's reference kernel with ONNX Runtime on random problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session(dtype, axis, largest):
    outputs = {"values": (dtype, None), "indices": (np.int64, None)}
    inputs = {"x": (dtype, None), "k": (np.int64, [1])}
    return node_session("TopK", list(inputs), inputs, outputs, 11, axis=axis, largest=largest)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    for number in range(CASES // len(SEEDS)):
        x, k, axis, largest = random_problems.largest_k(random)
        expected = session(x.dtype.type, axis, largest).run(None, {"x": x, "k": np.array([k], np.int64)})
        found = graft.ops.largest_k(x, k=k, axis=axis, largest=largest)
        for result, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result, wanted, err_msg=f"seed {seed}, problem {number}")


@pytest.mark.parametrize("largest", [0, 1])
def test_nan_is_the_largest_number(largest):
    """NaN sorts as in NumPy; ONNX Runtime does not define its order."""
    x = np.array([0, np.nan, -0.0, -np.inf, np.inf, np.nan, 1, 0], np.float32)
    values, indices = graft.ops.largest_k(x, k=8, largest=largest)
    order = np.argsort(x, kind="stable") if not largest else [1, 5, 4, 6, 0, 2, 7, 3]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, x[order])
