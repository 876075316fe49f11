# Networks whose exports contain InstanceNorm, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
import numpy as np
from export_cases import ANY_SIZE, IMAGE, NATIVE, NHWC, fused, left, tensorflow_convolution, torch_scaled

OPERATOR = "InstanceNorm"
KINDS = [{"attributes": {"activation": activation}} for activation in ("none", "relu", "leaky_relu")]


def norm(epsilon=1e-5, activation="none", **more):
    return fused(OPERATOR, {"epsilon": epsilon, "activation": activation}, **more)


def torch_cases(case):
    import torch
    from torch import nn

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

    def style(channels):
        return nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, 3),
            nn.InstanceNorm2d(channels, affine=True),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
        )

    # fmt: off
    return [
        # Exporters write the mean of x a second time for the variance, or share it.
        case("instance_norm", IMAGE, left(OPERATOR, NATIVE), "nn.InstanceNorm2d(4)(x)"),
        case("instance_norm_relu", IMAGE, norm(activation="relu"), "nn.InstanceNorm2d(4, affine=True), nn.ReLU()",
             with_parameters(nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.ReLU())), opsets=(11, 17)),
        case("instance_norm_leaky_relu", IMAGE, norm(activation="leaky_relu"),
             "nn.InstanceNorm2d(4, eps=1e-5), nn.LeakyReLU(0.2)",
             nn.Sequential(nn.InstanceNorm2d(4), nn.LeakyReLU(0.2))),
        case("instance_norm_3d_relu", (2, 3, 2, 3, 4), norm(activation="relu"), "F.relu(F.instance_norm(x))"),
        case("instance_norm_1d_where", (2, 3, 7), norm(activation="leaky_relu", parts=1),
             "(lambda y: torch.where(y > 0, y, 0.1 * y))(F.instance_norm(x))"),
        case("instance_norm_f16_relu", IMAGE, norm(activation="relu"),
             "nn.InstanceNorm2d(4, affine=True), nn.ReLU() in f16",
             with_parameters(nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.ReLU())).half(), dtype=torch.float16),
        case("group_norm_of_channels", IMAGE, norm(), "nn.GroupNorm(4, 4)(x)", with_parameters(nn.GroupNorm(4, 4))),
        case("group_norm_of_pairs", IMAGE, left(OPERATOR, "two channels a group: other statistics"),
             "nn.GroupNorm(2, 4)(x)", with_parameters(nn.GroupNorm(2, 4))),
        case("moments_div", IMAGE, norm(),
             "(x - x.mean((2, 3), keepdim=True)) / torch.sqrt(x.var((2, 3), unbiased=False, keepdim=True) + 1e-5)",
             opsets=(11, 17)),
        case("moments_unbiased", IMAGE, left(OPERATOR, "torch.var divides by the count less one"),
             "(x - x.mean((2, 3), keepdim=True)) / torch.sqrt(x.var((2, 3), keepdim=True) + 1e-5)"),
        case(
            "moments_rsqrt_pow",
            IMAGE,
            norm(1e-3),
            "(lambda d: d * torch.rsqrt(d.pow(2).mean((2, 3), keepdim=True) + 1e-3))(x - x.mean((2, 3), keepdim=True))",
        ),
        case("moments_scale_bias", IMAGE, norm(),
             "d * rsqrt(mean(d * d) + 1e-5) * w + b", torch_scaled(ada, (1, 4, 1, 1))),
        case("moments_folded", IMAGE, norm(), "x * (w / s) + (b - mean * (w / s))", torch_scaled(folded, (4, 1, 1))),
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
        case("moments_dynamic", IMAGE, norm(),
             "(lambda d: d / torch.sqrt((d * d).mean((2, 3), keepdim=True) + 1e-5))(x - x.mean((2, 3), keepdim=True))",
             dynamic=(0, 2, 3)),
        case("style_block", IMAGE, norm(activation="relu"),
             "ReflectionPad2d, Conv2d, InstanceNorm2d, ReLU, Upsample: the first and the last stay what they are",
             with_parameters(style(4))),
    ]
    # fmt: on


