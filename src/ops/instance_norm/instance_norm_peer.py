# Implements InstanceNorm in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch.nn.functional as F
from graft.bench.peers import Attributes, Function, activation


def peer(a: Attributes) -> Function | None:
    then = activation(a)
    if then is None:
        return None
    return lambda x, scale=None, bias=None: then(F.instance_norm(x, weight=scale, bias=bias, eps=a["epsilon"]))
