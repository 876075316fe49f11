# Tests standard ONNX operators that TensorRT-RTX has no layer for: Graft's plugins under ONNX's names, and the plugins
# that `graft build` creates by itself.
from __future__ import annotations

import pathlib
from typing import Any

import models
import numpy as np
import onnx
import pytest
from conftest import drive_forked, graft
from onnx import TensorProto, helper, numpy_helper
from onnx_models import save, session_of

INT64 = TensorProto.INT64


def chosen_rows(
    path: pathlib.Path, dtype: int = TensorProto.FLOAT, shape: tuple[int | str, ...] = (64, 6)
) -> pathlib.Path:
    """Saves the nonzero rows of x, as exporters write x[mask]: the sizes of these rows and of all later tensors
    depend on data."""
    axes = numpy_helper.from_array(np.array([1], np.int64), "axes")
    nodes = [
        helper.make_node("NonZero", ["x"], ["indices"], name="found"),
        helper.make_node("Transpose", ["indices"], ["rows"], name="rows_of", perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["values"], name="values_of"),
        helper.make_node("Unsqueeze", ["values", "axes"], ["column"], name="column_of"),
        helper.make_node("Add", ["column", "column"], ["y"], name="twice"),
    ]
    return models.save(path, nodes, shape, dtype, [axes])


def chosen_scores(path: pathlib.Path) -> pathlib.Path:
    """Saves scores above a limit, selected by booleans, which no plugin accepts."""
    limit = numpy_helper.from_array(np.array(0.5, np.float32), "limit")
    axis = numpy_helper.from_array(np.array([0], np.int64), "axis")
    nodes = [
        helper.make_node("Greater", ["x", "limit"], ["is_high"], name="compare"),
        helper.make_node("NonZero", ["is_high"], ["indices"], name="found"),
        helper.make_node("Squeeze", ["indices", "axis"], ["rows"], name="rows_of"),
        helper.make_node("Gather", ["x", "rows"], ["y"], name="scores", axis=0),
    ]
    return models.save(path, nodes, ("n",), TensorProto.FLOAT, [limit, axis])


