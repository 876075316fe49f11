# Networks whose exports contain Upsampling, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
import numpy as np
from export_cases import ANY_SIZE, IMAGE, NATIVE, NHWC, fused, left

OPERATOR = "Upsampling"
# Only tf2onnx writes tf_half_pixel_for_nn, which TensorRT refuses. A Resize with half pixels that TensorRT supports is
# not replaced.
KINDS = [
    {"attributes": {"mode": "nearest", "coordinate_mode": "asymmetric"}},
    {"attributes": {"mode": "nearest", "coordinate_mode": "half_pixel"}, "exporters": 1},
    {"attributes": {"mode": "linear", "coordinate_mode": "asymmetric"}},
    {"attributes": {"mode": "linear", "coordinate_mode": "half_pixel"}},
]


def up(scales, mode="nearest", coordinates="asymmetric", **more):
    return fused(OPERATOR, {"mode": mode, "scales": scales, "coordinate_mode": coordinates}, **more)


def torch_cases(case):
    import torch
    from torch import nn

    def deconvolution(channels, factor, size, padding, groups=True):
        """Returns a deconvolution with the weights of Caffe's and FCN's bilinear initializers."""
        center = (size - 1) / 2
        line = torch.tensor([1 - abs(i - center) / factor for i in range(size)])
        module = nn.ConvTranspose2d(
            channels, channels, size, factor, padding, groups=channels if groups else 1, bias=False
        )
        weight = torch.zeros_like(module.weight)
        for i in range(channels):
            weight[i, 0 if groups else i] = torch.outer(line, line)
        module.weight.data = weight
        return module

    # fmt: off
    return [
        case("upsample_nearest", IMAGE, left(OPERATOR, NATIVE), "F.interpolate(x, scale_factor=2)"),
        case("repeat_interleave", IMAGE, up([2.0, 3.0]), "x.repeat_interleave(2, dim=2).repeat_interleave(3, dim=3)"),
        case("expand_reshape", IMAGE, up([2.0, 2.0]),
             "x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2).reshape(x.size(0), 4, 12, 16)"),
        case(
            "expand_dynamic",
            IMAGE,
            up([2.0, 2.0]),
            "x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2).reshape(x.size(0), 4, x.size(2) * 2, x.size(3) * 2)",
            dynamic=(0, 2, 3),
        ),
        case("stack_flatten", IMAGE, up([1.0, 2.0]), "torch.stack([x, x], -1).flatten(-2)"),
        case("repeat_shuffle", IMAGE, up([2.0, 2.0]), "F.pixel_shuffle(x.repeat_interleave(4, dim=1), 2)"),
        case("index_halves", IMAGE, up([2.0, 2.0]), "x[:, :, torch.arange(12) // 2][:, :, :, torch.arange(16) // 2]"),
        case("view_repeat", IMAGE, up([2.0, 2.0]),
             "x.view(x.size(0), 4, 6, 1, 8, 1).repeat(1, 1, 1, 2, 1, 2).view(x.size(0), 4, 12, 16)"),
        case("deconvolution_bilinear", IMAGE, up([2.0, 2.0], "linear", "half_pixel"),
             "nn.ConvTranspose2d with Caffe's bilinear weights, group = channels", deconvolution(4, 2, 4, 1)),
        case("deconvolution_fcn", IMAGE, up([3.0, 3.0], "linear", "asymmetric"),
             "nn.ConvTranspose2d with FCN's bilinear weights, one group, no padding",
             deconvolution(4, 3, 5, 0, groups=False)),
        case("deconvolution_dynamic", IMAGE, up([4.0, 4.0], "linear", "half_pixel"),
             "nn.ConvTranspose2d with bilinear weights, factor 4, of any size", deconvolution(4, 4, 8, 2),
             dynamic=(0, 2, 3)),
    ]
    # fmt: on


