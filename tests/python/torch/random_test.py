# Runs 10,000 random problems of an operator on a GPU and compares them with its reference kernel on the CPU, which
# tests/python/operators compares with ONNX Runtime on the same problems.
import numpy as np
import pytest
import random_problems

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import graft.ops  # noqa: E402

CASES = 10_000
SEEDS = range(11, 21)


def deformable_convolution(random):
    attributes, arrays = random_problems.deformable_convolution(random)
    return random_problems.in_order(arrays, ["x", "weight", "offset", "bias", "mask"]), attributes


def multi_scale_deformable_attention(random):
    points, inputs = random_problems.multi_scale_deformable_attention(random)
    return inputs, {"points": points}


def causal_conv_with_state(random):
    inputs, activation = random_problems.causal_conv_with_state(random)
    return random_problems.in_order(inputs, ["x", "weight", "bias", "past_state"]), {"activation": activation}


def non_max_suppression(random):
    is_center, inputs = random_problems.non_max_suppression(random)
    return inputs, {"center_point_box": is_center}


def combined_non_max_suppression(random):
    """exp of a GPU differs in the last bits, so that only problems in f32 have it."""
    inputs, attributes = random_problems.detections(random, np.float32, int(random.integers(1, 4)), random.integers(2))
    if random.integers(2):
        del inputs[2:]
        attributes |= {"score_activation": 0}
        inputs = [each.astype(np.float16) for each in inputs]
    return inputs, attributes


def largest_k(random):
    x, k, axis, largest = random_problems.largest_k(random)
    return [x], {"k": k, "axis": axis, "largest": largest}


def region_align(random):
    attributes, inputs = random_problems.region_align(random)
    return inputs, attributes


def non_zero(random):
    shape = tuple(random.integers(0 if random.integers(8) == 0 else 1, 12, random.integers(1, 5)))
    x = random_problems.values(random, shape, random.choice(random_problems.DTYPES))
    return [np.where(random.random(shape) < random.random(), x, 0).astype(x.dtype)], {}


def scatter_reduce_nd(random):
    return random_problems.reduced(random_problems.scatter_reduce_nd, random)[::-1]


def scatter_reduce_elements(random):
    return random_problems.reduced(random_problems.scatter_reduce_elements, random)[::-1]


MAKERS = [
    causal_conv_with_state,
    combined_non_max_suppression,
    deformable_convolution,
    largest_k,
    multi_scale_deformable_attention,
    non_max_suppression,
    non_zero,
    region_align,
    scatter_reduce_elements,
    scatter_reduce_nd,
]
# Tolerances of sums of products, whose terms may be added in another order. Operators that only move elements, or have
# a defined order, must agree exactly.
TOLERANCES = {
    causal_conv_with_state: 1e-5,
    combined_non_max_suppression: 1e-5,
    deformable_convolution: 1e-4,
    multi_scale_deformable_attention: 1e-4,
    region_align: 1e-5,
}


def results_of(function, inputs, attributes):
    """Returns the results; outputs whose size depends on data are cut to that size."""
    results = function(*inputs, **attributes)
    results = [
        each.cpu().numpy() if torch.is_tensor(each) else np.asarray(each)
        for each in (results if isinstance(results, tuple) else [results])
    ]
    if function is graft.ops.non_max_suppression:
        return [results[0][: int(results[1])], results[1]]
    if function is graft.ops.non_zero:
        return [results[0].reshape(-1)[: results[0].shape[0] * int(results[1])], results[1]]
    return results


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_random_problems(make, seed):
    random = np.random.default_rng(seed)
    function = getattr(graft.ops, make.__name__)
    tolerance = TOLERANCES.get(make, 0)
    for number in range(CASES // len(SEEDS)):
        inputs, attributes = make(random)
        expected = results_of(function, inputs, attributes)
        found = results_of(function, [torch.from_numpy(each).cuda() for each in inputs], attributes)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                one,
                other,
                rtol=tolerance / 10,
                atol=tolerance,
                equal_nan=True,
                err_msg=f"seed {seed}, problem {number}",
            )