def detector(path: pathlib.Path, limits_are_inputs: bool = False) -> pathlib.Path:
    """Saves the end of a YOLO: boxes and scores of 64 positions, suppression, and a gather of the remaining boxes."""
    rng = np.random.default_rng(0)
    constants = {
        "kernel": rng.standard_normal((7, 3, 3, 3)).astype(np.float32) / 5,
        "flat": np.array([0, 7, -1], np.int64),
        "split": np.array([4, 3], np.int64),
        "half": np.array([0.5], np.float32),
        "ends": np.array([2], np.int64),
        "axis": np.array([1], np.int64),
    }
    limits = {
        "most": np.array([10], np.int64),
        "overlap": np.array([0.5], np.float32),
        "score": np.array([0.1], np.float32),
    }
    if not limits_are_inputs:
        constants |= limits
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "kernel"], ["features"], name="conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Reshape", ["features", "flat"], ["places"], name="flatten"),
        node("Split", ["places", "split"], ["boxes_first", "logits"], name="divide", axis=1),
        node("Sigmoid", ["logits"], ["scores"], name="scores_of"),
        node("Transpose", ["boxes_first"], ["boxes"], name="turn", perm=[0, 2, 1]),
        node(
            "NonMaxSuppression",
            ["boxes", "scores", "most", "overlap", "score"],
            ["chosen"],
            name="suppress",
            center_point_box=1,
        ),
        node("Gather", ["chosen", "ends"], ["column"], name="columns", axis=1),
        node("Squeeze", ["column", "axis"], ["rows"], name="rows_of"),
        node("Gather", ["boxes", "rows"], ["y"], name="boxes_of", axis=1),
    ]
    inputs = [("x", FLOAT, [1, 3, 16, 16])]
    if limits_are_inputs:
        inputs += [(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in limits.items()]
    return save(path, nodes, inputs, [("y", [1, None, 4])], constants)


# TensorRT-RTX casts the i64 inputs of any plugin called ScatterND to i32.
PLUGINS = {"ScatterND": "ScatterReduceND", "ScatterElements": "ScatterReduceElements"}


def graph_layer(path: pathlib.Path, operator: str, reduction: str, dtype: int) -> pathlib.Path:
    """Saves a layer of a graph network: messages of edges are reduced at nodes, and a later layer reads the result."""
    nodes, edges, channels = 32, 64, 16
    index_shape = [edges, 1] if operator == "ScatterND" else [edges, channels]
    node = helper.make_node
    layers = [
        node("Add", ["x", "x"], ["features"], name="double"),
        node("Gather", ["features", "starts"], ["messages"], name="along_edges"),
        node(operator, ["features", "ends", "messages"], ["sums"], name="at_nodes", reduction=reduction),
        node("Add", ["sums", "x"], ["y"], name="residual"),
    ]
    inputs = [
        ("x", dtype, [nodes, channels]),
        ("starts", INT64, [edges]),
        ("ends", INT64, index_shape),
    ]
    return save(path, layers, inputs, [("y", dtype, [nodes, channels])], opset=18)


FLOAT, FLOAT16, BFLOAT16, INT32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT32


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("operator", ["ScatterND", "ScatterElements"])
@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [("add", FLOAT), ("mul", FLOAT16), ("min", BFLOAT16), ("max", FLOAT), ("add", INT32), ("add", INT64)],
)
def test_scattering_with_a_reduction_builds(tmp_path: pathlib.Path, operator: str, reduction: str, dtype: int) -> None:
    model, engine = graph_layer(tmp_path / "m.onnx", operator, reduction, dtype), tmp_path / "m.engine"
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", code=1)
    assert operator in without.error["message"]
    assert not engine.exists()
    (layer,) = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0).json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("at_nodes", PLUGINS[operator], "graft")
    assert layer["outputs"][0]["shape"] == [32, 16]
    assert PLUGINS[operator].encode() in engine.read_bytes()
    (node,) = [
        n for n in graft("inspect", model, "--probe", "none", "--json").json["nodes"] if n["operator"] == operator
    ]
    # For floating-point types and so few positions, `graft convert` compares all positions with all indices instead.
    assert node["verdict"] == ("plugin" if dtype in (INT32, INT64) else "lowered")


@pytest.mark.usefixtures("rtx", "graft_library")
def test_scattering_without_a_reduction_stays_tensorrts_own(tmp_path: pathlib.Path) -> None:
    model = graph_layer(tmp_path / "m.onnx", "ScatterND", "none", FLOAT)
    built = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json", code=0)
    assert built.json["network"]["plugins"] == []


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("limits_are_inputs", [False, True])
def test_a_detector_builds_whole(tmp_path: pathlib.Path, limits_are_inputs: bool) -> None:
    """TensorRT-RTX parses NonMaxSuppression, but its builder has no implementation."""
    model, engine = detector(tmp_path / "m.onnx", limits_are_inputs), tmp_path / "m.engine"
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", code=1)
    assert "suppress" in without.error["message"] + without.logged("error")
    built = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0)
    (layer,) = built.json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("suppress", "NonMaxSuppression", "graft")
    assert layer["outputs"][0]["shape"] == [-1, 3]
    assert len(layer["inputs"]) == (5 if limits_are_inputs else 2)  # constants bound the memory
    assert built.json["network"]["outputs"][0]["shape"] == [1, -1, 4]
    assert b"NonMaxSuppression" in engine.read_bytes()
    verdicts = {
        node["node"]: node["verdict"] for node in graft("inspect", model, "--json", "--probe", "builder").json["nodes"]
    }
    assert verdicts.pop("suppress") == "plugin"
    assert set(verdicts.values()) == {"native"}


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64])
def test_a_file_with_non_zero_builds_with_the_library_and_not_without(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path, dtype: int
) -> None:
    model, engine = chosen_rows(tmp_path / "m.onnx", dtype), tmp_path / "m.engine"
    libraries = ("--plugin-library", graft_library)
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", *libraries, code=1)
    assert "NonZero" in without.error["message"]
    assert not engine.exists()
    libraries = (*libraries, "--plugin-library", onnx_names)
    built = drive_forked("build", model, "--output", engine, "--target", "sm120", *libraries).result
    (layer,) = built["network"]["plugins"]
    assert (layer["name"], layer["namespace"], layer["layer"]) == ("NonZero", "graft", "found")
    assert layer["outputs"][0]["dtype"] == "i64"
    assert layer["outputs"][0]["shape"] == [2, -1]
    assert built["network"]["outputs"][0]["shape"] == [-1, 1]  # the later layer has that size too


