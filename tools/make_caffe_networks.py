# make_caffe_networks.py - writes well-known Caffe networks at full size with seeded weights, and tests Graft with them.
"""Usage: python tools/make_caffe_networks.py FOLDER [NAME ...] [--engines] [--document]

Needs NumPy, ONNX Runtime and an OpenCV 4 that reads Caffe. For each network (all, unless named): writes FOLDER/NAME.prototxt
and .caffemodel, converts them with `graft convert` with its proofs on, and compares every output of the converted network,
in ONNX Runtime and in `graft run`, with OpenCV's Caffe reader; what OpenCV does not read is judged by NumPy, from the
definition of the layer. --engines also builds each with the TensorRT that `graft build` finds. The table goes to standard
output, with --document into docs/import.md as well. Exit code 1 if any output differs by more than 1e-5 of its largest
value. GRAFT_BIN names the program, GRAFT_PLUGIN_LIBRARY the plugin library where it is not beside the program.

The topologies are those of the papers and of the deploy files of their authors; everything here is written from them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import subprocess
import sys

import cv2
import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("GRAFT_BIN", str(ROOT / "build" / "bin" / "graft"))
PAGE = ROOT / "docs" / "import.md"
ALLOWED = 1e-5


def varint(number: int) -> bytes:
    done = bytearray()
    while number > 127:
        done.append(number & 127 | 128)
        number >>= 7
    return bytes([*done, number])


def field(number: int, *parts: bytes) -> bytes:
    """Returns a length-delimited field of protobuf; a general writer would be too slow for that many weights."""
    return varint(number << 3 | 2) + varint(sum(map(len, parts))) + b"".join(parts)


class Network:
    """Builds the text and the weights of a network, layer by layer. Blobs have the names of their layers."""

    def __init__(self, name: str, seed: int, **inputs: tuple[int, ...]):
        self.random = np.random.default_rng(seed)
        self.inputs = inputs
        self.channels = {blob: shape[1] for blob, shape in inputs.items()}
        self.text = f'name: "{name}"\n'
        self.weights: list[bytes] = []
        self.layers = 0
        for blob, shape in inputs.items():
            dims = " ".join(f"dim: {size}" for size in shape)
            self.layer("Input", blob, "", f"input_param {{ shape {{ {dims} }} }}")

    def layer(self, kind: str, name: str, bottoms: str, parameters: str = "", blobs: tuple = (), top: str = "") -> str:
        top = top or name
        ends = "".join(f'  bottom: "{bottom}"\n' for bottom in bottoms.split()) + "".join(
            f'  top: "{each}"\n' for each in top.split()
        )
        self.text += (
            f'layer {{\n  name: "{name}"\n  type: "{kind}"\n{ends}'
            + (f"  {parameters}\n" if parameters else "")
            + "}\n"
        )
        self.layers += 1
        first = bottoms.split()[0] if bottoms else ""
        self.channels.setdefault(top.split()[0], self.channels.get(first, 0))
        if blobs:
            data = [
                field(
                    7,
                    field(7, field(1, *map(varint, blob.shape))),
                    field(5, np.ascontiguousarray(blob, "<f4").tobytes()),
                )
                for blob in blobs
            ]
            self.weights.append(field(100, field(1, name.encode()), field(2, kind.encode()), *data))
        return top.split()[0]

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def convolution(
        self,
        name: str,
        bottom: str,
        outputs: int,
        kernel: int,
        more: str = "",
        group: int = 1,
        gain: float = 2.0,
        bias: bool = True,
        kind: str = "Convolution",
    ) -> str:
        """Adds a convolution with weights after He et al. 2015, so that values neither vanish nor grow from layer to
        layer."""
        inputs = self.channels[bottom]
        shape = (
            (outputs, inputs // group, kernel, kernel)
            if kind == "Convolution"
            else (inputs, outputs // group, kernel, kernel)
        )
        blobs = [self.normal(*shape, scale=np.sqrt(gain / (inputs // group * kernel * kernel)))]
        if bias:
            blobs.append(self.normal(outputs, scale=0.1))
        text = f"num_output: {outputs} kernel_size: {kernel}" + ("" if bias else " bias_term: false")
        text += (f" group: {group}" if group > 1 else "") + (f" {more}" if more else "")
        self.channels[name] = outputs
        return self.layer(kind, name, bottom, f"convolution_param {{ {text} }}", tuple(blobs))

    def relu(self, blob: str, slope: float = 0) -> str:
        return self.layer(
            "ReLU", f"relu_{blob}", blob, f"relu_param {{ negative_slope: {slope} }}" if slope else "", top=blob
        )

    def rectified(self, *arguments, **named) -> str:
        return self.relu(self.convolution(*arguments, **named))

    def batch_norm(self, blob: str, eps: float = 1e-5) -> str:
        """Adds BatchNorm and Scale, both in place; statistics are stored as sums and a count, as in Caffe."""
        n, count = self.channels[blob], np.float32(999.98)
        mean, variance = self.normal(n, scale=0.2), self.random.uniform(0.5, 1.5, n).astype("float32")
        self.layer(
            "BatchNorm",
            f"bn_{blob}",
            blob,
            f"batch_norm_param {{ eps: {eps} }}",
            (mean * count, variance * count, np.array([count])),
            top=blob,
        )
        return self.layer(
            "Scale",
            f"scale_{blob}",
            blob,
            "scale_param { bias_term: true }",
            (self.random.uniform(0.7, 1.2, n), self.normal(n, scale=0.1)),
            top=blob,
        )

    def pool(self, name: str, bottom: str, kind: str, parameters: str) -> str:
        return self.layer("Pooling", name, bottom, f"pooling_param {{ pool: {kind} {parameters} }}")

    def full(self, name: str, bottom: str, inputs: int, outputs: int, gain: float = 2.0) -> str:
        blobs = (self.normal(outputs, inputs, scale=np.sqrt(gain / inputs)), self.normal(outputs, scale=0.1))
        self.channels[name] = outputs
        return self.layer("InnerProduct", name, bottom, f"inner_product_param {{ num_output: {outputs} }}", blobs)

    def dropped(self, blob: str) -> str:
        return self.layer("Dropout", f"drop_{blob}", self.relu(blob), "dropout_param { dropout_ratio: 0.5 }", top=blob)

    def concat(self, name: str, *bottoms: str, axis: int = 1) -> str:
        self.channels[name] = sum(self.channels[bottom] for bottom in bottoms)
        return self.layer("Concat", name, " ".join(bottoms), "" if axis == 1 else f"concat_param {{ axis: {axis} }}")


def lenet() -> Network:
    """LeCun et al. 1998, as in Caffe's example of MNIST."""
    net = Network("LeNet", 1, data=(1, 1, 28, 28))
    x = net.pool("pool1", net.convolution("conv1", "data", 20, 5), "MAX", "kernel_size: 2 stride: 2")
    x = net.pool("pool2", net.convolution("conv2", x, 50, 5), "MAX", "kernel_size: 2 stride: 2")
    net.layer("Softmax", "prob", net.full("ip2", net.relu(net.full("ip1", x, 800, 500)), 500, 10, 1.0))
    return net


