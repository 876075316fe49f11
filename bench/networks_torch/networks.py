# Four networks, each in plain PyTorch and with Graft's operators.
"""`kind` is "plain" or "graft"; both have the same weights for the same seed."""

from __future__ import annotations

import graft.torch
import torch
import torch.nn.functional as F
from torch import nn

KINDS = ("plain", "graft")
SLOPE = 0.1


def activated(x: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "relu":
        return F.relu(x)
    return F.leaky_relu(x, SLOPE) if activation == "leaky_relu" else x


class Convolution(nn.Conv2d):
    def __init__(
        self,
        kind: str,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        activation: str = "none",
    ):
        super().__init__(inputs, outputs, kernel, stride, padding)
        self.kind, self.activation = kind, activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "graft":
            return graft.torch.convolution(
                x, self.weight, self.bias, stride=self.stride, pad=self.padding, activation=self.activation, alpha=SLOPE,
                allow_tf32=int(torch.backends.cudnn.allow_tf32),
            )  # fmt: skip
        return activated(super().forward(x), self.activation)


class InstanceNorm(nn.InstanceNorm2d):
    def __init__(self, kind: str, channels: int, activation: str = "none"):
        super().__init__(channels, affine=True)
        self.kind, self.activation = kind, activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "plain":
            return activated(super().forward(x), self.activation)
        return graft.torch.instance_norm(x, self.weight, self.bias, epsilon=self.eps, activation=self.activation)


class Reflection(nn.ReflectionPad2d):
    def __init__(self, kind: str, size: int):
        super().__init__(size)
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "plain":
            return super().forward(x)
        left, right, top, bottom = self.padding
        return graft.torch.padding(x, mode="reflect", pads=[0, 0, top, left, 0, 0, bottom, right])


class Doubled(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "plain":
            return F.interpolate(x, scale_factor=2, mode="nearest")
        return graft.torch.upsampling(
            x, mode="nearest", scales=[2.0], coordinate_mode="asymmetric", nearest_mode="floor"
        )


class UnitVectors(nn.Module):
    def __init__(self, kind: str, axis: int):
        super().__init__()
        self.kind, self.axis = kind, axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "plain":
            return F.normalize(x, dim=self.axis)
        return graft.torch.l2_normalize(x, axes=[self.axis], epsilon_mode="norm")


class Pyramid(nn.Module):
    def __init__(self, kind: str, levels: list[int]):
        super().__init__()
        self.kind, self.levels = kind, levels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "plain":
            return torch.cat([F.adaptive_max_pool2d(x, level).flatten(1) for level in self.levels], 1)
        return graft.torch.spatial_pyramid_pooling(x, levels=self.levels)


class Residual(nn.Module):
    def __init__(self, kind: str, channels: int):
        super().__init__()
        self.layers = nn.Sequential(
            Reflection(kind, 1), Convolution(kind, channels, channels, 3), InstanceNorm(kind, channels, "relu"),
            Reflection(kind, 1), Convolution(kind, channels, channels, 3), InstanceNorm(kind, channels),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class StyleTransfer(nn.Module):
    """Johnson et al. 2016, with instance normalization."""

    shape = (1, 3, 512, 512)

    def __init__(self, kind: str):
        super().__init__()
        self.layers = nn.Sequential(
            *(Reflection(kind, 4), Convolution(kind, 3, 32, 9), InstanceNorm(kind, 32, "relu")),
            *(Reflection(kind, 1), Convolution(kind, 32, 64, 3, 2), InstanceNorm(kind, 64, "relu")),
            *(Reflection(kind, 1), Convolution(kind, 64, 128, 3, 2), InstanceNorm(kind, 128, "relu")),
            *(Residual(kind, 128) for _ in range(5)),
            *(Doubled(kind), Reflection(kind, 1), Convolution(kind, 128, 64, 3), InstanceNorm(kind, 64, "relu")),
            *(Doubled(kind), Reflection(kind, 1), Convolution(kind, 64, 32, 3), InstanceNorm(kind, 32, "relu")),
            *(Reflection(kind, 4), Convolution(kind, 32, 3, 9)),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.layers(image))


class Boxes(nn.Module):
    """Mousavian et al. 2017, 3D Bounding Box Estimation: VGG-16 and three heads, angles as unit vectors."""

    shape = (8, 3, 224, 224)

    def __init__(self, kind: str):
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                layers.append(Convolution(kind, channels, width, 3, padding=1, activation="relu"))
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.angle = nn.Sequential(
            nn.Linear(512 * 49, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4)
        )
        self.unit = UnitVectors(kind, 2)
        self.confidence = nn.Sequential(nn.Linear(512 * 49, 256), nn.ReLU(), nn.Linear(256, 2))
        self.size = nn.Sequential(nn.Linear(512 * 49, 512), nn.ReLU(), nn.Linear(512, 3))

    def forward(self, crop: torch.Tensor) -> torch.Tensor:
        x = self.features(crop).flatten(1)
        angle = self.unit(self.angle(x).reshape(-1, 2, 2)).flatten(1)
        return torch.cat([angle, self.confidence(x), self.size(x)], 1)


class PyramidNet(nn.Module):
    """He et al. 2015, Spatial Pyramid Pooling: the convolutions of ZF-5, four levels of bins, two linear layers."""

    shape = (8, 3, 224, 224)

    def __init__(self, kind: str):
        super().__init__()
        self.layers = nn.Sequential(
            *(Convolution(kind, 3, 96, 7, 2, 3, "leaky_relu"), nn.MaxPool2d(3, 2, 1)),
            *(Convolution(kind, 96, 256, 5, 2, 2, "leaky_relu"), nn.MaxPool2d(3, 2, 1)),
            *(Convolution(kind, 256, 384, 3, 1, 1, "leaky_relu"), Convolution(kind, 384, 384, 3, 1, 1, "leaky_relu")),
            *(Convolution(kind, 384, 256, 3, 1, 1, "leaky_relu"), Pyramid(kind, [6, 3, 2, 1])),
            *(nn.Linear(256 * 50, 512), nn.ReLU(), nn.Linear(512, 20)),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layers(image)


class Digits(nn.Module):
    """The network of examples/digits."""

    shape = (64, 1, 8, 8)

    def __init__(self, kind: str):
        super().__init__()
        self.features = nn.Sequential(
            *(Convolution(kind, 1, 16, 3, padding=1, activation="leaky_relu"),),
            *(Convolution(kind, 16, 32, 3, padding=1, activation="leaky_relu"), nn.MaxPool2d(2)),
            *(Convolution(kind, 32, 32, 3, padding=1, activation="leaky_relu"), nn.Flatten(), nn.Linear(512, 32)),
        )
        self.unit = UnitVectors(kind, 1)
        self.classifier = nn.Linear(32, 10, bias=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return 12.0 * self.classifier(self.unit(self.features(image)))


NETWORKS = {"style transfer": StyleTransfer, "3-D boxes": Boxes, "pyramid": PyramidNet, "digits": Digits}


def make(
    name: str, kind: str, dtype: torch.dtype, device: str, memory_format: torch.memory_format = torch.contiguous_format
) -> nn.Module:
    torch.manual_seed(7)
    network = NETWORKS[name](kind).eval().requires_grad_(False)
    f32 = {}
    for path, module in network.named_modules():
        # The scales and biases of Graft's operators are always f32.
        if kind == "graft" and isinstance(module, InstanceNorm):
            f32[path] = (module.weight.data, module.bias.data)
        elif kind == "graft" and isinstance(module, Convolution):
            f32[path] = (None, module.bias.data)
    network.to(device, dtype, memory_format=memory_format)
    for path, (weight, bias) in f32.items():
        module = network.get_submodule(path)
        if weight is not None:
            module.weight.data = weight.to(device)
        module.bias.data = bias.to(device)
    return network


def image(name: str, dtype: torch.dtype, device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(NETWORKS[name].shape, generator=generator).to(device, dtype)
