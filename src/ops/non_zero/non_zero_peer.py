# NonZero in PyTorch: what `graft bench` times it beside.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function


def peer(_: Attributes) -> Function:
    return lambda x: torch.nonzero(x).t().contiguous()
