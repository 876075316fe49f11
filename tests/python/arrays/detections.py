# Detections as NVIDIA documents them, in plain Python: the README files of EfficientNMS_TRT and BatchedNMS_TRT.
"""References for the last stage of a detector. Both work on one item at a time and compute overlaps in f32."""

import numpy as np

TOP_SCORES = 4096  # "After sorting, the highest 4096 scores are processed"


def overlaps(boxes, extent=0):
    """Returns the intersection over union of each pair of boxes, whose corners may be in any order. A width is
    x2 - x1 + extent. The result is 0 for boxes without an area, and for boxes that do not meet."""
    boxes = boxes.astype(np.float32)
    extent = np.float32(extent)
    with np.errstate(all="ignore"):
        low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
        first, last = np.maximum(low[:, None], low[None]), np.minimum(high[:, None], high[None])
        sides = last - first + extent
        common = np.where((sides > 0).all(2), sides[..., 0] * sides[..., 1], np.float32(0))
        area = (high[:, 0] - low[:, 0] + extent) * (high[:, 1] - low[:, 1] + extent)
        union = area[:, None] + area[None] - common
        return np.where((common > 0) & (union > 0), common / union, np.float32(0))


def corners(boxes, box_coding, anchors=None):
    """Returns the corners of boxes in BoxCorner (0) or BoxCenterSize (1) coding, decoded with anchors if given."""
    boxes = boxes.astype(np.float32)
    if anchors is not None:
        anchors = anchors.astype(np.float32)
        if box_coding == 0:
            halves = [np.sort(each.reshape(*each.shape[:-1], 2, 2), axis=-2) for each in (boxes, anchors)]
            return (halves[0] + halves[1]).reshape(boxes.shape)
        boxes = np.concatenate(
            [boxes[..., :2] * anchors[..., 2:] + anchors[..., :2], np.exp(boxes[..., 2:]) * anchors[..., 2:]], -1
        )
    if box_coding == 0:
        return boxes
    half = boxes[..., 2:] * np.float32(0.5)
    with np.errstate(invalid="ignore"):  # infinite sizes
        return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x.astype(np.float64)))


def efficient_nms(
    boxes,
    scores,
    anchors=None,
    *,
    score_threshold=0.5,
    iou_threshold=0.5,
    max_output_boxes=100,
    background_class=-1,
    score_activation=0,
    class_agnostic=0,
    box_coding=0,
    most_of_class=None,
    clip_boxes=0,
):
    """Returns a list of (box, score, class, index of the box) for one item: scores below the threshold are rejected,
    the rest is sorted, and boxes are removed whose overlap with a better box, of the same class unless class_agnostic,
    is above the threshold. `most_of_class` and `clip_boxes` are those of TensorFlow's CombinedNonMaxSuppression."""
    count, classes = scores.shape
    per_class = boxes.ndim == 3 and boxes.shape[1] > 1
    decoded = corners(boxes, box_coding, anchors[:, None] if anchors is not None and boxes.ndim == 3 else anchors)
    decoded = decoded.reshape(-1, 4)
    overlap = overlaps(decoded)
    final = sigmoid(scores) if score_activation else scores.astype(np.float64)
    kept = []
    order = np.argsort(-scores.astype(np.float64), axis=None, kind="stable")
    threshold = float(np.float32(score_threshold))
    limit = np.float32(iou_threshold)
    visited = 0
    taken = [0] * classes
    for place in order.tolist():
        index, label = divmod(place, classes)
        if label == background_class or not final[index, label] >= threshold:
            continue
        if len(kept) == max_output_boxes or visited == TOP_SCORES:
            break
        visited += 1
        own = index * classes + label if per_class else index
        if most_of_class and taken[label] == most_of_class:
            continue
        if any((class_agnostic or label == other) and overlap[own, box] > limit for box, other, _ in kept):
            continue
        taken[label] += 1
        kept.append((own, label, index))
    return [
        (
            np.clip(decoded[own], 0, 1) if clip_boxes else decoded[own],
            final[index, label],
            label,
            label * count + index if per_class else index,
        )
        for own, label, index in kept
    ]


def batched_nms(
    boxes,
    scores,
    *,
    score_threshold,
    iou_threshold,
    top_k,
    keep_top_k,
    background_class=-1,
    is_normalized=True,
    clip_boxes=True,
):
    """Returns a list of (box, score, class, index of the box) for one item: each class is sorted, its `top_k` best
    scores above the threshold are suppressed separately, and the `keep_top_k` best results of all classes remain. If
    boxes are not normalized, the pixels of both corners belong to a box, as in Caffe, and boxes are not clipped."""
    count, classes = scores.shape
    results = []
    for label in range(classes):
        if label == background_class:
            continue
        own = boxes[:, min(label, boxes.shape[1] - 1)] if boxes.ndim == 3 else boxes
        overlap = overlaps(own, extent=0 if is_normalized else 1)
        column = scores[:, label].astype(np.float64)
        order = [
            i for i in np.argsort(-column, kind="stable").tolist() if column[i] > float(np.float32(score_threshold))
        ]
        selected = []
        for i in order[: top_k if top_k > 0 else None]:
            if all(not overlap[i, j] > np.float32(iou_threshold) for j in selected):
                selected.append(i)
        offset = label * count if boxes.ndim == 3 and boxes.shape[1] > 1 else 0
        results += [(own[i].astype(np.float32), column[i], label, offset + i) for i in selected]
    results.sort(key=lambda each: -each[1])
    results = results[:keep_top_k]
    if is_normalized and clip_boxes:
        results = [(np.clip(box, 0, 1), *rest) for box, *rest in results]
    return results


def padded(items, places, dtype, empty=0):
    """Returns the results of several items as the plugins write them: counts, boxes, scores, classes, indices."""
    counts = np.array([[len(item)] for item in items], np.int32).reshape(-1, 1)
    boxes = np.zeros((len(items), places, 4), dtype)
    scores = np.zeros((len(items), places), dtype)
    classes = np.full((len(items), places), empty, np.int32)
    indices = np.full((len(items), places), empty, np.int32)
    for row, item in enumerate(items):
        for at, (box, score, label, index) in enumerate(item):
            boxes[row, at], scores[row, at], classes[row, at], indices[row, at] = box, score, label, index
    return counts, boxes, scores, classes, indices
