# The reference kernels of ScatterReduceND and ScatterReduceElements against ONNX Runtime, on random problems: the same bits.
import functools

import graft.ops
import numpy as np
import onnxruntime
import pytest
from onnx import helper

CASES = 10_000
SEEDS = [1, 2, 3, 4]
REDUCTIONS = ["add", "mul", "min", "max"]
DTYPES = [np.float32, np.int32, np.int64]


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
    options.intra_op_num_threads = 1  # updates of one place in their order
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def values(random, shape, dtype):
    """Integers also where they overflow; floating-point numbers with infinities, NaN and both zeros now and then."""
    if dtype != np.float32:
        large = random.integers(3) == 0
        limits = np.iinfo(dtype)
        return random.integers(limits.min if large else -9, limits.max if large else 10, shape, dtype)
    numbers = random.standard_normal(shape, np.float32)
    if random.integers(2):
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, 1e-45], np.float32)
        chosen = random.random(shape) < 0.2
        numbers = np.where(chosen, random.choice(edges, shape), numbers).astype(np.float32)
    return numbers


def scatter_reduce_nd(random, dtype):
    shape = random.integers(1, 6, random.integers(1, 5))
    depth = random.integers(1, len(shape) + 1)
    count = random.integers(0, 9, random.integers(0, 3))
    columns = [random.integers(-size, size, count) for size in shape[:depth]]
    return {}, shape, np.stack(columns, -1).astype(np.int64), (*count, *shape[depth:])


def scatter_reduce_elements(random, dtype):
    shape = random.integers(1, 6, random.integers(1, 5))
    axis = int(random.integers(-len(shape), len(shape)))
    count = np.array([random.integers(0, size + 1) for size in shape])
    count[axis] = random.integers(0, 20)
    indices = random.integers(-shape[axis], shape[axis], count).astype(random.choice([np.int32, np.int64]))
    return {"axis": axis}, shape, indices, tuple(count)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [scatter_reduce_nd, scatter_reduce_elements])
def test_random_problems(make, seed):
    random = np.random.default_rng(seed)
    operator = {scatter_reduce_nd: "ScatterND", scatter_reduce_elements: "ScatterElements"}[make]
    function = getattr(graft.ops, make.__name__)
    changed = 0
    for number in range(CASES // len(SEEDS)):
        dtype = DTYPES[random.integers(len(DTYPES))]
        attributes, shape, indices, updates_shape = make(random, dtype)
        attributes["reduction"] = REDUCTIONS[random.integers(len(REDUCTIONS))]
        inputs = [values(random, tuple(shape), dtype), indices, values(random, updates_shape, dtype)]
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
        if dtype == np.float32:
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
    """Where each sum is rounded to f16, what is smaller than half a step is lost."""
    data, updates = np.array([2048], np.float16), np.ones(1000, np.float16)
    indices = np.zeros(1000, np.int64)
    for found in (
        graft.ops.scatter_reduce_nd(data, indices[:, None], updates, reduction="add"),
        graft.ops.scatter_reduce_elements(data, indices, updates, reduction="add"),
    ):
        np.testing.assert_array_equal(found, np.array([3048], np.float16))
