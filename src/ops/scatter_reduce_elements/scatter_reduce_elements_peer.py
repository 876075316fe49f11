# Implements ScatterReduceElements in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function, has_ordered_sums, scattered_rows

inputs = scattered_rows
is_deterministic = has_ordered_sums


def peer(a: Attributes) -> Function:
    reduction = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}[a["reduction"]]

    def run(data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        indices = indices.to(torch.int64)
        if reduction == "sum":
            return data.scatter_add(a["axis"], indices, updates)  # has a deterministic implementation
        return data.scatter_reduce(a["axis"], indices, updates, reduction)

    return run
