# Runs single nodes in both CPU engines, and records the nodes that they compute wrongly.
"""Runs three sets of models in OpenVINO and in ONNX Runtime: ONNX's own tests of operators, these tests with their
parameters as constants, and models of one node with seeded attributes and numbers. Each runs three times, since an
engine may keep state of a run, and in other forms: with symbolic sizes, and with its first input computed by an If or
by a Loop. The expected results are ONNX's stored results or, for a seeded model, those of onnx.reference where one
engine agrees with it.

Writes src/verify/judge/known_faults.inc and docs/engines_on_cpu.md. An engine that refuses a model is not wrong.

usage: tools/seeded_nodes.py [--seeds N] [--only PATTERN]
"""

import argparse
import collections
import concurrent.futures
import datetime
import functools
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import sys
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "import"))
from onnx_judges import Case, difference, node_cases, real_inputs, to_array, with_constants  # noqa: E402

ENGINES = ("openvino", "onnxruntime")
NAMES = {"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}
AUTO = "auto"  # The choice of `graft run` without --engine.
INC = ROOT / "src" / "verify" / "judge" / "known_faults.inc"
PAGE = ROOT / "docs" / "engines_on_cpu.md"
RUNS = 3
RIGHT, WRONG, REFUSED = "right", "wrong", "refused"

# Tests that are left out: prefixes of names of ONNX's tests, and why.
LEFT_OUT = {
    "test_bernoulli": "random numbers",
    "test_training_dropout": "random numbers",
    "test_image_decoder": "it decodes images",
}


# Seeded models


def a_model(node, inputs, constants=(), outputs=("y",), opset=20):
    """Returns a case of one or two nodes, without its results. `inputs` and `constants` are named arrays."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    tensors = [numpy_helper.from_array(value, name) for name, value in dict(constants).items()]
    graph = helper.make_graph(node if isinstance(node, list) else [node], "seeded", infos, results, tensors)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])
    return Case("", model, [(list(inputs.values()), [])], 1e-3, 1e-4)


def numbers(random, shape, dtype=np.float32):
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -9
        return random.integers(low, 10, shape).astype(dtype)
    if np.dtype(dtype) == bool:
        return random.integers(0, 2, shape).astype(bool)
    return (random.standard_normal(shape) * 3).astype(dtype)


def pick(random, values):
    return values[int(random.integers(len(values)))]


def shape_of(random, rank):
    return tuple(int(size) for size in random.integers(1, 6, rank))


def elementwise(random):
    one = ["Abs", "Acosh", "Asinh", "Atan", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
           "LeakyRelu", "Mish", "Neg", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
           "Tan", "Tanh", "ThresholdedRelu", "Celu", "Reciprocal", "Shrink", "IsNaN"]  # fmt: skip
    op = pick(random, one)
    attributes = {}
    if op in ("Elu", "HardSigmoid", "LeakyRelu", "Selu", "ThresholdedRelu", "Celu"):
        attributes["alpha"] = float(np.float32(random.uniform(0.1, 2)))
    if op == "Shrink":
        attributes = {
            "lambd": float(np.float32(random.uniform(0, 2))),
            "bias": float(np.float32(random.uniform(-1, 1))),
        }
    if op == "Gelu":
        attributes["approximate"] = pick(random, ["none", "tanh"])
    x = numbers(random, shape_of(random, pick(random, [1, 2, 3, 4])))
    return a_model(helper.make_node(op, ["x"], ["y"], **attributes), {"x": np.abs(x) + 1 if op == "Acosh" else x})


def binary(random):
    op = pick(
        random, ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "PRelu", "Equal", "Greater", "LessOrEqual"]
    )
    dtype = pick(random, [np.float32, np.int32, np.int64])
    attributes = {}
    if op in ("PRelu", "Pow"):
        dtype = np.float32
    if op == "Mod" and dtype == np.float32:
        attributes["fmod"] = 1
    shape = shape_of(random, 3)
    a, b = numbers(random, shape, dtype), numbers(random, pick(random, [shape, shape[1:], shape[2:], (1,)]), dtype)
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.asarray(1, dtype), b).astype(dtype)
    if op == "Pow":
        a, b = np.abs(a), np.clip(b, -2, 2)
    return a_model(helper.make_node(op, ["a", "b"], ["y"], **attributes), {"a": a, "b": b})


def reduction(random):
    op = pick(random, ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                       "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"])  # fmt: skip
    x = numbers(random, shape_of(random, 4), pick(random, [np.float32, np.float32, np.int32]))
    if op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceL2"):
        x = np.abs(x).astype(np.float32) + 1
    axes = np.sort(random.permutation(4)[: int(random.integers(1, 4))]).astype(np.int64) - pick(random, [0, 4])
    attributes = {"keepdims": pick(random, [0, 1])}
    return a_model(helper.make_node(op, ["x", "axes"], ["y"], **attributes), {"x": x}, {"axes": axes})


def arguments(random):
    x = np.round(numbers(random, shape_of(random, 3)))  # with ties
    node = helper.make_node(
        pick(random, ["ArgMax", "ArgMin"]), ["x"], ["y"], axis=int(random.integers(-3, 3)), keepdims=pick(random, [0, 1]),
        select_last_index=pick(random, [0, 1]),
    )  # fmt: skip
    return a_model(node, {"x": x})


def pooling(random):
    kernel = [int(k) for k in random.integers(1, 4, 2)]
    op = pick(random, ["MaxPool", "AveragePool", "LpPool"])
    attributes = {"kernel_shape": kernel, "strides": [int(s) for s in random.integers(1, 3, 2)],
                  "ceil_mode": pick(random, [0, 1])}  # fmt: skip
    attributes["pads"] = [min(int(p), k - 1) for p, k in zip(random.integers(0, 2, 4), kernel * 2, strict=True)]
    if op != "LpPool":
        attributes["dilations"] = [int(d) for d in random.integers(1, 3, 2)]
    if op == "AveragePool":
        attributes["count_include_pad"] = pick(random, [0, 1])
    x = numbers(random, (2, 3, int(random.integers(6, 11)), int(random.integers(6, 11))))
    return a_model(helper.make_node(op, ["x"], ["y"], **attributes), {"x": np.abs(x) if op == "LpPool" else x})


def convolution(random):
    group = pick(random, [1, 2])
    kernel = [int(k) for k in random.integers(1, 4, 2)]
    attributes = {"kernel_shape": kernel, "group": group, "strides": [int(s) for s in random.integers(1, 3, 2)],
                  "dilations": [int(d) for d in random.integers(1, 3, 2)],
                  "pads": [int(p) for p in random.integers(0, 3, 4)]}  # fmt: skip
    x = numbers(random, (2, 4, 9, 8))
    if pick(random, [True, False]):
        w = numbers(random, (6, 4 // group, *kernel))
        return a_model(helper.make_node("Conv", ["x", "w"], ["y"], **attributes), {"x": x}, {"w": w})
    attributes["pads"] = [min(p, 1) * (k > 1) for p, k in zip(attributes["pads"], kernel * 2, strict=True)]
    w = numbers(random, (4, 3, *kernel))
    return a_model(helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes), {"x": x}, {"w": w})


def gathering(random):
    x = numbers(random, (3, 4, 5), pick(random, [np.float32, np.int32, np.int64]))
    axis = int(random.integers(-3, 3))
    size = x.shape[axis]
    op = pick(random, ["Gather", "GatherElements", "GatherND"])
    if op == "Gather":
        i, attributes = random.integers(-size, size, (2, 3)), {"axis": axis}
    elif op == "GatherElements":
        i, attributes = random.integers(-size, size, x.shape), {"axis": axis}
    else:
        i, attributes = random.integers(0, 3, (3, 2, 2)), {"batch_dims": pick(random, [0, 1])}
    node = helper.make_node(op, ["x", "i"], ["y"], **attributes)
    is_table = pick(random, [True, False])
    inputs = {"i": i.astype(np.int64)} if is_table else {"x": x, "i": i.astype(np.int64)}
    return a_model(node, inputs, {"x": x} if is_table else {})


def scattering(random):
    x, axis = numbers(random, (3, 4, 5)), int(random.integers(0, 3))
    reduction_of = pick(random, ["none", "add", "mul", "max", "min"])
    i = np.argsort(random.random(x.shape), axis=axis).astype(np.int64) if reduction_of == "none" else (
        random.integers(0, x.shape[axis], x.shape).astype(np.int64))  # fmt: skip
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction_of)
    return a_model(node, {"x": x, "i": i, "u": numbers(random, x.shape)})


def of_constants(random):
    """Returns a node on constants only, followed by a node that also reads an input: the result has to be the same
    in each run."""
    op = pick(random, ["GatherND", "GatherElements", "Gather", "ScatterElements", "ScatterND", "Expand", "Tile", "CumSum",
                       "Transpose", "Slice"])  # fmt: skip
    d = numbers(random, (4, 4))
    i = random.permutation(4).astype(np.int64)
    two = np.asarray([1, 1], np.int64)
    made = {
        "GatherND": (["d", "i"], {"i": i[:, None]}, {}),
        "GatherElements": (["d", "i"], {"i": np.stack([i] * 4)}, {"axis": 1}),
        "Gather": (["d", "i"], {"i": i}, {}),
        "ScatterElements": (["d", "i", "v"], {"i": np.stack([i] * 4), "v": numbers(random, (4, 4))}, {"axis": 1}),
        "ScatterND": (["d", "i", "v"], {"i": i[:2, None], "v": numbers(random, (2, 4))}, {}),
        "Expand": (["d", "i"], {"i": two * 4}, {}),
        "Tile": (["d", "i"], {"i": two}, {}),
        "CumSum": (["d", "i"], {"i": np.asarray(1, np.int64)}, {}),
        "Transpose": (["d"], {}, {}),
        "Slice": (["d", "i", "e"], {"i": two * 0, "e": two * 4}, {}),
    }
    names, constants, attributes = made[op]
    after = pick(random, ["Add", "Sub", "Mul", "Max"])
    nodes = [helper.make_node(op, names, ["c"], **attributes), helper.make_node(after, ["c", "u"], ["y"])]
    return a_model(nodes, {"u": numbers(random, (4, 4))}, {"d": d, **constants})


def rearrangement(random):
    x = numbers(random, (2, 8, 4, 6))
    op = pick(random, ["DepthToSpace", "SpaceToDepth", "Transpose", "Pad", "Slice", "Split", "CumSum", "Trilu", "TopK",
                       "Tile", "ReverseSequence", "OneHot"])  # fmt: skip
    if op == "DepthToSpace":
        return a_model(helper.make_node(op, ["x"], ["y"], blocksize=2, mode=pick(random, ["DCR", "CRD"])), {"x": x})
    if op == "SpaceToDepth":
        return a_model(helper.make_node(op, ["x"], ["y"], blocksize=2), {"x": x})
    if op == "Transpose":
        return a_model(helper.make_node(op, ["x"], ["y"], perm=[int(p) for p in random.permutation(4)]), {"x": x})
    if op == "Pad":
        mode = pick(random, ["constant", "reflect", "edge", "wrap"])
        pads = random.integers(-1 if mode == "constant" else 0, 2, 8).astype(np.int64)
        return a_model(helper.make_node(op, ["x", "p"], ["y"], mode=mode), {"x": x}, {"p": pads})
    if op == "Slice":
        steps = np.asarray([pick(random, [-2, -1, 1, 2]) for _ in range(2)], np.int64)
        begin, end = np.where(steps > 0, 0, 7), np.where(steps > 0, 6, -9)
        constants = {"b": begin.astype(np.int64), "e": end.astype(np.int64), "a": np.asarray([1, -1]), "s": steps}
        return a_model(helper.make_node(op, ["x", *constants], ["y"]), {"x": x}, constants)
    if op == "Split":
        return a_model(
            helper.make_node(op, ["x"], ["y", "z", "w"], axis=1, num_outputs=3), {"x": x}, (), ("y", "z", "w")
        )
    if op == "CumSum":
        node = helper.make_node(op, ["x", "a"], ["y"], exclusive=pick(random, [0, 1]), reverse=pick(random, [0, 1]))
        return a_model(node, {"x": x}, {"a": np.asarray(random.integers(-4, 4), np.int64)})
    if op == "Trilu":
        node = helper.make_node(op, ["x", "k"], ["y"], upper=pick(random, [0, 1]))
        return a_model(node, {"x": x}, {"k": np.asarray(random.integers(-3, 4), np.int64)})
    if op == "TopK":
        node = helper.make_node(
            op, ["x", "k"], ["y", "i"], axis=int(random.integers(-4, 4)), largest=pick(random, [0, 1])
        )
        return a_model(node, {"x": x}, {"k": np.asarray([2], np.int64)}, ("y", "i"))
    if op == "Tile":
        return a_model(
            helper.make_node(op, ["x", "r"], ["y"]), {"x": x}, {"r": random.integers(1, 3, 4).astype(np.int64)}
        )
    if op == "ReverseSequence":
        node = helper.make_node(op, ["x", "n"], ["y"], batch_axis=0, time_axis=1)
        return a_model(node, {"x": x, "n": random.integers(1, 9, 2).astype(np.int64)})
    node = helper.make_node(op, ["i", "d", "v"], ["y"], axis=pick(random, [-1, 0, 1]))
    constants = {"d": np.asarray(5, np.int64), "v": np.asarray([-1, 2], np.float32)}
    return a_model(node, {"i": random.integers(-5, 5, (2, 3)).astype(np.int64)}, constants)


def normalization(random):
    x = numbers(random, (2, 6, 5, 4))
    op = pick(random, ["Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "GroupNormalization", "LpNormalization",
                       "InstanceNormalization", "LRN", "BatchNormalization", "MeanVarianceNormalization"])  # fmt: skip
    axis = int(random.integers(-4, 4))
    if op in ("Softmax", "LogSoftmax", "Hardmax"):
        return a_model(helper.make_node(op, ["x"], ["y"], axis=axis), {"x": x})
    if op == "LpNormalization":
        return a_model(helper.make_node(op, ["x"], ["y"], axis=axis, p=pick(random, [1, 2])), {"x": x})
    if op == "LRN":
        attributes = {
            "size": pick(random, [1, 3, 5]),
            "alpha": 0.5,
            "beta": pick(random, [0.5, 0.75, 1.0]),
            "bias": 1.5,
        }
        return a_model(helper.make_node(op, ["x"], ["y"], **attributes), {"x": x})
    if op == "MeanVarianceNormalization":
        return a_model(helper.make_node(op, ["x"], ["y"], axes=pick(random, [[0, 2, 3], [1], [2, 3]])), {"x": x})
    if op == "LayerNormalization":
        wide = x.shape[axis:]
        constants = {"s": numbers(random, wide), "b": numbers(random, wide)}
        return a_model(helper.make_node(op, ["x", "s", "b"], ["y"], axis=axis), {"x": x}, constants)
    constants = {"s": numbers(random, (6,)), "b": numbers(random, (6,))}
    if op == "BatchNormalization":
        constants |= {"m": numbers(random, (6,)), "v": np.abs(numbers(random, (6,))) + 1}
        return a_model(helper.make_node(op, ["x", "s", "b", "m", "v"], ["y"]), {"x": x}, constants)
    attributes = {"num_groups": 3} if op == "GroupNormalization" else {}
    opset = 21 if op == "GroupNormalization" else 20
    return a_model(helper.make_node(op, ["x", "s", "b"], ["y"], **attributes), {"x": x}, constants, opset=opset)


def products(random):
    op = pick(random, ["MatMul", "Gemm", "Einsum", "MatMulInteger"])
    if op == "MatMul":
        a, b = pick(
            random, [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (4, 5)), ((4,), (4,))]
        )
        return a_model(helper.make_node(op, ["a", "b"], ["y"]), {"a": numbers(random, a), "b": numbers(random, b)})
    if op == "Gemm":
        one, two = pick(random, [0, 1]), pick(random, [0, 1])
        a, b = ((4, 3) if one else (3, 4)), ((5, 4) if two else (4, 5))
        node = helper.make_node(
            op, ["a", "b", "c"], ["y"], transA=one, transB=two, alpha=0.5, beta=pick(random, [0.0, 2.0])
        )
        return a_model(node, {"a": numbers(random, a), "b": numbers(random, b), "c": numbers(random, (5,))})
    if op == "Einsum":
        equation, a, b = pick(random, [("ij,jk->ik", (3, 4), (4, 5)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
                                       ("ij,ij->j", (3, 4), (3, 4)), ("i,j->ij", (3,), (4,))])  # fmt: skip
        node = helper.make_node(op, ["a", "b"], ["y"], equation=equation)
        return a_model(node, {"a": numbers(random, a), "b": numbers(random, b)})
    a = random.integers(0, 256, (3, 4)).astype(pick(random, [np.uint8, np.uint8]))
    b = random.integers(-128, 128, (4, 5)).astype(np.int8)
    node = helper.make_node(op, ["a", "b", "p"], ["y"])
    return a_model(node, {"a": a, "b": b}, {"p": np.asarray(random.integers(0, 256), np.uint8)})


def quantization(random):
    axis = pick(random, [0, 1, -1])
    x = numbers(random, (3, 4, 5))
    per_axis = pick(random, [True, False])
    size = (x.shape[axis],) if per_axis else ()
    dtype = pick(random, [np.int8, np.uint8])
    scale = (random.random(size) * 0.2 + 0.01).astype(np.float32)
    zero = random.integers(0, 20, size).astype(dtype)
    attributes = {"axis": axis} if per_axis else {}
    constants = {"s": np.asarray(scale), "z": np.asarray(zero)}
    if pick(random, [True, False]):
        return a_model(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attributes), {"x": x}, constants)
    q = random.integers(0, 100, x.shape).astype(dtype)
    return a_model(helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes), {"q": q}, constants)


def resizing(random):
    mode = pick(random, ["nearest", "linear", "cubic"])
    attributes = {"mode": mode, "coordinate_transformation_mode": pick(
        random, ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])}  # fmt: skip
    if mode == "nearest":
        attributes["nearest_mode"] = pick(random, ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = pick(random, [-0.75, -0.5])
    x = {"x": numbers(random, (1, 2, 5, 6))}
    if pick(random, [True, False]):
        scales = np.asarray([1, 1, *random.choice([0.5, 0.6, 0.8, 1.5, 2, 2.6], 2)], np.float32)
        return a_model(helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes), x, {"scales": scales})
    sizes = np.asarray([1, 2, *random.integers(2, 12, 2)], np.int64)
    return a_model(helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes), x, {"sizes": sizes})


def recurrence(random):
    op, gates = pick(random, [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
    direction = pick(random, ["forward", "reverse", "bidirectional"])
    ways, hidden = (2 if direction == "bidirectional" else 1), 3
    attributes = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = pick(random, [0, 1])
    constants = {"w": numbers(random, (ways, gates * hidden, 4)) / 3, "r": numbers(random, (ways, gates * hidden, hidden)) / 3,
                 "b": numbers(random, (ways, 2 * gates * hidden)) / 3}  # fmt: skip
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y"], **attributes)
    return a_model(node, {"x": numbers(random, (5, 2, 4)) / 3}, constants)


def transforms(random):
    rank = pick(random, [2, 3])
    shape = (*(int(size) for size in random.integers(2, 9, rank)), pick(random, [1, 2]))
    inverse = pick(random, [0, 1])
    attributes = {"inverse": inverse, "onesided": pick(random, [0, 1]) if shape[-1] == 1 and not inverse else 0}
    axis = int(random.integers(0, rank)) - pick(random, [0, rank + 1])
    node = helper.make_node("DFT", ["x", "", "a"], ["y"], **attributes)
    return a_model(node, {"x": numbers(random, shape)}, {"a": np.asarray(axis, np.int64)})


def ties(random):
    """Returns a TopK of many equal numbers, where the lowest indices come first."""
    shape, axis = pick(random, [((2, 500, 3), 1), ((2, 3, 500), -1), ((2, 500), -1), ((500,), 0), ((500, 2, 3), 0)])
    x = np.round(numbers(random, shape)).astype(pick(random, [np.float32, np.int32, np.int64]))
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=pick(random, [0, 1]))
    return a_model(node, {"x": x}, {"k": np.asarray([pick(random, [1, 20, 400])], np.int64)}, ("y", "i"))


INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
# Integer types that graft.Session accepts and returns; others are converted by Casts.
OF_SESSIONS = (np.int8, np.uint8, np.int32, np.int64)
BLAMED = "blamed"  # Key of the model's metadata: the index of the tested node.


def any_integers(random, shape, dtype):
    """Returns numbers of the whole range, whose products and sums wrap; for 64-bit types, of the 32-bit range."""
    info = np.iinfo(dtype if np.dtype(dtype).itemsize < 8 else np.int32)  # noqa: PLR2004
    low = 0 if np.dtype(dtype).kind == "u" else info.min
    few = random.integers(max(low, -9), 10, shape)
    return np.where(random.random(shape) < 0.5, random.integers(low, info.max, shape), few).astype(dtype)  # noqa: PLR2004


def between_casts(node, inputs, constants=()):
    """Returns the model of a node of integers. Where graft.Session does not accept a type, the inputs and the result
    are cast."""
    kinds = {np.dtype(value.dtype) for value in inputs.values()}
    if all(kind in OF_SESSIONS for kind in kinds):
        return a_model(node, inputs, constants)
    given = {name: value.astype(np.int64) for name, value in inputs.items()}
    before = [
        helper.make_node("Cast", [name], [f"{name}_cast"], to=helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype)))
        for name, value in inputs.items()
    ]
    node.input[:] = [f"{name}_cast" if name in inputs else name for name in node.input]
    node.output[:] = ["y_narrow"]
    after = helper.make_node("Cast", ["y_narrow"], ["y"], to=onnx.TensorProto.INT64)
    case = a_model([*before, node, after], given, constants)
    helper.set_model_props(case.model, {BLAMED: str(len(before))})
    return case


def integers(random):
    """Returns a node of integer arithmetic, which wraps, in any integer type."""
    dtype = pick(random, INTEGERS)
    one = ["Abs", "Neg", "Sign", "BitwiseNot", "ReduceSum", "ReduceMax", "ReduceProd"]
    two = ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Equal",
           "Less", "Pow"]  # fmt: skip
    op = pick(random, one + two)
    shape = shape_of(random, 3)
    a = any_integers(random, shape, dtype)
    if op in one:
        return between_casts(helper.make_node(op, ["a"], ["y"]), {"a": a})
    b = any_integers(random, pick(random, [shape, shape[-1:], ()]), dtype)
    attributes = {}
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.asarray(1, dtype), b).astype(dtype)
    if op == "BitShift":
        b, attributes = (b % 8).astype(dtype), {"direction": pick(random, ["LEFT", "RIGHT"])}
    if op == "Pow":
        b = (b % 3).astype(dtype)
    return between_casts(helper.make_node(op, ["a", "b"], ["y"], **attributes), {"a": a, "b": np.asarray(b)})


def casts(random):
    """Returns a Cast between any two types, of numbers that both represent."""
    to = pick(random, [*INTEGERS, np.float32, bool])
    given = pick(random, [np.float32, *OF_SESSIONS])
    low = 0 if np.dtype(to).kind == "u" or np.dtype(given).kind == "u" else -100
    x = random.uniform(low, 100, shape_of(random, 2)).astype(given)
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    if np.dtype(to) in OF_SESSIONS or to in (bool, np.float32):
        return a_model(node, {"x": x})
    node.output[:] = ["c"]
    return a_model([node, helper.make_node("Cast", ["c"], ["y"], to=onnx.TensorProto.INT64)], {"x": x})


def left_out(random):
    """Returns a node with left-out optional inputs, also between others."""
    x = numbers(random, (2, 3, 4, 5))
    some = {name: np.asarray(value) for name, value in {
        "low": np.float32(-1), "high": np.float32(2), "axes": np.asarray([1, -1]), "begin": np.asarray([0, 1]),
        "end": np.asarray([3, 3]), "steps": np.asarray([1, 2]), "pads": np.asarray([1, 0, 0, 1]), "k": np.int64(1),
        "scale": np.float32(0.1), "zero": np.int8(3)}.items()}  # fmt: skip
    wide = {"s": numbers(random, (5,)), "w": numbers(random, (4, 3, 2, 2)), "a": numbers(random, (2, 3, 5, 2))}
    op, names, attributes = pick(random, [
        ("Clip", ["low"], {}), ("Clip", ["", "high"], {}), ("Clip", [], {}), ("Slice", ["begin", "end"], {}),
        ("Slice", ["begin", "end", "axes"], {}), ("Slice", ["begin", "end", "", "steps"], {}),
        ("Pad", ["pads", "", "axes"], {}), ("Pad", ["pads", "low", "axes"], {}), ("ReduceSum", [], {}),
        ("ReduceSum", [], {"noop_with_empty_axes": 1}), ("ReduceMax", [], {"keepdims": 0}), ("Squeeze", [], {}),
        ("Trilu", [], {}), ("Trilu", ["k"], {"upper": 0}), ("QuantizeLinear", ["scale"], {}),
        ("QuantizeLinear", ["scale", "zero"], {}), ("LayerNormalization", ["s"], {}), ("Conv", ["w"], {}),
        ("Gemm", ["a"], {}), ("Dropout", [], {}), ("Dropout", ["scale"], {}), ("Unsqueeze", ["axes"], {})])  # fmt: skip
    if op == "Gemm":
        x, wide["a"] = numbers(random, (3, 4)), numbers(random, (4, 2))
    if op == "Squeeze":
        x = x[:1, :, :1]
    constants = {name: (some | wide)[name] for name in names if name}
    return a_model(helper.make_node(op, ["x", *names], ["y"], **attributes), {"x": x}, constants)


def pairs_of_attributes(random):
    """Returns a node with a rare combination of attributes."""
    op = pick(random, ["MaxPool", "AveragePool", "LpPool", "LSTM", "GRU", "RNN", "Resize", "Conv", "ConvTranspose",
                       "GridSample", "Softmax", "TopK"])  # fmt: skip
    x = numbers(random, (2, 3, int(random.integers(6, 10)), int(random.integers(6, 10))))
    if op.endswith("Pool"):
        attributes = {"kernel_shape": [pick(random, [2, 3]), pick(random, [2, 3])],
                      "strides": [pick(random, [1, 2]), pick(random, [1, 2, 3])], "ceil_mode": pick(random, [0, 1])}  # fmt: skip
        if pick(random, [True, False]):
            attributes["auto_pad"] = pick(random, ["SAME_UPPER", "SAME_LOWER", "VALID"])
        else:
            attributes["pads"] = [int(pad) for pad in random.integers(0, 2, 4)]
        if op == "MaxPool":
            attributes["storage_order"] = pick(random, [0, 1])
            return a_model(helper.make_node(op, ["x"], ["y", "i"], **attributes), {"x": x}, (), ("y", "i"))
        if op == "AveragePool":
            attributes["count_include_pad"] = pick(random, [0, 1])
        return a_model(helper.make_node(op, ["x"], ["y"], **attributes), {"x": np.abs(x)})
    if op in ("LSTM", "GRU", "RNN"):
        gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 3
        attributes = {"hidden_size": hidden}
        if pick(random, [True, False]):
            attributes["clip"] = 0.2
        if op == "LSTM" and pick(random, [True, False]):
            attributes["input_forget"] = 1
        if op == "GRU":
            attributes["linear_before_reset"] = pick(random, [0, 1])
        if pick(random, [True, False]):
            attributes["layout"] = 1
        constants = {"w": numbers(random, (1, gates * hidden, 4)) / 3, "r": numbers(random, (1, gates * hidden, hidden)) / 3,
                     "b": numbers(random, (1, 2 * gates * hidden)) / 3, "n": np.asarray([5, 2], np.int32)}  # fmt: skip
        names = pick(random, [["w", "r"], ["w", "r", "b"], ["w", "r", "", "n"], ["w", "r", "b", "n"]])
        x = numbers(random, (2, 5, 4) if "layout" in attributes else (5, 2, 4)) / 3
        used = {name: constants[name] for name in names if name}
        return a_model(helper.make_node(op, ["x", *names], ["y", "h"], **attributes), {"x": x}, used, ("y", "h"))
    if op == "Resize":
        attributes = {"mode": pick(random, ["nearest", "linear", "cubic"]), "antialias": pick(random, [0, 0, 1]),
                      "coordinate_transformation_mode": pick(random, ["half_pixel", "align_corners", "half_pixel_symmetric"]),
                      "exclude_outside": pick(random, [0, 1])}  # fmt: skip
        if attributes["mode"] == "nearest":
            attributes["antialias"] = attributes["exclude_outside"] = 0
        sizes = np.asarray([2, 3, *random.integers(3, 14, 2)], np.int64)
        return a_model(helper.make_node(op, ["x", "", "", "n"], ["y"], **attributes), {"x": x}, {"n": sizes}, opset=19)
    if op in ("Conv", "ConvTranspose"):
        attributes = {"auto_pad": pick(random, ["SAME_UPPER", "SAME_LOWER", "VALID"]), "group": pick(random, [1, 3]),
                      "strides": [pick(random, [1, 2]), pick(random, [1, 2])]}  # fmt: skip
        group = attributes["group"]
        w = numbers(random, (6, 3 // group, 3, 2) if op == "Conv" else (3, 6 // group, 3, 2))
        return a_model(helper.make_node(op, ["x", "w"], ["y"], **attributes), {"x": x}, {"w": w})
    if op == "GridSample":
        attributes = {"mode": pick(random, ["linear", "nearest", "cubic"]), "align_corners": pick(random, [0, 1]),
                      "padding_mode": pick(random, ["zeros", "border", "reflection"])}  # fmt: skip
        grid = random.uniform(-1.4, 1.4, (2, 4, 5, 2)).astype(np.float32)
        return a_model(helper.make_node(op, ["x", "g"], ["y"], **attributes), {"x": x, "g": grid})
    if op == "Softmax":
        return a_model(helper.make_node(op, ["x"], ["y"], axis=int(random.integers(-4, 4))), {"x": x * 30})
    attributes = {"axis": int(random.integers(-4, 4)), "largest": pick(random, [0, 1]), "sorted": 1}
    k = np.asarray([pick(random, [1, 2])], np.int64)
    return a_model(helper.make_node(op, ["x", "k"], ["y", "i"], **attributes), {"x": x}, {"k": k}, ("y", "i"))


KINDS = (elementwise, binary, reduction, arguments, pooling, convolution, gathering, scattering, of_constants,
         rearrangement, normalization, products, quantization, resizing, recurrence,
         transforms, ties, integers, casts, left_out, pairs_of_attributes)  # fmt: skip


# Other forms of a model


def with_symbolic_sizes(case):
    """Returns the case with symbolic sizes of all inputs; None where no input has a size."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    found = False
    for info in model.graph.input:
        if not info.type.HasField("tensor_type"):
            return None
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}_{axis}"
            found = True
    for info in model.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return case._replace(name=f"{case.name}_dynamic", model=model) if found else None


