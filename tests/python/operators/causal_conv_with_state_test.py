# Compares CausalConvWithState's reference kernel with ONNX Runtime and ONNX's own reference on random problems.
import functools

import graft.ops
import ml_dtypes
import numpy as np
import pytest
import random_problems
from node_session import node_session
from onnx.reference.ops.op_causal_conv_with_state import CausalConvWithState

CASES = 10_000
SEEDS = [1, 2, 3, 4]
NAMES = ["x", "weight", "bias", "past_state"]


@functools.cache
def session(given, activation):
    """Returns a session of the operator, which ONNX Runtime has under the name of the original proposal."""
    names = [name if name in given else "" for name in NAMES]
    inputs, outputs = dict.fromkeys(given), dict.fromkeys(("y", "present_state"))
    return node_session("CausalConvWithState", names, inputs, outputs, 18, "com.microsoft", activation=activation)


def call(inputs, activation):
    return graft.ops.causal_conv_with_state(*random_problems.in_order(inputs, NAMES), activation=activation)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    for number in range(CASES // len(SEEDS)):
        inputs, activation = random_problems.causal_conv_with_state(random)
        expected = session(tuple(inputs), activation).run(None, inputs)
        y, state = call(inputs, activation)
        message = f"seed {seed}, problem {number}"
        np.testing.assert_allclose(y, expected[0], rtol=1e-5, atol=1e-5, err_msg=message)
        np.testing.assert_array_equal(state, expected[1], err_msg=message)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_onnx_s_reference(dtype):
    """Tests every type. ONNX's reference rounds sums before the activation, which Graft does not."""
    random = np.random.default_rng(5)
    step = float(ml_dtypes.finfo(dtype).eps)
    for number in range(300):
        inputs, activation = random_problems.causal_conv_with_state(random)
        inputs = {name: array.astype(dtype) for name, array in inputs.items()}
        wide = [None if name not in inputs else inputs[name].astype(np.float32) for name in NAMES]
        expected, expected_state = CausalConvWithState.eval(*wide, activation=activation, n_outputs=2)
        y, state = call(inputs, activation)
        assert y.dtype == state.dtype == dtype
        np.testing.assert_allclose(
            y.astype(np.float32), expected, rtol=step, atol=1e-5, err_msg=f"problem {number}, {dtype.__name__}"
        )
        np.testing.assert_array_equal(state.astype(np.float32), expected_state)


def test_pieces_are_the_whole():
    """Each piece gets the state of the previous one; pieces may be shorter than the state."""
    random = np.random.default_rng(6)
    x, weight, bias = (random.standard_normal(shape, np.float32) for shape in ((2, 3, 40), (3, 1, 7), (3,)))
    whole, last = graft.ops.causal_conv_with_state(x, weight, bias, activation="silu")
    state = np.zeros((2, 3, 6), np.float32)
    pieces = []
    for piece in np.split(x, [1, 2, 4, 5, 20, 20, 37], axis=2):
        y, state = graft.ops.causal_conv_with_state(np.ascontiguousarray(piece), weight, bias, state, activation="silu")
        pieces.append(y)
    np.testing.assert_array_equal(np.concatenate(pieces, axis=2), whole)
    np.testing.assert_array_equal(state, last)
    np.testing.assert_array_equal(last, x[:, :, -6:])


def test_zeros_of_the_past_are_multiplied_as_any_numbers_are():
    y, _ = graft.ops.causal_conv_with_state(np.ones((1, 1, 2), np.float32), np.array([[[np.inf, 1]]], np.float32))
    np.testing.assert_array_equal(y, np.array([[[np.nan, np.inf]]], np.float32))
