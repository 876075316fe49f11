# Standard ONNX operators that TensorRT-RTX has no layer for: Graft's plugins under their own names, and what `graft build`
# does of itself.
from __future__ import annotations

import pathlib

import models
import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import drive, graft
from onnx import TensorProto, helper, numpy_helper

INT64 = TensorProto.INT64


def chosen_rows(
    path: pathlib.Path, dtype: int = TensorProto.FLOAT, shape: tuple[int | str, ...] = (64, 6)
) -> pathlib.Path:
    """Rows of x that have something in them, which is what exporters make of x[mask]: sized by the data, and so is all
    that follows."""
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
    """The same with booleans, which no plugin takes."""
    limit = numpy_helper.from_array(np.array(0.5, np.float32), "limit")
    axis = numpy_helper.from_array(np.array([0], np.int64), "axis")
    nodes = [
        helper.make_node("Greater", ["x", "limit"], ["is_high"], name="compare"),
        helper.make_node("NonZero", ["is_high"], ["indices"], name="found"),
        helper.make_node("Squeeze", ["indices", "axis"], ["rows"], name="rows_of"),
        helper.make_node("Gather", ["x", "rows"], ["y"], name="scores", axis=0),
    ]
    return models.save(path, nodes, ("n",), TensorProto.FLOAT, [limit, axis])


@pytest.mark.usefixtures("rtx")
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64])
def test_a_file_with_non_zero_builds_with_the_library_and_not_without(
    tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path, dtype: int
) -> None:
    model, engine = chosen_rows(tmp_path / "m.onnx", dtype), tmp_path / "m.engine"
    libraries = ("--plugin-library", graft_library)
    without = drive("build", model, "--output", engine, "--target", "sm89", *libraries)
    assert without.code == 1
    assert "NonZero" in without.error["message"]
    assert not engine.exists()
    libraries = (*libraries, "--plugin-library", onnx_names)
    built = drive("build", model, "--output", engine, "--target", "sm89", *libraries).result
    (layer,) = built["network"]["plugins"]
    assert (layer["name"], layer["namespace"], layer["layer"]) == ("NonZero", "graft", "found")
    assert layer["outputs"][0]["dtype"] == "i64"
    assert layer["outputs"][0]["shape"] == [2, -1]
    assert built["network"]["outputs"][0]["shape"] == [-1, 1]  # what follows has that size too


@pytest.mark.usefixtures("rtx")
def test_with_dynamic_sizes_too(tmp_path: pathlib.Path, graft_library: pathlib.Path, onnx_names: pathlib.Path) -> None:
    model, engine = chosen_rows(tmp_path / "m.onnx", shape=("n", 6)), tmp_path / "m.engine"
    libraries = ("--plugin-library", graft_library, "--plugin-library", onnx_names)
    options = ("--target", "sm89", "--shapes", "x=1x6..64x6..4096x6")
    assert drive("build", model, "--output", engine, *options, *libraries).code == 0


@pytest.mark.usefixtures("rtx")
def test_build_makes_graft_plugins_of_them_and_says_so(tmp_path: pathlib.Path, graft_library: pathlib.Path) -> None:
    """With no option, and of an input of booleans too."""
    assert graft_library.is_file()
    model, engine = chosen_scores(tmp_path / "m.onnx"), tmp_path / "m.engine"
    options = ("--target", "sm89", "--shapes", "x=1..1000..8400")
    told = graft("build", model, "-o", engine, *options)
    assert told.code == 0, told.err
    assert "NonZero 1" in told.out
    assert "size depends on data" in told.out
    built = graft("build", model, "-o", engine, *options, "--json").json
    (layer,) = built["network"]["plugins"]
    assert (layer["layer"], layer["name"], layer["namespace"]) == ("found", "NonZero", "graft")
    assert layer["inputs"][0]["dtype"] == "i32"
    assert "size depends on data" in layer["why"]
    refused = graft("build", model, "-o", engine, *options, "--plugins", "never")
    assert refused.code == 1
    assert "NonZero" in refused.err


@pytest.mark.usefixtures("rtx", "graft_library")
@pytest.mark.parametrize("probe", [(), ("--probe", "parser"), ("--probe", "builder")])
def test_inspect_says_that_build_does(tmp_path: pathlib.Path, probe: tuple[str, ...]) -> None:
    model = chosen_scores(tmp_path / "m.onnx")
    shapes = ("--shapes", "x=1..1000..8400") if probe else ()
    told = graft("inspect", model, "--json", *probe, *shapes)
    assert told.code == 0, told.err
    (node,) = [node for node in told.json["nodes"] if node["operator"] == "NonZero"]
    assert node["verdict"] == "plugin"
    assert "graft" in node["plugin"] if probe else "Graft's NonZero" in node["reason"]


def test_the_model_is_what_onnx_runtime_runs(tmp_path: pathlib.Path) -> None:
    """The networks above mean what their names say."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((64, 6)) * (rng.random((64, 6)) > 0.7)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    session = onnxruntime.InferenceSession(
        chosen_rows(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"]
    )
    np.testing.assert_array_equal(session.run(None, {"x": x})[0][:, 0], 2 * x[np.nonzero(x)])
    assert onnx.load(tmp_path / "m.onnx").graph.node[0].op_type == "NonZero"
