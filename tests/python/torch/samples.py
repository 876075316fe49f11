# Calls of every operator, with equivalent functions in plain PyTorch.
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from graft._definitions import DEFINITIONS

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}
# Tolerances relative to the results' largest magnitude: a few roundings of the type, or sums of about a hundred
# products in f32.
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}


@dataclasses.dataclass(frozen=True)
class Sample:
    function: str
    shapes: list[tuple[int, ...]]
    """Of the inputs; those after x and a convolution's weight are f32."""
    attributes: dict[str, Any]
    plain: Callable[..., torch.Tensor]
    positive: bool = False
    has_gradient: bool = True

    @property
    def name(self) -> str:
        return "_".join(
            [
                self.function,
                *(
                    str(self.attributes[k])
                    for k in ("mode", "activation", "epsilon_mode", "op_type", "across_spatial")
                    if k in self.attributes
                ),
            ]
        )

    def inputs(self, dtype: str, device: str, seed: int = 0) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        tensors = []
        for i, shape in enumerate(self.shapes):
            own = i == 0 or (self.function == "convolution" and i == 1)
            if own and dtype == "i8":
                tensor = torch.randint(1 if self.positive else -128, 128, shape, generator=generator, dtype=torch.int8)
            else:
                tensor = torch.randn(shape, generator=generator)
                tensor = tensor.abs() + 0.1 if self.positive else tensor
                tensor = tensor.to(DTYPES[dtype]) if own else tensor
            tensors.append(tensor.to(device))
        return tensors

    def named(self, dtype: str) -> dict[str, Any]:
        known = {info.name for info in DEFINITIONS[self.function].attributes}
        scales = {"x_scale": 0.05, "y_scale": 0.07} if dtype == "i8" else {}
        return {name: value for name, value in {**self.attributes, **scales}.items() if name in known}


X = (2, 6, 9, 11)


def activated(y: torch.Tensor, name: str) -> torch.Tensor:
    return {"none": lambda: y, "relu": y.relu, "relu6": lambda: F.relu6(y), "leaky_relu": lambda: F.leaky_relu(y, 0.1)}[
        name
    ]()


def convolution(activation: str, asymmetric: bool = False) -> Sample:
    def plain(x: Any, w: Any, b: Any) -> Any:
        x = F.pad(x, (0, 2, 1, 0)) if asymmetric else x
        y = F.conv2d(x, w, b.to(x.dtype), stride=(2, 1), padding=0 if asymmetric else (1, 2), groups=2)
        return activated(y, activation)

    attributes = {"stride": [2, 1], "pad": [1, 0, 0, 2] if asymmetric else [1, 2], "group": 2, "activation": activation}
    return Sample("convolution", [X, (4, 3, 3, 5), (4,)], {**attributes, "alpha": 0.1}, plain)


def instance_norm(activation: str) -> Sample:
    def plain(x: Any, scale: Any, bias: Any) -> Any:
        y = F.instance_norm(x.float(), weight=scale, bias=bias, eps=1e-3)
        return activated(y, activation).to(x.dtype)

    return Sample("instance_norm", [X, (6,), (6,)], {"epsilon": 1e-3, "activation": activation, "alpha": 0.1}, plain)


def l2_normalize(mode: str) -> Sample:
    def plain(x: Any) -> Any:
        total = x.float().square().sum((1, 2), keepdim=True)
        norms = {
            "max": lambda: total.clamp(min=1e-4).sqrt(),
            "norm": lambda: total.sqrt().clamp(min=1e-4),
            "add": lambda: (total + 1e-4).sqrt(),
        }
        return (x.float() / norms[mode]()).to(x.dtype)

    return Sample("l2_normalize", [X], {"axes": [1, 2], "epsilon": 1e-4, "epsilon_mode": mode}, plain)


def normalize(across: int) -> Sample:
    def plain(x: Any, scale: Any) -> Any:
        axes = (1, 2, 3) if across else (1,)
        norm = (x.float().square().sum(axes, keepdim=True) + 1e-3).sqrt()
        return (x.float() / norm * scale.reshape(1, -1, 1, 1)).to(x.dtype)

    return Sample("normalize", [X, (6,)], {"across_spatial": across, "epsilon": 1e-3}, plain)


def padding(mode: str) -> Sample:
    plains = {
        "constant": lambda x: F.pad(x, (3, -1, 0, 2), value=0.5),
        "reflect": lambda x: F.pad(x, (3, 1, 2, 2), mode="reflect"),
        "edge": lambda x: F.pad(x, (3, 1, 2, 2), mode="replicate"),
        "wrap": lambda x: F.pad(x, (3, 1, 2, 2), mode="circular"),
    }
    pads = [0, 0, 0, 3, 0, 0, 2, -1] if mode == "constant" else [0, 0, 2, 3, 0, 0, 2, 1]
    return Sample("padding", [X], {"mode": mode, "pads": pads, "value": 0.5}, plains[mode])


def pooling(mode: str) -> Sample:
    pool = F.adaptive_max_pool2d if mode == "max" else F.adaptive_avg_pool2d
    return Sample(
        "spatial_pyramid_pooling",
        [X],
        {"levels": [3, 2, 1], "mode": mode},
        lambda x: torch.cat([pool(x, level).flatten(1) for level in (3, 2, 1)], 1),
    )


def upsampling(mode: str) -> Sample:
    plains = {
        "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
        "linear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "cubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    }
    return Sample("upsampling", [X], {"mode": mode, "scales": [2.0]}, plains[mode])


SAMPLES = [
    Sample("leaky_relu", [X], {"alpha": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    Sample("l2norm_helper", [X], {"op_type": 0}, lambda x: x.rsqrt(), positive=True),
    Sample("l2norm_helper", [X], {"op_type": 1, "eps": 0.25}, lambda x: x.clamp(min=0.25)),
    *(l2_normalize(mode) for mode in ("max", "norm", "add")),
    *(normalize(across) for across in (0, 1)),
    *(instance_norm(activation) for activation in ("none", "relu", "leaky_relu")),
    *(convolution(activation) for activation in ("none", "relu", "relu6")),
    convolution("leaky_relu", asymmetric=True),
    *(padding(mode) for mode in ("constant", "reflect", "edge", "wrap")),
    *(pooling(mode) for mode in ("max", "average")),
    *(upsampling(mode) for mode in ("nearest", "linear", "cubic")),
]
NAMES = [sample.name for sample in SAMPLES]


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Returns the largest difference relative to the largest magnitude."""
    assert found.shape == expected.shape
    scale = max(float(expected.float().abs().max()), 1e-6)
    return float((found.float() - expected.float()).abs().max()) / scale