@pytest.mark.usefixtures("rtx", "graft_library")
def test_what_one_found_is_searched_again(tmp_path: pathlib.Path) -> None:
    """The size of the second NonZero's input depends on data; TensorRT must not time it with a size that does."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["indices"], name="found"),
        helper.make_node("Transpose", ["indices"], ["rows"], name="rows_of", perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["values"], name="values_of"),
        helper.make_node("Floor", ["values"], ["whole"], name="whole_of"),
        helper.make_node("NonZero", ["whole"], ["found_again"], name="again"),
        helper.make_node("Transpose", ["found_again"], ["second_rows"], name="second_rows_of", perm=[1, 0]),
        helper.make_node("GatherND", ["whole", "second_rows"], ["y"], name="second_values_of"),
    ]
    model = models.save(tmp_path / "m.onnx", nodes, (64, 6), TensorProto.FLOAT, [])
    built = graft("build", model, "-o", tmp_path / "m.engine", "--target", "sm120", "--json", code=0)
    plugins = {layer["layer"]: layer["name"] for layer in built.json["network"]["plugins"]}
    assert plugins == {"found": "NonZero", "again": "NonZero"}


@pytest.mark.usefixtures("rtx")
def test_with_dynamic_sizes_too(tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path) -> None:
    model, engine = chosen_rows(tmp_path / "m.onnx", shape=("n", 6)), tmp_path / "m.engine"
    libraries = ("--plugin-library", graft_library, "--plugin-library", onnx_names)
    options = ("--target", "sm120", "--shapes", "x=1x6..64x6..4096x6")
    assert drive_forked("build", model, "--output", engine, *options, *libraries).code == 0


@pytest.mark.usefixtures("rtx")
def test_build_makes_graft_plugins_of_them_and_says_so(tmp_path: pathlib.Path, graft_library: pathlib.Path) -> None:
    """`graft build` creates the plugins without an option, and also for a boolean input."""
    assert graft_library.is_file()
    model, engine = chosen_scores(tmp_path / "m.onnx"), tmp_path / "m.engine"
    options = ("--target", "sm120", "--shapes", "x=1..1000..8400")
    told = graft("build", model, "-o", engine, *options, code=0)
    assert "NonZero 1" in told.out
    assert "size depends on data" in told.out
    built = graft("build", model, "-o", engine, *options, "--json").json
    (layer,) = built["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("found", "NonZero", "graft")
    assert layer["inputs"][0]["dtype"] == "i32"
    assert "size depends on data" in layer["why"]
    refused = graft("build", model, "-o", engine, *options, "--plugins", "never", code=1)
    assert "NonZero" in refused.err


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("probe", ["none", "parser", "builder", "auto"])
def test_inspect_says_that_build_does(tmp_path: pathlib.Path, probe: str) -> None:
    model = chosen_scores(tmp_path / "m.onnx")
    shapes = ("--shapes", "x=1..1000..8400") if probe in ("parser", "builder") else ()
    told = graft("inspect", model, "--json", "--probe", probe, *shapes, code=0)
    (node,) = [node for node in told.json["nodes"] if node["operator"] == "NonZero"]
    assert node["verdict"] == "plugin"
    assert "graft" in node["plugin"] if probe != "none" else "Graft's NonZero" in node["reason"]


def box_head(path: pathlib.Path, dtype: int, opset: int, regions: int | str) -> pathlib.Path:
    """Saves the second stage of a detector: features of a convolution, aligned to regions, and a layer that reads
    them."""
    rng = np.random.default_rng(2)
    element = helper.tensor_dtype_to_np_dtype(dtype)
    constants = {
        "kernel": (rng.standard_normal((8, 3, 3, 3)) / 5).astype(element),
        "weight": rng.standard_normal((8 * 7 * 7, 4)).astype(element),
    }
    align = {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.5}
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["features"], name="conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("RoiAlign", ["features", "rois", "items"], ["aligned"], name="align", **align),
        helper.make_node("Flatten", ["aligned"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "weight"], ["y"], name="boxes_of"),
    ]
    inputs = [
        ("x", dtype, [1, 3, 64, 64]),
        ("rois", dtype, [regions, 4]),
        ("items", INT64, [regions]),
    ]
    return save(path, nodes, inputs, [("y", dtype, None)], constants, opset=opset)


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize(
    ("dtype", "opset", "regions"),
    [
        (TensorProto.FLOAT, 10, 20),
        (TensorProto.FLOAT, 16, "n"),
        (TensorProto.FLOAT16, 16, 20),
        (TensorProto.FLOAT16, 22, "n"),
        (TensorProto.BFLOAT16, 22, 20),
    ],
)
def test_a_box_head_builds_without_a_gpu(tmp_path: pathlib.Path, dtype: int, opset: int, regions: int | str) -> None:
    """TensorRT-RTX runs an unchanged RoiAlign as NVIDIA's plugin, which needs a GPU and may crash the process: the
    driver is a process of its own."""
    model, engine = box_head(tmp_path / "m.onnx", dtype, opset, regions), tmp_path / "m.engine"
    shapes = ("--shapes", "rois=1x4..20x4..1000x4", "--shapes", "items=1..20..1000") if regions == "n" else ()
    built = graft("build", model, "-o", engine, "--target", "sm120", "--json", *shapes, code=0)
    (layer,) = built.json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("align", "RegionAlign", "graft")
    assert [port["dtype"] for port in layer["inputs"]][2] == "i64"
    assert layer["outputs"][0]["shape"][1:] == [8, 7, 7]
    assert b"RegionAlign" in engine.read_bytes()
    # The default of the attribute changed in opset 16.
    assert (b"output_half_pixel" in engine.read_bytes()) == (opset < 16)


@pytest.mark.usefixtures("rtx", "graft_library")
def test_the_same_without_grafts_operator(tmp_path: pathlib.Path) -> None:
    model, engine = box_head(tmp_path / "m.onnx", TensorProto.FLOAT, 16, 20), tmp_path / "m.engine"
    if graft("doctor", "--json").json.get("cuda", {}).get("devices"):
        pytest.skip("with a GPU NVIDIA's plugin can be made")
    without = drive_forked("build", model, "--output", engine, "--target", "sm120")
    assert without.code != 0
    assert not engine.exists()


@pytest.mark.usefixtures("rtx", "graft_library")
def test_inspect_says_that_build_aligns_regions(tmp_path: pathlib.Path) -> None:
    model = box_head(tmp_path / "m.onnx", TensorProto.FLOAT, 16, 20)
    for probe in ("none", "parser", "builder", "auto"):
        told = graft("inspect", model, "--json", "--probe", probe, code=0)
        found = {node["node"]: node["verdict"] for node in told.json["nodes"]}
        assert found.pop("align") == "plugin"
        assert set(found.values()) == {"native"}


def candidates(path: pathlib.Path, k: int, dtype: int) -> pathlib.Path:
    """Saves the best positions of a detector, and their values."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["scores"], name="scores_of"),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"], name="best_of", axis=0),
        helper.make_node("Gather", ["x", "places"], ["logits"], name="logits_of"),
        helper.make_node("Add", ["logits", "best"], ["y"], name="sum"),
    ]
    constants = {"k": np.array([k], np.int64)}
    inputs = [("x", dtype, [9000])]
    return save(path, nodes, inputs, [("y", dtype, None)], constants)


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_more_than_tensorrt_sorts(tmp_path: pathlib.Path, dtype: int) -> None:
    """TensorRT-RTX parses TopK with any k, but its builder refuses a k above 3840."""
    model, engine = candidates(tmp_path / "m.onnx", 5000, dtype), tmp_path / "m.engine"
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", code=1)
    assert "3840" in without.error["message"] + without.logged("error")
    assert not engine.exists()
    (layer,) = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0).json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("best_of", "LargestK", "graft")
    assert [port["shape"] for port in layer["outputs"]] == [[5000], [5000]]
    assert layer["outputs"][1]["dtype"] == "i64"
    told = graft("inspect", model, "--json", "--probe", "builder")
    assert {node["node"]: node["verdict"] for node in told.json["nodes"]}.pop("best_of") == "plugin"


