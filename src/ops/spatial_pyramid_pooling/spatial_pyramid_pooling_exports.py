# Networks that exporters write for SpatialPyramidPooling, and the result that is expected of Graft: see
# tests/golden/generators/make_exports.py.
from export_cases import EVEN_IMAGE, EVEN_NHWC, ODD_IMAGE, UNEVEN_IMAGE, fused, left

OPERATOR = "SpatialPyramidPooling"
KINDS = [{"attributes": {"mode": "max", "binning": binning}} for binning in ("adaptive", "window", "caffe")]
KINDS += [{"attributes": {"mode": "average"}}]


def pyramid(levels, mode="max", binning="adaptive", **more):
    return fused(OPERATOR, {"levels": levels, "mode": mode, "binning": binning}, **more)


def torch_cases(case):
    # fmt: off
    return [
        case("pyramid_adaptive", EVEN_IMAGE, pyramid([4, 2, 1]),
             "torch.cat([F.adaptive_max_pool2d(x, n).flatten(1) for n in (4, 2, 1)], 1)"),
        case("pyramid_average", EVEN_IMAGE, pyramid([1, 2, 4], "average"),
             "torch.cat([F.adaptive_avg_pool2d(x, n).flatten(1) for n in (1, 2, 4)], 1)"),
        case(
            "pyramid_caffe",
            ODD_IMAGE,
            pyramid([4, 2, 1], "max", "caffe"),
            "torch.cat([F.max_pool2d(x, -(-13 // n), -(-13 // n), (-(-13 // n) * n - 12) // 2).reshape(x.size(0), -1)"
            " for n in (4, 2, 1)], 1)",
        ),
        case("pyramid_window", UNEVEN_IMAGE, pyramid([4, 2, 1], "max", "window"),
             "torch.cat([F.max_pool2d(x, -(-14 // n), 14 // n).view(x.size(0), -1) for n in (4, 2, 1)], 1)"),
    ]
    # fmt: on


def tensorflow_cases(case):
    return [
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
            left(OPERATOR, "flattened cell by cell, not channel by channel"),
            "tf.concat([tf.reshape(tf.nn.max_pool2d(x, 8 // n, 8 // n, 'VALID'), [-1, n * n * 3]) for n in (4, 2, 1)], 1)",
        ),
    ]


def paddle_cases(case):
    """Returns the cases of paddle2onnx, which does not export adaptive pools with dynamic dimensions."""
    # fmt: off
    return [
        case("pyramid_adaptive", EVEN_IMAGE, pyramid([4, 2, 1]),
             "paddle.concat([paddle.flatten(F.adaptive_max_pool2d(x, n), 1) for n in (4, 2, 1)], 1)"),
        case("pyramid_average", EVEN_IMAGE, pyramid([1, 2, 4], "average"),
             "paddle.concat([paddle.flatten(F.adaptive_avg_pool2d(x, n), 1) for n in (1, 2, 4)], 1)"),
        case("pyramid_reshape", EVEN_IMAGE, pyramid([4, 2, 1]),
             "paddle.concat([F.max_pool2d(x, 8 // n, 8 // n).reshape([0, -1]) for n in (4, 2, 1)], 1)"),
        case("pyramid_window", UNEVEN_IMAGE, pyramid([4, 2, 1], "max", "window"),
             "paddle.concat([F.max_pool2d(x, -(-14 // n), 14 // n).flatten(1) for n in (4, 2, 1)], 1)"),
        case(
            "pyramid_caffe",
            ODD_IMAGE,
            pyramid([4, 2, 1], "max", "caffe"),
            "paddle.concat([F.max_pool2d(x, -(-13 // n), -(-13 // n), (-(-13 // n) * n - 12) // 2).flatten(1)"
            " for n in (4, 2, 1)], 1)",
        ),
    ]
    # fmt: on
