# export_forms.py - what make_exports.py exports for padding, upsampling, pyramid pooling, instance norm and Normalize.
"""One expression for each way in which networks write these operators, with what Graft should make of it.

`lowered` names the operator of ONNX that the fusion ends as, where TensorRT has it itself; `parts` counts fusions that
come before and become a part of it.
"""

IMAGE = (2, 4, 6, 8)
ODD_IMAGE = (2, 3, 13, 13)
UNEVEN_IMAGE = (2, 3, 14, 14)
EVEN_IMAGE = (2, 3, 8, 8)
NHWC = (2, 6, 8, 4)
EVEN_NHWC = (2, 8, 8, 3)


def fused(operator, attributes, fusions=1, **more):
    return {"operator": operator, "attributes": attributes, "fusions": fusions} | more


def norm(epsilon=1e-5, activation="none", **more):
    return fused("InstanceNorm", {"epsilon": epsilon, "activation": activation}, **more)


def pad(mode, pads, **more):
    return fused("Padding", {"mode": mode, "pads": pads}, **more)


def up(scales, mode="nearest", coordinates="asymmetric", **more):
    return fused("Upsampling", {"mode": mode, "scales": scales, "coordinate_mode": coordinates}, **more)


def pyramid(levels, mode="max", binning="adaptive", **more):
    return fused("SpatialPyramidPooling", {"levels": levels, "mode": mode, "binning": binning}, **more)


def normalize(across_spatial=0, channel_shared=0, parts=1):
    """An L2Normalize first, then with its factor; without parts where the factor comes first."""
    attributes = {"across_spatial": across_spatial, "channel_shared": channel_shared, "epsilon": 1e-3}
    return fused("Normalize", attributes, parts=parts)


def left(operator, reason):
    return {"operator": operator, "attributes": {}, "fusions": 0, "reason": reason}


NATIVE = "TensorRT has it itself"


def torch_modules(torch, nn, F):
    """Modules with parameters; the others are expressions."""

    class Scaled(nn.Module):
        """Normalized, then scaled and shifted by parameters of this shape."""

        def __init__(self, function, shape):
            super().__init__()
            self.function = function
            generator = torch.Generator().manual_seed(5)
            self.weight = nn.Parameter(torch.rand(shape, generator=generator) + 0.5)
            self.bias = nn.Parameter(torch.randn(shape, generator=generator))

        def forward(self, x):
            return self.function(self, x)

    def ada(module, x):
        mean = x.mean((2, 3), keepdim=True)
        centered = x - mean
        variance = (centered * centered).mean((2, 3), keepdim=True)
        return centered * torch.rsqrt(variance + 1e-5) * module.weight + module.bias

    def folded(module, x):
        mean = x.mean((2, 3), keepdim=True)
        variance = ((x - mean) ** 2).mean((2, 3), keepdim=True)
        factor = module.weight / torch.sqrt(variance + 1e-5)
        return x * factor + (module.bias - mean * factor)

    def with_parameters(module):
        generator = torch.Generator().manual_seed(7)
        for parameter in module.parameters():
            parameter.data = torch.rand(parameter.shape, generator=generator) + 0.5
        return module

    def deconvolution(channels, factor, size, padding, groups=True):
        """As Caffe's and FCN's bilinear initializers fill it."""
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

    def style(channels):
        return nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, 3),
            nn.InstanceNorm2d(channels, affine=True),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
        )

    return Scaled, ada, folded, with_parameters, deconvolution, style


