# Seeded networks in the forms that ONNX Runtime's quantizer and other tools write.
import logging
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, UINT8, INT8, INT64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT64
CODES = {np.dtype(np.uint8): UINT8, np.dtype(np.int8): INT8, np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


class Network:
    """Nodes and constants of a model, and the inputs with which it is run."""

    def __init__(self, rng, opset=17):
        self.rng, self.opset = rng, opset
        self.nodes, self.constants, self.inputs, self.feeds = [], [], [], {}

    def name(self, hint):
        return f"{hint}{len(self.nodes)}_{len(self.constants)}"

    def constant(self, array, hint="c"):
        self.constants.append(numpy_helper.from_array(np.asarray(array), self.name(hint)))
        return self.constants[-1].name

    def input(self, array):
        name = f"in{len(self.inputs)}"
        shape = ["N", *array.shape[1:]]
        self.inputs.append(helper.make_tensor_value_info(name, CODES[array.dtype], shape))
        self.feeds[name] = array
        return name

    def real_input(self, *shape):
        return self.input(self.rng.standard_normal(shape).astype(np.float32))

    def node(self, op, *inputs, count=1, **attributes):
        names = [self.name(op.lower()) + f"_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if count == 1 else names

    def grid(self, kind=None, channels=None):
        """Returns the names of a scale and a zero point, of random u8 or i8."""
        kind = kind or pick(self.rng, np.uint8, np.int8)
        shape = () if channels is None else (channels,)
        scale = self.rng.uniform(0.01, 0.04, shape).astype(np.float32)
        zero = self.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
        return self.constant(scale, "scale"), self.constant(zero, "zero")

    def model(self, output, kind=FLOAT):
        outputs = [helper.make_tensor_value_info(output, kind, None)]
        graph = helper.make_graph(self.nodes, "quantized", self.inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def finish(self, output, kind=FLOAT):
        return self.model(output, kind), self.feeds


def weights(rng):
    """Weights of every type and zero point, whose differences from the zero point fit in i8."""
    net = Network(rng)
    kind, by_channel = pick(rng, np.uint8, np.int8), int(rng.integers(2))
    scale = rng.uniform(0.01, 0.04, (4,) if by_channel else ()).astype(np.float32)
    center = 120 if kind == np.uint8 else 5
    zero = np.full(scale.shape, center, kind)
    w = (rng.integers(-100, 100, (4, 3, 3, 3)) + center).astype(kind)
    real = net.node("DequantizeLinear", *map(net.constant, (w, scale, zero)), axis=0)
    return net.finish(net.node("Conv", net.real_input(2, 3, 6, 6), real))


def wide_weights(rng):
    """Weights of u8 with differences from the zero point that i8 does not have, and a bias of 32 bits."""
    net = Network(rng)
    w = rng.integers(0, 256, (5, 4)).astype(np.uint8)
    w.flat[:2] = 0, 255
    real = net.node("DequantizeLinear", *map(net.constant, (w, np.float32(0.02), np.uint8(100))))
    bias = rng.integers(-9999, 9999, 4).astype(np.int32)
    scales = rng.uniform(1e-4, 1e-3, 4).astype(np.float32)
    real_bias = net.node("DequantizeLinear", net.constant(bias), net.constant(scales), axis=0)
    return net.finish(net.node("Gemm", net.real_input(3, 5), real, real_bias))


def u8_at_128(rng):
    net = Network(rng)
    grid = net.constant(np.float32(0.03)), net.constant(np.uint8(128))
    x = net.node("DequantizeLinear", net.node("QuantizeLinear", net.real_input(2, 3, 6, 6), *grid), *grid)
    w = rng.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8)
    scales, zeros = rng.uniform(0.01, 0.04, 4).astype(np.float32), np.full(4, 128, np.uint8)
    real = net.node("DequantizeLinear", *map(net.constant, (w, scales, zeros)), axis=0)
    return net.finish(net.node("Conv", x, real))


def activations(rng):
    """Activations with one zero point, or one for each channel, or with u8 and no zero point."""
    net = Network(rng)
    x, form = net.real_input(2, 3, 5, 5), int(rng.integers(3))
    channels = 3 if form == 1 else None
    grid = net.grid(channels=channels) if form else net.grid(np.uint8)[:1]
    return net.finish(
        net.node("DequantizeLinear", net.node("QuantizeLinear", x, *grid, axis=1), *grid, axis=1),
    )


def moved_activations(rng):
    """Integers that other nodes move between QuantizeLinear and DequantizeLinear, for two readers."""
    net = Network(rng)
    grid = net.grid()
    q = net.node("QuantizeLinear", net.real_input(2, 4, 6, 6), *grid)
    for _ in range(3):
        form = int(rng.integers(6))
        if form == 0:
            q = net.node("MaxPool", q, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
        elif form == 1:
            q = net.node("Transpose", q, perm=[0, 1, 3, 2])
        elif form == 2:
            q = net.node("Concat", q, q, axis=int(rng.integers(1, 4)))
        elif form == 3:
            q = net.node("Pad", q, net.constant([0, 0, 1, 0, 0, 0, 0, 1]), *pick(rng, [], grid[1:]))
        elif form == 4:
            q = net.node("Slice", q, net.constant([1]), net.constant([4]), net.constant([1]))
        else:
            parts = net.node("Split", q, axis=2, count=2, num_outputs=2) if net.opset >= 18 else None
            q = parts[1] if parts else net.node("ReduceMax", q, axes=[2], keepdims=1)
    real = net.node("DequantizeLinear", q, *grid)
    return net.finish(net.node("Mul", real, net.node("Sigmoid", net.node("DequantizeLinear", q, *grid))))


def integers_at_the_ends(rng):
    """u8 or i8 as input and output of the network."""
    net = Network(rng)
    kind = pick(rng, np.uint8, np.int8)
    x = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (2, 5, 6, 3)).astype(kind)
    planes = net.node("Transpose", net.input(x), perm=[0, 3, 1, 2])
    real = net.node("DequantizeLinear", planes, *net.grid(kind))
    out = net.node("QuantizeLinear", net.node("Sin", real), *net.grid(kind))
    return net.finish(out, CODES[np.dtype(kind)])


def embedding(rng):
    """A table of bytes that Gather reads before or after DequantizeLinear."""
    net = Network(rng)
    kind = pick(rng, np.uint8, np.int8)
    table = net.constant(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (20, 6)).astype(kind))
    ids = net.input(rng.integers(0, 20, (2, 5)))
    if rng.integers(2):
        real = net.node("DequantizeLinear", net.node("Gather", table, ids), *net.grid(kind))
    else:
        real = net.node("Gather", net.node("DequantizeLinear", table, *net.grid(kind, 20), axis=0), ids)
    return net.finish(net.node("Tanh", real))


def dynamic(rng):
    net = Network(rng)
    q, scale, zero = net.node("DynamicQuantizeLinear", net.real_input(2, 3, 6, 6), count=3)
    kind = pick(rng, np.uint8, np.int8)
    w = net.constant(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (4, 3, 3, 3)).astype(kind))
    sums = net.node("ConvInteger", q, w, zero, net.grid(kind)[1])
    return net.finish(net.node("Mul", net.node("Cast", sums, to=FLOAT), scale))


