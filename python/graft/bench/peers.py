# The operators' maths in PyTorch: what each one is timed beside.
"""`peer(operator, attributes)` gives a function of the operator's inputs, or None where PyTorch has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F

Attributes = dict[str, Any]
Function = Callable[..., torch.Tensor]


def leaky_relu(a: Attributes) -> Function:
    return lambda x: F.leaky_relu(x, a["alpha"])


def l2_normalize(a: Attributes) -> Function | None:
    axes = a["axes"]
    if a["epsilon_mode"] != "norm":
        return None
    return lambda x: F.normalize(x, dim=tuple(axes) if len(axes) > 1 else axes[0], eps=a["epsilon"])


def activation(a: Attributes) -> Callable[[torch.Tensor], torch.Tensor] | None:
    return {
        "none": lambda x: x,
        "relu": torch.relu,
        "relu6": F.relu6,
        "leaky_relu": lambda x: F.leaky_relu(x, a["alpha"]),
    }.get(a["activation"])


def instance_norm(a: Attributes) -> Function | None:
    then = activation(a)
    if then is None:
        return None
    return lambda x, scale=None, bias=None: then(F.instance_norm(x, weight=scale, bias=bias, eps=a["epsilon"]))


def normalize(a: Attributes) -> Function:
    def run(x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        axes = tuple(range(1, x.dim())) if a["across_spatial"] else (1,)
        # In f32: the squares of a whole image exceed what f16 holds.
        norm = torch.sqrt((x * x).sum(axes, keepdim=True, dtype=torch.float32) + a["epsilon"])
        y = (x / norm).to(x.dtype)
        return y if scale is None else y * scale.reshape(1, -1, *[1] * (x.dim() - 2))

    return run


def padding(a: Attributes) -> Function | None:
    rank = len(a["pads"]) // 2
    begins, ends = a["pads"][:rank], a["pads"][rank:]
    if a["mode"] == "symmetric":
        return lambda x: with_mirrored_edges(x, begins, ends)
    if a["mode"] == "constant":
        pairs = pairs_from_last(range(rank), begins, ends)
        return lambda x: F.pad(x, pairs, value=a["value"])
    # PyTorch's other modes take the axes after the second one.
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


def upsampling(a: Attributes) -> Function | None:
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


def spatial_pyramid_pooling(a: Attributes) -> Function | None:
    if a["binning"] != "adaptive":
        return None
    pool = F.adaptive_max_pool2d if a["mode"] == "max" else F.adaptive_avg_pool2d
    return lambda x: torch.cat([pool(x, level).flatten(1) for level in a["levels"]], 1)


def convolution(a: Attributes) -> Function | None:
    then = activation(a)
    if then is None:
        return None

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        axes = x.dim() - 2
        pads = a["pad"] or [0] * axes
        if len(pads) == 2 * axes:
            if pads[:axes] != pads[axes:]:
                x = F.pad(x, [pad for axis in reversed(range(axes)) for pad in (pads[axis], pads[axes + axis])])
                pads = [0] * axes
            pads = pads[:axes]
        convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]
        return then(convolve(x, weight, bias, a["stride"] or [1] * axes, pads, a["dilation"] or [1] * axes, a["group"]))

    return run


PEERS: dict[str, Callable[[Attributes], Function | None]] = {
    "LeakyReLU": leaky_relu,
    "L2Normalize": l2_normalize,
    "InstanceNorm": instance_norm,
    "Normalize": normalize,
    "Padding": padding,
    "Upsampling": upsampling,
    "SpatialPyramidPooling": spatial_pyramid_pooling,
    "Convolution": convolution,
}


def peer(operator: str, attributes: Attributes) -> Function | None:
    make = PEERS.get(operator)
    return make(attributes) if make else None