def behind(case, control):
    """Returns the case with symbolic sizes and a first input that an If or a Loop computes; None where this input is
    not f32, or the model has more than one node."""
    dynamic = with_symbolic_sizes(case) if len(case.model.graph.node) == 1 else None
    if dynamic is None or not dynamic.model.graph.input:
        return None
    graph = dynamic.model.graph
    info = graph.input[0]
    name = info.name
    if info.type.tensor_type.elem_type != onnx.TensorProto.FLOAT or name in {t.name for t in graph.initializer}:
        return None
    sets = case.data_sets
    info.name = f"{name}_given"
    graph.initializer.append(numpy_helper.from_array(np.float32(1), f"{name}_one"))
    real = helper.make_tensor_value_info

    def body(node, result, inputs=(), more=(), outputs=()):
        return helper.make_graph([node, *more], result, inputs, [*outputs, real(result, onnx.TensorProto.FLOAT, None)])

    one = f"{name}_one"
    if control == "If":
        graph.input.append(real(f"{name}_flag", onnx.TensorProto.BOOL, []))
        sets = [([*inputs, np.asarray(True)], expected) for inputs, expected in case.data_sets]
        then = body(helper.make_node("Mul", [info.name, one], [f"{name}_then"]), f"{name}_then")
        other = body(helper.make_node("Neg", [info.name], [f"{name}_else"]), f"{name}_else")
        made = helper.make_node("If", [f"{name}_flag"], [name], then_branch=then, else_branch=other)
    else:
        graph.initializer.append(numpy_helper.from_array(np.int64(2), f"{name}_times"))
        inputs = [real(f"{name}_i", onnx.TensorProto.INT64, []), real(f"{name}_c", onnx.TensorProto.BOOL, []),
                  real(f"{name}_v", onnx.TensorProto.FLOAT, None)]  # fmt: skip
        keep = helper.make_node("Identity", [f"{name}_c"], [f"{name}_k"])
        step = helper.make_node("Mul", [f"{name}_v", one], [f"{name}_w"])
        flags = [real(f"{name}_k", onnx.TensorProto.BOOL, [])]
        made = helper.make_node(
            "Loop", [f"{name}_times", "", info.name], [name], body=body(step, f"{name}_w", inputs, [keep], flags)
        )
    node = graph.node[0]
    del graph.node[:]
    graph.node.extend([made, node])
    helper.set_model_props(dynamic.model, {BLAMED: "1"})
    return dynamic._replace(name=f"{case.name}_after_{control.lower()}", data_sets=sets)