def alexnet() -> Network:
    """Krizhevsky et al. 2012: convolutions in two groups, normalization between channels."""
    lrn = "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }"
    net = Network("AlexNet", 2, data=(1, 3, 227, 227))
    x = net.layer("LRN", "norm1", net.rectified("conv1", "data", 96, 11, "stride: 4"), lrn)
    x = net.pool("pool1", x, "MAX", "kernel_size: 3 stride: 2")
    x = net.layer("LRN", "norm2", net.rectified("conv2", x, 256, 5, "pad: 2", group=2), lrn)
    x = net.pool("pool2", x, "MAX", "kernel_size: 3 stride: 2")
    x = net.rectified("conv3", x, 384, 3, "pad: 1")
    x = net.rectified("conv4", x, 384, 3, "pad: 1", group=2)
    x = net.rectified("conv5", x, 256, 3, "pad: 1", group=2)
    x = net.pool("pool5", x, "MAX", "kernel_size: 3 stride: 2")
    x = net.dropped(net.full("fc7", net.dropped(net.full("fc6", x, 9216, 4096)), 4096, 4096))
    net.layer("Softmax", "prob", net.full("fc8", x, 4096, 1000, 1.0))
    return net


def vgg_body(net: Network, pad_of_first: int = 1) -> dict[str, str]:
    pools, x = {}, "data"
    for block, (outputs, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1):
        for number in range(1, count + 1):
            pad = pad_of_first if block == number == 1 else 1
            x = net.rectified(f"conv{block}_{number}", x, outputs, 3, f"pad: {pad}")
        x = pools[f"pool{block}"] = net.pool(f"pool{block}", x, "MAX", "kernel_size: 2 stride: 2")
    return pools


