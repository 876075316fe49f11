# ScatterReduceElements in PyTorch: what `graft bench` times it beside.
from __future__ import annotations

from typing import Any

import torch
from graft.bench.peers import Attributes, Function

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "i64": torch.int64}


def inputs(case: dict[str, Any]) -> list[torch.Tensor]:
    """Indices of rows, each as likely as another."""
    data, indices, updates = case["inputs"]
    torch.manual_seed(1)
    values = [torch.randn(desc["shape"], device="cuda").to(TYPES[desc["dtype"]]) for desc in (data, updates)]
    rows = torch.randint(data["shape"][0], indices["shape"], device="cuda", dtype=TYPES[indices["dtype"]])
    return [values[0], rows, values[1]]


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