def forms_of(case):
    """Returns the case in its other forms."""
    forms = [with_symbolic_sizes(case), behind(case, "If"), behind(case, "Loop")]
    return [form for form in forms if form is not None]


def forms_of_all(cases):
    """Returns every second case with symbolic sizes, and every eighth case also after an If and after a Loop."""
    share = 8
    return [
        form for i, case in enumerate(cases[::2]) for form in forms_of(case)[: None if i % (share // 2) == 0 else 1]
    ]


def blamed_node(case):
    """Returns the tested node: the one in the model's metadata, otherwise the first, whose result a second node may
    overwrite."""
    places = {prop.key: int(prop.value) for prop in case.model.metadata_props if prop.key == BLAMED}
    return case.model.graph.node[places.get(BLAMED, 0)]


def seeded_case(name, seed):
    """Returns the case of a kind and a seed; None where onnx.reference does not run it."""
    [(number, kind)] = [(number, kind) for number, kind in enumerate(KINDS) if kind.__name__ == name]
    case = kind(np.random.default_rng([number, seed]))
    inputs = case.data_sets[0][0]
    names = [info.name for info in case.model.graph.input]
    try:
        expected = ReferenceEvaluator(case.model).run(None, dict(zip(names, inputs, strict=True)))
    except Exception:  # noqa: BLE001 - each operator fails in its own way
        return None
    return case._replace(name=f"seeded_{name}_{seed}", data_sets=[(inputs, expected)])


def seeded_cases(count):
    """Returns `count` cases of each kind."""
    cases = [seeded_case(kind.__name__, seed) for kind in KINDS for seed in range(count)]
    return [case for case in cases if case is not None]


# Runs


def outcome(engine, model, data_sets, rtol, atol):
    """Returns (RIGHT, WRONG or REFUSED, the reason)."""
    import graft  # noqa: PLC0415 - in the process that may die

    try:
        session = graft.Session(graft.load(model, progress=False), engine=engine, threads=1, progress=False)
        for inputs, expected in data_sets:
            names = [info.name for info in real_inputs(model)]
            feeds = {name: value for name, value in zip(names, inputs, strict=False) if value is not None}
            for run in range(RUNS):
                found = session.run(feeds)
                wrong = difference([found[output.name] for output in model.graph.output], expected, rtol, atol)
                if wrong:
                    return WRONG, (f"right once, then in run {run + 1}: " if run else "") + wrong
    except Exception as refused:  # noqa: BLE001 - types that graft.Session does not take are refused, too
        return REFUSED, str(refused)
    return RIGHT, ""


def outcomes_of(engine, cases):
    """Runs cases in one process, which a case may crash."""
    return [outcome(engine, *case[1:5]) for case in cases]


def run_part(engine, cases):
    """Returns a result for each case. Where the process dies, its cases run in smaller parts, and finally one by
    one."""
    context = multiprocessing.get_context("spawn")
    try:
        with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            return pool.submit(outcomes_of, engine, cases).result()
    except concurrent.futures.process.BrokenProcessPool:
        if len(cases) == 1:
            return [(WRONG, "the process died")]
        return [found for part in parts_of(cases, (len(cases) + 3) // 4) for found in run_part(engine, part)]


def parts_of(cases, size=256):
    return [cases[begin : begin + size] for begin in range(0, len(cases), size)]


def run_all(engine, cases):
    """Returns a result for each case, computed by one process per core."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        return [found for part in threads.map(functools.partial(run_part, engine), parts_of(cases)) for found in part]


def plain(case):
    """Returns the case with arrays only, which can be sent to another process, and None for left-out inputs; None
    for a case with lists or strings."""
    sets = []
    for inputs, expected in case.data_sets:
        values = [None if value is None else to_array(value) for value in (*inputs, *expected)]
        if any(value is not None and not isinstance(value, np.ndarray) for value in values):
            return None
        if any(value is not None and value.dtype.kind in "OUST" for value in values):
            return None
        sets.append((values[: len(inputs)], values[len(inputs) :]))
    return case._replace(data_sets=sets, atol=max(case.atol, rounding_of(case, sets)))


def rounding_of(case, sets):
    """Returns the error that f32 explains for any order of sums, where ONNX's tests allow 1e-7. A tie between two
    quantization steps may be rounded either way."""
    if case.model.graph.node[-1].op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
        return 1
    largest = 0.0
    for value in (value for _, expected in sets for value in expected if value is not None):
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else np.zeros(0)
        largest = max(largest, float(np.abs(finite).max(initial=0)))
    return 1e-5 * largest


def is_reference_right(case):
    try:
        for inputs, expected in case.data_sets:
            names = [info.name for info in real_inputs(case.model)]
            feeds = {name: value for name, value in zip(names, inputs, strict=False) if value is not None}
            if difference(ReferenceEvaluator(case.model).run(None, feeds), expected, case.rtol, case.atol):
                return False
    except Exception:  # noqa: BLE001
        return False
    return True


# Common properties of the cases of an engine's faults


def literals(case):
    """Returns the properties of the tested node."""
    graph = case.model.graph
    node = blamed_node(case)
    controlled = {name for one in graph.node if one.op_type in ("If", "Loop", "Scan") for name in one.output}
    types = {
        info.name: info.type.tensor_type for info in onnx.shape_inference.infer_shapes(case.model).graph.value_info
    }
    types |= {info.name: info.type.tensor_type for info in graph.input}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    found = set()
    for name in onnx.defs.get_schema(node.op_type, case.model.opset_import[0].version, node.domain).attributes:
        found.add(f"{name}=absent")
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        found.discard(f"{attribute.name}=absent")
        if isinstance(value, (int, float, bytes)):
            text = value.decode() if isinstance(value, bytes) else f"{value:g}"
            found.add(f"{attribute.name}={text}")
    for i, name in enumerate(node.input):
        if not name:
            continue
        found.add(f"given({i})")
        if name in constants:
            tensor = constants[name]
            found |= {f"constant({i})", f"type({i})={type_name(tensor.data_type)}", f"rank({i})={len(tensor.dims)}"}
        elif name in types:
            found.add(f"computed({i})")
            found.add(f"type({i})={type_name(types[name].elem_type)}")
            found.add(f"rank({i})={len(types[name].shape.dim)}")
            if not all(dim.HasField("dim_value") for dim in types[name].shape.dim):
                found.add(f"dynamic({i})")
        if name in controlled:
            found |= {f"control({i})", f"dynamic({i})", f"computed({i})"}
    if node.op_type == "Resize" and has_fraction(case):
        found.add("fraction(2)")
    return found


def has_fraction(case):
    """Returns whether the sizes of a Resize times its scales are not integers; true where the scales are an input."""
    graph = case.model.graph
    node = blamed_node(case)
    if len(node.input) <= 2 or not node.input[2]:  # noqa: PLR2004
        return False
    scales = next((numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name == node.input[2]), None)
    shape = case.data_sets[0][0][0].shape
    if scales is None or len(scales) != len(shape):
        return True
    sizes = np.multiply(shape, scales)
    return bool((np.abs(sizes - np.round(sizes)) > 1e-3).any())  # noqa: PLR2004


def type_name(code):
    """Returns the name of an element type in the library."""
    names = {"float": "f32", "double": "f64"}
    text = onnx.TensorProto.DataType.Name(code).lower()
    return names.get(text, text.replace("float", "f").replace("uint", "u").replace("int", "i"))


def is_attribute(literal):
    """Returns whether a literal is about an attribute of the node with another value than the default."""
    return re.match(r"\w+=(?!absent)", literal) is not None


def worth(literal):
    """Returns the sort key of a literal. Among literals that explain as many cases the first is chosen: a present
    property is preferred to an absent one."""
    kinds = ("fraction", "given", "type", "dynamic", "control", "rank", "constant", "computed")
    kind = next((place for place, kind in enumerate(kinds, 1) if literal.startswith(f"{kind}(")), 0)
    if literal.endswith("=absent"):
        kind = len(kinds) + 1
    return kind, [-int(number) for number in re.findall(r"\((\d+)\)", literal)], literal


def rules_of(wrong, right):
    """Returns (rules with their cases, cases without a rule). A rule is a conjunction of at most three literals that
    is true for wrong cases and for no right one; each step takes one of the shortest, and among these the one that
    covers most of the remaining cases."""
    left, rules = dict(wrong), []
    while left:
        known = set.union(*left.values())
        best = None
        for size in (0, 1, 2, 3):
            for literals_ in itertools.combinations(sorted(known, key=worth), size):
                needed = set(literals_)
                if needed and all(literal.endswith("=absent") for literal in needed):
                    continue
                cases = [name for name, have in left.items() if needed <= have]
                if cases and not any(needed <= have for have in right) and (best is None or len(cases) > len(best[1])):
                    best = (literals_, cases)
            if best:
                break
        if best is None:
            return rules, sorted(left)
        rules.append(best)
        for name in best[1]:
            del left[name]
    return rules, []


def faults_of(engine, cases, results, others):
    """Returns ((operator, rule, cases) ..., cases without a rule)."""
    by_operator = collections.defaultdict(lambda: ({}, []))
    why = {}
    for case, (verdict, text), (other, _) in zip(cases, results[engine], others, strict=True):
        is_blamed = any(prop.key == BLAMED for prop in case.model.metadata_props)
        if len(case.model.graph.node) > 1 and not is_blamed and not case.name.startswith("seeded_of_constants"):
            continue
        operator = blamed_node(case).op_type
        if verdict == RIGHT:
            by_operator[operator][1].append(literals(case))
        if verdict == WRONG and (other == RIGHT or (not case.name.startswith("seeded") and is_reference_right(case))):
            by_operator[operator][0][case.name] = literals(case)
            why[case.name] = text
    found, unexplained = [], []
    for operator, (wrong, right) in sorted(by_operator.items()):
        if not wrong:
            continue
        # Where the same form is right with other numbers, the fault depends on the numbers, unless an attribute
        # contributes. The effect of a second node on a constant is that node's fault.
        by_numbers = {
            name: have
            for name, have in wrong.items()
            if have in right and not name.startswith("seeded_of_constants") and not any(map(is_attribute, have))
        }
        unexplained += [(operator, name, why[name]) for name in sorted(by_numbers)]
        wrong = {name: have for name, have in wrong.items() if name not in by_numbers}
        right = [have for have in right if have not in wrong.values()]
        rules, rest = rules_of(wrong, right)
        found += [(operator, rule, sorted(names), why[sorted(names)[0]]) for rule, names in rules]
        unexplained += [(operator, name, why[name]) for name in rest]
    return found, unexplained


# Output files


def shortened(text, most=160):
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 4] + " ..."


def table(found):
    lines = ["// Written by tools/seeded_nodes.py: engine, version, operator, condition, evidence."]
    for engine, (faults, _) in found.items():
        for operator, rule, names, why in faults:
            texts = [NAMES[engine], versions()[engine], operator, ", ".join(rule), shortened(f"{names[0]}: {why}")]
            lines.append("{" + ", ".join(json.dumps(text) for text in texts) + "},")
    return "\n".join(lines) + "\n"


def page(cases, results, found):
    lines = [
        "<!-- Written by tools/seeded_nodes.py. -->",
        "# The CPU engines, and what they get wrong",
        "",
        "ONNX Runtime is the reference for values, and OpenVINO proves rewrites (`--engine`, decision 0031). Single nodes were run",
        f"{RUNS} times each in both: ONNX's own tests of its operators, the same with their parameters as constants, and models with seeded",
        "attributes and numbers, whose results are those of onnx.reference; and each of these with symbolic sizes, and with its first input",
        "made by an If and by a Loop. A fault counts where the other engine is right, or onnx.reference has the results that ONNX stores.",
        f"The last row is what `graft run` and Python's `Session` return. Measured on {datetime.date.today().isoformat()}.",
        "",
        "| engine | models | right | refused | wrong |",
        "|---|---|---|---|---|",
    ]
    for engine, outcomes in results.items():
        counts = collections.Counter(verdict for verdict, _ in outcomes)
        name = f"{NAMES[engine]} {versions()[engine]}" if engine in NAMES else f"`--engine {engine}`"
        row = [name, len(cases), counts[RIGHT], counts[REFUSED], counts[WRONG]]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    lines += [
        "",
        "Models are refused if they have types that NumPy, Graft's sessions or the engine lack, strings or sequences, or if Graft does not pass them",
        "to OpenVINO because it would be wrong (src/runtime/openvino/guards.cpp). The other engine runs a refused model.",
        "",
        "## Known faults",
        "",
        "The other engine alone runs a model with such a node, unless it has a fault there too, and reports state this (decision",
        "0031). A form of a node counts if it was wrong for some numbers, even if it is right for others. The third column has the",
        "conditions that must all hold: an attribute has a value or is omitted (`absent`); input i exists (`given(i)`), is computed",
        "from constants only (`constant(i)`) or is not (`computed(i)`), has a type or a rank, has a size that is not fixed in the model",
        "(`dynamic(i)`), or is computed by an If, Loop or Scan (`control(i)`); or the sizes of input 0 times the scales in input i are",
        "not integers (`fraction(i)`).",
        "",
        "| engine | operator | where | models | the first of them |",
        "|---|---|---|---|---|",
    ]
    for engine, (faults, _) in found.items():
        for operator, rule, names, why in faults:
            cells = [NAMES[engine], operator, ", ".join(rule) or "always", len(names), shortened(f"{names[0]}: {why}")]
            lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    wrong = [case.name for case, (verdict, _) in zip(cases, results[AUTO], strict=True) if verdict == WRONG]
    if wrong:
        lines += [
            "",
            f"Wrong with `--engine {AUTO}`, which compares with ONNX's or onnx.reference's results: {', '.join(wrong)}.",
        ]
    unexplained = [(NAMES[engine], *fault) for engine, (_, rest) in found.items() for fault in rest]
    if unexplained:
        lines += [
            "",
            "## Wrong for some numbers",
            "",
            "Nodes of the same form are right with other numbers, so nothing is routed round:",
            "",
        ]
        lines += [
            f"- {engine}, {operator}: {shortened(f'{name}: {why}')}" for engine, operator, name, why in unexplained
        ]
    return "\n".join(lines) + "\n"


def versions():
    import onnxruntime  # noqa: PLC0415
    import openvino  # noqa: PLC0415

    return {"openvino": openvino.__version__.split("-")[0], "onnxruntime": onnxruntime.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60, help="models of each kind")
    parser.add_argument("--only", default="", help="a pattern of the cases' names")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in node_cases() if not case.name.startswith(tuple(LEFT_OUT))]
        cases += [c._replace(name=f"{c.name}_of_constants") for c in map(with_constants, cases) if c is not None]
        cases += seeded_cases(arguments.seeds)
        cases += forms_of_all([case for case in map(plain, cases) if case is not None])
        cases = [case for case in map(plain, cases) if case is not None and re.search(arguments.only, case.name)]
    results = {engine: run_all(engine, cases) for engine in ENGINES}
    # Where ONNX Runtime is right, auto returns its result.
    doubtful = [place for place, (verdict, _) in enumerate(results["onnxruntime"]) if verdict != RIGHT]
    automatic = dict(zip(doubtful, run_all(AUTO, [cases[place] for place in doubtful]), strict=True))
    results[AUTO] = [automatic.get(place, (RIGHT, "")) for place in range(len(cases))]
    found = {engine: faults_of(engine, cases, results, results[other]) for engine, other in (ENGINES, ENGINES[::-1])}
    if arguments.only:
        print(page(cases, results, found))
        return
    INC.write_text(table(found))
    PAGE.write_text(page(cases, results, found))


if __name__ == "__main__":
    main()
