# Runs networks of two and three seeded nodes with `graft run`, and compares with ONNX Runtime or onnx.reference.
"""If and Loop are among the nodes, and the inputs of every second network have symbolic sizes. The results have to
equal ONNX Runtime's bit by bit or, where ONNX Runtime refuses the network, onnx.reference's within rounding, and have
to be the same in each process.

usage: tools/seeded_compositions.py [--count N] [--processes N]
"""

import argparse
import collections
import concurrent.futures
import hashlib
import multiprocessing
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT = TensorProto.FLOAT
OPSET = 20


class Network:
    """A graph to which nodes are added one after the other, with the sizes of the last result."""

    def __init__(self, random):
        self.random = random
        self.nodes, self.constants = [], []
        self.shape = tuple(int(size) for size in random.integers(2, 7, int(random.integers(3, 5))))
        self.input_shape = self.shape
        self.last = "x"
        self.between = []  # Results of earlier steps, which are outputs of the model too.

    def pick(self, values):
        return values[int(self.random.integers(len(values)))]

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def real(self, *shape):
        return self.constant(self.random.standard_normal(shape).astype(np.float32))

    def add(self, op, *others, shape=None, outputs=1, **attributes):
        """Adds a node whose first input is the last result."""
        made = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [self.last, *others], made, **attributes))
        self.last = made[0]
        self.shape = self.shape if shape is None else tuple(shape)

    def axis(self):
        return int(self.random.integers(-len(self.shape), len(self.shape)))

    def model(self, dynamic):
        sizes = [f"n{i}" for i in range(len(self.input_shape))] if dynamic else self.input_shape
        x = helper.make_tensor_value_info("x", FLOAT, sizes)
        outputs = [value_info(name) for name in dict.fromkeys([self.last, *self.between])]
        graph = helper.make_graph(self.nodes, "composition", [x], outputs, self.constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", OPSET)])


def elementwise(network):
    op = network.pick(["Abs", "Sin", "Elu", "Erf", "Gelu", "HardSwish", "LeakyRelu", "Mish", "Neg", "Relu", "Round",
                       "Selu", "Sigmoid", "Sign", "Softplus", "Tanh", "Celu", "ThresholdedRelu"])  # fmt: skip
    network.add(op)


def arithmetic(network):
    shape = network.shape[int(network.random.integers(len(network.shape))) :]
    op = network.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"])
    network.add(op, network.real(*shape))


def clipped(network):
    low, high = network.constant(np.float32(-0.5)), network.constant(np.float32(0.75))
    network.add("Clip", *network.pick([(low, high), (low,), ("", high)]))


def compared(network):
    other = network.real(*network.shape[-1:])
    network.nodes.append(helper.make_node("Greater", [network.last, other], [f"m{len(network.nodes)}"]))
    condition, kept = network.nodes[-1].output[0], network.last
    network.last = condition
    network.add("Where", kept, other)


def transposed(network):
    order = [int(axis) for axis in network.random.permutation(len(network.shape))]
    network.add("Transpose", shape=[network.shape[axis] for axis in order], perm=order)


def flattened(network):
    network.add("Reshape", network.constant(np.asarray([0, -1, 1], np.int64)),
                shape=(network.shape[0], int(np.prod(network.shape[1:])), 1))  # fmt: skip


def sliced(network):
    axis = int(network.random.integers(len(network.shape)))
    step = network.pick([-1, 1, 2])
    begin, end = (-1, -100) if step < 0 else (network.pick([0, 1]), 100)
    size = len(range(network.shape[axis])[slice(begin, None if step < 0 else end, step)])
    limits = [network.constant(np.asarray([value], np.int64)) for value in (begin, end, axis, step)]
    network.add("Slice", *limits, shape=(*network.shape[:axis], size, *network.shape[axis + 1 :]))


def padded(network):
    pads = network.random.integers(0, 2, 2 * len(network.shape)).astype(np.int64)
    rank = len(network.shape)
    shape = [size + int(pads[i] + pads[i + rank]) for i, size in enumerate(network.shape)]
    modes = ["constant", "edge", *(["reflect"] if min(network.shape) > 1 else [])]
    network.add("Pad", network.constant(pads), shape=shape, mode=network.pick(modes))


def joined(network):
    axis = int(network.random.integers(len(network.shape)))
    shape = list(network.shape)
    shape[axis] *= 2
    network.add("Concat", network.last, shape=shape, axis=axis)


def reduced(network):
    axis = int(network.random.integers(len(network.shape)))
    op = network.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
    shape = list(network.shape)
    shape[axis] = 1
    network.add(op, network.constant(np.asarray([axis], np.int64)), shape=shape)


def normalized(network):
    op = network.pick(["Softmax", "LogSoftmax", "LayerNormalization", "LpNormalization", "MeanVarianceNormalization"])
    if op == "LayerNormalization":
        network.add(op, network.real(network.shape[-1]))
    elif op == "MeanVarianceNormalization":
        network.add(op, axes=[len(network.shape) - 1])
    else:
        network.add(op, axis=network.axis())


def accumulated(network):
    axis = network.constant(np.asarray(network.axis(), np.int64))
    network.add("CumSum", axis, exclusive=network.pick([0, 1]), reverse=network.pick([0, 1]))


def multiplied(network):
    columns = int(network.random.integers(1, 6))
    network.add("MatMul", network.real(network.shape[-1], columns), shape=(*network.shape[:-1], columns))


def convolved(network):
    if len(network.shape) < 3:  # noqa: PLR2004 - batch, channels, and what is convolved
        return elementwise(network)
    spatial = len(network.shape) - 2
    channels = int(network.random.integers(1, 4))
    weight = network.real(channels, network.shape[1], *[3] * spatial)
    network.add("Conv", weight, *network.pick([(), (network.real(channels),)]), pads=[1] * (2 * spatial),
                shape=(network.shape[0], channels, *network.shape[2:]))  # fmt: skip
    return None


def pooled(network):
    if len(network.shape) != 4 or min(network.shape[2:]) < 3:  # noqa: PLR2004
        return elementwise(network)
    op = network.pick(["MaxPool", "AveragePool", "LpPool"])
    attributes = {"kernel_shape": [2, 2], "strides": [1, 2], "pads": [1, 0, 0, 1], "ceil_mode": network.pick([0, 1])}
    if op == "AveragePool":
        attributes["count_include_pad"] = network.pick([0, 1])
    height, width = network.shape[2:]
    sizes = [height, int(np.ceil((width + 1 - 2) / 2) if attributes["ceil_mode"] else (width + 1 - 2) // 2) + 1]
    network.add(op, shape=(*network.shape[:2], *sizes), **attributes)
    return None


def resized(network):
    if len(network.shape) != 4:  # noqa: PLR2004
        return elementwise(network)
    mode = network.pick(["nearest", "linear", "cubic"])
    scales = [1, 1, network.pick([0.5, 1.5, 2]), network.pick([1, 2])]
    place = network.pick(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
    shape = [int(np.floor(size * scale)) for size, scale in zip(network.shape, scales, strict=True)]
    network.add("Resize", "", network.constant(np.asarray(scales, np.float32)), mode=mode, shape=shape,
                coordinate_transformation_mode=place)  # fmt: skip
    return None


def gathered(network):
    axis = int(network.random.integers(len(network.shape)))
    rows = network.random.integers(-network.shape[axis], network.shape[axis], 3).astype(np.int64)
    shape = (*network.shape[:axis], 3, *network.shape[axis + 1 :])
    network.add("Gather", network.constant(rows), axis=axis, shape=shape)


def largest(network):
    axis = int(network.random.integers(len(network.shape)))
    shape = (*network.shape[:axis], 1, *network.shape[axis + 1 :])
    network.add("TopK", network.constant(np.asarray([1], np.int64)), axis=axis, outputs=2, shape=shape)


def tiled(network):
    repeats = network.random.integers(1, 3, len(network.shape)).astype(np.int64)
    network.add("Tile", network.constant(repeats), shape=np.multiply(network.shape, repeats).tolist())


def quantized(network):
    """Casts to an integer type and back. f16 is left out, because Graft computes f16 in f32, as documented for
    Session."""
    kind = network.pick([TensorProto.INT8, TensorProto.INT32, TensorProto.INT64])
    network.add("Cast", to=kind)
    network.add("Cast", to=FLOAT)


def value_info(name):
    return helper.make_tensor_value_info(name, FLOAT, None)


def chosen(network):
    """Adds an If with two computations, selected by a number of the data."""
    index = len(network.nodes)
    zero = network.constant(np.float32(0))
    network.nodes += [
        helper.make_node("ReduceSum", [network.last], [f"s{index}"], keepdims=0),
        helper.make_node("Greater", [f"s{index}", zero], [f"b{index}"]),
    ]
    other = network.real(network.shape[-1])

    def body(name, op):
        node = helper.make_node(op, [network.last, other], [name])
        return helper.make_graph([node], name, [], [value_info(name)])

    network.nodes.append(
        helper.make_node("If", [f"b{index}"], [f"i{index}"], then_branch=body(f"t{index}", network.pick(["Add", "Max"])),
                         else_branch=body(f"e{index}", network.pick(["Mul", "Sub"])))
    )  # fmt: skip
    network.last = f"i{index}"


def repeated(network):
    """Adds a Loop with a carried value and a collected one."""
    index = len(network.nodes)
    times = network.constant(np.asarray(network.pick([1, 3]), np.int64))
    other = network.real(network.shape[-1])
    nodes = [
        helper.make_node("Identity", [f"lc{index}"], [f"lk{index}"]),
        helper.make_node(network.pick(["Add", "Mul", "Max"]), [f"lv{index}", other], [f"lw{index}"]),
        helper.make_node("Tanh", [f"lw{index}"], [f"lo{index}"]),
    ]
    inputs = [
        helper.make_tensor_value_info(f"li{index}", TensorProto.INT64, []),
        helper.make_tensor_value_info(f"lc{index}", TensorProto.BOOL, []),
        value_info(f"lv{index}"),
    ]
    outputs = [helper.make_tensor_value_info(f"lk{index}", TensorProto.BOOL, []), value_info(f"lo{index}")]
    body = helper.make_graph(nodes, f"body{index}", inputs, outputs)
    network.nodes.append(helper.make_node("Loop", [times, "", network.last], [f"l{index}"], body=body))
    network.last = f"l{index}"


STEPS = (elementwise, arithmetic, clipped, compared, transposed, flattened, sliced, padded, joined, reduced, normalized,
         accumulated, multiplied, convolved, pooled, resized, gathered, largest, tiled, quantized)  # fmt: skip
CONTROL = (chosen, repeated)


def composition(seed):
    """Returns (a description, the model, its inputs)."""
    random = np.random.default_rng([2000, seed])
    network = Network(random)
    steps = [network.pick(STEPS) for _ in range(int(random.integers(2, 4)))]
    if seed % 3 == 0:
        steps[int(random.integers(len(steps)))] = network.pick(CONTROL)
    for step in steps:
        step(network)
        network.between.append(network.last)
    model = network.model(dynamic=seed % 2 == 1)
    x = random.standard_normal(network.input_shape).astype(np.float32)
    return " ".join(step.__name__ for step in steps), model, {"x": x}


def by_onnxruntime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def difference(found, model, inputs):
    """Returns (the runtime with the expected results, the difference or nothing)."""
    names = [output.name for output in model.graph.output]
    try:
        expected = by_onnxruntime(model, inputs)
    except Exception:  # noqa: BLE001 - ONNX Runtime has errors of its own
        expected = ReferenceEvaluator(model).run(None, inputs)
        for name, value in zip(names, expected, strict=True):
            if found[name].shape != value.shape or not np.allclose(found[name], value, rtol=1e-4, atol=1e-5):
                return "onnx.reference", f"output {name} differs"
        return "onnx.reference", ""
    for name, value in zip(names, expected, strict=True):
        if found[name].dtype != value.dtype or not np.array_equal(found[name], value, equal_nan=True):
            return "ONNX Runtime", f"output {name} differs"
    return "ONNX Runtime", ""


def run(seeds, compare):
    """Returns for each seed (a description, the engine, the runtime with the expected results, the difference, the
    bits of the results)."""
    import graft  # noqa: PLC0415 - in a process of its own

    rows = []
    for seed in seeds:
        steps, model, inputs = composition(seed)
        session = graft.Session(model, threads=1, progress=False)
        found = session.run(inputs)
        judge, wrong = difference(found, model, inputs) if compare else ("", "")
        bits = hashlib.sha256(b"".join(found[name].tobytes() for name in sorted(found))).hexdigest()
        rows.append((f"{seed}: {steps}", session.ran_in.split()[0], judge, wrong, bits))
    return rows


def run_in_processes(seeds, processes):
    """Returns the rows of the first process, which compares, and the rows whose bits differ in another process."""
    context = multiprocessing.get_context("spawn")
    first, unstable = [], set()
    for number in range(processes):
        with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            rows = pool.submit(run, seeds, number == 0).result()
        first = first or rows
        unstable |= {row[0] for row, other in zip(first, rows, strict=True) if row[-1] != other[-1]}
    return first, sorted(unstable)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=5)
    arguments = parser.parse_args()
    rows, unstable = run_in_processes(range(arguments.count), arguments.processes)
    wrong = [f"{name} in {engine}, by {judge}: {why}" for name, engine, judge, why, _ in rows if why]
    counts = collections.Counter((engine, judge) for _, engine, judge, _, _ in rows)
    for (engine, judge), count in sorted(counts.items()):
        print(f"{count} ran in {engine} and were compared with {judge}")
    print(f"{len(wrong)} of {len(rows)} differ; {len(unstable)} differ between {arguments.processes} processes")
    for line in (*wrong, *unstable):
        print(line)
    sys.exit(bool(wrong or unstable))


if __name__ == "__main__":
    main()
