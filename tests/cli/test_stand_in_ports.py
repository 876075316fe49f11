# Tests nodes of other libraries' deformable operators, with inputs in the other library's order: results on the CPU
# equal those of torchvision and PyTorch, which computed the golden values.
import json
import os
import pathlib

import numpy as np
import onnx
import pytest
from conftest import SOURCE
from onnx import TensorProto, helper

GOLDEN = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", SOURCE / "tests" / "golden")) / "ops"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


def golden(stem, name):
    """Returns the attributes, inputs and result of a case."""
    (case,) = (each for each in json.loads((GOLDEN / f"{stem}.json").read_text())["cases"] if each["name"] == name)
    arrays = np.load(GOLDEN / f"{stem}.npz")
    return case["attributes"], [arrays[key] for key in (case["x"], *case["more"])], arrays[case["y"]]


def write(folder, domain, op_type, arrays, **attributes):
    """Saves a model of one node whose inputs are the arrays in their order, and returns the arguments of `graft run`
    for it."""
    path, values = folder / f"{op_type}.onnx", folder / f"{op_type}.npz"
    np.savez(values, **arrays)
    node = helper.make_node(op_type, list(arrays), ["y"], name="node", domain=domain, **attributes)
    ends = [helper.make_tensor_value_info(key, TYPES[array.dtype], array.shape) for key, array in arrays.items()]
    graph = helper.make_graph([node], "g", ends, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path, [word for key in arrays for word in ("--input", f"{key}={values}:{key}")]


def run(graft, model, inputs, *options):
    out = model.parent / "out.npz"
    graft("run", model, *inputs, "-o", out, *options, code=0)
    return np.load(out)["y"]


def convert(graft, model):
    out = model.parent / "converted.onnx"
    graft("convert", model, "-o", out, code=0)
    return out, onnx.load(out).graph


# The names of the attributes and the order of the inputs in each library.
NVIDIA = ("stride", "padding", "dilation", "group", "deformable_group")
MMCV = ("stride", "padding", "dilation", "groups", "deform_groups")
MODULATED = ("x", "offset", "mask", "weight", "bias")
DEFORMABLE = [
    ("trt.plugins", "ModulatedDeformConv2d", MODULATED, NVIDIA),
    ("", "ModulatedDeformConv2d", MODULATED[:4], NVIDIA),
    ("mmdeploy", "MMCVModulatedDeformConv2d", MODULATED, MMCV),
    ("mmcv", "MMCVModulatedDeformConv2d", MODULATED[:4], MMCV),
    ("", "ModulatedDeformableConv2dTRT", MODULATED, MMCV),
    ("trt.plugins", "ModulatedDeformableConv2dTRT2", MODULATED[:4], MMCV),
]


@pytest.mark.parametrize("case", ["modulated", "strided", "dilated", "grouped", "offset_grouped", "both_grouped"])
@pytest.mark.parametrize(("domain", "op_type", "order", "names"), DEFORMABLE)
def test_deformable_convolution_is_torchvisions(graft, tmp_path, case, domain, op_type, order, names):
    attributes, (x, weight, offset, bias, mask), y = golden("deformable_convolution", f"f32_{case}")
    arrays = {"x": x, "offset": offset, "mask": mask, "weight": weight, "bias": bias}
    if "bias" not in order:
        y = y - bias[:, None, None]
    pads = attributes["pads"]
    assert pads[:2] == pads[2:]
    values = [attributes.get("strides", [1, 1]), pads[:2], attributes.get("dilations", [1, 1])]
    values += [attributes.get("group", 1), attributes.get("offset_group", 1)]
    fields = dict(zip(names, values, strict=True))
    model, inputs = write(tmp_path, domain, op_type, {key: arrays[key] for key in order}, **fields)
    np.testing.assert_allclose(run(graft, model, inputs, "--kernels", "own"), y, atol=1e-4, rtol=1e-5)

    converted, graph = convert(graft, model)
    (node,) = (each for each in graph.node if each.op_type != "Constant")
    assert (node.domain, node.op_type) == ("graft", "DeformableConvolution")
    named = [key if key in order else None for key in ("x", "weight", "offset", "bias", "mask")]
    assert [each for each, key in zip(node.input, named, strict=True) if key] == [key for key in named if key]
    np.testing.assert_allclose(run(graft, converted, inputs, "--kernels", "own"), y, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(("domain", "padding"), [("mmcv", [1, 1]), ("mmdeploy", [1, 1, 1, 1])])
def test_the_first_version_has_neither_mask_nor_bias(graft, tmp_path, domain, padding):
    """mmdeploy writes each number of the padding twice; mmcv writes a step, and a bias flag although there is no
    bias."""
    _, (x, weight, offset), y = golden("deformable_convolution", "f32_first")
    fields = {"stride": [1, 1], "padding": padding, "dilation": [1, 1], "groups": 1, "deform_groups": 1}
    if domain == "mmcv":
        fields |= {"bias": 0, "im2col_step": 32}
    arrays = {"x": x, "offset": offset, "weight": weight}
    model, inputs = write(tmp_path, domain, "MMCVDeformConv2d", arrays, **fields)
    np.testing.assert_allclose(run(graft, model, inputs, "--kernels", "own"), y, atol=1e-4, rtol=1e-5)
    (node,) = graft("inspect", model, "--json").json["nodes"]
    assert node["verdict"] == "plugin"
    assert "DeformableConvolution replaces the plugin MMCVDeformConv2d 1" in node["reason"]


def test_fields_that_mean_something_else_are_refused(graft, tmp_path):
    _, (x, weight, offset), _ = golden("deformable_convolution", "f32_first")
    arrays = {"x": x, "offset": offset, "weight": weight}
    for fields, message in (
        ({"padding": [1, 2, 1, 2]}, "`padding` is [1, 2, 1, 2]; it must have 2 elements"),
        ({"bias": 1}, "`bias` is 1; it must be 0"),
        ({"stride": [1]}, "`stride` is [1]; it must have 2 elements"),
    ):
        model, inputs = write(tmp_path, "mmcv", "MMCVDeformConv2d", arrays, **fields)
        answer = graft("run", model, *inputs, "-o", tmp_path / "out.npz", "--kernels", "own", code=2)
        assert message in answer.err
        assert "'node'" in answer.err


@pytest.mark.parametrize("case", ["four_levels", "one_level"])
@pytest.mark.parametrize("kernels", ["own", "functions"])
def test_attention_is_pytorchs(graft, tmp_path, case, kernels):
    """NVIDIA's plugin has an additional input with the start of each map, and derives the number of points from the
    locations."""
    _, (value, shapes, locations, weights), y = golden("multi_scale_deformable_attention", f"f32_{case}")
    areas = shapes.prod(1)
    arrays = {"value": value, "shapes": shapes, "starts": np.cumsum(areas) - areas, "locations": locations}
    model, inputs = write(
        tmp_path, "trt", "MultiscaleDeformableAttnPlugin_TRT", arrays | {"weights": weights}, plugin_version="1"
    )
    np.testing.assert_allclose(run(graft, model, inputs, "--kernels", kernels), y, atol=1e-4, rtol=1e-5)
    _, graph = convert(graft, model)
    (node,) = graph.node
    assert (node.op_type, list(node.input)) == (
        "MultiScaleDeformableAttention",
        ["value", "shapes", "locations", "weights"],
    )


def test_another_number_of_inputs_is_refused(graft, tmp_path):
    _, (x, _, offset), _ = golden("deformable_convolution", "f32_first")
    model, inputs = write(tmp_path, "mmcv", "MMCVDeformConv2d", {"x": x, "offset": offset})
    answer = graft("run", model, *inputs, "-o", tmp_path / "out.npz", code=2)
    assert "it has 2 inputs; it must have 3: x,offset,weight" in answer.err


def test_the_order_is_said(graft):
    answer = graft("ops", "DeformableConvolution", "--json")
    inputs = {each["name"]: each["inputs"] for each in answer.json["drop_ins"]}
    assert inputs["MMCVDeformConv2d"] == ["x", "offset", "weight"]
    assert inputs["ModulatedDeformConv2d"] == list(MODULATED)
    assert "x,offset,mask,weight,bias; stride = strides" in graft("ops", "DeformableConvolution").out
    attention = graft("ops", "MultiscaleDeformableAttnPlugin_TRT", "--json").json["drop_ins"][0]
    assert attention["inputs"] == ["value", "spatial_shapes", None, "sampling_locations", "attention_weights"]
    (own, *_) = graft("ops", "LReLU_TRT", "--json").json["drop_ins"]
    assert own["inputs"] == ["x"]
