# Compares the reference kernels of ScatterReduceND and ScatterReduceElements bit by bit with ONNX Runtime on random
# problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session(operator, attributes, types, ranks):
    data, indices, updates = ((dtype, [None] * rank) for dtype, rank in zip(types, ranks, strict=True))
    inputs = {"data": data, "indices": indices, "updates": updates}
    return node_session(operator, list(inputs), inputs, {"y": data}, 18, **dict(attributes))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [random_problems.scatter_reduce_nd, random_problems.scatter_reduce_elements])
def test_random_problems(make, seed):
    random = np.random.default_rng(seed)
    operator = {"scatter_reduce_nd": "ScatterND", "scatter_reduce_elements": "ScatterElements"}[make.__name__]
    function = getattr(graft.ops, make.__name__)
    changed = 0
    for number in range(CASES // len(SEEDS)):
        attributes, inputs = random_problems.reduced(make, random)
        run = session(
            operator,
            tuple(attributes.items()),
            tuple(each.dtype for each in inputs),
            tuple(each.ndim for each in inputs),
        )
        names = [each.name for each in run.get_inputs()]
        (expected,) = run.run(None, dict(zip(names, inputs, strict=True)))
        found = function(*inputs, **attributes)
        what = f"seed {seed}, problem {number}: {attributes}"
        if inputs[0].dtype == np.float32:
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=what)
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(found[numbers].view(np.int32), expected[numbers].view(np.int32), err_msg=what)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=what)
        changed += int((expected != inputs[0]).sum())
    assert changed > CASES / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64])
def test_indices_out_of_range_are_left_out(dtype):
    data, updates = np.zeros(3, dtype), np.ones(6, dtype)
    indices = np.array([0, -1, 3, -4, 2**40, -(2**63)], np.int64)
    expected = np.array([1, 0, 1], dtype)
    np.testing.assert_array_equal(
        graft.ops.scatter_reduce_nd(data, indices[:, None], updates, reduction="add"), expected
    )
    np.testing.assert_array_equal(graft.ops.scatter_reduce_elements(data, indices, updates, reduction="add"), expected)


def test_halves_are_summed_in_f32():
    """If each partial sum were rounded to f16, addends below half a step would be lost."""
    data, updates = np.array([2048], np.float16), np.ones(1000, np.float16)
    indices = np.zeros(1000, np.int64)
    for found in (
        graft.ops.scatter_reduce_nd(data, indices[:, None], updates, reduction="add"),
        graft.ops.scatter_reduce_elements(data, indices, updates, reduction="add"),
    ):
        np.testing.assert_array_equal(found, np.array([3048], np.float16))