def torch_forms(case):
    import torch
    import torch.nn.functional as F
    from torch import nn

    Scaled, ada, folded, with_parameters, deconvolution, style = torch_modules(torch, nn, F)
    cat = "torch.cat([x[..., 1:3].flip(-1), x, x[..., -3:-1].flip(-1)], -1)"
    both = "(lambda y: torch.cat([y[:, :, 1:3].flip(2), y, y[:, :, -3:-1].flip(2)], 2))(" + cat + ")"
    wrong = left("InstanceNorm", "torch.var divides by the count less one")

    def ssd(axes):
        return lambda module, x: x / torch.sqrt((x * x).sum(axes, keepdim=True) + 1e-3) * module.weight

    return [
        # SSD's normalization with a trained factor.
        case(
            "ssd", IMAGE, normalize(), "x / sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]", Scaled(ssd(1), (1, 4, 1, 1))
        ),
        case(
            "ssd_rsqrt",
            IMAGE,
            normalize(channel_shared=1),
            "(x * torch.rsqrt(x.pow(2).sum(1, keepdim=True) + 1e-3)) * 20.0",
        ),
        case(
            "ssd_across_spatial",
            IMAGE,
            normalize(across_spatial=1),
            "x / sqrt(sum(x^2, (1, 2, 3)) + 1e-3) * weight[4, 1, 1]",
            Scaled(ssd((1, 2, 3)), (4, 1, 1)),
        ),
        # Instance norm. The mean of x is written once more for the variance, or shared.
        case("instance_norm", IMAGE, left("InstanceNorm", NATIVE), "nn.InstanceNorm2d(4)(x)"),
        case(
            "instance_norm_relu",
            IMAGE,
            norm(activation="relu"),
            "nn.InstanceNorm2d(4, affine=True), nn.ReLU()",
            with_parameters(nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.ReLU())),
            opsets=(11, 17),
        ),
        case(
            "instance_norm_leaky_relu",
            IMAGE,
            norm(activation="leaky_relu"),
            "nn.InstanceNorm2d(4, eps=1e-5), nn.LeakyReLU(0.2)",
            nn.Sequential(nn.InstanceNorm2d(4), nn.LeakyReLU(0.2)),
        ),
        case(
            "instance_norm_3d_relu",
            (2, 3, 2, 3, 4),
            norm(activation="relu"),
            "F.relu(F.instance_norm(x))",
        ),
        case(
            "instance_norm_1d_where",
            (2, 3, 7),
            norm(activation="leaky_relu", parts=1),
            "(lambda y: torch.where(y > 0, y, 0.1 * y))(F.instance_norm(x))",
        ),
        case(
            "instance_norm_f16_relu",
            IMAGE,
            norm(activation="relu"),
            "nn.InstanceNorm2d(4, affine=True), nn.ReLU() in f16",
            with_parameters(nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.ReLU())).half(),
            dtype=torch.float16,
        ),
        case(
            "group_norm_of_channels",
            IMAGE,
            norm(),
            "nn.GroupNorm(4, 4)(x)",
            with_parameters(nn.GroupNorm(4, 4)),
        ),
        case(
            "group_norm_of_pairs",
            IMAGE,
            left("InstanceNorm", "two channels a group: other statistics"),
            "nn.GroupNorm(2, 4)(x)",
            with_parameters(nn.GroupNorm(2, 4)),
        ),
        case(
            "moments_div",
            IMAGE,
            norm(),
            "(x - x.mean((2, 3), keepdim=True)) / torch.sqrt(x.var((2, 3), unbiased=False, keepdim=True) + 1e-5)",
            opsets=(11, 17),
        ),
        case(
            "moments_unbiased",
            IMAGE,
            wrong,
            "(x - x.mean((2, 3), keepdim=True)) / torch.sqrt(x.var((2, 3), keepdim=True) + 1e-5)",
        ),
        case(
            "moments_rsqrt_pow",
            IMAGE,
            norm(1e-3),
            "(lambda d: d * torch.rsqrt(d.pow(2).mean((2, 3), keepdim=True) + 1e-3))(x - x.mean((2, 3), keepdim=True))",
        ),
        case("moments_scale_bias", IMAGE, norm(), "d * rsqrt(mean(d * d) + 1e-5) * w + b", Scaled(ada, (1, 4, 1, 1))),
        case("moments_folded", IMAGE, norm(), "x * (w / s) + (b - mean * (w / s))", Scaled(folded, (4, 1, 1))),
        case(
            "moments_flat",
            IMAGE,
            norm(),
            "(lambda v: ((v - v.mean(-1, keepdim=True)) / torch.sqrt(v.var(-1, unbiased=False, keepdim=True) + 1e-5))"
            ".view_as(x))(x.view(x.size(0), x.size(1), -1))",
        ),
        case(
            "moments_of_view",
            IMAGE,
            norm(),
            "(lambda v: (x - v.mean(2).view(x.size(0), 4, 1, 1)) / (v.var(2, unbiased=False)"
            ".view(x.size(0), 4, 1, 1) + 1e-5).sqrt())(x.view(x.size(0), 4, -1))",
        ),
        case(
            "moments_of_squares",
            IMAGE,
            norm(),
            "(lambda m: (x - m) / torch.sqrt((x * x).mean((2, 3), keepdim=True) - m ** 2 + 1e-5))"
            "(x.mean((2, 3), keepdim=True))",
        ),
        case(
            "moments_dynamic",
            IMAGE,
            norm(),
            "(lambda d: d / torch.sqrt((d * d).mean((2, 3), keepdim=True) + 1e-5))(x - x.mean((2, 3), keepdim=True))",
            dynamic=(0, 2, 3),
        ),
        # Padding.
        case("reflection_pad", IMAGE, left("Padding", NATIVE), "F.pad(x, (2, 1, 1, 2), mode='reflect')"),
        case("reflect_cat", IMAGE, pad("reflect", [0, 0, 0, 2, 0, 0, 0, 2], lowered="Pad"), cat, opsets=(11, 17)),
        case("reflect_cat_both", IMAGE, pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"), both),
        case(
            "reflect_cat_dynamic",
            IMAGE,
            left("Padding", "on an axis of one element slices give less, and a reflection does not exist"),
            both,
            dynamic=(0, 2, 3),
        ),
        case(
            "edge_cat_dynamic",
            IMAGE,
            pad("edge", [0, 0, 0, 1, 0, 0, 0, 1], lowered="Pad"),
            "torch.cat([x[..., :1], x, x[..., -1:]], -1)",
            dynamic=(0, 2, 3),
        ),
        case(
            "reflect_index",
            IMAGE,
            pad("reflect", [0, 0, 2, 1, 0, 0, 2, 1], lowered="Pad"),
            "x[:, :, torch.tensor([2, 1, 0, 1, 2, 3, 4, 5, 4, 3])][:, :, :, torch.tensor([1, 0, 1, 2, 3, 4, 5, 6, 7, 6])]",
        ),
        case(
            "reflect_chain",
            IMAGE,
            pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"),
            "F.pad(F.pad(x, (2, 2, 0, 0), mode='reflect'), (0, 0, 2, 2), mode='reflect')",
        ),
        case(
            "symmetric_cat",
            IMAGE,
            pad("symmetric", [0, 0, 0, 2, 0, 0, 0, 2]),
            cat.replace("1:3", ":2").replace("-3:-1", "-2:"),
        ),
        case("wrap_cat", IMAGE, pad("wrap", [0, 0, 0, 2, 0, 0, 0, 2]), "torch.cat([x[..., -2:], x, x[..., :2]], -1)"),
        case("circular", IMAGE, pad("wrap", [0, 0, 2, 1, 0, 0, 1, 2]), "F.pad(x, (1, 2, 2, 1), mode='circular')"),
        case(
            "edge_cat",
            IMAGE,
            pad("edge", [0, 0, 0, 3, 0, 0, 0, 3], lowered="Pad"),
            "torch.cat([x[..., :1].expand(-1, -1, -1, 3), x, x[..., -1:].expand(-1, -1, -1, 3)], -1)",
        ),
        case(
            "zeros_cat",
            IMAGE,
            pad("constant", [0, 0, 0, 1, 0, 0, 0, 0], lowered="Pad"),
            "torch.cat([x.new_zeros(x.shape[0], 4, 6, 1), x], -1)",
        ),
        # Upsampling.
        case("upsample_nearest", IMAGE, left("Upsampling", NATIVE), "F.interpolate(x, scale_factor=2)"),
        case(
            "repeat_interleave",
            IMAGE,
            up([2.0, 3.0]),
            "x.repeat_interleave(2, dim=2).repeat_interleave(3, dim=3)",
        ),
        case(
            "expand_reshape",
            IMAGE,
            up([2.0, 2.0]),
            "x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2).reshape(x.size(0), 4, 12, 16)",
        ),
        case(
            "expand_dynamic",
            IMAGE,
            up([2.0, 2.0]),
            "x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2).reshape(x.size(0), 4, x.size(2) * 2, x.size(3) * 2)",
            dynamic=(0, 2, 3),
        ),
        case("stack_flatten", IMAGE, up([1.0, 2.0]), "torch.stack([x, x], -1).flatten(-2)"),
        case("repeat_shuffle", IMAGE, up([2.0, 2.0]), "F.pixel_shuffle(x.repeat_interleave(4, dim=1), 2)"),
        case(
            "index_halves",
            IMAGE,
            up([2.0, 2.0]),
            "x[:, :, torch.arange(12) // 2][:, :, :, torch.arange(16) // 2]",
        ),
        case(
            "view_repeat",
            IMAGE,
            up([2.0, 2.0]),
            "x.view(x.size(0), 4, 6, 1, 8, 1).repeat(1, 1, 1, 2, 1, 2).view(x.size(0), 4, 12, 16)",
        ),
        case(
            "deconvolution_bilinear",
            IMAGE,
            up([2.0, 2.0], "linear", "half_pixel"),
            "nn.ConvTranspose2d with Caffe's bilinear weights, group = channels",
            deconvolution(4, 2, 4, 1),
        ),
        case(
            "deconvolution_fcn",
            IMAGE,
            up([3.0, 3.0], "linear", "asymmetric"),
            "nn.ConvTranspose2d with FCN's bilinear weights, one group, no padding",
            deconvolution(4, 3, 5, 0, groups=False),
        ),
        case(
            "deconvolution_dynamic",
            IMAGE,
            up([4.0, 4.0], "linear", "half_pixel"),
            "nn.ConvTranspose2d with bilinear weights, factor 4, of any size",
            deconvolution(4, 4, 8, 2),
            dynamic=(0, 2, 3),
        ),
        # Pyramid pooling.
        case(
            "pyramid_adaptive",
            EVEN_IMAGE,
            pyramid([4, 2, 1]),
            "torch.cat([F.adaptive_max_pool2d(x, n).flatten(1) for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_average",
            EVEN_IMAGE,
            pyramid([1, 2, 4], "average"),
            "torch.cat([F.adaptive_avg_pool2d(x, n).flatten(1) for n in (1, 2, 4)], 1)",
        ),
        case(
            "pyramid_caffe",
            ODD_IMAGE,
            pyramid([4, 2, 1], "max", "caffe"),
            "torch.cat([F.max_pool2d(x, -(-13 // n), -(-13 // n), (-(-13 // n) * n - 12) // 2).reshape(x.size(0), -1)"
            " for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_window",
            UNEVEN_IMAGE,
            pyramid([4, 2, 1], "max", "window"),
            "torch.cat([F.max_pool2d(x, -(-14 // n), 14 // n).view(x.size(0), -1) for n in (4, 2, 1)], 1)",
        ),
        case(
            "style_block",
            IMAGE,
            norm(activation="relu"),
            "ReflectionPad2d, Conv2d, InstanceNorm2d, ReLU, Upsample: the first and the last stay what they are",
            with_parameters(style(4)),
        ),
    ]


