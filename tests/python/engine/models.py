# Small ONNX models for the engine driver's tests.
from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_models
from onnx import TensorProto, helper

OPSET = 17


def save(
    path: pathlib.Path,
    nodes: list[onnx.NodeProto],
    shape: Sequence[int | str],
    dtype: int = TensorProto.FLOAT,
    initializers: Sequence[onnx.TensorProto] | Mapping[str, np.ndarray] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    output_dtype: int | None = None,
) -> pathlib.Path:
    """Saves a model with one input x and one output y."""
    domains = sorted(({node.domain for node in nodes} | {function.domain for function in functions}) - {""})
    ends = [("x", dtype, shape)], [("y", output_dtype or dtype, None)]
    return onnx_models.save(path, nodes, *ends, initializers, OPSET, functions=functions, domains=domains, ir_version=9)


def convolution(path: pathlib.Path) -> pathlib.Path:
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3), dtype=np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Sigmoid", ["a"], ["y"], name="sigmoid"),
    ]
    return save(path, nodes, [1, 3, 8, 8], initializers={"w": weights})


def dynamic(path: pathlib.Path) -> pathlib.Path:
    return save(path, [helper.make_node("Relu", ["x"], ["y"], name="relu")], ["batch", 3, "height", "width"])


def frozen_batch(path: pathlib.Path) -> pathlib.Path:
    """Saves a model with a batch that is declared dynamic but reshaped to 1, as exporters write it."""
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"], name="frozen")
    return save(path, [node], ["batch", 3, 4], initializers={"sizes": np.array([1, 12], np.int64)})


def two_inputs(path: pathlib.Path) -> pathlib.Path:
    """Saves a model with two inputs whose first dimensions have the same name."""
    inputs = [(name, ["batch", 3]) for name in ("x", "y")]
    node = helper.make_node("Add", ["x", "y"], ["z"], name="add")
    return onnx_models.save(path, [node], inputs, [("z", None)], opset=OPSET, ir_version=9)


def custom(
    path: pathlib.Path, op_type: str, shape: Sequence[int | str] = (1, 3, 8, 8), **attributes: Any
) -> pathlib.Path:
    return save(path, [helper.make_node(op_type, ["x"], ["y"], name="custom", domain="graft", **attributes)], shape)


def fixture(path: pathlib.Path, op_type: str, **attributes: Any) -> pathlib.Path:
    return custom(path, op_type, plugin_version="1", plugin_namespace="fixture", **attributes)
