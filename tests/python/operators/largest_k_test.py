# Compares LargestK's reference kernel with ONNX Runtime on random problems.
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
def session(dtype, axis, largest):
    node = helper.make_node("TopK", ["x", "k"], ["values", "indices"], axis=axis, largest=largest)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [
        helper.make_tensor_value_info("x", element, None),
        helper.make_tensor_value_info("k", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), [1]),
    ]
    outputs = [
        helper.make_tensor_value_info("values", element, None),
        helper.make_tensor_value_info("indices", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), None),
    ]
    model = helper.make_model(
        helper.make_graph([node], "top", inputs, outputs), opset_imports=[helper.make_opsetid("", 11)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


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
