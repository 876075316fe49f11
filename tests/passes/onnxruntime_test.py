# onnxruntime_test.py - Runs the converted exports in ONNX Runtime and compares them with the originals.
"""The tool in GRAFT_CONVERT_TOOL converts every file of tests/golden/exports, with the plugins' functions inside and
again with standard operators only. ONNX Runtime runs both without Graft."""

import json
import os
import pathlib
import subprocess

import numpy
import onnx
import onnxruntime
import pytest

GOLDEN = pathlib.Path(os.environ["GRAFT_GOLDEN_DIR"]) / "exports"
ENTRIES = [e for e in json.loads((GOLDEN / "manifest.json").read_text())["exports"] if e["file"].endswith(".onnx")]
TYPES = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16}


MODES = ["auto", "always", "never"]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Returns the folder with the models of each mode. The rewrites are not proven: exports_test.cpp does that."""
    paths = [str(GOLDEN / entry["file"]) for entry in ENTRIES]
    folder = tmp_path_factory.mktemp("converted")
    for mode in MODES:
        (folder / mode).mkdir()
    subprocess.run([os.environ["GRAFT_CONVERT_TOOL"], "--unproven", ",".join(MODES), str(folder), *paths], check=True)
    return {mode: folder / mode for mode in MODES}


def start(path):
    """Starts a session with one thread: the networks are small, and waiting threads use processor time."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def make_inputs(session, seed, scale):
    generator = numpy.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 3 for size in value.shape]
        array = (generator.standard_normal(shape) * scale).astype(TYPES[value.type])
        array[0] = 0  # a vector of length 0
        feeds[value.name] = array
    return feeds


def check_agrees(found, expected):
    assert found.dtype == expected.dtype
    # f16: the original rounds the norm to f16, the operator only its result.
    tolerance = 1e-5 if expected.dtype == numpy.float32 else 4e-3
    # Where large values cancel, the result has their rounding error.
    largest = max(1.0, float(numpy.abs(expected.astype(numpy.float64)).max(initial=0)))
    numpy.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-6 * largest)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_the_numbers_are_those_of_the_original(converted, entry):
    reference = start(GOLDEN / entry["file"])
    is_half = any(value.type == "tensor(float16)" for value in reference.get_inputs())
    # Below 6e-5, f16 has fewer digits: the original's norm is a multiple of a large step, the operator's is not.
    scales = [1.0, 1e-2, 100.0] if is_half else [1.0, 1e-7, 100.0]
    trials = [make_inputs(reference, seed, scale) for seed, scale in enumerate(scales)]
    expected = [reference.run(None, feeds) for feeds in trials]
    for mode, folder in converted.items():
        path = folder / entry["file"]
        model = onnx.load(path)
        onnx.checker.check_model(model)
        domains = {node.domain for node in model.graph.node}
        if mode == "never":
            assert not model.functions
            assert domains <= {""}
        if mode == "always" and entry["fusions"] + entry["native"] > 0 and entry["required"]:
            assert "graft" in domains
        candidate = start(path)
        for feeds, outputs in zip(trials, expected, strict=True):
            for found, wanted in zip(candidate.run(None, feeds), outputs, strict=True):
                check_agrees(found, wanted)


def test_axes_counted_from_the_last_are_those_of_numpy(tmp_path):
    """ONNX Runtime refuses the original model, so NumPy computes the expected result."""
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["a"], perm=[0, -1, 1, -2]),
        onnx.helper.make_node("Relu", ["a"], ["b"]),
        onnx.helper.make_node("Transpose", ["b"], ["y"], perm=[-4, -2, 3, -3]),
    ]
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
        for name, shape in (("x", [2, 3, 4, 5]), ("y", None))
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "axes", *ends), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, tmp_path / "axes.onnx")
    (tmp_path / "out").mkdir()
    subprocess.run([os.environ["GRAFT_CONVERT_TOOL"], "auto", tmp_path / "out", tmp_path / "axes.onnx"], check=True)
    x = numpy.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(numpy.float32)
    found = start(tmp_path / "out" / "axes.onnx").run(None, {"x": x})[0]
    expected = numpy.maximum(x, 0).transpose(0, -1, 1, -2).transpose(-4, -2, 3, -3)
    numpy.testing.assert_array_equal(found, expected)