def tensorflow_forms(case):
    import keras
    import numpy as np
    import tensorflow as tf

    scale = np.array([1.5, 0.5, 2.0, 1.0], np.float32)
    shift = np.array([0.1, -0.2, 0.3, 0.0], np.float32)
    square = np.random.default_rng(5).standard_normal((3, 3, 4, 4)).astype(np.float32)

    def convolution(x):
        return tf.nn.conv2d(x, square, 1, "SAME")

    def batch_normalization(x):
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-3)

    def cycle_gan(x):
        mean, variance = tf.nn.moments(x, axes=[1, 2], keepdims=True)
        return scale * ((x - mean) * tf.math.rsqrt(variance + 1e-5)) + shift

    def over_channels(x):
        mean, variance = tf.nn.moments(x, [3], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-5)

    def over_batch(x):
        mean, variance = tf.nn.moments(x, [0, 1, 2], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-5)

    def channels_first(x):
        mean, variance = tf.nn.moments(x, [2, 3], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-3)

    bilinear = np.zeros((4, 4, 4, 4), np.float32)
    for channel in range(4):
        bilinear[:, :, channel, channel] = np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25])

    def ssd(x):
        norm = tf.sqrt(tf.reduce_sum(tf.square(x), axis=1, keepdims=True) + 1e-3)
        return x / norm * np.arange(1, 7, dtype=np.float32).reshape(6, 1, 1)

    def ssd_between_convolutions(x):
        x = convolution(x)
        norm = tf.math.rsqrt(tf.reduce_sum(tf.square(x), axis=-1, keepdims=True) + 1e-3)
        return convolution(x * norm * scale)

    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input(NHWC[1:]),
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.GroupNormalization(groups=-1),
            keras.layers.ReLU(),
            keras.layers.Conv2D(4, 3, padding="same"),
        ]
    )
    return [
        case("ssd", NHWC, normalize(), "x / sqrt(reduce_sum(x^2, 1) + 1e-3) * factor[6, 1, 1], NCHW", layer=ssd),
        case(
            "ssd_between_convolutions",
            NHWC,
            normalize(parts=0),
            "conv2d, x * rsqrt(reduce_sum(x^2, -1) + 1e-3) * factor[4], conv2d, NHWC",
            layer=ssd_between_convolutions,
        ),
        case(
            "ssd_shared",
            NHWC,
            normalize(across_spatial=1, channel_shared=1, parts=0),
            "20 * (x * tf.math.rsqrt(tf.reduce_sum(x * x, [1, 2, 3], keepdims=True) + 1e-3))",
        ),
        case(
            "moments_batch_normalization",
            NHWC,
            norm(1e-3),
            "tf.nn.moments, tf.nn.batch_normalization",
            layer=batch_normalization,
        ),
        case(
            "moments_between_convolutions",
            NHWC,
            norm(1e-3),
            "conv2d, tf.nn.moments, tf.nn.batch_normalization, conv2d; tf2onnx moves transpositions between",
            layer=lambda x: convolution(batch_normalization(convolution(x))),
        ),
        case(
            "cycle_gan",
            NHWC,
            norm(),
            "scale * ((x - mean) * rsqrt(variance + 1e-5)) + shift",
            (9, 13, 18),
            layer=cycle_gan,
        ),
        case(
            "cycle_gan_between_convolutions",
            NHWC,
            norm(),
            "conv2d, scale * ((x - mean) * rsqrt(variance + 1e-5)) + shift, conv2d",
            layer=lambda x: convolution(cycle_gan(convolution(x))),
        ),
        case("moments_nchw", NHWC, norm(1e-3), "tf.nn.moments(x, [2, 3]), NCHW", layer=channels_first),
        case(
            "reduce_variance",
            NHWC,
            norm(),
            "(x - tf.reduce_mean(x, [1, 2], keepdims=True)) / "
            "tf.sqrt(tf.math.reduce_variance(x, [1, 2], keepdims=True) + 1e-5)",
        ),
        case(
            "keras_group_normalization",
            NHWC,
            norm(1e-3),
            "keras.layers.GroupNormalization(groups=-1)(x)",
            layer=keras.layers.GroupNormalization(groups=-1),
        ),
        case(
            "keras_network",
            NHWC,
            norm(1e-3, "relu", parts=1),
            "Keras: Conv2D, GroupNormalization(groups=-1), ReLU, Conv2D",
            layer=network,
        ),
        case(
            "moments_over_channels",
            NHWC,
            left("InstanceNorm", "layer norm"),
            "tf.nn.moments(x, [3])",
            layer=over_channels,
        ),
        case(
            "moments_over_batch",
            NHWC,
            left("InstanceNorm", "batch norm"),
            "tf.nn.moments(x, [0, 1, 2])",
            layer=over_batch,
        ),
        case(
            "std_plus_epsilon",
            NHWC,
            left("InstanceNorm", "epsilon is added to the deviation"),
            "(x - tf.reduce_mean(x, [1, 2], keepdims=True)) / (tf.math.reduce_std(x, [1, 2], keepdims=True) + 1e-5)",
        ),
        case(
            "mirror_pad",
            NHWC,
            left("Padding", NATIVE),
            "tf.pad(x, [[0, 0], [2, 2], [1, 3], [0, 0]], 'REFLECT')",
            (11, 13),
        ),
        case("wrap_concat", NHWC, pad("wrap", [0, 2, 0, 0, 0, 2, 0, 0]), "tf.concat([x[:, -2:], x, x[:, :2]], 1)"),
        case(
            "reflect_gather",
            NHWC,
            pad("reflect", [0, 2, 0, 0, 0, 1, 0, 0], lowered="Pad"),
            "tf.gather(x, [2, 1, 0, 1, 2, 3, 4, 5, 4], axis=1)",
        ),
        case(
            "edge_concat",
            NHWC,
            pad("edge", [0, 0, 1, 0, 0, 0, 1, 0], lowered="Pad"),
            "tf.concat([x[:, :, :1], x, x[:, :, -1:]], 2)",
        ),
        case("keras_up_sampling", NHWC, up([2.0, 2.0]), "keras.layers.UpSampling2D(2)(x)"),
        case("repeat", NHWC, up([2.0, 2.0]), "tf.repeat(tf.repeat(x, 2, 1), 2, 2)"),
        case(
            "tile_reshape",
            NHWC,
            up([2.0, 2.0]),
            "tf.reshape(tf.tile(x[:, :, None, :, None], [1, 1, 2, 1, 2, 1]), [-1, 12, 16, 4])",
        ),
        case("depth_to_space", NHWC, up([2.0, 2.0]), "tf.nn.depth_to_space(tf.tile(x, [1, 1, 1, 4]), 2)"),
        case(
            "resize_nearest",
            NHWC,
            up([2.0, 2.0], "nearest", "half_pixel"),
            "tf.image.resize(x, [12, 16], 'nearest')",
            (11, 13),
        ),
        case("resize_bilinear", NHWC, left("Upsampling", NATIVE), "tf.image.resize(x, [12, 16])"),
        case(
            "conv2d_transpose",
            NHWC,
            up([2.0, 2.0], "linear", "half_pixel"),
            "tf.nn.conv2d_transpose with bilinear weights, stride 2, SAME",
            layer=lambda x: tf.nn.conv2d_transpose(x, bilinear, [2, 12, 16, 4], 2, "SAME"),
        ),
        case(
            "pyramid",
            EVEN_NHWC,
            pyramid([4, 2, 1]),
            "tf.concat([tf.reshape(tf.transpose(tf.nn.max_pool2d(x, 8 // n, 8 // n, 'VALID'), [0, 3, 1, 2]), "
            "[-1, n * n * 3]) for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_of_cells",
            EVEN_NHWC,
            left("SpatialPyramidPooling", "flattened cell by cell, not channel by channel"),
            "tf.concat([tf.reshape(tf.nn.max_pool2d(x, 8 // n, 8 // n, 'VALID'), [-1, n * n * 3]) for n in (4, 2, 1)], 1)",
        ),
    ]


