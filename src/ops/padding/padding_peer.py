# Implements Padding in PyTorch, whose speed `graft bench` compares with Graft's.
from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from graft.bench.peers import Attributes, Function


def peer(a: Attributes) -> Function | None:
    rank = len(a["pads"]) // 2
    begins, ends = a["pads"][:rank], a["pads"][rank:]
    if a["mode"] == "symmetric":
        return lambda x: with_mirrored_edges(x, begins, ends)
    if a["mode"] == "constant":
        pairs = pairs_from_last(range(rank), begins, ends)
        return lambda x: F.pad(x, pairs, value=a["value"])
    # PyTorch's other modes pad only axes after the second one.
    padded = [axis for axis in range(rank) if begins[axis] or ends[axis]]
    others = [axis for axis in range(rank) if axis not in padded]
    order = list(range(rank)) if not set(padded) & {0, 1} else others + padded
    if set(padded) & set(order[:2]):
        return None
    mode = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[a["mode"]]
    pairs = pairs_from_last(order[2:], begins, ends)
    if order == list(range(rank)):
        return lambda x: F.pad(x, pairs, mode=mode)
    back = [order.index(axis) for axis in range(rank)]
    return lambda x: F.pad(x.permute(order), pairs, mode=mode).permute(back)


def pairs_from_last(axes: Iterable[int], begins: list[int], ends: list[int]) -> list[int]:
    return [pad for axis in reversed(list(axes)) for pad in (begins[axis], ends[axis])]


def with_mirrored_edges(x: torch.Tensor, begins: list[int], ends: list[int]) -> torch.Tensor:
    for axis, (begin, end) in enumerate(zip(begins, ends)):
        if begin or end:
            before = x.narrow(axis, 0, begin).flip(axis)
            after = x.narrow(axis, x.shape[axis] - end, end).flip(axis)
            x = torch.cat((before, x, after), axis)
    return x
