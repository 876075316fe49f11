# Networks whose exports contain L2Normalize, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
from export_cases import ANY_SIZE, EMBEDDING, OPTIONAL, SEQUENCE, SMALL_IMAGE, SMALL_NHWC, fused, left

OPERATOR = "L2Normalize"
KINDS = [{"attributes": {"epsilon_mode": mode}} for mode in ("max", "norm", "add")]


def l2(axes, epsilon, mode, **more):
    return fused(OPERATOR, {"axes": axes, "epsilon": epsilon, "epsilon_mode": mode}, **more)


norm12 = l2([1], 1e-12, "norm")
NO_EPSILON = left(OPERATOR, "nothing guards against a zero norm: x / 0 must stay NaN")
NOT_A_MODE = left(OPERATOR, "epsilon is added to the norm, which none of the three modes computes")


def torch_cases(case):
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.conv = nn.Conv2d(4, 6, 3, padding=1)
            self.act = nn.LeakyReLU(0.2)
            self.left, self.right = nn.Linear(6, 4), nn.Linear(6, 4)

        def forward(self, x):
            x = F.normalize(self.act(self.conv(x)), dim=1)
            x = x.mean(dim=(2, 3))
            return F.normalize(self.left(x), dim=-1) + F.normalize(self.right(x), dim=-1)

    # fmt: off
    return [
        case("f_normalize", SMALL_IMAGE, norm12,
             "F.normalize(x, dim=1)", opsets=(9, 11, 13, 17, 18, 20), also_static=True),
        case("f_normalize_last", SEQUENCE, l2([2], 1e-12, "norm"),
             "F.normalize(x, dim=-1)", opsets=(17, 18), also_static=True),
        case("f_normalize_eps", EMBEDDING, l2([1], 1e-4, "norm"), "F.normalize(x, dim=1, eps=1e-4)", opsets=(13, 18)),
        case("f_normalize_axes", SMALL_IMAGE, l2([1, 2, 3], 1e-12, "norm"),
             "F.normalize(x, dim=(1, 2, 3))", opsets=(17,)),
        case("f_normalize_f16", EMBEDDING, l2([1], 0.0, "norm"),
             "F.normalize(x.half(), dim=1) (1e-12 is 0 in f16)", lambda x: F.normalize(x, dim=1), dtype=torch.float16),
        case("norm_clamp_min", SMALL_IMAGE, l2([1], 1e-6, "norm"), "x / x.norm(dim=1, keepdim=True).clamp_min(1e-6)"),
        case("vector_norm_clamp", SEQUENCE, l2([2], 1e-12, "norm"),
             "x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12)"),
        case("norm_maximum", EMBEDDING, l2([1], 1e-12, "norm"),
             "x / torch.maximum(x.norm(dim=1, keepdim=True), torch.tensor(1e-12))"),
        case("norm_unsqueeze", EMBEDDING, norm12 | OPTIONAL, "x / x.norm(dim=1).clamp_min(1e-12).unsqueeze(1)"),
        case("rsqrt_clamp_pow", SMALL_IMAGE, l2([1], 1e-12, "max"),
             "x * torch.rsqrt(torch.clamp(x.pow(2).sum(1, keepdim=True), min=1e-12))", opsets=(11, 17)),
        case("rsqrt_clamp_mul", SEQUENCE, l2([2], 1e-6, "max"),
             "x * torch.rsqrt((x * x).sum(-1, keepdim=True).clamp_min(1e-6))"),
        case("div_sqrt_clamp_square", EMBEDDING, l2([1], 1e-8, "max"),
             "x / torch.sqrt(torch.square(x).sum(1, keepdim=True).clamp(min=1e-8))"),
        case("div_sqrt_add", SMALL_IMAGE, l2([1], 1e-3, "add"),
             "x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-3)", opsets=(11, 17)),
        case("rsqrt_add_axes", SMALL_IMAGE, l2([2, 3], 1e-3, "add"),
             "x * torch.rsqrt((x ** 2).sum((2, 3), keepdim=True) + 1e-3)"),
        case(
            # The dynamo exporter removes "+ 1e-10" as if it were zero, so its graph has no epsilon.
            "div_sqrt_add_small",
            SMALL_IMAGE,
            l2([1], 1e-10, "add"),
            "x / torch.sqrt((x * x).sum(1, keepdim=True) + 1e-10)",
            without=("Add", NO_EPSILON),
        ),
        case("norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / x.norm(dim=-1, keepdim=True)"),
        case("norm_plus_epsilon", EMBEDDING, NOT_A_MODE, "x / (x.norm(dim=1, keepdim=True) + 1e-3)"),
        case("network", SMALL_IMAGE, l2([1], 1e-12, "norm", fusions=3, native=1),
             "convolution, nn.LeakyReLU(0.2), three F.normalize", Network()),
    ]
    # fmt: on