def paddle_forms(case):
    import numpy as np
    import paddle
    from paddle import nn

    class Scaled(nn.Layer):
        """Normalized, then scaled by a parameter of this shape."""

        def __init__(self, function, shape):
            super().__init__()
            self.function = function
            numbers = np.random.default_rng(5).random(shape).astype(np.float32) + 0.5
            self.weight = self.create_parameter(shape, default_initializer=nn.initializer.Assign(numbers))

        def forward(self, x):
            return self.function(x) * self.weight

    def with_parameters(layer):
        generator = np.random.default_rng(7)
        for parameter in layer.parameters():
            parameter.set_value(generator.random(parameter.shape).astype(np.float32) + 0.5)
        return layer

    def deconvolution():
        """As Caffe's bilinear initializer fills it."""
        line = np.array([0.25, 0.75, 0.75, 0.25], np.float32)
        layer = nn.Conv2DTranspose(4, 4, 4, 2, 1, groups=4, bias_attr=False)
        layer.weight.set_value(np.tile(np.outer(line, line)[None, None], (4, 1, 1, 1)))
        return layer

    def plain_norm():
        return nn.InstanceNorm2D(4, weight_attr=False, bias_attr=False)

    def ssd(x):
        return x / paddle.sqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3)

    def ssd_across(x):
        return x / paddle.sqrt(paddle.sum(x * x, axis=[1, 2, 3], keepdim=True) + 1e-3)

    any_size = (0, 2, 3)
    flipped = "paddle.concat([x[:, :, :, 1:3].flip(-1), x, x[:, :, :, -3:-1].flip(-1)], -1)"
    not_run = {"not_on_cpu_engine": "OpenVINO does not wrap"}
    variance = "paddle.var(x, axis=[2, 3], {}keepdim=True)"
    moments = "(x - paddle.mean(x, axis=[2, 3], keepdim=True)) / paddle.sqrt({} + 1e-5)"
    return [
        # SSD's normalization with a trained factor.
        case(
            "ssd",
            IMAGE,
            normalize(),
            "x / paddle.sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]",
            Scaled(ssd, [1, 4, 1, 1]),
        ),
        case(
            "ssd_any_size",
            IMAGE,
            normalize(),
            "x / paddle.sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]",
            Scaled(ssd, [1, 4, 1, 1]),
            dynamic=any_size,
        ),
        case(
            "ssd_across_spatial",
            IMAGE,
            normalize(across_spatial=1),
            "x / paddle.sqrt(sum(x^2, (1, 2, 3)) + 1e-3) * weight[4, 1, 1]",
            Scaled(ssd_across, [4, 1, 1]),
        ),
        case(
            "ssd_shared",
            IMAGE,
            normalize(channel_shared=1),
            "x * paddle.rsqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3) * 20.0",
        ),
        # Instance norm.
        case(
            "instance_norm", IMAGE, left("InstanceNorm", NATIVE), "nn.InstanceNorm2D(4) without weights", plain_norm()
        ),
        case(
            "instance_norm_weights",
            IMAGE,
            left("InstanceNorm", NATIVE),
            "nn.InstanceNorm2D(4)",
            with_parameters(nn.InstanceNorm2D(4)),
        ),
        case(
            "instance_norm_relu",
            IMAGE,
            norm(activation="relu"),
            "nn.InstanceNorm2D(4), nn.ReLU()",
            with_parameters(nn.Sequential(nn.InstanceNorm2D(4), nn.ReLU())),
            dynamic=any_size,
        ),
        case("instance_norm_plain_relu", IMAGE, norm(activation="relu"), "F.relu(F.instance_norm(x))"),
        case(
            "instance_norm_leaky_relu",
            IMAGE,
            norm(activation="leaky_relu"),
            "nn.InstanceNorm2D(4) without weights, nn.LeakyReLU(0.2)",
            nn.Sequential(plain_norm(), nn.LeakyReLU(0.2)),
        ),
        case(
            "instance_norm_3d_relu",
            (2, 3, 2, 3, 4),
            norm(activation="relu"),
            "nn.InstanceNorm3D(3), nn.ReLU()",
            with_parameters(nn.Sequential(nn.InstanceNorm3D(3), nn.ReLU())),
        ),
        case("group_norm_of_channels", IMAGE, norm(), "nn.GroupNorm(4, 4)", with_parameters(nn.GroupNorm(4, 4))),
        case(
            "group_norm_of_pairs",
            IMAGE,
            left("InstanceNorm", "two channels a group: other statistics"),
            "nn.GroupNorm(2, 4)",
            with_parameters(nn.GroupNorm(2, 4)),
        ),
        case(
            "moments_rsqrt",
            IMAGE,
            norm(1e-3),
            "(lambda d: d * paddle.rsqrt(d.square().mean([2, 3], keepdim=True) + 1e-3))(x - x.mean([2, 3], keepdim=True))",
        ),
        case("moments_var", IMAGE, norm(), moments.format(variance.format("unbiased=False, "))),
        case(
            "moments_var_any_size", IMAGE, norm(), moments.format(variance.format("unbiased=False, ")), dynamic=any_size
        ),
        case("moments_var_fixed", IMAGE, norm(), moments.format(variance.format("unbiased=False, ")), dynamic=()),
        case(
            "moments_unbiased_fixed",
            IMAGE,
            left("InstanceNorm", "paddle.var divides by the count less one"),
            moments.format(variance.format("")),
            dynamic=(),
        ),
        case(
            "moments_unbiased",
            IMAGE,
            left("InstanceNorm", "paddle.var divides by the count less one"),
            moments.format(variance.format("")),
        ),
        # Padding: a Pad of five dimensions between Unsqueeze and Squeeze.
        case("reflect", IMAGE, left("Padding", NATIVE), "F.pad(x, [2, 1, 1, 2], mode='reflect')"),
        case(
            "reflect_any_size",
            IMAGE,
            left("Padding", NATIVE),
            "F.pad(x, [2, 1, 1, 2], mode='reflect')",
            dynamic=any_size,
        ),
        case(
            "replicate_any_size",
            IMAGE,
            left("Padding", NATIVE),
            "F.pad(x, [2, 1, 1, 2], mode='replicate')",
            dynamic=any_size,
        ),
        case("circular", IMAGE, left("Padding", NATIVE) | not_run, "F.pad(x, [2, 1, 1, 2], mode='circular')"),
        case(
            "constant_any_size", IMAGE, left("Padding", NATIVE), "F.pad(x, [2, 1, 1, 2], value=0.5)", dynamic=any_size
        ),
        case(
            "reflect_chain",
            IMAGE,
            pad("reflect", [0, 0, 2, 2, 0, 0, 2, 2], lowered="Pad"),
            "F.pad(F.pad(x, [2, 2, 0, 0], mode='reflect'), [0, 0, 2, 2], mode='reflect')",
        ),
        case("reflect_concat", IMAGE, pad("reflect", [0, 0, 0, 2, 0, 0, 0, 2], lowered="Pad"), flipped),
        case(
            "symmetric_concat",
            IMAGE,
            pad("symmetric", [0, 0, 0, 2, 0, 0, 0, 2]),
            flipped.replace("1:3", ":2").replace("-3:-1", "-2:"),
        ),
        case(
            "reflect_index",
            IMAGE,
            pad("reflect", [0, 0, 2, 0, 0, 0, 2, 0], lowered="Pad"),
            "paddle.index_select(x, paddle.to_tensor([2, 1, 0, 1, 2, 3, 4, 5, 4, 3]), axis=2)",
        ),
        case(
            "wrap_concat",
            IMAGE,
            pad("wrap", [0, 0, 0, 2, 0, 0, 0, 2]),
            "paddle.concat([x[:, :, :, -2:], x, x[:, :, :, :2]], -1)",
        ),
        case(
            "edge_concat_any_size",
            IMAGE,
            pad("edge", [0, 0, 0, 1, 0, 0, 0, 1], lowered="Pad"),
            "paddle.concat([x[:, :, :, :1], x, x[:, :, :, -1:]], -1)",
            dynamic=any_size,
        ),
        case("roll", IMAGE, left("Padding", "nothing is added: the elements go round"), "paddle.roll(x, 1, 3)"),
        # Upsampling.
        case("nearest", IMAGE, left("Upsampling", NATIVE), "F.interpolate(x, scale_factor=2)", dynamic=any_size),
        case("nearest_size", IMAGE, left("Upsampling", NATIVE), "F.interpolate(x, size=[12, 16])"),
        case(
            "bilinear",
            IMAGE,
            left("Upsampling", NATIVE),
            "F.interpolate(x, scale_factor=2, mode='bilinear')",
            dynamic=any_size,
        ),
        case(
            "bilinear_align_corners",
            IMAGE,
            left("Upsampling", NATIVE),
            "F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)",
        ),
        case(
            "bilinear_asymmetric",
            IMAGE,
            left("Upsampling", NATIVE),
            "F.interpolate(x, scale_factor=2, mode='bilinear', align_mode=1)",
        ),
        case("repeat_interleave", IMAGE, up([2.0, 3.0]), "x.repeat_interleave(2, 2).repeat_interleave(3, 3)"),
        case(
            "expand_reshape",
            IMAGE,
            up([2.0, 2.0]),
            "paddle.reshape(x.unsqueeze([3, 5]).expand([-1, -1, -1, 2, -1, 2]), [-1, 4, 12, 16])",
        ),
        case(
            "tile_reshape",
            IMAGE,
            up([2.0, 2.0]),
            "paddle.reshape(paddle.tile(x.unsqueeze([3, 5]), [1, 1, 1, 2, 1, 2]), [-1, 4, 12, 16])",
        ),
        case("stack_flatten", IMAGE, up([1.0, 2.0]), "paddle.flatten(paddle.stack([x, x], -1), -2)"),
        case("repeat_shuffle", IMAGE, up([2.0, 2.0]), "F.pixel_shuffle(paddle.repeat_interleave(x, 4, 1), 2)"),
        case(
            "deconvolution_bilinear",
            IMAGE,
            up([2.0, 2.0], "linear", "half_pixel"),
            "nn.Conv2DTranspose with Caffe's bilinear weights, groups = channels",
            deconvolution(),
            dynamic=any_size,
        ),
        # Pyramid pooling. With dynamic dimensions paddle2onnx exports no adaptive pool.
        case(
            "pyramid_adaptive",
            EVEN_IMAGE,
            pyramid([4, 2, 1]),
            "paddle.concat([paddle.flatten(F.adaptive_max_pool2d(x, n), 1) for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_average",
            EVEN_IMAGE,
            pyramid([1, 2, 4], "average"),
            "paddle.concat([paddle.flatten(F.adaptive_avg_pool2d(x, n), 1) for n in (1, 2, 4)], 1)",
        ),
        case(
            "pyramid_reshape",
            EVEN_IMAGE,
            pyramid([4, 2, 1]),
            "paddle.concat([F.max_pool2d(x, 8 // n, 8 // n).reshape([0, -1]) for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_window",
            UNEVEN_IMAGE,
            pyramid([4, 2, 1], "max", "window"),
            "paddle.concat([F.max_pool2d(x, -(-14 // n), 14 // n).flatten(1) for n in (4, 2, 1)], 1)",
        ),
        case(
            "pyramid_caffe",
            ODD_IMAGE,
            pyramid([4, 2, 1], "max", "caffe"),
            "paddle.concat([F.max_pool2d(x, -(-13 // n), -(-13 // n), (-(-13 // n) * n - 12) // 2).flatten(1)"
            " for n in (4, 2, 1)], 1)",
        ),
    ]
