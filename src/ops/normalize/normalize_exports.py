# Networks whose exports contain Normalize, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
import numpy as np
from export_cases import ANY_SIZE, IMAGE, NHWC, fused, tensorflow_convolution, torch_scaled

OPERATOR = "Normalize"
KINDS = [
    {"attributes": {"across_spatial": 0, "channel_shared": 0}},
    {"attributes": {"across_spatial": 1}},
    {"attributes": {"channel_shared": 1}},
]


def normalize(across_spatial=0, channel_shared=0, parts=1):
    """Returns the expected result, a fusion into Normalize. `parts` is the number of earlier
    fusions, into L2Normalize, that become part of it: 1, or 0 if the factor comes first."""
    attributes = {"across_spatial": across_spatial, "channel_shared": channel_shared, "epsilon": 1e-3}
    return fused(OPERATOR, attributes, parts=parts)


def torch_cases(case):
    import torch

    def ssd(axes):
        return lambda module, x: x / torch.sqrt((x * x).sum(axes, keepdim=True) + 1e-3) * module.weight

    # fmt: off
    return [
        # SSD's normalization with a trained factor.
        case("ssd", IMAGE, normalize(),
             "x / sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]", torch_scaled(ssd(1), (1, 4, 1, 1))),
        case("ssd_rsqrt", IMAGE, normalize(channel_shared=1),
             "(x * torch.rsqrt(x.pow(2).sum(1, keepdim=True) + 1e-3)) * 20.0"),
        case("ssd_across_spatial", IMAGE, normalize(across_spatial=1),
             "x / sqrt(sum(x^2, (1, 2, 3)) + 1e-3) * weight[4, 1, 1]", torch_scaled(ssd((1, 2, 3)), (4, 1, 1))),
    ]
    # fmt: on


def tensorflow_cases(case):
    import tensorflow as tf

    scale = np.array([1.5, 0.5, 2.0, 1.0], np.float32)

    def ssd(x):
        norm = tf.sqrt(tf.reduce_sum(tf.square(x), axis=1, keepdims=True) + 1e-3)
        return x / norm * np.arange(1, 7, dtype=np.float32).reshape(6, 1, 1)

    def ssd_between_convolutions(x):
        x = tensorflow_convolution(x)
        norm = tf.math.rsqrt(tf.reduce_sum(tf.square(x), axis=-1, keepdims=True) + 1e-3)
        return tensorflow_convolution(x * norm * scale)

    # fmt: off
    return [
        case("ssd", NHWC, normalize(), "x / sqrt(reduce_sum(x^2, 1) + 1e-3) * factor[6, 1, 1], NCHW", layer=ssd),
        case("ssd_between_convolutions", NHWC, normalize(parts=0),
             "conv2d, x * rsqrt(reduce_sum(x^2, -1) + 1e-3) * factor[4], conv2d, NHWC", layer=ssd_between_convolutions,
             frozen_graph={"parts": 1}),
        case("ssd_shared", NHWC, normalize(across_spatial=1, channel_shared=1, parts=0),
             "20 * (x * tf.math.rsqrt(tf.reduce_sum(x * x, [1, 2, 3], keepdims=True) + 1e-3))",
             frozen_graph={"parts": 1}),
    ]
    # fmt: on


def paddle_cases(case):
    import paddle
    from paddle import nn

    class Scaled(nn.Layer):
        """Applies a function, and multiplies its result by a parameter of the shape `shape`."""

        def __init__(self, function, shape):
            super().__init__()
            self.function = function
            numbers = np.random.default_rng(5).random(shape).astype(np.float32) + 0.5
            self.weight = self.create_parameter(shape, default_initializer=nn.initializer.Assign(numbers))

        def forward(self, x):
            return self.function(x) * self.weight

    def ssd(x):
        return x / paddle.sqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3)

    def ssd_across(x):
        return x / paddle.sqrt(paddle.sum(x * x, axis=[1, 2, 3], keepdim=True) + 1e-3)

    # fmt: off
    return [
        # SSD's normalization with a trained factor.
        case("ssd", IMAGE, normalize(),
             "x / paddle.sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]", Scaled(ssd, [1, 4, 1, 1])),
        case("ssd_any_size", IMAGE, normalize(),
             "x / paddle.sqrt(sum(x^2, 1) + 1e-3) * weight[1, 4, 1, 1]", Scaled(ssd, [1, 4, 1, 1]), dynamic=ANY_SIZE),
        case("ssd_across_spatial", IMAGE, normalize(across_spatial=1),
             "x / paddle.sqrt(sum(x^2, (1, 2, 3)) + 1e-3) * weight[4, 1, 1]", Scaled(ssd_across, [4, 1, 1])),
        case("ssd_shared", IMAGE, normalize(channel_shared=1),
             "x * paddle.rsqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3) * 20.0"),
    ]
    # fmt: on
