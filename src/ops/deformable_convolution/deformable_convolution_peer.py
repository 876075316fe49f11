# Implements DeformableConvolution in torchvision, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function

try:
    from torchvision.ops import deform_conv2d
except ImportError:
    deform_conv2d = None


def peer(a: Attributes) -> Function | None:
    """Returns torchvision's function, which derives group and offset_group from the shapes; None if it is unavailable."""
    pads = a["pads"] or [0] * 4
    if deform_conv2d is None or pads[:2] != pads[2:]:
        return None

    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        offset: torch.Tensor,
        bias: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return deform_conv2d(
            x,
            offset,
            weight,
            bias,
            tuple(a["strides"] or [1, 1]),
            tuple(pads[:2]),
            tuple(a["dilations"] or [1, 1]),
            mask,
        )

    return run


def exact(a: Attributes) -> Function | None:
    """Returns torchvision's function in f32, because it computes positions in the type of x, which is too coarse in f16."""
    run = peer(a)
    return run and (lambda x, *more: run(x.float(), *(t.float() for t in more)).to(x.dtype))