def vgg16() -> Network:
    """Simonyan and Zisserman 2014."""
    net = Network("VGG_16", 3, data=(1, 3, 224, 224))
    x = vgg_body(net)["pool5"]
    x = net.dropped(net.full("fc7", net.dropped(net.full("fc6", x, 25088, 4096)), 4096, 4096))
    net.layer("Softmax", "prob", net.full("fc8", x, 4096, 1000, 1.0))
    return net


def googlenet() -> Network:
    """Szegedy et al. 2014: pools that round up, nine modules of four branches."""
    net = Network("GoogleNet", 4, data=(1, 3, 224, 224))
    lrn = "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }"
    x = net.pool("pool1", net.rectified("conv1", "data", 64, 7, "pad: 3 stride: 2"), "MAX", "kernel_size: 3 stride: 2")
    x = net.rectified("conv2_reduce", net.layer("LRN", "norm1", x, lrn), 64, 1)
    x = net.layer("LRN", "norm2", net.rectified("conv2", x, 192, 3, "pad: 1"), lrn)
    x = net.pool("pool2", x, "MAX", "kernel_size: 3 stride: 2")
    modules = {
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
        "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
        "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
    }  # fmt: skip
    for module, (one, three_reduce, three, five_reduce, five, projected) in modules.items():
        prefix = f"inception_{module}/"
        pooled = net.pool(f"{prefix}pool", x, "MAX", "kernel_size: 3 stride: 1 pad: 1")
        x = net.concat(
            f"{prefix}output",
            net.rectified(f"{prefix}1x1", x, one, 1),
            net.rectified(f"{prefix}3x3", net.rectified(f"{prefix}3x3_reduce", x, three_reduce, 1), three, 3, "pad: 1"),
            net.rectified(f"{prefix}5x5", net.rectified(f"{prefix}5x5_reduce", x, five_reduce, 1), five, 5, "pad: 2"),
            net.rectified(f"{prefix}pool_proj", pooled, projected, 1),
        )
        if module in ("3b", "4e"):
            x = net.pool(f"pool{module[0]}", x, "MAX", "kernel_size: 3 stride: 2")
    x = net.pool("pool5", x, "AVE", "kernel_size: 7 stride: 1")
    x = net.layer("Dropout", "drop", x, "dropout_param { dropout_ratio: 0.4 }", top=x)
    net.layer("Softmax", "prob", net.full("classifier", x, 1024, 1000, 1.0))
    return net


def resnet50() -> Network:
    """He et al. 2015: BatchNorm and Scale in place, sums of two branches."""
    net = Network("ResNet-50", 5, data=(1, 3, 224, 224))

    def normalized(name: str, bottom: str, outputs: int, kernel: int, more: str = "", gain: float = 2.0) -> str:
        return net.batch_norm(net.convolution(name, bottom, outputs, kernel, more, gain=gain, bias=False))

    x = net.pool(
        "pool1", net.relu(normalized("conv1", "data", 64, 7, "pad: 3 stride: 2")), "MAX", "kernel_size: 3 stride: 2"
    )
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=2):
        for number in range(count):
            name = f"res{stage}{'abcdef'[number]}"
            stride = "stride: 2" if number == 0 and stage > 2 else ""
            side = normalized(f"{name}_branch1", x, 4 * width, 1, stride, gain=1.0) if number == 0 else x
            y = net.relu(normalized(f"{name}_branch2a", x, width, 1, stride))
            y = net.relu(normalized(f"{name}_branch2b", y, width, 3, "pad: 1"))
            y = normalized(f"{name}_branch2c", y, 4 * width, 1, gain=0.5)
            x = net.relu(net.layer("Eltwise", name, f"{side} {y}", "eltwise_param { operation: SUM }"))
    x = net.pool("pool5", x, "AVE", "kernel_size: 7 stride: 1")
    net.layer("Softmax", "prob", net.full("fc1000", x, 2048, 1000, 0.2))
    return net


