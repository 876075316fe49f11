# Small ONNX models for the engine driver's tests.
from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def value(name: str, dtype: int, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def save(
    path: pathlib.Path,
    nodes: list[onnx.NodeProto],
    shape: Sequence[int | str],
    dtype: int = TensorProto.FLOAT,
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    output_dtype: int | None = None,
) -> pathlib.Path:
    """Saves a model with one input x and one output y."""
    graph = helper.make_graph(
        nodes, "g", [value("x", dtype, shape)], [value("y", output_dtype or dtype, None)], list(initializers)
    )
    domains = sorted({""} | {node.domain for node in nodes} | {function.domain for function in functions})
    opsets = [helper.make_opsetid(domain, 1 if domain else OPSET) for domain in domains]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def convolution(path: pathlib.Path) -> pathlib.Path:
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3), dtype=np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Sigmoid", ["a"], ["y"], name="sigmoid"),
    ]
    return save(path, nodes, [1, 3, 8, 8], initializers=[numpy_helper.from_array(weights, "w")])


def dynamic(path: pathlib.Path) -> pathlib.Path:
    return save(path, [helper.make_node("Relu", ["x"], ["y"], name="relu")], ["batch", 3, "height", "width"])


def frozen_batch(path: pathlib.Path) -> pathlib.Path:
    """Saves a model with a batch that is declared dynamic but reshaped to 1, as exporters write it."""
    sizes = numpy_helper.from_array(np.array([1, 12], np.int64), "sizes")
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"], name="frozen")
    return save(path, [node], ["batch", 3, 4], initializers=[sizes])


def two_inputs(path: pathlib.Path) -> pathlib.Path:
    """Saves a model with two inputs whose first dimensions have the same name."""
    inputs = [value(name, TensorProto.FLOAT, ["batch", 3]) for name in ("x", "y")]
    node = helper.make_node("Add", ["x", "y"], ["z"], name="add")
    graph = helper.make_graph([node], "g", inputs, [value("z", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def custom(
    path: pathlib.Path, op_type: str, shape: Sequence[int | str] = (1, 3, 8, 8), **attributes: Any
) -> pathlib.Path:
    return save(path, [helper.make_node(op_type, ["x"], ["y"], name="custom", domain="graft", **attributes)], shape)


def fixture(path: pathlib.Path, op_type: str, **attributes: Any) -> pathlib.Path:
    return custom(path, op_type, plugin_version="1", plugin_namespace="fixture", **attributes)