def long_sums(rng):
    """A convolution of integers whose sums exceed 2^24, so that it is computed in parts."""
    net = Network(rng)
    grid, out = net.grid(np.uint8), net.grid(np.uint8)
    q = net.node("QuantizeLinear", net.real_input(1, 256, 4, 4), *grid)
    w = net.constant(rng.integers(64, 128, (3, 256, 3, 3)).astype(np.int8))
    scales = net.constant(rng.uniform(1e-6, 1e-5, 3).astype(np.float32))
    q = net.node("QLinearConv", q, *grid, w, scales, net.constant(np.zeros(3, np.int8)), *out)
    return net.finish(net.node("DequantizeLinear", q, *out))


MODELS = {
    make.__name__: make
    for make in (
        weights,
        wide_weights,
        u8_at_128,
        activations,
        moved_activations,
        integers_at_the_ends,
        embedding,
        dynamic,
        long_sums,
    )
}


def blocks_of_activations():
    net = Network(np.random.default_rng(0), opset=21)
    x = net.real_input(2, 32)
    scale = net.constant(np.full((2, 2), 0.1, np.float32))
    zero = net.constant(np.full((2, 2), 9, np.uint8))
    q = net.node("QuantizeLinear", x, scale, zero, axis=1, block_size=16)
    return net.model(net.node("DequantizeLinear", q, scale, zero, axis=1, block_size=16)), "cannot be replaced"


REFUSED = {make.__name__: make for make in (blocks_of_activations,)}


def network_of_onnxruntime(path):
    """Writes a small convolutional network that ONNX Runtime's quantizer made u8 by its defaults; returns inputs."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    from onnxruntime.quantization import (  # noqa: PLC0415
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    rng = np.random.default_rng(7)
    net = Network(rng, opset=13)

    def weight(*shape):
        return net.constant((rng.standard_normal(shape) * 0.3).astype(np.float32), "w")

    x = net.real_input(4, 3, 8, 8)
    x = net.node("Relu", net.node("Conv", x, weight(8, 3, 3, 3), weight(8), pads=[1, 1, 1, 1]))
    x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("Conv", x, weight(8, 8, 3, 3), weight(8), pads=[1, 1, 1, 1])
    x = net.node("Flatten", net.node("GlobalAveragePool", net.node("Mul", x, net.node("Sigmoid", x))))
    onnx.save(net.model(net.node("Gemm", x, weight(8, 5), weight(5))), path.with_suffix(".f32.onnx"))

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.samples = iter([net.feeds])

        def get_next(self):
            return next(self.samples, None)

    quantize_static(
        path.with_suffix(".f32.onnx"),
        path,
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QUInt8,
    )
    logging.disable(logging.NOTSET)
    return net.feeds
