# Tests where `graft quantize` places int8 and f8, in the layers that TensorRT-RTX builds: `graft build --layers`.
"""The networks have common architectures and random weights. TensorRT-RTX shows that each layer that should be int8
is, and that no tensor between layers is stored in f32 except those that the quantizer announces; ONNX Runtime judges
the numbers."""

import json
import os
import pathlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from conftest import DIGITS_DATA, DIGITS_SHAPES, PLUGIN_LIBRARY, PROGRAM, needs_plugin_library, run_command
from onnx import helper, numpy_helper
from onnx_models import run_onnx, save


class Network:
    """Collects nodes; each has the name of its output."""

    def __init__(self, *shape):
        self.random = np.random.default_rng(7)
        self.shape, self.nodes, self.constants = list(shape), [], []

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        base = f"{op.lower()}{len(self.nodes)}"
        names = [base] if outputs == 1 else [f"{base}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=base, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, fan_in):
        return self.constant((self.random.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32))

    def vector(self, size, mean=0.0):
        return self.constant((mean + 0.1 * self.random.standard_normal(size)).astype(np.float32))

    def conv(self, x, channels, to, kernel=3, stride=1, group=1, op="Conv", domain=""):
        weight = self.weight(to, channels // group, kernel, kernel, fan_in=channels // group * kernel**2)
        if domain:
            inside = {"stride": [stride] * 2, "pad": [kernel // 2] * 2, "activation": "relu"}
            return self.add("Convolution", x, weight, self.vector(to), domain=domain, **inside)
        window = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
        return self.add(op, x, weight, self.vector(to), **window)

    def relu(self, x):
        return self.add("Relu", x)

    def conv_relu(self, *arguments, **options):
        return self.relu(self.conv(*arguments, **options))

    def batch_norm(self, x, channels):
        rest = [self.vector(channels, 1), self.vector(channels), self.vector(channels)]
        return self.add("BatchNormalization", x, *rest, self.constant(np.ones(channels, np.float32)))

    def linear(self, x, channels, to):
        product = self.add("MatMul", x, self.weight(channels, to, fan_in=channels))
        return self.add("Add", product, self.vector(to))

    def classify(self, x, channels):
        flat = self.add("Flatten", self.add("GlobalAveragePool", x))
        return self.add("Gemm", flat, self.weight(10, channels, fan_in=channels), self.vector(10), transB=1)

    def save(self, folder, *outputs):
        ends = [(name, None) for name in outputs]
        domains = ["graft"] if any(node.domain for node in self.nodes) else []
        save(folder / "f32.onnx", self.nodes, [("x", self.shape)], ends, self.constants, domains=domains)
        samples = self.random.standard_normal((8, *self.shape[1:])).astype(np.float32)
        np.savez(folder / "x.npz", x=samples)


def residual_identity(net):
    x = net.conv_relu("x", 3, 16)
    y = net.conv_relu(x, 16, 16)
    y = net.batch_norm(net.conv(y, 16, 16), 16)
    x = net.relu(net.add("Add", y, x))
    y = net.conv(net.conv_relu(x, 16, 16), 16, 16)
    return [net.classify(net.relu(net.add("Add", x, y)), 16)]


def residual_downsample(net):
    x = net.add("MaxPool", net.conv_relu("x", 3, 16), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.conv(net.conv_relu(x, 16, 16, stride=2), 16, 32)
    x = net.relu(net.add("Add", y, net.conv(x, 16, 32, kernel=1, stride=2)))
    y = net.conv(net.conv_relu(x, 32, 32), 32, 32)
    return [net.conv(net.relu(net.add("Add", y, x)), 32, 16)]


def inception(net):
    x = net.conv_relu("x", 3, 16)
    pooled = net.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)
    branches = [net.conv_relu(x, 16, 8, kernel=1), net.conv_relu(net.conv_relu(x, 16, 8), 8, 8)]
    branches.append(net.conv_relu(pooled, 16, 8, kernel=1))
    x = net.add("Concat", *branches, axis=1)
    halves = [net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), net.conv_relu(x, 24, 16, stride=2)]
    return [net.classify(net.conv_relu(net.add("Concat", *halves, axis=1), 40, 16), 16)]


def average_pool_branch(net):
    x = net.conv_relu("x", 3, 16)
    average = net.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)
    x = net.add("Concat", net.conv_relu(x, 16, 8), net.conv_relu(average, 16, 8, kernel=1), axis=1)
    return [net.conv(x, 16, 8)]


def average_pool_steps(net):
    x = net.conv_relu("x", 3, 16)
    return [net.conv(net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), 16, 8)]


def u_net(net):
    high = net.conv_relu("x", 3, 8)
    low = net.conv_relu(net.add("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    up = net.add("Resize", low, "", scales, **modes)
    x = net.conv_relu(net.add("Concat", up, high, axis=1), 24, 8)
    return [net.add("Sigmoid", net.conv(x, 8, 1, kernel=1))]


def u_net_deconvolution(net):
    high = net.conv_relu("x", 3, 8)
    low = net.conv_relu(net.add("MaxPool", high, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    weight = net.weight(16, 8, 2, 2, fan_in=16)
    up = net.add("ConvTranspose", low, weight, net.vector(8), strides=[2, 2])
    return [net.conv(net.conv_relu(net.add("Concat", up, high, axis=1), 16, 8), 8, 1)]


def separable_relu6(net):
    def relu6(x):
        return net.add("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))

    x = relu6(net.conv("x", 3, 16, stride=2))
    y = relu6(net.conv(relu6(net.conv(x, 16, 32, kernel=1)), 32, 32, group=32))
    x = net.add("Add", net.conv(y, 32, 16, kernel=1), x)  # without an activation, as in MobileNetV2
    y = relu6(net.conv(relu6(net.conv(x, 16, 32, kernel=1)), 32, 32, group=32, stride=2))
    return [net.classify(net.conv(y, 32, 16, kernel=1), 16)]


def separable_hard_swish(net):
    x = net.add("HardSwish", net.conv("x", 3, 16, stride=2))
    x = net.add("HardSwish", net.conv(x, 16, 16, group=16))
    squeezed = net.conv_relu(net.add("GlobalAveragePool", x), 16, 8, kernel=1)
    gate = net.add("HardSigmoid", net.conv(squeezed, 8, 16, kernel=1))
    return [net.conv(net.add("Mul", x, gate), 16, 16, kernel=1)]


def silu(net):
    def swish(x):
        return net.add("Mul", x, net.add("Sigmoid", x))

    x = swish(net.conv("x", 3, 16))
    left, right = net.add("Split", x, net.constant(np.array([8, 8])), outputs=2, axis=1)
    right = net.add("Add", swish(net.conv(swish(net.conv(right, 8, 8)), 8, 8)), right)
    return [net.conv(net.add("Concat", left, right, axis=1), 16, 8, kernel=1)]


def transformer(net):
    size, heads, length = 32, 4, 16

    def norm(x):
        return net.add("LayerNormalization", x, net.vector(size, 1), net.vector(size), axis=-1)

    def split_heads(x, order):
        shape = net.constant(np.array([1, length, heads, size // heads]))
        return net.add("Transpose", net.add("Reshape", x, shape), perm=order)

    x = "x"
    y = norm(x)
    query, key, value = (net.linear(y, size, size) for _ in range(3))
    weights = net.add("MatMul", split_heads(query, [0, 2, 1, 3]), split_heads(key, [0, 2, 3, 1]))
    weights = net.add("Softmax", net.add("Mul", weights, net.constant(np.float32(0.35))), axis=-1)
    y = net.add("Transpose", net.add("MatMul", weights, split_heads(value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    x = net.add("Add", x, net.linear(net.add("Reshape", y, net.constant(np.array([1, length, size]))), size, size))
    y = net.linear(norm(x), size, 2 * size)
    half = net.add("Erf", net.add("Mul", y, net.constant(np.float32(0.7071))))
    half = net.add("Mul", y, net.add("Add", half, net.constant(np.float32(1))))
    y = net.linear(net.add("Mul", half, net.constant(np.float32(0.5))), 2 * size, size)
    return [norm(net.add("Add", x, y))]


def mixer(net):
    """Returns a network that reads a tensor in int8 and in f32, and has an output in the middle."""
    x = net.conv_relu("x", 3, 8)
    y = net.conv_relu(x, 8, 8)
    scores = net.add("Softmax", y, axis=1)
    return [net.conv(y, 8, 8), net.add("Mul", scores, x)]


def style(net):
    x = net.add("Padding", "x", domain="graft", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1])
    x = net.conv(x, 3, 16)
    norms = [net.vector(16, 1), net.vector(16)]
    x = net.add("InstanceNorm", x, *norms, domain="graft", activation="relu")
    x = net.conv(net.add("Padding", x, domain="graft", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1]), 16, 16)
    x = net.relu(net.add("InstanceNorm", x, *norms, domain="graft"))
    x = net.add("Upsampling", x, domain="graft", mode="nearest", scales=[2.0, 2.0])
    return [net.conv(x, 16, 3)]


def graft_convolution(net):
    x = net.conv("x", 3, 16, domain="graft")
    x = net.conv(x, 16, 16, domain="graft")
    x = net.add("Upsampling", x, domain="graft", mode="nearest", scales=[2.0, 2.0])
    return [net.conv(net.conv(x, 16, 16, domain="graft"), 16, 8)]


IMAGE = [1, 3, 16, 16]
NETWORKS = {
    residual_identity: IMAGE,
    residual_downsample: IMAGE,
    inception: IMAGE,
    average_pool_branch: IMAGE,
    average_pool_steps: IMAGE,
    u_net: IMAGE,
    u_net_deconvolution: IMAGE,
    separable_relu6: IMAGE,
    separable_hard_swish: IMAGE,
    silu: IMAGE,
    transformer: [1, 16, 32],
    mixer: IMAGE,
    style: IMAGE,
    graft_convolution: IMAGE,
}
WITH_PLUGINS = (style, graft_convolution)


@dataclass
class Built:
    folder: pathlib.Path
    quantized: dict
    engine: dict

    @property
    def layers(self):
        return self.engine["layers"]


def run_json(*arguments):
    return json.loads(run_command(PROGRAM, *arguments, "--json", code=0).stdout)


def make(folder, data, *options, quantize=(), precision="int8"):
    model = folder / f"{precision}.onnx"
    quantized = run_json(
        "quantize", folder / "f32.onnx", "-o", model, "--precision", precision, "--data", data, *quantize
    )
    engine = run_json("build", model, "-o", folder / "e", "--layers", "--target", "sm120", *options)
    return Built(folder, quantized, engine)


def network_of(function, folder=None):
    net = Network(*NETWORKS[function])
    outputs = function(net)
    if folder:
        net.save(folder, *outputs)
    return net


def make_network(function, folder):
    network_of(function, folder)
    return make(folder, folder / "x.npz")


@pytest.fixture(scope="module")
def all_built(tmp_path_factory):
    """Starting TensorRT takes most of the time, so several builds run at once."""
    networks = [f for f in NETWORKS if PLUGIN_LIBRARY.is_file() or f not in WITH_PLUGINS]
    folders = [tmp_path_factory.mktemp(function.__name__) for function in networks]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(networks, pool.map(make_network, networks, folders), strict=True))


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda function: function.__name__)
def built(request, all_built):
    if request.param not in all_built:
        pytest.skip("this build has no plugin library")
    return all_built[request.param]


def announced_as_f32(built):
    """Returns the nodes that the quantizer reports as f32, or as reading a tensor in f32."""
    return {n["node"] for n in built.quantized["nodes"] if n["type"] == "f32" or "in f32" in n["reason"]}


def test_what_is_meant_for_int8_reads_int8(built):
    planned = [
        n for n in built.quantized["nodes"] if n["type"] == "int8" and n["operator"] in ("Conv", "Gemm", "MatMul")
    ]
    assert planned
    for node in planned:
        kernels = [layer for layer in built.layers if layer["is_matrix"] and node["node"] in layer["nodes"]]
        assert kernels, node
        for kernel in kernels:
            assert {tensor["type"] for tensor in kernel["inputs"]} == {"i8"}, kernel
    assert built.engine["layer_summary"]["f32_islands"] == []


def test_nothing_is_stored_in_f32_but_what_is_announced(built):
    announced = announced_as_f32(built)
    makers = {tensor["tensor"]: layer for layer in built.layers for tensor in layer["outputs"]}
    for reader in built.layers:
        for tensor in reader["inputs"]:
            maker = makers.get(tensor["tensor"])
            if tensor["type"] == "i8" or maker is None:  # a tensor that no layer writes is an input of the network
                continue
            sums = maker["is_matrix"] and {t["type"] for t in maker["inputs"]} == {"i8"}
            assert sums or announced & {*maker["nodes"], *reader["nodes"]}, (tensor, maker, reader)


def only_moves(layer):
    """Returns whether a kernel only moves elements, by the name that TensorRT-RTX generates."""
    return re.fullmatch(r"__myl_(Move|Tran|Resh|Slic|Conc)+_myl.*", layer["name"]) is not None


def test_no_kernel_only_moves_elements(built):
    """The only movements are int8 copies into a Concat's output, and from a plugin's layout to a convolution's."""
    model = onnx.load(built.folder / "f32.onnx", load_external_data=False)
    may_move = any(node.domain or node.op_type == "Concat" for node in model.graph.node)
    for layer in built.layers:
        assert "reformat" not in (layer["kind"] + layer["name"]).lower()
        assert not only_moves(layer) or may_move, layer
        assert not only_moves(layer) or {t["type"] for t in layer["inputs"]} == {"i8"}, layer


@needs_plugin_library
@pytest.mark.parametrize("function", WITH_PLUGINS)
def test_plugins_take_int8_as_it_is(all_built, function):
    layers = all_built[function].layers
    makers = {tensor["tensor"]: layer for layer in layers for tensor in layer["outputs"]}
    plugins = [layer for layer in layers if layer["kind"] == "custom_layer"]
    assert len(plugins) == sum(node.domain == "graft" for node in network_of(function).nodes)
    for plugin in plugins:
        assert plugin["inputs"][0]["type"] == plugin["outputs"][0]["type"] == "i8"
        assert not only_moves(makers[plugin["inputs"][0]["tensor"]]), plugin


@pytest.mark.parametrize("function", [residual_identity, separable_relu6, silu])
def test_residual_sums_read_int8(all_built, function):
    built = all_built[function]
    sums = [n["node"] for n in built.quantized["nodes"] if n["operator"] == "Add"]
    for name in sums:
        (kernel,) = [layer for layer in built.layers if name in layer["nodes"]]
        assert "i8" in {tensor["type"] for tensor in kernel["inputs"]}, kernel
        assert {tensor["type"] for tensor in kernel["outputs"]} == {"i8"}, kernel


def outputs_of_onnx_runtime(model, x):
    return run_onnx(model, {"x": x}, is_optimized=False)


def test_onnx_runtime_computes_the_same(built):
    data = built.folder / "one.npz"
    x = np.load(built.folder / "x.npz")["x"][:1]
    np.savez(data, x=x)
    answers = built.folder / "answers.npz"
    run_json("run", built.folder / "int8.onnx", "-i", data, "-o", answers)
    ours = np.load(answers)
    for name, theirs in outputs_of_onnx_runtime(built.folder / "int8.onnx", x).items():
        # A tie may be rounded either way, and later layers amplify the difference.
        assert np.mean(np.abs(ours[name] - theirs)) <= 1e-4 * np.abs(theirs).max(), name
        assert np.max(np.abs(ours[name] - theirs)) <= 2e-2 * np.abs(theirs).max(), name


@needs_plugin_library
def test_digits_and_their_plugin(converted, tmp_path):
    (tmp_path / "f32.onnx").write_bytes(converted.read_bytes())
    built = make(tmp_path, f"image={DIGITS_DATA}:images", "--shapes", DIGITS_SHAPES)
    test_what_is_meant_for_int8_reads_int8(built)
    (plugin,) = [layer for layer in built.layers if layer["nodes"] == ["/Div"] and layer["kind"] == "custom_layer"]
    assert plugin["inputs"][0]["type"] == "f32"  # its output is one of the network's
    assert built.engine["layer_summary"]["matrix_reads"] == {"i8": 5}


@pytest.mark.parametrize("function", [u_net_deconvolution, transformer])
def test_the_rest_in_f16(function, tmp_path):
    network_of(function, tmp_path)
    built = make(tmp_path, tmp_path / "x.npz", quantize=["--rest", "f16"])
    assert set(built.engine["layer_summary"]["matrix_reads"]) == {"i8", "f16"}
    assert built.engine["layer_summary"]["f32_islands"] == []


def pointwise_of_graft(net):
    x = net.add("LeakyReLU", net.conv("x", 16, 16), domain="graft", alpha=0.2)
    x = net.add("Padding", x, domain="graft", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 1, 1])
    x = net.add("Upsampling", x, domain="graft", mode="nearest", scales=[2.0])
    return [net.conv(net.conv_relu(x, 16, 16), 16, 16)]


@pytest.mark.parametrize(
    "function", [residual_identity, transformer, pytest.param(pointwise_of_graft, marks=needs_plugin_library)]
)
def test_in_f8_layers_and_plugins_read_f8(function, tmp_path):
    net = Network(*NETWORKS.get(function, [1, 16, 16, 16]))
    net.save(tmp_path, *function(net))
    built = make(tmp_path, tmp_path / "x.npz", precision="f8")
    planned = {n["node"] for n in built.quantized["nodes"] if n["type"] == "f8"}
    matrices = [layer for layer in built.layers if layer["is_matrix"] and planned & {*layer["nodes"]}]
    assert matrices
    for layer in matrices:
        assert {tensor["type"] for tensor in layer["inputs"]} == {"f8e4m3fn"}, layer
    assert built.engine["layer_summary"]["f32_islands"] == []
    plugins = [layer for layer in built.layers if layer["kind"] == "custom_layer"]
    assert len(plugins) == sum(node.domain == "graft" for node in net.nodes)
    for plugin in plugins:
        assert plugin["inputs"][0]["type"] == plugin["outputs"][0]["type"] == "f8e4m3fn", plugin


def test_an_island_is_named(graft, tmp_path):
    """TensorRT-RTX computes ConvTranspose in f32 whatever its input is."""
    net = Network(1, 16, 8, 8)
    rounding = [net.constant(np.float32(0.1)), net.constant(np.int8(0))]
    x = net.add("DequantizeLinear", net.add("QuantizeLinear", "x", *rounding), *rounding)
    weights = net.constant(np.full((16, 8, 2, 2), 3, np.int8))
    weights = net.add("DequantizeLinear", weights, net.constant(np.full(8, 0.1, np.float32)), axis=1)
    net.save(tmp_path, net.add("ConvTranspose", x, weights, strides=[2, 2]))
    command = ["build", tmp_path / "f32.onnx", "-o", tmp_path / "e", "--target", "sm120", "--layers"]
    summary = graft(*command, "--json").json["layer_summary"]
    (island,) = summary["f32_islands"]
    assert (island["node"], island["type"]) == ("node 'convtranspose3' (ConvTranspose)", "f32")
    said = graft(*command, "-q").out  # a listing that the option requests
    assert "note: node 'convtranspose3' (ConvTranspose) reads f32" in said
    assert "1 convolution or matrix multiplication: 1 reads f32" in said
    assert "deconv" in said


def test_without_layers_nothing_is_told_of_them(graft, tmp_path):
    net = Network(1, 3, 8, 8)
    net.save(tmp_path, net.conv_relu("x", 3, 4))
    answer = graft("build", tmp_path / "f32.onnx", "-o", tmp_path / "e", "--target", "sm120", "--json")
    assert "layers" not in answer.json and "layer_summary" not in answer.json