def squeezenet() -> Network:
    """Iandola et al. 2016, version 1.1: no fully connected layer."""
    net = Network("SqueezeNet", 6, data=(1, 3, 227, 227))
    x = net.pool("pool1", net.rectified("conv1", "data", 64, 3, "stride: 2"), "MAX", "kernel_size: 3 stride: 2")
    for number, (squeezed, expanded) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), start=2
    ):
        name = f"fire{number}/"
        y = net.rectified(f"{name}squeeze1x1", x, squeezed, 1)
        x = net.concat(
            f"{name}concat",
            net.rectified(f"{name}expand1x1", y, expanded, 1),
            net.rectified(f"{name}expand3x3", y, expanded, 3, "pad: 1"),
        )
        if number in (3, 5):
            x = net.pool(f"pool{number}", x, "MAX", "kernel_size: 3 stride: 2")
    x = net.layer("Dropout", "drop9", x, "dropout_param { dropout_ratio: 0.5 }", top=x)
    net.layer("Softmax", "prob", net.pool("pool10", net.rectified("conv10", x, 1000, 1), "AVE", "global_pooling: true"))
    return net


def mobilenet_ssd() -> Network:
    """Howard et al. 2017 as the backbone of Liu et al. 2016: depthwise convolutions, six heads, detected boxes."""
    net = Network("MobileNet-SSD", 7, data=(1, 3, 300, 300))

    def normalized(name: str, bottom: str, outputs: int, kernel: int, more: str = "", group: int = 1) -> str:
        return net.relu(net.batch_norm(net.convolution(name, bottom, outputs, kernel, more, group, bias=False)))

    x = normalized("conv0", "data", 32, 3, "pad: 1 stride: 2")
    kept = {}
    blocks = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
    for number, (outputs, stride) in enumerate(blocks, start=1):
        inputs = net.channels[x]
        x = normalized(f"conv{number}/dw", x, inputs, 3, f"pad: 1 stride: {stride}", group=inputs)
        x = kept[number] = normalized(f"conv{number}", x, outputs, 1)
    for number, (narrow, outputs) in enumerate(((256, 512), (128, 256), (128, 256), (64, 128)), start=14):
        x = normalized(f"conv{number}_1", x, narrow, 1)
        x = kept[number] = normalized(f"conv{number}_2", x, outputs, 3, "pad: 1 stride: 2")
    sizes = (60, 105, 150, 195, 240, 285, 300)
    parts = {"loc": [], "conf": [], "priorbox": []}
    for place, number in enumerate((11, 13, 14, 15, 16, 17)):
        first = place == 0
        boxes = 3 if first else 6
        name = f"conv{number}_mbox_"
        for what, each, gain in (("loc", 4, 1.0), ("conf", 21, 4.0)):
            y = net.convolution(f"{name}{what}", kept[number], boxes * each, 1, gain=gain)
            y = net.layer("Permute", f"{name}{what}_perm", y, "permute_param { order: 0 order: 2 order: 3 order: 1 }")
            parts[what].append(net.layer("Flatten", f"{name}{what}_flat", y, "flatten_param { axis: 1 }"))
        ratios = "aspect_ratio: 2.0" if first else f"max_size: {sizes[place + 1]} aspect_ratio: 2.0 aspect_ratio: 3.0"
        parts["priorbox"].append(
            net.layer(
                "PriorBox",
                f"{name}priorbox",
                f"{kept[number]} data",
                f"prior_box_param {{ min_size: {sizes[place]} {ratios} flip: true clip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 offset: 0.5 }}",
            )  # fmt: skip
        )
    location = net.concat("mbox_loc", *parts["loc"])
    scores = net.layer(
        "Reshape",
        "mbox_conf_reshape",
        net.concat("mbox_conf", *parts["conf"]),
        "reshape_param { shape { dim: 0 dim: -1 dim: 21 } }",
    )
    scores = net.layer("Softmax", "mbox_conf_softmax", scores, "softmax_param { axis: 2 }")
    scores = net.layer("Flatten", "mbox_conf_flatten", scores, "flatten_param { axis: 1 }")
    priors = net.concat("mbox_priorbox", *parts["priorbox"], axis=2)
    net.layer(
        "DetectionOutput", "detection_out", f"{location} {scores} {priors}",
        "detection_output_param { num_classes: 21 share_location: true background_label_id: 0 nms_param { nms_threshold: 0.45 top_k: 100 } "
        "code_type: CENTER_SIZE keep_top_k: 100 confidence_threshold: 0.25 }",
    )  # fmt: skip
    return net


