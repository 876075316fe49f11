# ScatterReduceElements in PyTorch: what `graft bench` times it beside.
from __future__ import annotations

import torch
from graft.bench.peers import Attributes, Function, scattered_rows

inputs = scattered_rows


def peer(a: Attributes) -> Function:
    reduction = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}[a["reduction"]]

    def run(data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        indices = indices.to(torch.int64)
        if not (a["deterministic"] and data.is_floating_point() and a["reduction"] == "add"):
            return data.scatter_reduce(a["axis"], indices, updates, reduction)
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            return data.scatter_add(a["axis"], indices, updates)
        finally:
            torch.use_deterministic_algorithms(before)

    return run
