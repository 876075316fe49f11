# Implements Normalize in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function:
    def run(x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        axes = tuple(range(1, x.dim())) if a["across_spatial"] else (1,)
        # The sum is in f32, because the squares of a whole image exceed the range of f16.
        norm = torch.sqrt((x * x).sum(axes, keepdim=True, dtype=torch.float32) + a["epsilon"])
        y = (x / norm).to(x.dtype)
        return y if scale is None else y * scale.reshape(1, -1, *[1] * (x.dim() - 2))

    return run
