# onnxruntime_test.py - ONNX Runtime runs the converted exports and finds the numbers of the originals.
"""Every file of tests/golden/exports is converted by the tool in GRAFT_CONVERT_TOOL, with the plugins' functions inside
and again with standard operators only, then both are run by ONNX Runtime, which knows nothing of Graft."""

import json
import os
import pathlib
import subprocess

import numpy
import onnx
import onnxruntime
import pytest

GOLDEN = pathlib.Path(os.environ["GRAFT_GOLDEN_DIR"]) / "exports"
ENTRIES = json.loads((GOLDEN / "manifest.json").read_text())["exports"]
TYPES = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16}


@pytest.fixture(scope="module", params=["auto", "always", "never"])
def converted(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    paths = [str(GOLDEN / entry["file"]) for entry in ENTRIES]
    subprocess.run([os.environ["GRAFT_CONVERT_TOOL"], request.param, str(folder), *paths], check=True)
    return request.param, folder


def make_inputs(session, seed, scale):
    generator = numpy.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 3 for size in value.shape]
        array = (generator.standard_normal(shape) * scale).astype(TYPES[value.type])
        array[0] = 0  # a vector without length
        feeds[value.name] = array
    return feeds


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_the_numbers_are_those_of_the_original(converted, entry):
    mode, folder = converted
    path = folder / entry["file"]
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=False)
    if mode == "never":
        assert not model.functions
        assert {node.domain for node in model.graph.node} <= {""}
    reference = onnxruntime.InferenceSession(str(GOLDEN / entry["file"]), providers=["CPUExecutionProvider"])
    candidate = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for seed, scale in enumerate([1.0, 1e-7, 100.0]):
        feeds = make_inputs(reference, seed, scale)
        for expected, found in zip(reference.run(None, feeds), candidate.run(None, feeds), strict=True):
            assert found.dtype == expected.dtype
            # f16: the original rounds the sum and the norm to f16, the operator only its result.
            tolerance = 1e-5 if expected.dtype == numpy.float32 else 4e-3
            if expected.dtype == numpy.float16 and not numpy.isfinite(expected).all():
                usable = numpy.isfinite(expected)
                expected, found = expected[usable], found[usable]
            numpy.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-6)
