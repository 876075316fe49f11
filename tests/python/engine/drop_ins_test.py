# Tests unmodified ONNX files with plugin nodes of other libraries: they build with Graft's libraries and fail without.
from __future__ import annotations

import pathlib
from typing import Any

import models
import numpy as np
import pytest
from conftest import drive_forked
from onnx import TensorProto, helper, numpy_helper


def int8(value: int) -> Any:
    """Returns a field of type INT8, as the parser creates it from a tensor attribute."""
    return numpy_helper.from_array(np.array([value], np.int8), "")


def ramp(count: int) -> list[float]:
    return [0.1 * (i + 1) for i in range(count)]


IMAGE = (2, 4, 10, 12)
ANY_SIZE = ("n", 4, "h", "w")
RANGE = "x=1x4x8x8..2x4x10x12..4x4x64x64"
CONVOLUTION = {"num_output": 6, "kernel_h": 3, "kernel_w": 3, "stride_h": 2, "stride_w": 2, "pad_h": 1, "pad_w": 1}

# Plugin, version, its fields as old networks write them, and the output's sizes for an input of IMAGE.
NODES: list[tuple[str, str, dict[str, Any], tuple[int, ...]]] = [
    ("LReLU_TRT", "1", {"negSlope": 0.1}, IMAGE),
    ("LeakyReluPlugin", "1", {"alpha": 0.2}, IMAGE),
    ("l2norm_helper", "1", {"op_type": 1, "eps": 1e-12}, IMAGE),
    (
        "Normalize_TRT",
        "1",
        {"weights": ramp(4), "acrossSpatial": 0, "channelShared": 0, "nbWeights": 1, "eps": 1e-10},
        IMAGE,
    ),
    ("SPP_TRT", "1", {"levels": [4, 2, 1], "mode": "max"}, (2, 84)),
    ("InstanceNormalization_TRT", "1", {"epsilon": 1e-5, "scales": ramp(4), "bias": ramp(4)}, IMAGE),
    ("InstanceNormalization_TRT", "2", {"epsilon": 1e-5, "scales": ramp(4), "bias": ramp(4)}, IMAGE),
    (
        "InstanceNormalization_TRT",
        "3",
        {"epsilon": 1e-5, "scales": ramp(4), "bias": ramp(4), "relu": 1, "alpha": 0.1},
        IMAGE,
    ),
    ("ReflectPad", "1", {"padding": 1}, (2, 4, 12, 14)),
    ("ReflectPad", "1", {"padding": [1, 2, 3, 4]}, (2, 4, 17, 15)),
    ("UpsamplePlugin", "1", {"scaleFactor": 2, "alignCorners": 1}, (2, 4, 20, 24)),
    ("UpsamplePlugin", "1", {"scaleFactor": int8(3), "alignCorners": int8(0)}, (2, 4, 30, 36)),
    ("ResizeNearest_TRT", "1", {"scale": 2.0}, (2, 4, 20, 24)),
    ("CONVOLUTION", "1", {**CONVOLUTION, "kernel_weights": ramp(6 * 4 * 9), "bias_weights": ramp(6)}, (2, 6, 5, 6)),
]
OPERATORS = {
    "LReLU_TRT": "LeakyReLU",
    "LeakyReluPlugin": "LeakyReLU",
    "l2norm_helper": "L2NormHelper",
    "Normalize_TRT": "Normalize",
    "SPP_TRT": "SpatialPyramidPooling",
    "InstanceNormalization_TRT": "InstanceNorm",
    "ReflectPad": "Padding",
    "UpsamplePlugin": "Upsampling",
    "ResizeNearest_TRT": "Upsampling",
    "CONVOLUTION": "Convolution",
}
NAMES = [f"{name}_{version}_{i}" for i, (name, version, _, _) in enumerate(NODES)]


@pytest.fixture
def libraries(graft_library: pathlib.Path, stand_ins: pathlib.Path) -> tuple[object, ...]:
    return "--plugin-library", graft_library, "--plugin-library", stand_ins


def write(path: pathlib.Path, node: tuple[str, str, dict[str, Any], tuple[int, ...]], shape: Any, dtype: int) -> None:
    name, version, fields, _ = node
    made = helper.make_node(name, ["x"], ["y"], name="the_node", domain="trt.plugins", plugin_version=version)
    # Not passed as keywords: a plugin may have a field named op_type.
    made.attribute.extend(helper.make_attribute(key, value) for key, value in fields.items())
    models.save(path, [made], shape, dtype)


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("node", NODES, ids=NAMES)
def test_an_unmodified_file_builds_and_its_engine_names_graft(
    tmp_path: pathlib.Path, libraries: tuple[object, ...], node: tuple[str, str, dict[str, Any], tuple[int, ...]]
) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    write(model, node, IMAGE, TensorProto.FLOAT)
    without = drive_forked("build", model, "--output", engine, "--target", "sm89", code=1)
    assert node[0] in without.error["message"]
    assert not engine.exists()
    built = drive_forked("build", model, "--output", engine, "--target", "sm89", *libraries).result
    (layer,) = built["network"]["plugins"]
    assert (layer["name"], layer["version"], layer["namespace"]) == (OPERATORS[node[0]], "1", "graft")
    content = engine.read_bytes()
    assert OPERATORS[node[0]].encode() in content
    assert node[0].encode() not in content
    assert tuple(layer["outputs"][0]["shape"]) == node[3]


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("node", NODES, ids=NAMES)
def test_it_builds_in_f16_with_any_image_size(
    tmp_path: pathlib.Path, libraries: tuple[object, ...], node: tuple[str, str, dict[str, Any], tuple[int, ...]]
) -> None:
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    write(model, node, ANY_SIZE, TensorProto.FLOAT16)
    options = ("--target", "sm89", "--shapes", RANGE, *libraries)
    (layer,) = drive_forked("build", model, "--output", engine, *options).result["network"]["plugins"]
    assert layer["outputs"][0]["dtype"] == "f16"


@pytest.mark.usefixtures("rtx")
def test_weights_are_kept_in_the_engine(tmp_path: pathlib.Path, libraries: tuple[object, ...]) -> None:
    """The engine contains each serialized field as plain bytes."""
    for node, field in ((NODES[3], "weights"), (NODES[5], "scales"), (NODES[-1], "kernel_weights")):
        model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
        write(model, node, IMAGE, TensorProto.FLOAT)
        drive_forked("build", model, "--output", engine, "--target", "sm89", *libraries).result  # noqa: B018
        assert np.array(node[2][field], np.float32).tobytes() in engine.read_bytes()
