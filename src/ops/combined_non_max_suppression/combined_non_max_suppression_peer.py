# Implements CombinedNonMaxSuppression by torchvision, whose speed `graft bench` compares with Graft's, and generates the
# boxes of the timed problems.
from __future__ import annotations

from typing import Any

import torch
from graft.bench.peers import Attributes, Function

try:
    from torchvision.ops import batched_nms
except ImportError:
    batched_nms = None


def inputs(case: dict[str, Any]) -> list[torch.Tensor]:
    """Returns boxes (x1, y1, x2, y2) of 8 to 256 pixels all over an image of 640, and normally distributed scores."""
    (items, boxes, _), scores = (desc["shape"] for desc in case["inputs"])
    low = 640 * torch.rand(items, boxes, 2, device="cuda")
    size = 8 * 32 ** torch.rand(items, boxes, 2, device="cuda")
    return [torch.cat([low, low + size], 2), torch.randn(scores, device="cuda")]


def peer(a: Attributes) -> Function | None:
    others = ("box_coding", "class_agnostic", "score_activation", "pixel_boxes", "top_k_per_class")
    if batched_nms is None or any(a[name] for name in others):
        return None

    def suppress(boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns the number of detections of one item, and their boxes, scores, classes and indices, padded with zeros."""
        box, of_class = (scores[0] >= a["score_threshold"]).nonzero(as_tuple=True)
        values = scores[0, box, of_class]
        if a["top_k"] > 0:
            values, first = values.topk(min(a["top_k"], values.numel()))
            box, of_class = box[first], of_class[first]
        kept = batched_nms(boxes[0, box], values, of_class, a["iou_threshold"])[: a["max_output_boxes"]]
        count = torch.full((1, 1), kept.numel(), dtype=torch.int32, device=boxes.device)
        places = a["max_output_boxes"]
        results = [boxes[0, box[kept]], values[kept], of_class[kept], box[kept]]
        padded = [torch.zeros((1, places, *each.shape[1:]), dtype=each.dtype, device=each.device) for each in results]
        for whole, part in zip(padded, results, strict=True):
            whole[0, : kept.numel()] = part
        return (count, *padded)

    return suppress