@pytest.mark.usefixtures("rtx", "graft_library")
def test_what_tensorrt_sorts_is_its_own(tmp_path: pathlib.Path) -> None:
    model, engine = candidates(tmp_path / "m.onnx", 3840, TensorProto.FLOAT), tmp_path / "m.engine"
    built = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0)
    assert built.json["network"]["plugins"] == []


def mixer(path: pathlib.Path, dtype: int, length: int | str, has_bias: bool, has_state: bool) -> pathlib.Path:
    """Saves the first half of a Mamba layer: a projection, the convolution with its state, and another projection."""
    rng = np.random.default_rng(3)
    element = helper.tensor_dtype_to_np_dtype(dtype)
    shapes = {"projection": (16, 8), "weight": (16, 1, 4), "back": (8, 16)} | ({"bias": (16,)} if has_bias else {})
    constants = {name: rng.standard_normal(shape).astype(element) for name, shape in shapes.items()}
    given = ["wide", "weight", "bias" if has_bias else "", "past" if has_state else ""]
    while not given[-1]:
        given.pop()
    nodes = [
        helper.make_node("MatMul", ["projection", "x"], ["wide"], name="project"),
        helper.make_node("CausalConvWithState", given, ["convolved", "present"], name="convolve", activation="silu"),
        helper.make_node("MatMul", ["back", "convolved"], ["y"], name="mix"),
    ]
    inputs = [helper.make_tensor_value_info("x", dtype, ["n", 8, length])]
    if has_state:
        inputs.append(helper.make_tensor_value_info("past", dtype, ["n", 16, 3]))
    outputs = [(name, dtype, None) for name in ("y", "present")]
    return save(path, nodes, inputs, outputs, constants, opset=27, ir_version=10)


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize(
    ("dtype", "length", "has_bias", "has_state"),
    [
        (FLOAT, 32, False, False),
        (FLOAT, "l", True, True),
        (FLOAT16, "l", False, True),
        (FLOAT16, 1, True, True),
        (BFLOAT16, 1, False, True),
    ],
)
def test_a_layer_of_a_state_space_model_builds(
    tmp_path: pathlib.Path, dtype: int, length: int | str, has_bias: bool, has_state: bool
) -> None:
    model, engine = mixer(tmp_path / "m.onnx", dtype, length, has_bias, has_state), tmp_path / "m.engine"
    sizes = ("1x8x1", "2x8x64", "4x8x512") if length == "l" else (f"1x8x{length}",) * 3
    shapes = ["--shapes", "x=" + "..".join(sizes)]
    if has_state:
        items = [size.partition("x")[0] for size in sizes]
        shapes += ["--shapes", "past=" + "..".join(f"{n}x16x3" for n in items)]
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", *shapes, code=1)
    assert "CausalConvWithState" in without.error["message"]
    assert not engine.exists()
    built = graft("build", model, "-o", engine, "--target", "sm120", "--json", *shapes, code=0)
    (layer,) = built.json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("convolve", "CausalConvWithState", "graft")
    assert len(layer["inputs"]) == (4 if has_state else 3 if has_bias else 2)
    assert [port["shape"][1] for port in layer["outputs"]] == [16, 16]
    assert layer["outputs"][1]["shape"][2] == 3
    assert b"CausalConvWithState" in engine.read_bytes()
    told = graft("inspect", model, "--json", "--probe", "builder", *shapes)
    assert {node["node"]: node["verdict"] for node in told.json["nodes"]}.pop("convolve") == "plugin"


