# Implements Upsampling in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

import torch
import torch.nn.functional as F
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function | None:
    align = a["coordinate_mode"] == "align_corners"
    plain = a["mode"] == "nearest" and a["coordinate_mode"] == "asymmetric" and a["nearest_mode"] == "floor"
    if a["mode"] != "nearest" and a["coordinate_mode"] == "asymmetric":
        return None

    def run(x: torch.Tensor) -> torch.Tensor:
        sizes = {"size": a["sizes"]} if a["sizes"] else {"scale_factor": factors(a["scales"], x.dim() - 2)}
        if a["mode"] == "nearest":
            return F.interpolate(x, mode="nearest" if plain else "nearest-exact", **sizes)
        mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[x.dim() - 2] if a["mode"] == "linear" else "bicubic"
        return F.interpolate(x, mode=mode, align_corners=align, **sizes)

    return run


def factors(scales: list[float], axes: int) -> list[float]:
    return [float(scale) for scale in (scales * axes if len(scales) == 1 else scales)]
