# Implements L2Normalize in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch.nn.functional as F
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function | None:
    axes = a["axes"]
    if a["epsilon_mode"] != "norm":
        return None
    return lambda x: F.normalize(x, dim=tuple(axes) if len(axes) > 1 else axes[0], eps=a["epsilon"])
