# NonZero in PyTorch, with which `graft bench` compares its speed.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function


def peer(_: Attributes) -> Function:
    return lambda x: torch.nonzero(x).t().contiguous()
