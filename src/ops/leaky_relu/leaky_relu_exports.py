# Networks whose exports contain LeakyReLU, with the expected result of Graft: see
# tests/golden/generators/make_exports.py.
from export_cases import ANY_SIZE, EMBEDDING, OPTIONAL, SMALL_IMAGE, SMALL_NHWC, fused

OPERATOR = "LeakyReLU"
KINDS = [{"attributes": {}}]


def leaky(alpha, **more):
    return fused(OPERATOR, {"alpha": alpha}, lowered="LeakyRelu", **more)


def native(alpha):
    return leaky(alpha, fusions=0, native=1)


def torch_cases(case):
    return [
        case("leaky_relu", SMALL_IMAGE, native(0.1), "F.leaky_relu(x, 0.1)", opsets=(11, 17)),
        case("nn_leaky_relu", SMALL_IMAGE, native(0.01), "nn.LeakyReLU()(x)"),
        case("where_greater", SMALL_IMAGE, leaky(0.1), "torch.where(x > 0, x, 0.1 * x)", opsets=(11, 17)),
        case("where_greater_equal", EMBEDDING, leaky(0.2), "torch.where(x >= 0, x, x * 0.2)"),
        case("where_less", EMBEDDING, leaky(0.2), "torch.where(x < 0, 0.2 * x, x)"),
        case("maximum", SMALL_IMAGE, leaky(0.1), "torch.maximum(x, 0.1 * x)"),
        case("maximum_swapped", EMBEDDING, leaky(0.3), "torch.maximum(0.3 * x, x)"),
        case("clamp_sum", EMBEDDING, leaky(0.1), "x.clamp(min=0) + 0.1 * x.clamp(max=0)"),
        case("relu_minus_relu", SMALL_IMAGE, leaky(0.1), "F.relu(x) - 0.1 * F.relu(-x)"),
    ]


def tensorflow_cases(case):
    return [
        case("leaky_relu", SMALL_NHWC, native(0.1), "tf.nn.leaky_relu(x, alpha=0.1)", (9, 13)),
        case("keras_leaky_relu", SMALL_NHWC, native(0.3), "keras.layers.LeakyReLU(negative_slope=0.3)(x)"),
        case("keras_ops_leaky_relu", SMALL_NHWC, native(0.2), "keras.ops.leaky_relu(x, 0.2)"),
        case("maximum", EMBEDDING, native(0.1), "tf.maximum(x, 0.1 * x)", frozen_graph={"fusions": 1, "native": 0}),
        # tf2onnx writes x * Cast(x > 0) + 0.1 * x * Cast(not x > 0), which is NaN at infinity where tf.where is not.
        case("where", EMBEDDING, leaky(0.1) | OPTIONAL, "tf.where(x > 0, x, 0.1 * x)", (11, 13)),
        case("relu_minus_relu", SMALL_NHWC, leaky(0.1), "tf.nn.relu(x) - 0.1 * tf.nn.relu(-x)"),
    ]


def paddle_cases(case):
    from paddle import nn

    return [
        case("leaky_relu", SMALL_IMAGE, native(0.1), "F.leaky_relu(x, 0.1)"),
        case("nn_leaky_relu", SMALL_IMAGE, native(0.01), "nn.LeakyReLU()(x)"),
        case("prelu", SMALL_IMAGE, leaky(0.25), "nn.PReLU()", nn.PReLU()),
        case("where_greater", SMALL_IMAGE, leaky(0.1), "paddle.where(x > 0, x, 0.1 * x)", dynamic=ANY_SIZE),
        case("where_less", EMBEDDING, leaky(0.2), "paddle.where(x < 0, 0.2 * x, x)"),
        case("maximum", SMALL_IMAGE, leaky(0.1), "paddle.maximum(x, 0.1 * x)"),
        case("clip_sum", EMBEDDING, leaky(0.1), "x.clip(min=0) + 0.1 * x.clip(max=0)"),
        case("relu_minus_relu", SMALL_IMAGE, leaky(0.1), "F.relu(x) - 0.1 * F.relu(-x)"),
    ]
