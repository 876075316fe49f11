# LargestK's reference kernel against ONNX Runtime, on random problems.
import functools

import graft.ops
import numpy as np
import onnxruntime
import pytest
from onnx import helper

CASES = 10_000
SEEDS = [1, 2, 3, 4]
DTYPES = [np.float32, np.int32, np.int64]  # that ONNX Runtime's CPU kernels have


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


def problem(random):
    """Half of the time of a few different numbers, so that many are equal."""
    dtype = DTYPES[random.integers(len(DTYPES))]
    shape = tuple(random.integers(1, 40, random.integers(1, 4)))
    axis = int(random.integers(-len(shape), len(shape)))
    x = random.integers(-3, 4, shape) if random.integers(2) else random.standard_normal(shape) * 1e6
    return x.astype(dtype), int(random.integers(1, shape[axis] + 1)), axis, int(random.integers(2))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    for number in range(CASES // len(SEEDS)):
        x, k, axis, largest = problem(random)
        expected = session(x.dtype.type, axis, largest).run(None, {"x": x, "k": np.array([k], np.int64)})
        found = graft.ops.largest_k(x, k=k, axis=axis, largest=largest)
        for result, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result, wanted, err_msg=f"seed {seed}, problem {number}")


@pytest.mark.parametrize("largest", [0, 1])
def test_nan_is_the_largest_number(largest):
    """As NumPy sorts it; of ONNX Runtime it is not defined."""
    x = np.array([0, np.nan, -0.0, -np.inf, np.inf, np.nan, 1, 0], np.float32)
    values, indices = graft.ops.largest_k(x, k=8, largest=largest)
    order = np.argsort(x, kind="stable") if not largest else [1, 5, 4, 6, 0, 2, 7, 3]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, x[order])