def tensorflow_cases(case):
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
            keras.layers.Lambda(lambda x: tf.math.l2_normalize(x, axis=-1)),
            keras.layers.Conv2D(4, 3, padding="same"),
        ]
    )
    # fmt: off
    return [
        case("l2_normalize_nhwc", SMALL_NHWC, l2([3], 1e-12, "max"),
             "tf.math.l2_normalize(x, axis=-1)", (9, 11, 13, 18)),
        case("l2_normalize_axis1", SMALL_NHWC, l2([1], 1e-6, "max"),
             "tf.math.l2_normalize(x, axis=1, epsilon=1e-6)", (11, 13)),
        case("l2_normalize_axes", SMALL_NHWC, l2([1, 2, 3], 1e-12, "max"),
             "tf.math.l2_normalize(x, axis=[1, 2, 3])", (11, 18)),
        case("l2_normalize_embedding", EMBEDDING, l2([1], 1e-10, "max"), "tf.nn.l2_normalize(x, 1, epsilon=1e-10)"),
        case("maximum_norm", SMALL_NHWC, l2([3], 1e-12, "norm"),
             "x / tf.maximum(tf.norm(x, axis=-1, keepdims=True), 1e-12)"),
        case("div_sqrt_add", SMALL_NHWC, l2([3], 1e-10, "add"),
             "x / tf.sqrt(tf.reduce_sum(tf.square(x), axis=-1, keepdims=True) + 1e-10)"),
        case("rsqrt_maximum", EMBEDDING, l2([1], 1e-12, "max"),
             "tf.math.rsqrt(tf.maximum(1e-12, tf.reduce_sum(x ** 2, 1, keepdims=True))) * x"),
        case("keras_unit_normalization", SMALL_NHWC, l2([3], 1e-12, "norm"),
             "keras.layers.UnitNormalization(axis=-1)(x)"),
        case("keras_ops_normalize", EMBEDDING, l2([1], 1e-7, "norm"), "keras.ops.normalize(x, axis=-1)"),
        case("tf_norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / tf.norm(x, axis=-1, keepdims=True)"),
        case(
            "network",
            (2, 8, 8, 3),
            l2([1], 1e-12, "max", native=1),
            "Keras, NHWC: Conv2D, LeakyReLU(0.2), l2_normalize(axis=-1), Conv2D; tf2onnx moves the transposes, so axis 1",
            (13,),
            network,
        ),
    ]
    # fmt: on


def paddle_cases(case):
    # fmt: off
    return [
        case("f_normalize", SMALL_IMAGE, norm12, "F.normalize(x, axis=1)"),
        case("f_normalize_opset9", SMALL_IMAGE, norm12, "F.normalize(x, axis=1)", opset=9),
        case("f_normalize_opset17", SMALL_IMAGE, norm12, "F.normalize(x, axis=1)", opset=17),
        case("f_normalize_any_size", SMALL_IMAGE, norm12, "F.normalize(x, axis=1)", dynamic=ANY_SIZE),
        case("f_normalize_last", SEQUENCE, l2([2], 1e-12, "norm"), "F.normalize(x, axis=-1)"),
        case("f_normalize_epsilon", EMBEDDING, l2([1], 1e-4, "norm"), "F.normalize(x, axis=1, epsilon=1e-4)"),
        case("norm_clip", SMALL_IMAGE, l2([1], 1e-6, "norm"),
             "x / paddle.clip(paddle.norm(x, axis=1, keepdim=True), min=1e-6)"),
        case("norm_maximum", EMBEDDING, l2([1], 1e-6, "norm"),
             "x / paddle.maximum(paddle.norm(x, axis=1, keepdim=True), paddle.full([1], 1e-6))"),
        case("norm_unsqueeze", EMBEDDING, l2([1], 1e-6, "norm"), "x / x.norm(axis=1).clip(min=1e-6).unsqueeze(1)"),
        case("div_sqrt_add", SMALL_IMAGE, l2([1], 1e-3, "add"),
             "x / paddle.sqrt(paddle.sum(x * x, axis=1, keepdim=True) + 1e-3)"),
        case("rsqrt_add_any_size", SMALL_IMAGE, l2([1], 1e-3, "add"),
             "x * paddle.rsqrt(x.square().sum(1, keepdim=True) + 1e-3)", dynamic=ANY_SIZE),
        case("pow_add", SMALL_IMAGE, l2([1], 1e-3, "add"),
             "x * paddle.pow(paddle.sum(x**2, axis=1, keepdim=True) + 1e-3, -0.5)"),
        case("rsqrt_clip", SEQUENCE, l2([2], 1e-6, "max"),
             "x * paddle.rsqrt(x.square().sum(-1, keepdim=True).clip(min=1e-6))"),
        case("norm_no_epsilon", EMBEDDING, NO_EPSILON, "x / paddle.linalg.norm(x, axis=-1, keepdim=True)"),
        case("norm_plus_epsilon", EMBEDDING, NOT_A_MODE, "x / (paddle.norm(x, axis=1, keepdim=True) + 1e-3)"),
        case("norm_p3", EMBEDDING, left(OPERATOR, "the norm of third powers"), "F.normalize(x, p=3, axis=1)"),
        case("norm_p1", EMBEDDING, left(OPERATOR, "the sum of absolute values"), "F.normalize(x, p=1, axis=1)"),
    ]
    # fmt: on
