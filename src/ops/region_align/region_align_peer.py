# Implements RegionAlign by torchvision, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

from typing import Any

import torch
from graft.bench.peers import TYPES, Attributes, Function

try:
    from torchvision.ops import roi_align
except ImportError:
    roi_align = None


def inputs(case: dict[str, Any]) -> list[torch.Tensor]:
    """Returns a map, regions like those of a detector, and the item of each region.

    Each region covers 1/4 to 16 times as many pixels as a box head has bins, 7 x 7.
    """
    (items, _, height, width), (count, _), _ = (desc["shape"] for desc in case["inputs"])
    dtype = TYPES[case["inputs"][0]["dtype"]]
    torch.manual_seed(1)
    uniform = torch.rand((count, 4), device="cuda")
    center = uniform[:, :2] * torch.tensor([width, height], device="cuda")
    half = 3.5 * 2 ** (3 * uniform[:, 2:] - 1)
    rois = torch.cat([center - half, center + half], dim=1) / case["attributes"]["spatial_scale"]
    x = torch.randn(case["inputs"][0]["shape"], device="cuda").to(dtype)
    return [x, rois.to(dtype), torch.arange(count, device="cuda") % items]


def peer(a: Attributes) -> Function | None:
    if roi_align is None or a["mode"] != "avg":
        return None
    size = (a["output_height"], a["output_width"])
    is_aligned = a["coordinate_transformation_mode"] == "half_pixel"
    made: list[torch.Tensor] = []

    def run(x: torch.Tensor, rois: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        if not made:  # torchvision expects the item before the corners; this is not timed
            made.append(torch.cat([items[:, None].to(rois.dtype), rois], dim=1))
        return roi_align(x, made[0], size, a["spatial_scale"], a["sampling_ratio"] or -1, is_aligned)

    return run


def exact(a: Attributes) -> Function | None:
    """Returns the function of peer() in float32, because torchvision computes coordinates in the type of the map."""
    run = peer(a)
    return run and (lambda x, rois, items: run(x.float(), rois.float(), items).to(x.dtype))
