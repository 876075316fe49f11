# Tests exported decoders of the Deformable DETR family: the engine of a converted model has Graft's plugin for each
# attention; without Graft's library, TensorRT builds the functions of the nodes.
from __future__ import annotations

import os
import pathlib

import numpy as np
import onnx
import pytest
from conftest import ROOT, drive, graft
from onnx import TensorProto, helper, numpy_helper

EXPORTS = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", ROOT / "tests/golden")) / "exports"
SHAPES = "x=1x64x16..2x64x16..4x64x16"
LAYERS = {"deformable_detr": 1, "grounding_dino": 2, "rt_detr_v2": 1, "d_fine": 1, "d_fine_layers": 2}


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("exporter", ["torch2.15.0_script_opset17", "torch2.15.0_dynamo_opset18"])
@pytest.mark.parametrize("network", LAYERS)
def test_each_attention_is_a_plugin(tmp_path: pathlib.Path, exporter: str, network: str) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    graft("convert", EXPORTS / f"{exporter}_{network}.onnx", "-o", model, code=0)
    built = graft("build", model, "-o", engine, "--target", "sm120", "--shapes", SHAPES, "--json", code=0)
    plugins = built.json["network"]["plugins"]
    assert [plugin["name"] for plugin in plugins] == ["MultiScaleDeformableAttention"] * LAYERS[network]
    for plugin in plugins:
        assert [port["dtype"] for port in plugin["inputs"]] == ["f32", "i64", "f32", "f32"]
        assert plugin["outputs"][0]["shape"][1:3] == plugin["inputs"][2]["shape"][1:3]


@pytest.mark.usefixtures("rtx")
def test_without_the_library_it_is_layers_of_tensorrt(tmp_path: pathlib.Path) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    graft("convert", EXPORTS / "torch2.15.0_dynamo_opset18_d_fine_static.onnx", "-o", model, code=0)
    built = drive("build", model, "--output", engine, "--target", "sm120")
    assert built.code == 0, built.logged("error")
    assert built.result["network"]["plugins"] == []


def with_points_in_f64(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy in which positions are computed in f64, as the TorchScript exporter writes reference points."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    f64 = {"unsqueeze_8", "scalar_tensor_default", "scalar_tensor_default_1"}
    for constant in graph.initializer:
        if constant.name in f64:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant).astype("f8"), constant.name))
    index, addition = next((i, node) for i, node in enumerate(graph.node) if "unsqueeze_8" in node.input)
    offsets = next(name for name in addition.input if name != "unsqueeze_8")
    graph.node.insert(index, helper.make_node("Cast", [offsets], ["offsets_f64"], to=TensorProto.DOUBLE))
    addition.input[:] = ["unsqueeze_8", "offsets_f64"]
    del graph.value_info[:]
    return changed


def test_points_in_f64_become_f32(tmp_path: pathlib.Path) -> None:
    """The rewrite of an attention with points in f64 is proven, and ONNX Runtime runs the result, although its
    GridSample has no f64."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = onnx.load(EXPORTS / "torch2.15.0_dynamo_opset18_deformable_detr.onnx")
    onnx.save(with_points_in_f64(model), tmp_path / "f64.onnx")
    converted = graft("convert", tmp_path / "f64.onnx", "-o", tmp_path / "m.onnx", "--no-check", "--json", code=0)
    proofs = [each["proof"] for each in converted.json["rewrites"] if "attention" in each["pass"]]
    assert len(proofs) == 1 and "largest difference" in proofs[0] and "cannot be run" not in proofs[0]

    x = np.random.default_rng(1).standard_normal((2, 64, 16)).astype("f4")
    found, wanted = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for path in (tmp_path / "m.onnx", EXPORTS / "torch2.15.0_dynamo_opset18_deformable_detr.onnx")
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
