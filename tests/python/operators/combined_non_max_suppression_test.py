# Compares CombinedNonMaxSuppression's reference kernel with references in Python, written after NVIDIA's descriptions of
# EfficientNMS_TRT and BatchedNMS_TRT, on 10,000 random items each.
import detections
import graft.ops
import numpy as np
import pytest
import random_problems

ITEMS = 50  # items of one call, each with boxes and scores of its own
CALLS = 25
SEEDS = [1, 2, 3, 4]


def compare(found, items, places, dtype, empty, what):
    """Compares the outputs with lists of detections. Boxes and scores may differ by the rounding of exp."""
    expected = detections.padded(items, places, dtype, empty)
    names = ("counts", "boxes", "scores", "classes", "indices")
    for name, a, b in zip(names, found, expected, strict=True):
        if a.dtype == np.int32:
            np.testing.assert_array_equal(a, b, err_msg=f"{what}: {name}")
        else:
            assert a.dtype == dtype
            limit = 4 * float(np.finfo(dtype).eps)
            np.testing.assert_allclose(a.astype(float), b.astype(float), limit, limit, err_msg=f"{what}: {name}")


def efficient_nms(inputs, attributes):
    """Returns the detections of each item by the description of EfficientNMS_TRT."""
    fields = dict(attributes)
    limit = max(fields.pop("max_output_boxes_per_class"), 0)
    items = [np.broadcast_to(each, (ITEMS, *each.shape[1:])) for each in inputs]
    return [detections.efficient_nms(*item, most_of_class=limit, **fields) for item in zip(*items, strict=True)]


def batched_nms(inputs, attributes):
    """Returns the detections of each item by the description of BatchedNMS_TRT. The plugin compares scores with >, the
    operator with >=."""
    return [
        detections.batched_nms(
            *item,
            score_threshold=np.nextafter(np.float32(attributes["score_threshold"]), np.float32(-np.inf)),
            iou_threshold=attributes["iou_threshold"],
            top_k=attributes["top_k"],
            keep_top_k=attributes["max_output_boxes"],
            background_class=attributes["background_class"],
            is_normalized=not attributes["pixel_boxes"],
            clip_boxes=attributes["clip_boxes"],
        )
        for item in zip(*inputs, strict=True)
    ]


@pytest.mark.parametrize("reference", [efficient_nms, batched_nms])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems(reference, dtype, seed):
    """These are 10,000 items for each reference: seeds x types x calls x items."""
    assert len(SEEDS) * 2 * CALLS * ITEMS == 10_000
    random = np.random.default_rng([seed, dtype().itemsize])
    detected = 0
    for call in range(CALLS):
        inputs, attributes = random_problems.detections(random, dtype, ITEMS, reference is batched_nms)
        if reference is batched_nms and call % 2:  # scores that are equal to the threshold of the plugin
            above = np.nextafter(np.float32(attributes["score_threshold"]), np.float32(np.inf))
            attributes["score_threshold"] = float(above)
        found = graft.ops.combined_non_max_suppression(*inputs, **attributes)
        what = f"seed {seed}, call {call}: {attributes}"
        empty = attributes.get("empty_class", 0)
        compare(found, reference(inputs, attributes), attributes["max_output_boxes"], dtype, empty, what)
        detected += int(found[0].sum())
    assert detected > CALLS * ITEMS // 2


def test_only_the_4096_highest_scores_are_visited():
    random = np.random.default_rng(5)
    count = 5000
    low = np.arange(count)[:, None] * 4.0
    boxes = np.concatenate([low, low, low + 1, low + 1], 1).astype(np.float32)[None]
    scores = random.permutation(np.arange(1, count + 1)).astype(np.float32)[None, :, None]
    for top_k, expected in ((4096, 4096), (10, 10), (0, count)):
        found = graft.ops.combined_non_max_suppression(
            boxes, scores, score_threshold=0.5, max_output_boxes=count, top_k=top_k
        )
        assert found[0].item() == expected
        np.testing.assert_array_equal(found[2][0, :expected], np.arange(count, count - expected, -1))
    default = graft.ops.combined_non_max_suppression(boxes, scores, score_threshold=0.5, max_output_boxes=count)
    assert default[0].item() == detections.TOP_SCORES


def test_padding_per_class_reduces_the_number_of_places():
    boxes, scores = np.zeros((2, 5, 4), np.float32), np.zeros((2, 5, 3), np.float32)
    for limit, places in ((2, 6), (-1, 100), (50, 100)):
        found = graft.ops.combined_non_max_suppression(boxes, scores, max_output_boxes_per_class=limit, pad_per_class=1)
        assert [each.shape[1] for each in found] == [1, *[places] * 4]


def test_the_references_find_seeded_faults():
    """A reference that ignores an attribute would pass every test of that attribute."""
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [4, 4, 5, 5]], np.float32)
    scores = np.array([[0.9, 0.1], [0.8, 0.7], [0.6, 0.2]], np.float32)
    plain = detections.efficient_nms(boxes, scores)
    assert [(label, index) for *_, label, index in plain] == [(0, 0), (1, 1), (0, 2)]
    agnostic = detections.efficient_nms(boxes, scores, class_agnostic=1)
    assert [(label, index) for *_, label, index in agnostic] == [(0, 0), (0, 2)]
    batched = detections.batched_nms(boxes, scores, score_threshold=0.5, iou_threshold=0.5, top_k=1, keep_top_k=5)
    assert [(label, index) for *_, label, index in batched] == [(0, 0), (1, 1)]
    assert np.isclose(detections.overlaps(np.array([[0, 0, 1, 1], [0, 0, 1, 0]], np.float32), 1)[0, 1], 0.5)
