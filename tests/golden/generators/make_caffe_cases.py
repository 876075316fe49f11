# make_caffe_cases.py - writes small Caffe networks with seeded weights, and the results of OpenCV's reader.
"""Usage: python tests/golden/generators/make_caffe_cases.py OUTPUT.npz, in an environment with protobuf and an OpenCV 4
that reads Caffe; protoc has to be installed.

Each case is one network: its text under `<case>/network`, its weights under `<case>/weights` (both as bytes), its inputs
under `<case>/in/<name>` and OpenCV's results under `<case>/out/<blob>`. tests/import/test_caffe.py reads them.
"""

from __future__ import annotations

import importlib
import pathlib
import re
import subprocess
import sys
import tempfile

import cv2
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
ARRAYS: dict[str, np.ndarray] = {}
RANDOM = np.random.default_rng(11)


def compiled_schema():
    folder = tempfile.mkdtemp()
    source = ROOT / "src" / "import" / "caffe"
    subprocess.run(["protoc", f"--proto_path={source}", f"--python_out={folder}", "caffe.proto"], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("caffe_pb2")


SCHEMA = compiled_schema()


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RANDOM.normal(size=shape) * scale).astype("float32")


def weights_file(weights: dict[str, list[np.ndarray]]) -> bytes:
    network = SCHEMA.NetParameter()
    for name, blobs in weights.items():
        layer = network.layer.add()
        layer.name = name
        layer.type = "Trained"
        for blob in blobs:
            proto = layer.blobs.add()
            proto.shape.dim.extend(blob.shape)
            proto.data.extend(blob.ravel().tolist())
    return network.SerializeToString()


def layer(kind: str, name: str, bottoms: str, top: str, parameters: str = "") -> str:
    inputs = "".join(f' bottom: "{bottom}"' for bottom in bottoms.split())
    outputs = "".join(f' top: "{each}"' for each in top.split())
    return f'layer {{ name: "{name}" type: "{kind}"{inputs}{outputs} {parameters} }}\n'