def aligned_head(path: pathlib.Path, dtype: int, opset: int, optional: str, offset_group: int) -> pathlib.Path:
    """Saves a stage with a deformable convolution, as exporters write DCN: offsets and mask from a convolution of
    the same features, and a layer that reads the result."""
    rng = np.random.default_rng(3)
    element = helper.tensor_dtype_to_np_dtype(dtype)
    moves, masks = 18 * offset_group, 9 * offset_group
    constants = {
        "kernel": rng.standard_normal((8, 3, 3, 3)) / 5,
        "moving": rng.standard_normal((moves, 8, 3, 3)) / 20,
        "masking": rng.standard_normal((masks, 8, 3, 3)) / 20,
        "filters": rng.standard_normal((12, 8, 3, 3)) / 8,
        "bias": rng.standard_normal(12),
    }
    inputs = [
        "features",
        "filters",
        "offset",
        "bias" if "bias" in optional else "",
        "mask" if "mask" in optional else "",
    ]
    while not inputs[-1]:
        inputs.pop()
    node, around = helper.make_node, {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["x", "kernel"], ["features"], name="conv", **around),
        node("Conv", ["features", "moving"], ["offset"], name="moves", **around),
        node("Conv", ["features", "masking"], ["logits"], name="masks", **around),
        node("Sigmoid", ["logits"], ["mask"], name="mask_of"),
        node(
            "DeformConv", inputs, ["sampled"], name="deform", offset_group=offset_group, kernel_shape=[3, 3], **around
        ),
        node("Relu", ["sampled"], ["y"], name="relu"),
    ]
    if "mask" not in optional:
        del nodes[2:4], constants["masking"]
    if "bias" not in optional:
        del constants["bias"]
    values = {name: array.astype(element) for name, array in constants.items()}
    return save(path, nodes, [("x", dtype, [1, 3, 20, 24])], [("y", dtype, None)], values, opset=opset, ir_version=9)


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize(
    ("dtype", "opset", "optional", "offset_group"),
    [
        (TensorProto.FLOAT, 19, "", 1),
        (TensorProto.FLOAT, 19, "bias", 1),
        (TensorProto.FLOAT, 22, "bias mask", 4),
        (TensorProto.FLOAT16, 19, "mask", 2),
        (TensorProto.FLOAT16, 22, "bias mask", 1),
        (TensorProto.BFLOAT16, 22, "mask", 1),
    ],
)
def test_deformable_convolution_builds(
    tmp_path: pathlib.Path, dtype: int, opset: int, optional: str, offset_group: int
) -> None:
    """TensorRT-RTX has no layer DeformConv."""
    model, engine = aligned_head(tmp_path / "m.onnx", dtype, opset, optional, offset_group), tmp_path / "m.engine"
    without = drive_forked("build", model, "--output", engine, "--target", "sm120", code=1)
    assert "DeformConv" in without.error["message"]
    assert not engine.exists()
    (layer,) = graft("build", model, "-o", engine, "--target", "sm120", "--json", code=0).json["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("deform", "DeformableConvolution", "graft")
    assert layer["outputs"][0]["shape"] == [1, 12, 20, 24]
    # A bias that the node leaves out before a mask becomes a tensor without elements.
    shapes = [port["shape"] for port in layer["inputs"]][3:]
    mask = [1, 9 * offset_group, 20, 24]
    assert shapes == {"": [], "bias": [[12]], "mask": [[0], mask], "bias mask": [[12], mask]}[optional]
    assert b"DeformableConvolution" in engine.read_bytes()


def one_node(path: pathlib.Path, operator: str, opset: int, /, **attributes: int | float | str) -> pathlib.Path:
    """Saves an unchanged ONNX node with all inputs and outputs, next to a layer of TensorRT's own."""
    shapes: dict[str, list[tuple[int, list[int]]]] = {
        "CausalConvWithState": [(FLOAT, [1, 6, 16]), (FLOAT, [6, 1, 4])],
        "DeformConv": [(FLOAT, [1, 3, 16, 16]), (FLOAT, [4, 3, 3, 3]), (FLOAT, [1, 18, 14, 14])],
        "NonMaxSuppression": [(FLOAT, [1, 64, 4]), (FLOAT, [1, 2, 64])],
        "NonZero": [(FLOAT, [8, 6])],
        "RoiAlign": [(FLOAT, [1, 3, 16, 16]), (FLOAT, [5, 4]), (INT64, [5])],
        "ScatterElements": [(FLOAT, [64]), (INT64, [8]), (FLOAT, [8])],
        "ScatterND": [(FLOAT, [64]), (INT64, [8, 1]), (FLOAT, [8])],
        "TopK": [(FLOAT, [64])],
    }
    constants = {"TopK": [np.array([5], np.int64)], "NonMaxSuppression": [np.array([10], np.int64)]}.get(operator, [])
    inputs = [helper.make_tensor_value_info(f"in{i}", *each) for i, each in enumerate(shapes[operator])]
    values = [numpy_helper.from_array(array, f"constant{i}") for i, array in enumerate(constants)]
    outputs = ["y", "z"] if operator in ("CausalConvWithState", "TopK") else ["y"]
    given = ["doubled", *(each.name for each in inputs[1:]), *(each.name for each in values)]
    nodes = [
        helper.make_node("Add", ["in0", "in0"], ["doubled"], name="double"),
        helper.make_node(operator, given, outputs, name="node", **attributes),
    ]
    types = {"NonZero": INT64, "NonMaxSuppression": INT64}
    results = [("y", types.get(operator, FLOAT), None)]
    return save(path, nodes, inputs, results, values, opset=opset)


# For each name in libgraft_onnx.so, a node without optional attributes: first and last opset, attributes, and
# attributes that the library requires in addition.
UNMODIFIED: dict[str, tuple[tuple[int, int], dict[str, int | str], dict[str, str]]] = {
    "CausalConvWithState": ((27, 27), {}, {}),
    "DeformConv": ((19, 22), {}, {}),
    "NonZero": ((9, 13), {}, {}),
    "RoiAlign": (
        (10, 16),
        {"output_height": 7, "output_width": 7, "sampling_ratio": 2},
        {"coordinate_transformation_mode": "half_pixel"},
    ),
    "ScatterElements": ((18, 18), {"reduction": "max"}, {}),
    "ScatterND": ((18, 18), {"reduction": "add"}, {}),
}


def in_library() -> dict[str, dict[str, Any]]:
    """Returns the entry of `graft ops` for each name in libgraft_onnx.so."""
    told = graft("ops", "--json").json["operators"]
    return {op["onnx_name"]: op for op in told if op["onnx_plugin"] is not None}


def with_names(graft_library: pathlib.Path, onnx_names: pathlib.Path) -> tuple[str | pathlib.Path, ...]:
    return ("--target", "sm120", "--plugin-library", graft_library, "--plugin-library", onnx_names)


@pytest.mark.usefixtures("graft_library")
def test_each_name_of_the_library_has_a_node_here() -> None:
    assert set(UNMODIFIED) == set(in_library())


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("operator", UNMODIFIED)
def test_an_unmodified_node_builds_with_the_library_and_not_without(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path, operator: str
) -> None:
    """Sets the parser's flag where the parser has a layer of that name; the node then needs an output for the size
    too."""
    (_, opset), attributes, demanded = UNMODIFIED[operator]
    model, engine = one_node(tmp_path / "m.onnx", operator, opset, **attributes, **demanded), tmp_path / "m.engine"
    needs_override = in_library()[operator]["onnx_plugin"]["needs_override"]
    has_device = bool(graft("doctor", "--json").json.get("cuda", {}).get("devices"))
    options = with_names(graft_library, onnx_names)
    if operator != "RoiAlign" or not has_device:  # with a GPU, NVIDIA's plugin builds
        assert drive_forked("build", model, "--output", engine, "--target", "sm120").code != 0
        assert (drive_forked("build", model, "--output", engine, *options).code == 0) == (not needs_override)
    flagged = drive_forked("build", model, "--output", engine, *options, "--plugin-override")
    if operator == "NonZero":
        assert flagged.code == 1
        assert "expected output size is 2" in flagged.error["message"]
        flagged = drive_forked("build", model, "--output", engine, *options)
    (layer,) = flagged.result["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("node", in_library()[operator]["name"], "graft")


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("operator", UNMODIFIED)
def test_the_library_demands_what_depends_on_the_operator_set(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path, operator: str
) -> None:
    """Exactly for these nodes, ONNX Runtime's results differ between the first and the last opset."""
    opsets, attributes, demanded = UNMODIFIED[operator]
    assert set(demanded) == set(in_library()[operator]["onnx_plugin"]["needs_attributes"])
    models = [one_node(tmp_path / f"{opset}.onnx", operator, opset, **attributes) for opset in sorted(set(opsets))]
    if demanded:
        for model in models:
            options = (*with_names(graft_library, onnx_names), "--plugin-override")
            refused = drive_forked("build", model, "--output", tmp_path / "m.engine", *options, code=1)
            for attribute in demanded:
                assert f"`{attribute}` is missing" in refused.error["message"] + refused.logged("error")
    if len(models) == 1:
        return
    found = []
    for model in models:
        session = session_of(model)
        feeds = {"in1": np.array([[2, 1, 9, 11]] * 5, np.float32), "in2": np.zeros(5, np.int64)}
        for value in session.get_inputs():
            if operator != "RoiAlign" or value.name == "in0":
                feeds[value.name] = np.random.default_rng(4).random(value.shape, np.float32)
        found.append(session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})[0])
    assert np.array_equal(*found) == (not demanded)


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("operator", ["TopK", "NonMaxSuppression"])
def test_layers_of_other_names_stay_tensorrts_own_under_the_flag(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path, operator: str
) -> None:
    """Graft's TopK has no input K, and its suppression has one more output than ONNX's."""
    model = one_node(tmp_path / "m.onnx", operator, 17)
    options = ("--plugin-library", graft_library, "--plugin-library", onnx_names, "--plugin-override")
    parsed = drive_forked("parse", model, *options)
    assert parsed.result["network"]["plugins"] == []
    assert parsed.result["network"]["outputs"]


