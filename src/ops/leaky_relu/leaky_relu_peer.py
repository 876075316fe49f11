# Implements LeakyReLU in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch.nn.functional as F
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function:
    return lambda x: F.leaky_relu(x, a["alpha"])
