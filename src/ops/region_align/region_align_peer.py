# RegionAlign in torchvision: what `graft bench` times it beside.
from __future__ import annotations

import importlib.util

import torch
from graft.bench.peers import Attributes, Function


def arrange(a: Attributes, x: torch.Tensor, rois: torch.Tensor, _: torch.Tensor) -> list[torch.Tensor]:
    """Regions as a detector's: on this map those that have about twice as many pixels as a box head has bins."""
    generator = torch.Generator(rois.device).manual_seed(1)
    count, (items, _, height, width) = len(rois), x.shape
    uniform = torch.rand((count, 4), generator=generator, device=rois.device)
    center = uniform[:, :2] * torch.tensor([width, height], device=rois.device)
    half = 3.5 * 2 ** (3 * uniform[:, 2:] - 1)
    placed = torch.cat([center - half, center + half], dim=1) / a["spatial_scale"]
    return [x, placed.to(rois.dtype), torch.arange(count, device=rois.device) % items]


def peer(a: Attributes) -> Function | None:
    if a["mode"] != "avg" or importlib.util.find_spec("torchvision") is None:
        return None
    from torchvision.ops import roi_align

    size = (a["output_height"], a["output_width"])
    is_aligned = a["coordinate_transformation_mode"] == "half_pixel"
    made: list[torch.Tensor] = []

    def run(x: torch.Tensor, rois: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        if not made:  # torchvision wants the item before the corners; not timed
            made.append(torch.cat([items[:, None].to(rois.dtype), rois], dim=1))
        return roi_align(x, made[0], size, a["spatial_scale"], a["sampling_ratio"] or -1, is_aligned)

    return run
