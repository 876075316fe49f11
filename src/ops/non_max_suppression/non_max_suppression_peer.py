# Implements NonMaxSuppression by torchvision, whose speed `graft bench` compares with Graft's, and generates the boxes
# of the timed problems.
from __future__ import annotations

from typing import Any

import torch
from graft.bench.peers import Attributes, Function

try:
    from torchvision.ops import batched_nms
except ImportError:
    batched_nms = None


def inputs(case: dict[str, Any]) -> list[torch.Tensor]:
    """Returns boxes (y1, x1, y2, x2) of 8 to 256 pixels all over an image of 640, and normally distributed scores."""
    (items, boxes, _), scores = (desc["shape"] for desc in case["inputs"])
    low = 640 * torch.rand(items, boxes, 2, device="cuda")
    size = 8 * 32 ** torch.rand(items, boxes, 2, device="cuda")
    return [torch.cat([low, low + size], 2), torch.randn(scores, device="cuda")]


def peer(a: Attributes) -> Function | None:
    if batched_nms is None or a["center_point_box"]:
        return None

    def suppress(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns the selected boxes of one item in ONNX's order, class by class, up to the limit of each class."""
        _, classes, _ = scores.shape
        _, of_class, box = (scores > a["score_threshold"]).nonzero(as_tuple=True)
        kept = batched_nms(boxes[0, box], scores[0, of_class, box], of_class, a["iou_threshold"])
        kept = kept[of_class[kept].argsort(stable=True)]
        counts = torch.bincount(of_class[kept], minlength=classes)
        place = torch.arange(kept.numel(), device=kept.device) - (counts.cumsum(0) - counts)[of_class[kept]]
        kept = kept[place < a["max_output_boxes_per_class"]]
        return torch.stack([torch.zeros_like(kept), of_class[kept], box[kept]], 1)

    return suppress