def results_of_opencv(
    text: str, trained: bytes, inputs: dict[str, np.ndarray], outputs: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Returns OpenCV's results. OpenCV returns the output of a layer, not a blob, so an identity layer follows each
    output."""
    probes = {blob: f"probe_of_{blob}" for blob in outputs}
    for blob, probe in probes.items():
        is_old = "layers {" in text
        text += (
            f'layers {{ name: "{probe}" type: POWER bottom: "{blob}" top: "{probe}" }}\n'
            if is_old
            else layer("Power", probe, blob, probe)
        )
    network = cv2.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8), np.frombuffer(trained, np.uint8))
    for name, value in inputs.items():
        network.setInput(value, name)
    return {blob: network.forward(probe) for blob, probe in probes.items()}


def case(
    name: str,
    inputs: dict[str, np.ndarray],
    layers: str,
    weights: dict[str, list[np.ndarray]] | None = None,
    outputs: tuple[str, ...] = ("y",),
    results: dict[str, np.ndarray] | None = None,
) -> None:
    """Adds a case. `results` are computed by NumPy in this file where OpenCV does not have the layer."""
    text = "".join(
        f'input: "{key}"\ninput_shape {{ {" ".join(f"dim: {size}" for size in value.shape)} }}\n'
        for key, value in inputs.items()
    )
    text = f'name: "{name}"\n{text}{layers}'
    trained = weights_file(weights or {})
    if results is None:
        results = results_of_opencv(text, trained, inputs, outputs)
    ARRAYS[f"{name}/network"] = np.frombuffer(text.encode(), np.uint8)
    ARRAYS[f"{name}/weights"] = np.frombuffer(trained, np.uint8)
    for key, value in inputs.items():
        ARRAYS[f"{name}/in/{key}"] = value
    for key, value in results.items():
        ARRAYS[f"{name}/out/{key}"] = np.asarray(value)


def convolutions() -> None:
    x = normal(2, 4, 9, 7)
    for kind in ("Convolution", "Deconvolution"):
        for number, (parameters, kernel, group) in enumerate(
            (
                ("kernel_size: 3", (3, 3), 1),
                ("kernel_size: 3 pad: 1 stride: 2", (3, 3), 1),
                ("kernel_h: 1 kernel_w: 3 pad_h: 0 pad_w: 1 stride_h: 2 stride_w: 1", (1, 3), 1),
                ("kernel_size: 3 group: 2 pad: 1", (3, 3), 2),
                ("kernel_size: 3 pad: 2 dilation: 2", (3, 3), 1),
            )
        ):
            if kind == "Deconvolution" and "dilation" in parameters:
                continue
            shape = (6, 4 // group, *kernel) if kind == "Convolution" else (4, 6 // group, *kernel)
            case(
                f"{kind.lower()}_{number}",
                {"x": x},
                layer(kind, "c", "x", "y", f"convolution_param {{ num_output: 6 {parameters} }}"),
                {"c": [normal(*shape), normal(6)]},
            )
    case(
        "convolution_no_bias",
        {"x": x},
        layer("Convolution", "c", "x", "y", "convolution_param { num_output: 5 kernel_size: 1 bias_term: false }"),
        {"c": [normal(5, 4, 1, 1)]},
    )
    case(
        "depthwise",
        {"x": x},
        layer("Convolution", "c", "x", "y", "convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 4 }"),
        {"c": [normal(4, 1, 3, 3), normal(4)]},
    )
    case(
        "inner_product",
        {"x": normal(2, 3, 4, 2)},
        layer("InnerProduct", "f", "x", "y", "inner_product_param { num_output: 7 }"),
        {"f": [normal(7, 24), normal(7)]},
    )


def pools() -> None:
    x = normal(2, 3, 8, 7)
    for kind in ("MAX", "AVE"):
        for number, parameters in enumerate(
            (
                "kernel_size: 3 stride: 2",
                "kernel_size: 2 stride: 2",
                "kernel_size: 3 stride: 2 pad: 1",
                "kernel_size: 3 stride: 1 pad: 1",
                "kernel_h: 2 kernel_w: 3 stride_h: 3 stride_w: 2",
                "global_pooling: true",
            )
        ):
            case(
                f"pool_{kind.lower()}_{number}",
                {"x": x},
                layer("Pooling", "p", "x", "y", f"pooling_param {{ pool: {kind} {parameters} }}"),
            )


def elementwise() -> None:
    x = normal(2, 3, 4, 5)
    positive = np.abs(x) + 0.2
    for name, kind, parameters, values in (
        ("relu", "ReLU", "", x),
        ("leaky", "ReLU", "relu_param { negative_slope: 0.1 }", x),
        ("elu", "ELU", "elu_param { alpha: 1 }", x),
        ("sigmoid", "Sigmoid", "", x),
        ("tanh", "TanH", "", x),
        ("abs", "AbsVal", "", x),
        ("bnll", "BNLL", "", x),
        ("power", "Power", "power_param { power: 2 scale: 0.5 shift: 3 }", x),
        ("power_scale", "Power", "power_param { scale: -2 shift: 0.25 }", x),
        ("exp", "Exp", "exp_param { base: 2 scale: 0.5 shift: 0.25 }", x),
        ("exp_e", "Exp", "", x),
        ("softmax", "Softmax", "", x),
        ("softmax_axis", "Softmax", "softmax_param { axis: 2 }", x),
        ("lrn", "LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 }", normal(1, 7, 3, 3)),
        (
            "lrn_within",
            "LRN",
            "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL }",
            normal(1, 2, 6, 5),
        ),
    ):
        case(name, {"x": values}, layer(kind, "l", "x", "y", parameters))
    mean, deviation = x.mean((2, 3), keepdims=True), x.std((2, 3), keepdims=True)
    normalized = ((x - mean) / (deviation + np.float32(0.001))).astype("float32")
    case("mvn", {"x": x}, layer("MVN", "l", "x", "y", "mvn_param { eps: 0.001 }"), results={"y": normalized})
    case(
        "log",
        {"x": positive},
        layer("Log", "l", "x", "y", "log_param { base: 10 scale: 2 shift: 0.5 }"),
        results={"y": (np.log10(2 * positive + 0.5)).astype("float32")},
    )
    case(
        "threshold",
        {"x": x},
        layer("Threshold", "l", "x", "y", "threshold_param { threshold: 0.3 }"),
        results={"y": (x > 0.3).astype("float32")},
    )
    case("prelu", {"x": x}, layer("PReLU", "l", "x", "y"), {"l": [np.float32([0.1, 0.2, 0.3])]})
    case(
        "prelu_shared",
        {"x": x},
        layer("PReLU", "l", "x", "y", "prelu_param { channel_shared: true }"),
        {"l": [np.float32([0.2])]},
        results={"y": np.where(x > 0, x, x * np.float32(0.2))},
    )
    for operation in ("SUM", "PROD", "MAX"):
        case(
            f"eltwise_{operation.lower()}",
            {"a": x, "b": normal(2, 3, 4, 5)},
            layer("Eltwise", "e", "a b", "y", f"eltwise_param {{ operation: {operation} }}"),
        )
    case(
        "eltwise_coefficients",
        {"a": x, "b": normal(2, 3, 4, 5)},
        layer("Eltwise", "e", "a b", "y", "eltwise_param { coeff: 2 coeff: -0.5 }"),
    )
    statistics = [normal(3), np.abs(normal(3)) + 0.5, np.float32([2.0])]
    case(
        "batch_norm_scale",
        {"x": x},
        layer("BatchNorm", "b", "x", "n", "batch_norm_param { eps: 0.001 }")
        + layer("Scale", "s", "n", "y", "scale_param { bias_term: true }"),
        {"b": statistics, "s": [normal(3), normal(3)]},
    )
    case(
        "in_place",
        {"x": x},
        layer("Convolution", "c", "x", "y", "convolution_param { num_output: 3 kernel_size: 1 }")
        + layer("BatchNorm", "b", "y", "y")
        + layer("Scale", "s", "y", "y", "scale_param { bias_term: true }")
        + layer("ReLU", "r", "y", "y"),
        {"c": [normal(3, 3, 1, 1), normal(3)], "b": statistics, "s": [normal(3), normal(3)]},
    )
    factor = normal(2, 3)
    case(
        "scale_by_bottom",
        {"x": x, "f": factor},
        layer("Scale", "s", "x f", "y", "scale_param { axis: 0 }"),
        results={"y": x * factor[:, :, None, None]},
    )
    shift = normal(3)
    case("bias", {"x": x}, layer("Bias", "b", "x", "y"), {"b": [shift]}, results={"y": x + shift[:, None, None]})


def shapes() -> None:
    x = normal(2, 6, 4, 5)
    case("concat", {"a": x, "b": normal(2, 2, 4, 5)}, layer("Concat", "c", "a b", "y"))
    case("concat_axis", {"a": x, "b": normal(2, 6, 4, 3)}, layer("Concat", "c", "a b", "y", "concat_param { axis: 3 }"))
    case(
        "slice",
        {"x": x},
        layer("Slice", "s", "x", "a b y", "slice_param { slice_point: 1 slice_point: 4 }"),
        outputs=("a", "b", "y"),
    )
    case("slice_even", {"x": x}, layer("Slice", "s", "x", "a y", "slice_param { axis: 2 }"), outputs=("a", "y"))
    case("split", {"x": x}, layer("Split", "s", "x", "a b") + layer("Eltwise", "e", "a b", "y"))
    case("flatten", {"x": x}, layer("Flatten", "f", "x", "y"))
    case("flatten_axes", {"x": x}, layer("Flatten", "f", "x", "y", "flatten_param { axis: 2 end_axis: 3 }"))
    case("reshape", {"x": x}, layer("Reshape", "r", "x", "y", "reshape_param { shape { dim: 0 dim: -1 dim: 10 } }"))
    case(
        "reshape_axis",
        {"x": x},
        layer("Reshape", "r", "x", "y", "reshape_param { axis: 1 num_axes: 1 shape { dim: 2 dim: 3 } }"),
    )
    case("permute", {"x": x}, layer("Permute", "p", "x", "y", "permute_param { order: 0 order: 2 order: 3 order: 1 }"))
    case(
        "crop",
        {"x": x, "like": normal(2, 6, 2, 3)},
        layer("Crop", "c", "x like", "y", "crop_param { axis: 2 offset: 1 }"),
    )
    case("dropout", {"x": x}, layer("Dropout", "d", "x", "d1") + layer("ReLU", "r", "d1", "y"))
    case(
        "argmax",
        {"x": x},
        layer("ArgMax", "a", "x", "y", "argmax_param { axis: 1 }"),
        results={"y": x.argmax(1, keepdims=True).astype("float32")},
    )
    best = x.reshape(2, -1)
    case(
        "argmax_all",
        {"x": x},
        layer("ArgMax", "a", "x", "y", "argmax_param { out_max_val: true }"),
        results={"y": np.stack([best.argmax(1), best.max(1)], 1).astype("float32")[:, :, None, None]},
    )
    case(
        "argmax_flat",
        {"x": best},
        layer("ArgMax", "a", "x", "y", "argmax_param { top_k: 2 }"),
        results={"y": np.argsort(-best, 1, kind="stable")[:, None, :2].astype("float32")},
    )
    case(
        "tile",
        {"x": x},
        layer("Tile", "t", "x", "y", "tile_param { axis: 2 tiles: 3 }"),
        results={"y": np.tile(x, (1, 1, 3, 1))},
    )
    case(
        "reduction",
        {"x": x},
        layer("Reduction", "r", "x", "y", "reduction_param { operation: MEAN axis: 1 coeff: 2 }"),
        results={"y": 2 * x.reshape(2, -1).mean(1)},
    )
    case(
        "reduction_absolute",
        {"x": x},
        layer("Reduction", "r", "x", "y", "reduction_param { operation: ASUM axis: 2 }"),
        results={"y": np.abs(x).sum((2, 3))},
    )
    case("reorg", {"x": normal(1, 8, 4, 6)}, layer("Reorg", "r", "x", "y", "reorg_param { stride: 2 }"))
    case("interp", {"x": x}, layer("Interp", "i", "x", "y", "interp_param { height: 9 width: 7 }"))
    case("interp_zoom", {"x": x}, layer("Interp", "i", "x", "y", "interp_param { zoom_factor: 2 }"))
    up = x.repeat(2, 2).repeat(2, 3)
    case("upsample", {"x": x}, layer("Upsample", "u", "x", "y", "upsample_param { scale: 2 }"), results={"y": up})
    image = normal(1, 3, 9, 7)
    for pool in ("MAX", "AVE"):
        case(
            f"spp_{pool.lower()}",
            {"x": image},
            layer("SPP", "s", "x", "y", f"spp_param {{ pyramid_height: 3 pool: {pool} }}"),
            results={"y": pyramid(image, 3, pool == "MAX")},
        )


def pyramid(x: np.ndarray, height: int, is_max: bool) -> np.ndarray:
    """Computes Caffe's spp_layer.cpp for one image."""
    levels = []
    for n in (2**level for level in range(height)):
        k = [-(-size // n) for size in x.shape[2:]]
        pad = [(k[i] * n - x.shape[2 + i] + 1) // 2 for i in range(2)]
        for c in range(x.shape[1]):
            for i in range(n):
                for j in range(n):
                    rows = slice(max(i * k[0] - pad[0], 0), max(min((i + 1) * k[0] - pad[0], x.shape[2]), 0))
                    columns = slice(max(j * k[1] - pad[1], 0), max(min((j + 1) * k[1] - pad[1], x.shape[3]), 0))
                    window = x[0, c, rows, columns]
                    levels.append(window.max() if is_max else window.sum(dtype="float64") / (k[0] * k[1]))
    return np.array([levels], dtype="float32")


def detection() -> None:
    x = normal(1, 4, 5, 5)
    case(
        "normalize",
        {"x": x},
        layer("Normalize", "n", "x", "y", "norm_param { across_spatial: false channel_shared: false }"),
        {"n": [normal(4)]},
    )
    case(
        "normalize_all",
        {"x": x},
        layer("Normalize", "n", "x", "y", "norm_param { across_spatial: true channel_shared: true }"),
        {"n": [np.float32([3])]},
    )
    image = normal(1, 3, 40, 30)
    for number, parameters in enumerate(
        (
            "min_size: 8 clip: false variance: 0.1",
            "min_size: 8 max_size: 16 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: true variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2",
            "min_size: 6 max_size: 11 aspect_ratio: 2 flip: false clip: false step: 7 offset: 0.25 variance: 0.1",
        )
    ):
        case(
            f"prior_box_{number}",
            {"x": x, "image": image},
            layer("PriorBox", "p", "x image", "y", f"prior_box_param {{ {parameters} }}"),
        )
    detector("detection", 20, "keep_top_k: 12")
    detector("detection_top", 20, "keep_top_k: 12", top_k=6)
    detector("detection_corner", 9, "code_type: CORNER", code="CORNER")
    rois = np.float32([[0, 0, 0, 6, 7], [0, 2, 1, 9, 8], [0, 3, 3, 4, 5]])
    case(
        "roi_pooling",
        {"x": normal(1, 3, 10, 12), "rois": rois},
        layer("ROIPooling", "r", "x rois", "y", "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.5 }"),
    )


def other_branches() -> None:
    """Adds cases for layers of SegNet, PSPNet, SENet, ShuffleNet, MobileNet and Faster R-CNN."""
    x = normal(2, 6, 4, 5)
    case("shuffle_channel", {"x": x}, layer("ShuffleChannel", "s", "x", "y", "shuffle_channel_param { group: 3 }"))
    factor = normal(2, 6, 1, 1)
    added = normal(2, 6, 4, 5)
    text = layer("Axpy", "s", "f a b", "y")
    case("axpy", {"f": factor, "a": x, "b": added}, text, results={"y": factor * x + added})
    case("axpy_flat", {"f": factor[:, :, 0, 0], "a": x, "b": added}, text, results={"y": factor * x + added})
    case("relu6", {"x": 6 * x}, layer("ReLU6", "r", "x", "y"))
    swished = (x / (1 + np.exp(-2 * x.astype("float64")))).astype("float32")
    case("swish", {"x": x}, layer("Swish", "r", "x", "y", "swish_param { beta: 2 }"), results={"y": swished})
    text = layer("Clip", "r", "x", "y", "clip_param { min: -0.5 max: 0.75 }")
    case("clip", {"x": x}, text, results={"y": x.clip(-0.5, 0.75)})
    text = layer(
        "ConvolutionDepthwise",
        "c",
        "x",
        "y",
        "convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: false }",
    )
    case("depthwise_by_type", {"x": x}, text, {"c": [normal(6, 1, 3, 3)]})
    table, shift = normal(7, 3), normal(3)
    words = RANDOM.integers(0, 7, (2, 4))
    text = layer("Embed", "e", "x", "y", "embed_param { num_output: 3 input_dim: 7 }")
    case("embed", {"x": words.astype("float32")}, text, {"e": [table, shift]}, results={"y": table[words] + shift})
    a, b, c = normal(6), normal(6), np.abs(normal(6)) + 0.5
    wide = (slice(None), None, None)
    old = (1, 6, 1, 1)
    text = layer("BN", "n", "x", "y", "bn_param { bn_mode: INFERENCE }")
    blobs = [a.reshape(old), b.reshape(old)]
    case("bn_of_segnet", {"x": x}, text, {"n": blobs}, results={"y": x * a[wide] + b[wide]})
    normalized = (x - b[wide]) / np.sqrt(c[wide] + np.float32(0.01))
    text = layer("BN", "n", "x", "y", "bn_param { eps: 0.01 frozen: true }")
    blobs = [each.reshape(old) for each in (a, a, b, c)]
    case("bn_of_pspnet", {"x": x}, text, {"n": blobs}, results={"y": normalized * a[wide] + a[wide]})
    text = layer("BatchNorm", "n", "x", "y", "batch_norm_param { eps: 0.01 scale_bias: true }")
    blobs = [b, c, np.float32([1]), a, b]
    case("batch_norm_with_scale", {"x": x}, text, {"n": blobs}, results={"y": normalized * a[wide] + b[wide]})
    text = layer("MVN", "m", "x", "y", "mvn_param { across_channels: true normalize_variance: false }")
    case("mvn_across", {"x": x}, text, results={"y": x - x.mean((1, 2, 3), keepdims=True)})
    for name, parameters, cut, size in (
        ("cut", "height: 5 width: 6 pad_beg: -1 pad_end: 0", x[:, :, 1:, 1:], (5, 6)),
        ("shrink", "shrink_factor: 2", x, (2, 3)),
        ("shrink_zoom", "shrink_factor: 2 zoom_factor: 3", x, (4, 7)),
    ):
        text = layer("Interp", "i", "x", "y", f"interp_param {{ {parameters} }}")
        case(f"interp_{name}", {"x": x}, text, results={"y": corners_on_corners(cut, *size)})
    text = layer("Interp", "i", "x like", "y")
    case("interp_like", {"x": x, "like": normal(2, 1, 7, 3)}, text, results={"y": corners_on_corners(x, 7, 3)})
    pool = "pool: MAX kernel_size: 2 stride: 2"
    for name, size in (("segnet", (6, 8)), ("segnet_odd", (5, 7))):
        image = normal(2, 3, *size)
        pooled, places = maxima(image)
        up = np.zeros((2, 3, size[0] * size[1]), "float32")
        np.put_along_axis(up, places.reshape(2, 3, -1).astype("int64"), -2 * pooled.reshape(2, 3, -1), 2)
        sizes = "scale: 2" if name == "segnet" else f"upsample_h: {size[0]} upsample_w: {size[1]}"
        text = (
            layer("Pooling", "p", "x", "pooled places", f"pooling_param {{ {pool} }}")
            + layer("Power", "n", "pooled", "changed", "power_param { scale: -2 }")
            + layer("Upsample", "u", "changed places", "y", f"upsample_param {{ {sizes} }}")
        )
        case(name, {"x": image}, text, results={"y": up.reshape(image.shape)})
    text = layer("Pooling", "p", "x", "y places", f"pooling_param {{ {pool} }}")
    case("pool_places", {"x": image}, text, results={"y": pooled, "places": places})
    floored = image[:, :, :4, :6].reshape(2, 3, 2, 2, 3, 2).max((3, 5))
    for name, more in (("floor", "round_mode: FLOOR"), ("no_ceil", "ceil_mode: false")):
        text = layer("Pooling", "p", "x", "y", f"pooling_param {{ {pool} {more} }}")
        case(f"pool_{name}", {"x": image}, text, results={"y": floored})
    rois = np.float32([[0, 0, 0, 31, 47], [0, 8, 4, 40, 60], [0, 17, 21, 25, 29], [0, 60, 60, 70, 75]])
    text = layer(
        "PSROIPooling", "r", "x rois", "y", "psroi_pooling_param { spatial_scale: 0.125 output_dim: 2 group_size: 3 }"
    )
    case("psroi_pooling", {"x": normal(1, 18, 9, 12), "rois": rois}, text)
    image_size = np.float32([[96, 128, 1]])
    scores, deltas = RANDOM.uniform(size=(1, 6, 6, 8)).astype("float32"), normal(1, 12, 6, 8, scale=0.3)
    for name, most, smallest, overlap in (("some", 100, 8, 0.7), ("few", 30, 24, 0.7), ("all", 6000, 8, 0.5)):
        text = (
            "proposal_param { feat_stride: 16 base_size: 16 ratio: 0.5 ratio: 1 ratio: 2 scale: 2 post_nms_topn: 12 "
            f"pre_nms_topn: {most} min_size: {smallest} nms_thresh: {overlap} }}"
        )
        expected = proposals(scores, deltas, image_size[0], (0.5, 1, 2), (2,), smallest, most, 12, overlap)
        case(
            f"proposal_{name}",
            {"s": scores, "d": deltas, "size": image_size},
            layer("Proposal", "p", "s d size", "rois score", text),
            results=dict(zip(("rois", "score"), expected, strict=True)),
        )


def fields_seldom_used() -> None:
    x = normal(2, 6, 4, 5)
    shift = normal(6, 4)
    text = layer("Bias", "b", "x", "y", "bias_param { axis: -3 num_axes: 2 }")
    case("bias_axes", {"x": x}, text, {"b": [shift]}, results={"y": x + shift[:, :, None]})
    text = layer("Scale", "s", "x", "y", "scale_param { axis: 2 num_axes: -1 }")
    factor = normal(4, 5)
    case("scale_axes", {"x": x}, text, {"s": [factor]}, results={"y": x * factor})
    text = layer("Scale", "s", "x", "y", "scale_param { num_axes: 0 bias_term: true }")
    blobs = [np.float32(2.5), np.float32(-1)]
    case("scale_by_one_number", {"x": x}, text, {"s": blobs}, results={"y": x * blobs[0] + blobs[1]})
    other = normal(2, 6, 4, 2)
    text = layer("Concat", "c", "x z", "y", "concat_param { concat_dim: 3 }")
    case("concat_dim", {"x": x, "z": other}, text, results={"y": np.concatenate([x, other], 3)})
    text = layer("Slice", "s", "x", "a y", "slice_param { slice_dim: 2 }")
    case("slice_dim", {"x": x}, text, results={"a": x[:, :, :2], "y": x[:, :, 2:]})
    matrix = normal(20, 3, scale=0.3)
    text = layer(
        "InnerProduct", "f", "x", "y", "inner_product_param { num_output: 3 transpose: true bias_term: false axis: 2 }"
    )
    product = (x.reshape(2, 6, 20).astype("float64") @ matrix).astype("float32")
    case("inner_product_transposed", {"x": x}, text, {"f": [matrix]}, results={"y": product})
    table = normal(5, 4)
    words = RANDOM.integers(0, 5, (3, 2)).astype("float32")
    text = layer("Embed", "e", "x", "y", "embed_param { num_output: 4 input_dim: 5 bias_term: false }")
    case("embed_no_bias", {"x": words}, text, {"e": [table]}, results={"y": table[words.astype(int)]})
    padded = np.pad(x.astype("float64") ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    window = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    text = layer("LRN", "l", "x", "y", "lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 k: 2 }")
    case("lrn_k", {"x": x}, text, results={"y": (x / np.sqrt(2 + 0.2 * window)).astype("float32")})
    text = layer("ReLU6", "r", "x", "y", "relu6_param { threshold: 0.5 }")
    case("relu6_threshold", {"x": x}, text, results={"y": x.clip(0, 0.5)})
    text = layer("Pooling", "p", "x", "y", "pooling_param { pool: AVE kernel_size: 3 pad_h: 0 pad_w: 1 stride: 2 }")
    case("pool_pads", {"x": x}, text)
    # OpenCV takes the size of the image from the second bottom and ignores these fields.
    image = normal(1, 3, 40, 30)
    for name, more, size, step in (
        ("img_size", "img_size: 60", (60, 60), (60 / 3, 60 / 5)),
        ("steps", "img_h: 50 img_w: 35 step_h: 9 step_w: 6", (50, 35), (9, 6)),
    ):
        text = f"prior_box_param {{ min_size: 6 max_size: 11 aspect_ratio: 2 variance: 0.1 {more} }}"
        half = np.float64([[6, 6], [66**0.5, 66**0.5], [72**0.5, 18**0.5], [18**0.5, 72**0.5]]) / 2  # width, height
        centers = (np.stack(np.meshgrid(np.arange(5), np.arange(3)), -1) + 0.5) * step[::-1]
        boxes = np.concatenate([centers[:, :, None] - half, centers[:, :, None] + half], -1) / (size[::-1] * 2)
        expected = np.stack([boxes.ravel(), np.full(boxes.size, 0.1)])[None].astype("float32")
        inputs = {"x": normal(1, 4, 3, 5), "image": image}
        case(f"prior_box_{name}", inputs, layer("PriorBox", "p", "x image", "y", text), results={"y": expected})
    text = layer("Upsample", "u", "x", "y", "upsample_param { scale_h: 2 scale_w: 3 }")
    case("upsample_sides", {"x": x}, text, results={"y": x.repeat(2, 2).repeat(3, 3)})
    odd = normal(1, 2, 5, 7)
    pooled, places = maxima(odd)
    up = np.zeros((1, 2, 35), "float32")
    np.put_along_axis(up, places.reshape(1, 2, -1).astype("int64"), pooled.reshape(1, 2, -1), 2)
    text = layer("Upsample", "u", "x at", "y", "upsample_param { scale: 2 pad_out_h: true pad_out_w: true }")
    case("upsample_pad_out", {"x": pooled, "at": places}, text, results={"y": up.reshape(odd.shape)})
    boxes = np.float32([[0, 0, 0, 6, 7], [0, 2, 1, 9, 8], [0, 3, 3, 4, 5]])
    text = layer("ROIPooling", "r", "x rois", "r", "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.5 }")
    text += layer("InnerProduct", "f", "r", "y", "inner_product_param { num_output: 4 }")
    weights = {"f": [normal(4, 18), normal(4)]}
    case("roi_pooling_and_more", {"x": normal(1, 3, 10, 12), "rois": boxes}, text, weights)
    for name, is_softmax in (("region", True), ("region_plain", False)):
        grid = normal(2, 2 * 8, 3, 4)
        parts = grid.reshape(2, 2, 8, 3, 4).astype("float64")
        parts[:, :, [0, 1, 4]] = 1 / (1 + np.exp(-parts[:, :, [0, 1, 4]]))
        if is_softmax:
            parts[:, :, 5:] = np.exp(parts[:, :, 5:]) / np.exp(parts[:, :, 5:]).sum(2, keepdims=True)
        parameters = f"classes: 3 coords: 4 num: 2 softmax: {str(is_softmax).lower()}"
        text = layer("Region", "r", "x", "y", f"region_param {{ {parameters} }}")
        case(name, {"x": grid}, text, results={"y": parts.reshape(grid.shape).astype("float32")})


def corners_on_corners(x: np.ndarray, height: int, width: int) -> np.ndarray:
    """Computes DeepLab's interp.cpp: bilinear with aligned corners."""
    for axis, size in ((2, height), (3, width)):
        place = np.arange(size) * ((x.shape[axis] - 1) / (size - 1) if size > 1 else 0)
        low = np.minimum(place.astype(int), x.shape[axis] - 1)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        part = (place - low).reshape([-1 if i == axis else 1 for i in range(4)])
        x = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return x.astype("float32")


def maxima(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the maximum of each 2x2 window, with the size rounded up, and its index in the image."""
    n, c, h, w = x.shape
    values, places = np.empty((2, n, c, -(-h // 2), -(-w // 2)), "float32")
    for at in np.ndindex(values.shape):
        window = x[at[:2]][2 * at[2] : 2 * at[2] + 2, 2 * at[3] : 2 * at[3] + 2]
        i, j = np.unravel_index(window.argmax(), window.shape)
        values[at], places[at] = window[i, j], (2 * at[2] + i) * w + 2 * at[3] + j
    return values, places


def kept_boxes(boxes: np.ndarray, overlap: float, one: float) -> list[int]:
    """Returns the boxes that non-maximum suppression keeps, where `boxes` are sorted by score. `one` is 1 where a
    box from 0 to 15 is 16 wide."""
    boxes = boxes.astype("float64")
    kept: list[int] = []

    def area(box: np.ndarray) -> float:
        return max(box[2] - box[0] + one, 0) * max(box[3] - box[1] + one, 0)

    def share(a: np.ndarray, b: np.ndarray) -> float:
        both = area(np.concatenate([np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])]))
        return both / (area(a) + area(b) - both) if both else 0

    for i, box in enumerate(boxes):
        if all(share(box, boxes[k]) <= overlap for k in kept):
            kept.append(i)
    return kept


def proposals(scores, deltas, image, ratios, scales, smallest, most, wanted, overlap):
    """Computes proposal_layer.py and generate_anchors.py of py-faster-rcnn, with base_size and feat_stride 16."""
    anchors = []
    for ratio in ratios:
        width = np.round(np.sqrt(256 / ratio))
        sides = np.array([width, np.round(width * ratio)])
        anchors += [np.concatenate([7.5 - (sides * s - 1) / 2, 7.5 + (sides * s - 1) / 2]) for s in scales]
    h, w, count = *scores.shape[2:], len(anchors)
    shifts = np.stack(np.meshgrid(np.arange(w) * 16, np.arange(h) * 16), -1)
    boxes = (np.array(anchors) + np.concatenate([shifts, shifts], -1)[:, :, None]).reshape(-1, 4)
    moved = deltas[0].reshape(count, 4, h, w).transpose(2, 3, 0, 1).reshape(-1, 4).astype("float64")
    certain = scores[0, count:].transpose(1, 2, 0).ravel()
    extent = boxes[:, 2:] - boxes[:, :2] + 1
    center = moved[:, :2] * extent + boxes[:, :2] + extent / 2
    half = np.exp(moved[:, 2:]) * extent / 2
    limit = image[[1, 0]] - 1
    boxes = np.concatenate([(center - half).clip(0, limit), (center + half).clip(0, limit)], 1)
    large = (boxes[:, 2:] - boxes[:, :2] + 1 >= smallest * image[2]).all(1)
    boxes, certain = boxes[large], certain[large]
    order = np.argsort(-certain, kind="stable")[:most]
    kept = order[kept_boxes(boxes[order], overlap, 1)][:wanted]
    assert len(kept) > 6
    return np.pad(boxes[kept], ((0, 0), (1, 0))).astype("float32"), certain[kept][:, None]


def detections(location, scores, priors, classes, options) -> np.ndarray:
    """Computes SSD's detection_output_layer.cpp: class by class, the best score first."""
    boxes = priors.shape[2] // 4
    corners, variances = priors[0].reshape(2, boxes, 1, 4).astype("float64")
    found = location.reshape(len(location), boxes, 1 if options["share"] else classes, 4).astype("float64")
    found = found if options["in_target"] else found * variances
    extent = corners[..., 2:] - corners[..., :2]
    if options["code"] == "CORNER":
        found = corners + found
    elif options["code"] == "CORNER_SIZE":
        found = corners + found * np.concatenate([extent, extent], -1)
    else:
        center = found[..., :2] * extent + (corners[..., :2] + corners[..., 2:]) / 2
        half = np.exp(found[..., 2:]) * extent / 2
        found = np.concatenate([center - half, center + half], -1)
    rows = []
    for image, certain in enumerate(scores.reshape(len(scores), boxes, classes)):
        chosen = []
        for label in set(range(classes)) - {options["background"]}:
            mine = found[image, :, 0 if options["share"] else label]
            order = np.argsort(-certain[:, label], kind="stable")
            order = order[certain[order, label] > options["least"]][: options["top_k"]]
            kept = order[kept_boxes(mine[order], options["overlap"], 0)] if len(order) else []
            chosen += [(label, certain[i, label], *mine[i]) for i in kept]
        best = sorted(range(len(chosen)), key=lambda i: -chosen[i][1])[: options["keep"]]
        rows += [(image, *chosen[i]) for i in sorted(best)]
    rows = rows or [(image, -1, -1, -1, -1, -1, -1) for image in range(len(scores))]
    return np.float32(rows)[None, None]


def detectors_in_the_order_of_caffe() -> None:
    classes, boxes = 4, 15
    low = RANDOM.uniform(0, 0.7, size=(boxes, 2))
    priors = np.concatenate([low, low + RANDOM.uniform(0.05, 0.3, size=(boxes, 2))], 1).reshape(1, 1, -1)
    variances = np.tile([0.1, 0.1, 0.2, 0.2], boxes).reshape(1, 1, -1)
    priors = np.concatenate([priors, variances], axis=1).astype("float32")
    usual = {"code": "CENTER_SIZE", "share": True, "in_target": False, "background": 0, "top_k": 400, "keep": 200}
    usual |= {"least": 0.15, "overlap": 0.45}
    for name, images, changed in (
        ("usual", 1, {}),
        ("of_two_images", 2, {"keep": 9}),
        ("few", 1, {"keep": 5, "top_k": 6}),
        ("of_no_background", 1, {"background": -1}),
        ("of_another_background", 1, {"background": 2}),
        ("of_each_class", 1, {"share": False}),
        ("in_target", 1, {"in_target": True}),
        ("by_corners", 1, {"code": "CORNER"}),
        ("by_corners_and_sizes", 2, {"code": "CORNER_SIZE"}),
        ("none", 2, {"least": 1.5}),
        ("some_of_one_image", 2, {"least": 0.6}),
    ):
        options = usual | changed
        scores = RANDOM.dirichlet(np.full(classes, 0.7), size=(images, boxes)).astype("float32")
        if name == "some_of_one_image":
            scores[1] = 1 / classes
        location = normal(images, boxes * 4 * (1 if options["share"] else classes), scale=0.5)
        expected = detections(location, scores, priors, classes, options)
        assert (expected[0, 0, 0, 1] < 0) == (name == "none")
        text = (
            f"num_classes: {classes} share_location: {str(options['share']).lower()} "
            f"background_label_id: {options['background']} code_type: {options['code']} "
            f"nms_param {{ nms_threshold: {options['overlap']} top_k: {options['top_k']} }} "
            f"confidence_threshold: {options['least']} keep_top_k: {options['keep']} "
            f"variance_encoded_in_target: {str(options['in_target']).lower()}"
        )
        case(
            f"ordered_detection_{name}",
            {"loc": location, "conf": scores.reshape(images, -1), "prior": priors},
            layer("DetectionOutput", "d", "loc conf prior", "y", f"detection_output_param {{ {text} }}"),
            results={"y": expected},
        )


def detector(name: str, boxes: int, parameters: str, top_k: int = 40, code: str = "CENTER_SIZE") -> None:
    classes = 4
    corners = np.sort(RANDOM.uniform(size=(boxes, 2, 2)), axis=1).reshape(boxes, 4)
    corners[:, 2:] += 0.05
    priors = np.concatenate([corners.reshape(1, 1, -1), np.tile([0.1, 0.1, 0.2, 0.2], boxes).reshape(1, 1, -1)], axis=1)
    scores = RANDOM.dirichlet(np.ones(classes), size=boxes).astype("float32")
    keep = "" if "keep_top_k" in parameters else "keep_top_k: 50"
    text = (
        f"detection_output_param {{ num_classes: {classes} share_location: true background_label_id: 0 "
        f"nms_param {{ nms_threshold: 0.45 top_k: {top_k} }} confidence_threshold: 0.2 "
        f"{keep} {parameters.replace('code_type: CORNER', '')} code_type: {code} }}"
    )
    case(
        name,
        {"loc": normal(1, boxes * 4, scale=0.5), "conf": scores.reshape(1, -1), "prior": priors.astype("float32")},
        layer("DetectionOutput", "d", "loc conf prior", "y", text),
    )


def old_format() -> None:
    """Adds a network in the V1 format: `layers` with an enumeration of types, input_dim, and a data layer for
    training."""
    text = re.sub(
        r"\s+",
        " ",
        """layers { name: "c" type: CONVOLUTION bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 } }
        layers { name: "r" type: RELU bottom: "c" top: "c" }
        layers { name: "p" type: POOLING bottom: "c" top: "p" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
        layers { name: "f" type: INNER_PRODUCT bottom: "p" top: "f" inner_product_param { num_output: 5 } }
        layers { name: "s" type: SOFTMAX bottom: "f" top: "y" }""",
    )
    x = normal(1, 3, 8, 8)
    case("old_format", {"x": x}, text, {"c": [normal(4, 3, 3, 3), normal(4)], "f": [normal(5, 36), normal(5)]})


def main() -> int:
    parts = [convolutions, pools, elementwise, shapes, detection, old_format]
    for part in [*parts, other_branches, detectors_in_the_order_of_caffe, fields_seldom_used]:
        part()
    np.savez_compressed(sys.argv[1], **ARRAYS)
    print(f"{len({key.split('/')[0] for key in ARRAYS})} cases by OpenCV {cv2.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
