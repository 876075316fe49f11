# Compares the reference kernels of ScatterReduceND and ScatterReduceElements bit by bit with ONNX Runtime on random
# problems.
import functools

import graft.ops
import numpy as np
import onnxruntime
import pytest
import random_problems
from onnx import helper

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session(operator, attributes, types, ranks):
    names = ["data", "indices", "updates"]
    node = helper.make_node(operator, names, ["y"], **dict(attributes))
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [None] * rank)
        for name, dtype, rank in zip(names, types, ranks, strict=True)
    ]
    output = helper.make_tensor_value_info("y", values[0].type.tensor_type.elem_type, [None] * ranks[0])
    graph = helper.make_graph([node], "scatter", values, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # applies updates of one element in their order
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


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