def tensorflow_cases(case):
    import keras
    import tensorflow as tf

    scale = np.array([1.5, 0.5, 2.0, 1.0], np.float32)
    shift = np.array([0.1, -0.2, 0.3, 0.0], np.float32)

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
    # fmt: off
    return [
        case("moments_batch_normalization", NHWC, norm(1e-3),
             "tf.nn.moments, tf.nn.batch_normalization", layer=batch_normalization),
        case("moments_between_convolutions", NHWC, norm(1e-3),
             "conv2d, tf.nn.moments, tf.nn.batch_normalization, conv2d; tf2onnx moves transpositions between",
             layer=lambda x: tensorflow_convolution(batch_normalization(tensorflow_convolution(x)))),
        case("cycle_gan", NHWC, norm(),
             "scale * ((x - mean) * rsqrt(variance + 1e-5)) + shift", (9, 13, 18), layer=cycle_gan),
        case("cycle_gan_between_convolutions", NHWC, norm(),
             "conv2d, scale * ((x - mean) * rsqrt(variance + 1e-5)) + shift, conv2d",
             layer=lambda x: tensorflow_convolution(cycle_gan(tensorflow_convolution(x)))),
        case("moments_nchw", NHWC, norm(1e-3), "tf.nn.moments(x, [2, 3]), NCHW", layer=channels_first),
        case(
            "reduce_variance",
            NHWC,
            norm(),
            "(x - tf.reduce_mean(x, [1, 2], keepdims=True)) / "
            "tf.sqrt(tf.math.reduce_variance(x, [1, 2], keepdims=True) + 1e-5)",
        ),
        case("keras_group_normalization", NHWC, norm(1e-3),
             "keras.layers.GroupNormalization(groups=-1)(x)", layer=keras.layers.GroupNormalization(groups=-1)),
        case("keras_network", NHWC, norm(1e-3, "relu", parts=1),
             "Keras: Conv2D, GroupNormalization(groups=-1), ReLU, Conv2D", layer=network),
        case("moments_over_channels", NHWC, left(OPERATOR, "layer norm"), "tf.nn.moments(x, [3])", layer=over_channels),
        case("moments_over_batch", NHWC, left(OPERATOR, "batch norm"), "tf.nn.moments(x, [0, 1, 2])", layer=over_batch),
        case("std_plus_epsilon", NHWC, left(OPERATOR, "epsilon is added to the deviation"),
             "(x - tf.reduce_mean(x, [1, 2], keepdims=True)) / (tf.math.reduce_std(x, [1, 2], keepdims=True) + 1e-5)"),
    ]
    # fmt: on


def paddle_cases(case):
    from paddle import nn

    def with_parameters(layer):
        generator = np.random.default_rng(7)
        for parameter in layer.parameters():
            parameter.set_value(generator.random(parameter.shape).astype(np.float32) + 0.5)
        return layer

    def plain_norm():
        return nn.InstanceNorm2D(4, weight_attr=False, bias_attr=False)

    variance = "paddle.var(x, axis=[2, 3], {}keepdim=True)"
    moments = "(x - paddle.mean(x, axis=[2, 3], keepdim=True)) / paddle.sqrt({} + 1e-5)"
    # fmt: off
    return [
        case("instance_norm", IMAGE, left(OPERATOR, NATIVE), "nn.InstanceNorm2D(4) without weights", plain_norm()),
        case("instance_norm_weights", IMAGE, left(OPERATOR, NATIVE),
             "nn.InstanceNorm2D(4)", with_parameters(nn.InstanceNorm2D(4))),
        case("instance_norm_relu", IMAGE, norm(activation="relu"), "nn.InstanceNorm2D(4), nn.ReLU()",
             with_parameters(nn.Sequential(nn.InstanceNorm2D(4), nn.ReLU())), dynamic=ANY_SIZE),
        case("instance_norm_plain_relu", IMAGE, norm(activation="relu"), "F.relu(F.instance_norm(x))"),
        case("instance_norm_leaky_relu", IMAGE, norm(activation="leaky_relu"),
             "nn.InstanceNorm2D(4) without weights, nn.LeakyReLU(0.2)", nn.Sequential(plain_norm(), nn.LeakyReLU(0.2))),
        case("instance_norm_3d_relu", (2, 3, 2, 3, 4), norm(activation="relu"),
             "nn.InstanceNorm3D(3), nn.ReLU()", with_parameters(nn.Sequential(nn.InstanceNorm3D(3), nn.ReLU()))),
        case("group_norm_of_channels", IMAGE, norm(), "nn.GroupNorm(4, 4)", with_parameters(nn.GroupNorm(4, 4))),
        case("group_norm_of_pairs", IMAGE, left(OPERATOR, "two channels a group: other statistics"),
             "nn.GroupNorm(2, 4)", with_parameters(nn.GroupNorm(2, 4))),
        case(
            "moments_rsqrt",
            IMAGE,
            norm(1e-3),
            "(lambda d: d * paddle.rsqrt(d.square().mean([2, 3], keepdim=True) + 1e-3))(x - x.mean([2, 3], keepdim=True))",
        ),
        case("moments_var", IMAGE, norm(), moments.format(variance.format("unbiased=False, "))),
        case("moments_var_any_size", IMAGE, norm(),
             moments.format(variance.format("unbiased=False, ")), dynamic=ANY_SIZE),
        case("moments_var_fixed", IMAGE, norm(), moments.format(variance.format("unbiased=False, ")), dynamic=()),
        case("moments_unbiased_fixed", IMAGE, left(OPERATOR, "paddle.var divides by the count less one"),
             moments.format(variance.format("")), dynamic=()),
        case("moments_unbiased", IMAGE, left(OPERATOR, "paddle.var divides by the count less one"),
             moments.format(variance.format(""))),
    ]
    # fmt: on
