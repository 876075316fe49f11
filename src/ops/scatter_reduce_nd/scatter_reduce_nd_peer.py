# Implements ScatterReduceND in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function, has_ordered_sums, scattered_rows

inputs = scattered_rows
is_deterministic = has_ordered_sums


def peer(a: Attributes) -> Function:
    reduction = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}[a["reduction"]]

    def run(data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        if indices.shape[-1] != 1:
            raise RuntimeError("only rows are scattered here")
        rows = indices.squeeze(-1)
        if not a["deterministic"]:
            wide = rows.unsqueeze(-1).expand_as(updates)
            return data.scatter_reduce(0, wide, updates, reduction)
        if a["reduction"] == "add":
            return data.index_put((rows,), updates, accumulate=True)  # sorts, because it is deterministic as well
        return data.index_reduce(0, rows, updates, reduction)

    return run