def fcn8s() -> Network:
    """Long et al. 2015 on VGG-16 with a border of 100: scores of three scales, enlarged, cropped and added."""
    net = Network("FCN-8s", 8, data=(1, 3, 500, 500))
    pools = vgg_body(net, pad_of_first=100)
    x = net.dropped(net.convolution("fc6", pools["pool5"], 4096, 7))
    x = net.dropped(net.convolution("fc7", x, 4096, 1))
    x = net.convolution("score_fr", x, 21, 1, gain=1.0)

    def enlarged(name: str, bottom: str, kernel: int, stride: int) -> str:
        # A trained layer interpolates: each output reads about (kernel / stride)^2 inputs.
        gain = 2.0 * kernel * kernel / (kernel / stride) ** 2
        return net.convolution(
            name, bottom, 21, kernel, f"stride: {stride}", gain=gain, bias=False, kind="Deconvolution"
        )

    for pool, offset in (("pool4", 5), ("pool3", 9)):
        x = enlarged(f"upscore_{pool}", x, 4, 2)
        score = net.convolution(f"score_{pool}", pools[pool], 21, 1, gain=1.0)
        score = net.layer("Crop", f"score_{pool}c", f"{score} {x}", f"crop_param {{ axis: 2 offset: {offset} }}")
        x = net.layer("Eltwise", f"fuse_{pool}", f"{x} {score}", "eltwise_param { operation: SUM }")
    net.layer("Crop", "score", f"{enlarged('upscore8', x, 16, 8)} data", "crop_param { axis: 2 offset: 31 }")
    return net


def sppnet() -> Network:
    """He et al. 2014: five convolutions after Zeiler and Fergus, then a pyramid in place of the last pool."""
    lrn = "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }"
    net = Network("SPP-net", 9, data=(1, 3, 224, 224))
    x = net.pool("pool1", net.rectified("conv1", "data", 96, 7, "stride: 2"), "MAX", "kernel_size: 3 stride: 2")
    x = net.rectified("conv2", net.layer("LRN", "norm1", x, lrn), 256, 5, "stride: 2")
    x = net.layer("LRN", "norm2", net.pool("pool2", x, "MAX", "kernel_size: 3 stride: 2"), lrn)
    for number, outputs in enumerate((384, 384, 256), start=3):
        x = net.rectified(f"conv{number}", x, outputs, 3, "pad: 1")
    x = net.layer("SPP", "spp", x, "spp_param { pyramid_height: 3 pool: MAX }")
    x = net.dropped(net.full("fc7", net.dropped(net.full("fc6", x, 21 * 256, 4096)), 4096, 4096))
    net.layer("Softmax", "prob", net.full("fc8", x, 4096, 1000, 1.0))
    return net


def yolov2() -> Network:
    """Redmon and Farhadi 2016: Darknet-19 with leaky ReLU, a second path through Reorg, Region at the end."""
    net = Network("YOLOv2", 10, data=(1, 3, 416, 416))

    def leaky(name: str, bottom: str, outputs: int, kernel: int) -> str:
        more = "pad: 1" if kernel == 3 else ""
        return net.relu(net.batch_norm(net.convolution(name, bottom, outputs, kernel, more, bias=False)), 0.1)

    x, number, passed = "data", 0, ""
    for outputs_and_kernels in (
        ((32, 3),), ((64, 3),), ((128, 3), (64, 1), (128, 3)), ((256, 3), (128, 1), (256, 3)),
        ((512, 3), (256, 1), (512, 3), (256, 1), (512, 3)), ((1024, 3), (512, 1), (1024, 3), (512, 1), (1024, 3), (1024, 3), (1024, 3)),
    ):  # fmt: skip
        if number:
            passed, x = x, net.pool(f"pool{number}", x, "MAX", "kernel_size: 2 stride: 2")
        for outputs, kernel in outputs_and_kernels:
            number += 1
            x = leaky(f"conv{number}", x, outputs, kernel)
    side = net.layer("Reorg", "reorg", leaky("conv21", passed, 64, 1), "reorg_param { stride: 2 }")
    net.channels[side] = 256
    x = net.convolution("conv23", leaky("conv22", net.concat("route", side, x), 1024, 3), 425, 1, gain=1.0)
    net.layer("Region", "region", x, "region_param { classes: 80 coords: 4 num: 5 softmax: true }")
    return net