def tensorflow_cases(case):
    import tensorflow as tf

    bilinear = np.zeros((4, 4, 4, 4), np.float32)
    for channel in range(4):
        bilinear[:, :, channel, channel] = np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25])

    # fmt: off
    return [
        case("keras_up_sampling", NHWC, up([2.0, 2.0]), "keras.layers.UpSampling2D(2)(x)"),
        case("repeat", NHWC, up([2.0, 2.0]), "tf.repeat(tf.repeat(x, 2, 1), 2, 2)"),
        case("tile_reshape", NHWC, up([2.0, 2.0]),
             "tf.reshape(tf.tile(x[:, :, None, :, None], [1, 1, 2, 1, 2, 1]), [-1, 12, 16, 4])"),
        case("depth_to_space", NHWC, up([2.0, 2.0]), "tf.nn.depth_to_space(tf.tile(x, [1, 1, 1, 4]), 2)"),
        case(
            "resize_nearest",
            NHWC,
            up([2.0, 2.0], "nearest", "half_pixel"),
            "tf.image.resize(x, [12, 16], 'nearest')",
            (11, 13),
            # Graft's reader writes a Resize that TensorRT supports.
            frozen_graph={"fusions": 0, "attributes": {}, "reason": NATIVE},
        ),
        case("resize_bilinear", NHWC, left(OPERATOR, NATIVE), "tf.image.resize(x, [12, 16])"),
        case("conv2d_transpose", NHWC, up([2.0, 2.0], "linear", "half_pixel"),
             "tf.nn.conv2d_transpose with bilinear weights, stride 2, SAME",
             layer=lambda x: tf.nn.conv2d_transpose(x, bilinear, [2, 12, 16, 4], 2, "SAME")),
    ]
    # fmt: on


def paddle_cases(case):
    from paddle import nn

    def deconvolution():
        """Returns a deconvolution with the weights of Caffe's bilinear initializer."""
        line = np.array([0.25, 0.75, 0.75, 0.25], np.float32)
        layer = nn.Conv2DTranspose(4, 4, 4, 2, 1, groups=4, bias_attr=False)
        layer.weight.set_value(np.tile(np.outer(line, line)[None, None], (4, 1, 1, 1)))
        return layer

    # fmt: off
    return [
        case("nearest", IMAGE, left(OPERATOR, NATIVE), "F.interpolate(x, scale_factor=2)", dynamic=ANY_SIZE),
        case("nearest_size", IMAGE, left(OPERATOR, NATIVE), "F.interpolate(x, size=[12, 16])"),
        case("bilinear", IMAGE, left(OPERATOR, NATIVE),
             "F.interpolate(x, scale_factor=2, mode='bilinear')", dynamic=ANY_SIZE),
        case("bilinear_align_corners", IMAGE, left(OPERATOR, NATIVE),
             "F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)"),
        case("bilinear_asymmetric", IMAGE, left(OPERATOR, NATIVE),
             "F.interpolate(x, scale_factor=2, mode='bilinear', align_mode=1)"),
        case("repeat_interleave", IMAGE, up([2.0, 3.0]), "x.repeat_interleave(2, 2).repeat_interleave(3, 3)"),
        case("expand_reshape", IMAGE, up([2.0, 2.0]),
             "paddle.reshape(x.unsqueeze([3, 5]).expand([-1, -1, -1, 2, -1, 2]), [-1, 4, 12, 16])"),
        case("tile_reshape", IMAGE, up([2.0, 2.0]),
             "paddle.reshape(paddle.tile(x.unsqueeze([3, 5]), [1, 1, 1, 2, 1, 2]), [-1, 4, 12, 16])"),
        case("stack_flatten", IMAGE, up([1.0, 2.0]), "paddle.flatten(paddle.stack([x, x], -1), -2)"),
        case("repeat_shuffle", IMAGE, up([2.0, 2.0]), "F.pixel_shuffle(paddle.repeat_interleave(x, 4, 1), 2)"),
        case("deconvolution_bilinear", IMAGE, up([2.0, 2.0], "linear", "half_pixel"),
             "nn.Conv2DTranspose with Caffe's bilinear weights, groups = channels", deconvolution(), dynamic=ANY_SIZE),
    ]
    # fmt: on
