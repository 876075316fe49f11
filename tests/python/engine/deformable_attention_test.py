# Decoders of the Deformable DETR family as PyTorch exports them: converted, the engine has Graft's plugin for each
# attention; without Graft's library TensorRT builds the functions that the nodes carry.
from __future__ import annotations

import os
import pathlib

import pytest
from conftest import ROOT, drive, graft

EXPORTS = pathlib.Path(os.environ.get("GRAFT_GOLDEN_DIR", ROOT / "tests/golden")) / "exports"
SHAPES = "x=1x64x16..2x64x16..4x64x16"
LAYERS = {"deformable_detr": 1, "grounding_dino": 2, "rt_detr_v2": 1, "d_fine": 1, "d_fine_layers": 2}


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("exporter", ["torch2.15.0_script_opset17", "torch2.15.0_dynamo_opset18"])
@pytest.mark.parametrize("network", LAYERS)
def test_each_attention_is_a_plugin(tmp_path: pathlib.Path, exporter: str, network: str) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    converted = graft("convert", EXPORTS / f"{exporter}_{network}.onnx", "-o", model)
    assert converted.code == 0, converted.err
    built = graft("build", model, "-o", engine, "--target", "sm120", "--shapes", SHAPES, "--json")
    assert built.code == 0, built.err
    plugins = built.json["network"]["plugins"]
    assert [plugin["name"] for plugin in plugins] == ["MultiScaleDeformableAttention"] * LAYERS[network]
    for plugin in plugins:
        assert [port["dtype"] for port in plugin["inputs"]] == ["f32", "i64", "f32", "f32"]
        assert plugin["outputs"][0]["shape"][1:3] == plugin["inputs"][2]["shape"][1:3]


@pytest.mark.usefixtures("rtx")
def test_without_the_library_it_is_layers_of_tensorrt(tmp_path: pathlib.Path) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    converted = graft("convert", EXPORTS / "torch2.15.0_dynamo_opset18_d_fine_static.onnx", "-o", model)
    assert converted.code == 0, converted.err
    built = drive("build", model, "--output", engine, "--target", "sm120")
    assert built.code == 0, built.logged("error")
    assert built.result["network"]["plugins"] == []
