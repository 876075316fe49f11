# Implements SpatialPyramidPooling in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
import torch.nn.functional as F
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function | None:
    if a["binning"] != "adaptive":
        return None
    pool = F.adaptive_max_pool2d if a["mode"] == "max" else F.adaptive_avg_pool2d
    return lambda x: torch.cat([pool(x, level).flatten(1) for level in a["levels"]], 1)
