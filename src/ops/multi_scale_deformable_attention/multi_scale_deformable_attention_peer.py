# Implements MultiScaleDeformableAttention by PyTorch's grid_sample, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from graft.bench.peers import TYPES, Attributes, Function

# The sizes of the maps of the timed cases, by the number of pixels of all maps.
SHAPES = {8400: [[80, 80], [40, 40], [20, 20]], 22223: [[100, 167], [50, 84], [25, 42], [13, 21]]}


def inputs(case: dict[str, Any]) -> list[torch.Tensor]:
    """Returns inputs with queries all over the image, and points within a few pixels of their query.

    An encoder, which has as many queries as pixels, has a query at every pixel.
    """
    value, _, locations, weights = (desc["shape"] for desc in case["inputs"])
    dtype = TYPES[case["inputs"][0]["dtype"]]
    torch.manual_seed(1)
    shapes = SHAPES[value[1]]
    items, queries, heads, levels, points, _ = locations
    centers = [
        torch.stack(torch.meshgrid((torch.arange(h) + 0.5) / h, (torch.arange(w) + 0.5) / w, indexing="ij")[::-1], -1)
        for h, w in shapes
    ]
    centers = torch.cat([each.reshape(-1, 2) for each in centers]).cuda()
    if queries != value[1]:
        centers = torch.rand(queries, 2, device="cuda")
    sizes = torch.tensor([[w, h] for h, w in shapes], device="cuda")[:, None]
    offsets = 3 * torch.randn(items, queries, heads, levels, points, 2, device="cuda") / sizes
    places = centers[None, :, None, None, None] + offsets
    parts = torch.randn(weights, device="cuda").flatten(3).softmax(-1).reshape(weights)
    x = torch.randn(value, device="cuda").to(dtype)
    return [x, torch.tensor(shapes, device="cuda"), places.to(dtype), parts.to(dtype)]


def peer(a: Attributes) -> Function | None:
    levels, points = len(a["points"]), a["points"][0]
    if a["points"] != [points] * levels:
        return None

    def attend(value: torch.Tensor, _: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        items, pixels, heads, channels = value.shape
        queries = locations.shape[1]
        shapes = SHAPES[pixels]
        grids = (2 * locations - 1).transpose(1, 2).flatten(0, 1)
        maps = value.split([h * w for h, w in shapes], 1)
        sampled = [
            F.grid_sample(
                pixels_of.permute(0, 2, 3, 1).reshape(items * heads, channels, h, w),
                grids[:, :, level],
                align_corners=False,
            )
            for level, (pixels_of, (h, w)) in enumerate(zip(maps, shapes, strict=True))
        ]
        parts = weights.transpose(1, 2).reshape(items * heads, 1, queries, levels * points)
        sums = (torch.stack(sampled, -2).flatten(-2) * parts).sum(-1)
        return sums.view(items, heads, channels, queries).permute(0, 3, 1, 2).contiguous()

    return attend


def exact(a: Attributes) -> Function | None:
    """Returns the function of peer() in float32.

    PyTorch computes positions in the type of the map, and the 11 bits of f16 are too few for 167 pixels.
    """
    run = peer(a)
    return run and (lambda value, shapes, *more: run(value.float(), shapes, *(t.float() for t in more)).to(value.dtype))
