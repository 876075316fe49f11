# Each of Graft's operators as a PyTorch module: PyTorch's own operators in training, one Graft node in the exported
# file.
import torch
import torch.nn.functional as F
from torch import nn


def graft(operator, inputs, shape=None, **attributes):
    """Returns the node graft::operator. The result has the type of the first input, and its shape unless `shape` is
    given."""
    x = inputs[0]
    shape = x.shape if shape is None else shape
    return torch.onnx.ops.symbolic(f"graft::{operator}", inputs, attributes, dtype=x.dtype, shape=shape, version=1)


class Convolution(nn.Conv2d):
    def forward(self, x):
        y = F.leaky_relu(super().forward(x), 0.1)
        if not torch.onnx.is_in_onnx_export():
            return y
        attributes = {"pad": self.padding, "stride": self.stride, "activation": "leaky_relu", "alpha": 0.1}
        return graft("Convolution", (x, self.weight, self.bias), y.shape, **attributes)


class InstanceNorm(nn.InstanceNorm2d):
    def forward(self, x):
        if not torch.onnx.is_in_onnx_export():
            return F.relu(super().forward(x))
        return graft("InstanceNorm", (x, self.weight, self.bias), epsilon=self.eps, activation="relu")


class L2Normalize(nn.Module):
    def forward(self, x):
        if not torch.onnx.is_in_onnx_export():
            return F.normalize(x, dim=1, eps=1e-6)
        return graft("L2Normalize", (x,), axes=[1], epsilon=1e-6, epsilon_mode="norm")


class L2NormHelper(nn.Module):
    def forward(self, x):
        if not torch.onnx.is_in_onnx_export():
            return x.clamp(min=1e-3)
        return graft("L2NormHelper", (x,), op_type=1, eps=1e-3)


class LeakyReLU(nn.LeakyReLU):
    def forward(self, x):
        if not torch.onnx.is_in_onnx_export():
            return super().forward(x)
        return graft("LeakyReLU", (x,), alpha=self.negative_slope)


class Normalize(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.full([channels], 20.0))

    def forward(self, x):
        if not torch.onnx.is_in_onnx_export():
            return x / (x.square().sum(1, keepdim=True) + 1e-10).sqrt() * self.scale[:, None, None]
        return graft("Normalize", (x, self.scale), epsilon=1e-10)


class Padding(nn.ReflectionPad2d):
    def forward(self, x):
        y = super().forward(x)
        if not torch.onnx.is_in_onnx_export():
            return y
        left, right, top, bottom = self.padding
        return graft("Padding", (x,), y.shape, mode="reflect", pads=[0, 0, top, left, 0, 0, bottom, right])


class SpatialPyramidPooling(nn.Module):
    def forward(self, x):
        y = torch.cat([F.adaptive_max_pool2d(x, bins).flatten(1) for bins in (4, 2, 1)], 1)
        if not torch.onnx.is_in_onnx_export():
            return y
        return graft("SpatialPyramidPooling", (x,), y.shape, levels=[4, 2, 1], mode="max", binning="adaptive")


class Upsampling(nn.Module):
    def forward(self, x):
        y = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        if not torch.onnx.is_in_onnx_export():
            return y
        return graft("Upsampling", (x,), y.shape, mode="linear", scales=[2.0], coordinate_mode="half_pixel")


class Network(nn.Module):
    """A network of all these modules, one after another."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            Padding(2),
            Convolution(3, 8, 3, padding=1),
            InstanceNorm(8, affine=True),
            LeakyReLU(0.2),
            Upsampling(),
            Normalize(8),
            L2NormHelper(),
            SpatialPyramidPooling(),
            L2Normalize(),
        )

    def forward(self, image):
        return self.layers(image)