def pyramid(x: np.ndarray) -> np.ndarray:
    """Computes spp_layer.cpp with three levels of maxima."""
    rows = []
    for n in (1, 2, 4):
        kernel = [-(-size // n) for size in x.shape[2:]]
        pad = [(kernel[i] * n - x.shape[2 + i] + 1) // 2 for i in range(2)]
        wide = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2), constant_values=-np.inf)
        cells = [
            wide[:, :, i * kernel[0] : (i + 1) * kernel[0], j * kernel[1] : (j + 1) * kernel[1]].max((2, 3))
            for i in range(n)
            for j in range(n)
        ]
        rows.append(np.stack(cells, 2).reshape(len(x), -1))
    return np.concatenate(rows, 1)


def region(x: np.ndarray) -> np.ndarray:
    """Computes region_layer.c of Darknet: 5 boxes of x, y, w, h, confidence and 80 classes."""
    y = x.reshape(len(x), 5, 85, *x.shape[2:]).astype("float64")
    y[:, :, [0, 1, 4]] = 1 / (1 + np.exp(-y[:, :, [0, 1, 4]]))
    classes = np.exp(y[:, :, 5:] - y[:, :, 5:].max(2, keepdims=True))
    y[:, :, 5:] = classes / classes.sum(2, keepdims=True)
    return y.reshape(x.shape)


@dataclasses.dataclass
class Case:
    make: object
    outputs: tuple[str, ...]
    # Layers that OpenCV does not read: the layer's top, its bottom, and its result by NumPy. Later layers, if any, read
    # this result through an input of OpenCV's network.
    by_numpy: tuple = ()


CASES = {
    "lenet": Case(lenet, ("prob",)),
    "alexnet": Case(alexnet, ("prob",)),
    "vgg16": Case(vgg16, ("prob",)),
    "googlenet": Case(googlenet, ("prob",)),
    "resnet50": Case(resnet50, ("prob",)),
    "squeezenet": Case(squeezenet, ("prob",)),
    "mobilenet_ssd": Case(mobilenet_ssd, ("detection_out", "mbox_loc", "mbox_conf_flatten", "mbox_priorbox")),
    "fcn8s": Case(fcn8s, ("score",)),
    "sppnet": Case(sppnet, ("prob", "spp"), ("spp", "conv5", pyramid)),
    "yolov2": Case(yolov2, ("region", "conv23"), ("region", "conv23", region)),
}


def forward(text: str, weights: pathlib.Path, inputs: dict[str, np.ndarray], outputs: list[str]) -> list[np.ndarray]:
    """Returns OpenCV's results. OpenCV returns the output of a layer, not a blob, so an identity layer follows each
    blob."""
    for blob in outputs:
        text += f'layer {{ name: "probe_{blob}" type: "Power" bottom: "{blob}" top: "probe_{blob}" }}\n'
    network = cv2.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8), np.fromfile(weights, np.uint8))
    for name, value in inputs.items():
        network.setInput(value, name)
    return [network.forward(f"probe_{blob}") for blob in outputs]


