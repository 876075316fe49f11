# Tests unmodified ONNX files with plugin nodes whose inputs have another order than Graft's: TensorRT builds them with
# the library of stand-ins, and the engine stores the order.
from __future__ import annotations

import pathlib
from typing import Any

import onnx
import pytest
from conftest import drive_forked, graft
from onnx import TensorProto, helper

SIZES: dict[str, list[int]] = {
    "x": [2, 4, 9, 8],
    "offset": [2, 36, 5, 4],
    "mask": [2, 18, 5, 4],
    "weight": [6, 4, 3, 3],
    "bias": [6],
    "value": [2, 60, 4, 8],
    "shapes": [3, 2],
    "starts": [3],
    "locations": [2, 7, 4, 3, 5, 2],
    "weights": [2, 7, 4, 3, 5],
}
INTEGERS = ("shapes", "starts")
STEPS = {"stride": [2, 2], "padding": [1, 1], "dilation": [1, 1]}
MODULATED = ["x", "offset", "mask", "weight", "bias"]
ATTENTION = ["value", "shapes", "starts", "locations", "weights"]
OF_NVIDIA = {**STEPS, "group": 1, "deformable_group": 2}
OF_MMCV = {**STEPS, "groups": 1, "deform_groups": 2}

# Domain, plugin, inputs, fields, and the order that an engine stores.
NODES: list[tuple[str, str, list[str], dict[str, Any], str]] = [
    ("trt.plugins", "ModulatedDeformConv2d", MODULATED, OF_NVIDIA, "x,offset,mask,weight,bias"),
    ("trt.plugins", "ModulatedDeformConv2d", MODULATED[:4], OF_NVIDIA, "x,offset,mask,weight,bias"),
    (
        "trt.plugins",
        "ModulatedDeformConv2d",
        MODULATED,
        {**OF_NVIDIA, "plugin_version": "2"},
        "x,offset,mask,weight,bias",
    ),
    ("mmdeploy", "MMCVModulatedDeformConv2d", MODULATED[:4], OF_MMCV, "x,offset,mask,weight,bias"),
    ("mmcv", "MMCVModulatedDeformConv2d", MODULATED, OF_MMCV, "x,offset,mask,weight,bias"),
    ("trt.plugins", "ModulatedDeformableConv2dTRT", MODULATED, OF_MMCV, "x,offset,mask,weight,bias"),
    ("trt.plugins", "ModulatedDeformableConv2dTRT2", MODULATED[:4], OF_MMCV, "x,offset,mask,weight,bias"),
    ("mmdeploy", "MMCVDeformConv2d", ["x", "offset", "weight"], OF_MMCV, "x,offset,weight"),
    (
        "trt.plugins",
        "MultiscaleDeformableAttnPlugin_TRT",
        ATTENTION,
        {},
        "value,spatial_shapes,,sampling_locations,attention_weights",
    ),
]
NAMES = [f"{node[1]}_{i}" for i, node in enumerate(NODES)]


def write(path: pathlib.Path, node: tuple[str, str, list[str], dict[str, Any], str], dtype: int) -> None:
    domain, name, inputs, fields, _ = node
    made = helper.make_node(name, inputs, ["sampled"], name="the_node", domain=domain, **fields)
    ends = [
        helper.make_tensor_value_info(each, TensorProto.INT64 if each in INTEGERS else dtype, SIZES[each])
        for each in inputs
    ]
    after = helper.make_node("Relu", ["sampled"], ["y"], name="relu")
    graph = helper.make_graph([made, after], "g", ends, [helper.make_tensor_value_info("y", dtype, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
@pytest.mark.parametrize("node", NODES, ids=NAMES)
def test_an_unmodified_file_builds_and_its_engine_keeps_the_order(
    tmp_path: pathlib.Path,
    graft_library: pathlib.Path,
    stand_ins: pathlib.Path,
    node: tuple[str, str, list[str], dict[str, Any], str],
    dtype: int,
) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    write(model, node, dtype)
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", "--plugin-library", graft_library)
    assert without.code == 1
    assert node[1] in without.error["message"]
    assert not engine.exists()
    libraries = ("--plugin-library", graft_library, "--plugin-library", stand_ins)
    built = drive_forked("build", model, "--output", engine, "--target", "sm120", *libraries).result
    (layer,) = built["network"]["plugins"]
    is_attention = node[2] is ATTENTION
    operator = "MultiScaleDeformableAttention" if is_attention else "DeformableConvolution"
    assert (layer["name"], layer["namespace"]) == (operator, "graft")
    assert [port["shape"] for port in layer["inputs"]] == [SIZES[each] for each in node[2]]
    assert layer["outputs"][0]["shape"] == ([2, 7, 4, 8] if is_attention else [2, 6, 5, 4])
    content = engine.read_bytes()
    assert operator.encode() in content
    assert node[4].encode() in content


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("node", NODES, ids=NAMES)
def test_graft_builds_it_with_the_inputs_in_grafts_order(
    tmp_path: pathlib.Path, node: tuple[str, str, list[str], dict[str, Any], str]
) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    write(model, node, TensorProto.FLOAT)
    (layer,) = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0).json["network"]["plugins"]
    assert layer["namespace"] == "graft"
    order = ["value", "shapes", "locations", "weights"]
    if node[2] is not ATTENTION:
        order = ["x", "weight", "offset"] + (["bias", "mask"] if "mask" in node[2] else [])
    expected = [SIZES[each] if each in node[2] else [0] for each in order]
    assert [port["shape"] for port in layer["inputs"]] == expected
    assert node[4].encode() not in engine.read_bytes()


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
def test_a_plugin_with_the_outputs_of_the_operator_builds(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, stand_ins: pathlib.Path, dtype: int
) -> None:
    """EfficientNMSX_TRT has the five outputs of CombinedNonMaxSuppression. EfficientNMS_TRT has four, which TensorRT-RTX
    refuses, so that no library of Graft has its name."""
    outputs = {"n": TensorProto.INT32, "b": dtype, "s": dtype, "c": TensorProto.INT32, "i": TensorProto.INT32}
    fields = {"max_output_boxes": 5, "iou_threshold": 0.45, "box_coding": 1, "plugin_version": "1"}
    ends = [helper.make_tensor_value_info(name, dtype, shape) for name, shape in (("x", [2, 20, 4]), ("y", [2, 20, 3]))]
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    for op_type, is_there in (("EfficientNMSX_TRT", True), ("EfficientNMS_TRT", False)):
        made = helper.make_node(op_type, ["x", "y"], list(outputs), name="it", domain="TRT", **fields)
        results = [helper.make_tensor_value_info(name, each, None) for name, each in outputs.items()]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("TRT", 1)]
        graph = helper.make_graph([made], "g", ends, results)
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), model)
        libraries = ("--plugin-library", graft_library, "--plugin-library", stand_ins)
        answer = drive_forked("build", model, "--output", engine, "--target", "sm120", *libraries)
        assert (answer.code == 0) == is_there, op_type
        if is_there:
            (layer,) = answer.result["network"]["plugins"]
            assert (layer["name"], layer["namespace"]) == ("CombinedNonMaxSuppression", "graft")
            assert [each["shape"] for each in layer["outputs"]][:4] == [[2, 1], [2, 5, 4], [2, 5], [2, 5]]
