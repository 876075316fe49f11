# Tests --layers: how TensorRT's description of the kernels in an engine is parsed.
from __future__ import annotations

import json
import pathlib

import models
import numpy as np
from conftest import drive
from graft.engine.layers import read_inspected, read_layers
from onnx import helper, numpy_helper

# The format of TensorRT-RTX 1.7; the node's name has characters that are hard to parse.
ACCOUNT = (
    "Layers:\n"
    "Name: a [b], LayerType: x, c_myl0_1, LayerType: correlation, Inputs: [ { Name: in {1}, Dimensions: [1,16,8,8], "
    "Strides: [1024,1,128,16], StrideOrder: [3,0,2,1], Datatype: Int8, Format: (NHWC) Channel major format }, "
    "{ Name: s, Dimensions: [], Strides: [], StrideOrder: [], Datatype: Half, Format: (Linear) }], Constants: [ { Name: "
    "w, Dimensions: [16,16,3,3], Datatype: Int8, Format: (NHWC) Channel major format }], Outputs: [ { Name: out, "
    "Dimensions: [1,16,8,8], Datatype: Float, Format: (NHWC) Channel major format }], TacticName: stub, StreamId: 0, "
    "Metadata: [ONNX Layer: a [b], LayerType: x, c]\x1f[ONNX Layer: dq]\n"
    "Name: shapes, LayerType: shape_call, Inputs: [], Constants: [], Outputs: [], TacticName: , StreamId: 0, Metadata: \n"
    "\n"
    "I/O Tensors:\n Name: x, IOMode: Input, DataType: Float\n"
)


def test_reads_names_types_and_nodes() -> None:
    first, second = read_layers(ACCOUNT)
    assert first["inputs"] == [{"tensor": "in {1}", "type": "i8"}, {"tensor": "s", "type": "f16"}]
    assert first["outputs"] == [{"tensor": "out", "type": "f32"}]
    assert first["nodes"] == ["a [b], LayerType: x, c", "dq"]
    assert second == {"name": "shapes", "kind": "shape_call", "inputs": [], "outputs": [], "nodes": []}
    assert read_layers("Layers:\n") == read_layers("") == []


def test_reads_the_inspector_of_tensorrt_10() -> None:
    def tensor(words: str) -> dict[str, object]:
        return {"Name": "t", "Location": "Device", "Dimensions": [1, 64, 56, 56], "Format/Datatype": words}

    layer = {
        "Name": "conv + relu",
        "LayerType": "CaskConvolution",
        "Inputs": [tensor("Thirty-two wide channel vectorized row major Int8 format"), tensor("Row major linear FP32")],
        "Outputs": [tensor("Channel major FP16 format where channel % 8 == 0")],
        "Metadata": "[ONNX Layer: conv]\x1e[ONNX Layer: relu]",
    }
    (read,) = read_inspected(json.dumps({"Layers": [layer, "the name alone"], "Bindings": ["x"]}))
    assert [t["type"] for t in read["inputs"]] == ["i8", "f32"]
    assert [t["type"] for t in read["outputs"]] == ["f16"]
    assert (read["kind"], read["nodes"]) == ("CaskConvolution", ["conv", "relu"])


def test_rtx_tells_them_without_a_gpu(tmp_path: pathlib.Path) -> None:
    constants = {
        "s": np.array(0.1, np.float32),
        "z": np.array(0, np.int8),
        "w8": np.ones((16, 16, 3, 3), np.int8),
        "ws": np.full(16, 0.01, np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"], name="dq"),
        helper.make_node("DequantizeLinear", ["w8", "ws"], ["w"], name="dqw", axis=0),
        helper.make_node("Conv", ["a", "w"], ["c"], name="[conv] 1"),
        helper.make_node("Conv", ["x", "w"], ["d"], name="conv 2"),
        helper.make_node("Add", ["c", "d"], ["y"], name="sum"),
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    model = models.save(tmp_path / "m.onnx", nodes, [1, 16, 8, 8], initializers=initializers)
    told = drive("build", model, "--output", tmp_path / "e", "--target", "sm89", "--layers").result["engine_layers"]
    assert told["reason"] == ""
    reads = {node: [t["type"] for t in layer["inputs"]] for layer in told["layers"] for node in layer["nodes"]
             if layer["kind"] == "correlation"}  # fmt: skip
    assert reads["[conv] 1"] == ["i8"]
    assert set(reads["conv 2"]) == {"f32"}
    quiet = drive("build", model, "--output", tmp_path / "e", "--target", "sm89").result
    assert quiet["engine_layers"] is None