def expected_results(
    case: Case, text: str, weights: pathlib.Path, inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    if not case.by_numpy:
        return dict(zip(case.outputs, forward(text, weights, inputs, list(case.outputs)), strict=True))
    top, bottom, compute = case.by_numpy
    start, rest = re.split(rf'layer {{\n  name: "{top}"\n[^}}]*}}\n}}\n', text)
    found = {bottom: forward(start, weights, inputs, [bottom])[0]}
    found[top] = compute(found[bottom])
    others = [blob for blob in case.outputs if blob not in found]
    if others:
        dims = " ".join(f"dim: {size}" for size in found[top].shape)
        rest = f'layer {{ name: "{top}" type: "Input" top: "{top}" input_param {{ shape {{ {dims} }} }} }}\n' + rest
        found |= zip(others, forward(rest, weights, {top: found[top]}, others), strict=True)
    return {blob: found[blob] for blob in case.outputs}


def by_score(rows: np.ndarray) -> np.ndarray:
    """Sorts boxes by score, as OpenCV lists them; Caffe lists them by class."""
    rows = rows.reshape(-1, 7)
    rows = rows[rows[:, 2] > 0]
    return rows[np.argsort(-rows[:, 2], kind="stable")]


def largest_error(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    worst = 0.0
    for blob, right in expected.items():
        result = found[blob]
        if blob == "detection_out":
            result, right = by_score(result), by_score(right)
            if len(right) < 10:
                sys.exit(f"{len(right)} boxes found: too few to judge by")
        if result.shape != right.shape or not np.isfinite(result).all():
            sys.exit(f"{blob}: {result.shape} in place of {right.shape}, or not finite")
        scale = float(np.abs(right).max())
        if not np.std(right) > 1e-3 * scale:
            sys.exit(f"{blob}: all of its values are alike, nothing could be told from it")
        worst = max(worst, float(np.abs(result - right).max()) / scale)
    return worst


def graft(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)


def engine_of(converted: pathlib.Path) -> str:
    library = os.environ.get("GRAFT_PLUGIN_LIBRARY")
    plugins = ["--plugin-lib", library] if library else []
    done = graft("build", converted, "-o", converted.with_suffix(".engine"), "--target", "sm120", "--json", *plugins)
    if done.returncode == 0:
        return "built"
    print(done.stderr, done.stdout, file=sys.stderr)
    return f"not built (exit code {done.returncode})"


def judge(name: str, folder: pathlib.Path, engines: bool) -> dict[str, object]:
    case = CASES[name]
    network = case.make()
    text, weights = folder / f"{name}.prototxt", folder / f"{name}.caffemodel"
    text.write_text(network.text)
    with weights.open("wb") as file:
        file.writelines(network.weights)
    network.weights.clear()
    random = np.random.default_rng(0)
    inputs = {blob: random.standard_normal(shape, dtype=np.float32) for blob, shape in network.inputs.items()}
    expected = expected_results(case, network.text, weights, inputs)

    converted = folder / f"{name}.onnx"
    keep = [part for blob in case.outputs for part in ("--keep-output", blob)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = graft("convert", text, weights, "-o", converted, "--json", *keep)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}{done.stdout}")
    report = json.loads(done.stdout)
    if report["undone"]:
        sys.exit(f"{name}: rewrites that were not proven: {report['undone']}")
    session = onnxruntime.InferenceSession(str(converted), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    errors = [largest_error(dict(zip(names, session.run(None, inputs), strict=True)), expected)]
    del session
    np.savez(folder / f"{name}.in.npz", **inputs)
    done = graft("run", converted, "-i", folder / f"{name}.in.npz", "-o", folder / f"{name}.out.npz")
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    errors.append(largest_error(dict(np.load(folder / f"{name}.out.npz")), expected))
    judges = f"OpenCV; {case.by_numpy[0]} by NumPy" if case.by_numpy else "OpenCV"
    row = {
        "network": network.text.split('"')[1],
        "layers": network.layers,
        "weights": f"{weights.stat().st_size / 1e6:.1f} MB",
        "ONNX nodes": report["nodes_after"],
        "error in ONNX Runtime": f"{errors[0]:.1e}",
        "error in graft run": f"{errors[1]:.1e}",
        "judge": judges,
        "CPU time of convert": f"{seconds:.1f} s",
    }
    if engines:
        row["TensorRT engine"] = engine_of(converted)
    row["right"] = max(errors) <= ALLOWED
    return row


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("--document", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.names or CASES:
        rows.append(judge(name, arguments.folder, arguments.engines))
        print(rows[-1], file=sys.stderr, flush=True)
    wrong = [row for row in rows if not row.pop("right")]
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(str(cell) for cell in row.values()) + " |" for row in rows]
    table = "\n".join(lines) + "\n"
    print(table)
    if arguments.document:
        begin, end = "<!-- networks of Caffe: begin -->\n", "<!-- networks of Caffe: end -->\n"
        before, rest = PAGE.read_text().split(begin)
        PAGE.write_text(before + begin + table + end + rest.split(end)[1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
