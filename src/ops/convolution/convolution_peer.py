# Implements Convolution in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
import torch.nn.functional as F
from graft.bench.peers import Attributes, Function, activation


def peer(a: Attributes) -> Function | None:
    then = activation(a)
    if then is None:
        return None

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        axes = x.dim() - 2
        pads = a["pad"] or [0] * axes
        if len(pads) == 2 * axes:
            if pads[:axes] != pads[axes:]:
                x = F.pad(x, [pad for axis in reversed(range(axes)) for pad in (pads[axis], pads[axes + axis])])
                pads = [0] * axes
            pads = pads[:axes]
        convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]
        return then(convolve(x, weight, bias, a["stride"] or [1] * axes, pads, a["dilation"] or [1] * axes, a["group"]))

    return run
