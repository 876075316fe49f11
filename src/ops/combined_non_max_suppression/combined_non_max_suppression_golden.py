# Golden values of CombinedNonMaxSuppression, see tests/golden/generators/make_goldens.py: TensorFlow computes them.
import numpy as np
import tensorflow as tf
import torch
from golden_cases import Golden, random_values, rounded


def suppress(boxes, attributes, scores):
    """Returns the operator's outputs, computed by TensorFlow. TensorFlow visits scores above the threshold, and the
    operator also visits scores equal to it, so no score of the cases is equal to it. Without a limit per class all
    boxes may be detections."""
    boxes = boxes.float().numpy()
    limit = attributes.get("max_output_boxes_per_class", 0)
    kept_boxes, kept_scores, classes, counts = tf.image.combined_non_max_suppression(
        tf.constant(boxes if boxes.ndim == 4 else boxes[:, :, None]),
        tf.constant(scores.float().numpy()),
        max_output_size_per_class=limit if limit > 0 else max(boxes.shape[1], 1),
        max_total_size=attributes["max_output_boxes"],
        iou_threshold=attributes["iou_threshold"],
        score_threshold=attributes["score_threshold"],
        pad_per_class=bool(attributes.get("pad_per_class", 0)),
        clip_boxes=bool(attributes.get("clip_boxes", 0)),
    )
    results = (counts.numpy()[:, None].astype(np.int64), kept_boxes.numpy(), kept_scores.numpy(), classes.numpy())
    return tuple(torch.from_numpy(each) for each in (*results[:3], results[3].astype(np.int64)))


def boxes_of(name, shape):
    """Returns boxes of which many overlap, with their corners in any order."""
    centers = random_values(name, (*shape, 2), 0.5)
    sizes = random_values(name + " sizes", (*shape, 2), 0.5)
    return torch.cat([centers - sizes, centers + sizes], dim=-1)


def distinct_scores(name, shape):
    """Returns scores that f16 represents and of which no two are equal, because TensorFlow orders equal scores differently."""
    values = random_values(name + " scores", shape).flatten()
    return (torch.argsort(torch.argsort(values)).float() / 512 - 0.5).reshape(shape)


def make(out):
    golden = Golden("CombinedNonMaxSuppression", suppress)
    cases = [
        ("one_class", (1, 20, 1), {}),
        ("classes", (2, 50, 3), {}),
        ("many", (1, 200, 4), {"max_output_boxes": 60}),
        ("boxes_of_classes", (2, 40, 3), {}),
        ("few_places", (2, 70, 2), {"max_output_boxes": 3}),
        ("of_each_class", (2, 70, 5), {"max_output_boxes_per_class": 2}),
        ("padded_per_class", (2, 70, 3), {"max_output_boxes_per_class": 2, "pad_per_class": 1}),
        ("clipped", (2, 40, 3), {"clip_boxes": 1}),
        ("any_overlap", (1, 40, 2), {"iou_threshold": 0.0}),
        ("no_overlap", (1, 40, 2), {"iou_threshold": 1.0}),
        ("no_candidates", (2, 30, 2), {"score_threshold": 100.0}),
    ]
    for dtype in ("f32", "f16"):
        for name, (items, count, classes), more in cases:
            key = f"{dtype}_{name}"
            shape = (items, count, classes) if name == "boxes_of_classes" else (items, count)
            boxes = golden.x(f"{key}.x", rounded(boxes_of(key, shape), dtype))
            scores = golden.x(f"{key}.scores", distinct_scores(key, (items, count, classes)))
            attributes = {"score_threshold": 0.126, "iou_threshold": 0.375, "max_output_boxes": 25} | more
            golden.add(key, dtype, boxes, attributes, more=[scores])
    golden.write(out, "combined_non_max_suppression")
