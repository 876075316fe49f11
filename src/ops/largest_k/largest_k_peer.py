# Implements LargestK in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function:
    return lambda x: torch.topk(x, a["k"], dim=a["axis"], largest=bool(a["largest"]), sorted=bool(a["sorted"]))[0]