@pytest.mark.usefixtures("rtx")
def test_a_layer_of_tensorrts_own_builds_beside_one_of_the_library(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path
) -> None:
    nodes = [
        helper.make_node("ScatterND", ["x", "i", "u"], ["s"], name="add_up", reduction="add"),
        helper.make_node("TopK", ["s", "k"], ["y", "j"], name="best_of"),
    ]
    inputs = [("x", [64]), ("i", INT64, [8, 1]), ("u", [8])]
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    save(model, nodes, inputs, [("y", [5])], {"k": np.array([5], np.int64)}, opset=18)
    built = drive_forked(
        "build", model, "--output", engine, *with_names(graft_library, onnx_names), "--plugin-override"
    )
    assert [layer["layer"] for layer in built.result["network"]["plugins"]] == ["add_up"]


def test_the_model_is_what_onnx_runtime_runs(tmp_path: pathlib.Path) -> None:
    """ONNX Runtime runs the networks above and confirms their meaning."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((64, 6)) * (rng.random((64, 6)) > 0.7)).astype(np.float32)
    session = session_of(chosen_rows(tmp_path / "m.onnx"))
    np.testing.assert_array_equal(session.run(None, {"x": x})[0][:, 0], 2 * x[np.nonzero(x)])
    assert onnx.load(tmp_path / "m.onnx").graph.node[0].op_type == "NonZero"
