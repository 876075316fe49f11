# Compares NonMaxSuppression's reference kernel with ONNX Runtime on random problems.
import functools

import graft.ops
import numpy as np
import pytest
import random_problems
from node_session import node_session

CASES = 10_000
SEEDS = [1, 2, 3, 4]


@functools.cache
def session(is_center, count):
    """Returns a session of a node with the first `count` inputs."""
    shapes = {"boxes": [None] * 3, "scores": [None] * 3, "most": (np.int64, [1]), "overlap": [1], "score": [1]}
    inputs = dict(list(shapes.items())[:count])
    outputs = {"y": (np.int64, [None, 3])}
    return node_session("NonMaxSuppression", list(inputs), inputs, outputs, 11, center_point_box=is_center)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(seed):
    random = np.random.default_rng(seed)
    selected = 0
    for number in range(CASES // len(SEEDS)):
        is_center, inputs = random_problems.non_max_suppression(random)
        run = session(is_center, len(inputs))
        (expected,) = run.run(None, {value.name: given for value, given in zip(run.get_inputs(), inputs, strict=True)})
        found, count = graft.ops.non_max_suppression(*inputs, center_point_box=is_center)
        assert count == len(expected), (seed, number)
        np.testing.assert_array_equal(found[: len(expected)], expected, err_msg=f"seed {seed}, problem {number}")
        selected += len(expected)
    assert selected > CASES


def test_numbers_in_the_place_of_limits():
    random = np.random.default_rng(5)
    boxes, scores = random.standard_normal((2, 60, 4), np.float32), random.standard_normal((2, 3, 60), np.float32)
    arrays = [np.array(each, dtype) for each, dtype in ((7, np.int64), (0.25, np.float32), (0.5, np.float32))]
    for given in range(4):
        found = graft.ops.non_max_suppression(boxes, scores, *(each.item() for each in arrays[:given]))
        expected = graft.ops.non_max_suppression(boxes, scores, *arrays[:given])
        assert found[1] == expected[1] and (given == 0) == (found[1] == 0)
        np.testing.assert_array_equal(found[0][: found[1]], expected[0][: expected[1]])
    by_name = graft.ops.non_max_suppression(boxes, scores, max_output_boxes_per_class=7, iou_threshold=0.25)
    assert by_name[1] > 0 and len(by_name[0]) == 2 * 3 * 7, "room for no more than the number says"
    with pytest.raises(TypeError, match="attribute max_output_boxes_per_class is 1.5; it must be an integer"):
        graft.ops.non_max_suppression(boxes, scores, 1.5)
