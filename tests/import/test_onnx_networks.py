# Converts exported networks, runs them in ONNX Runtime and in the CPU engine, and compares with the framework's
# results.
import json
import os
import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest
from program import run_program

PROGRAM = os.environ["GRAFT_BIN"]
GOLDEN = pathlib.Path(os.environ["GRAFT_GOLDEN_DIR"]) / "onnx"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.onnx"))

NOT_ON_CPU_ENGINE = {"sklearn_forest": "trees of ai.onnx.ml, which OpenVINO does not have"}


def graft(*arguments):
    done = run_program([PROGRAM, *arguments])
    assert done.returncode in (0, 1), done.stderr  # 1: TensorRT lacks an operator of the network
    return done.stdout


def part(name, kind):
    arrays = np.load(GOLDEN / f"{name}.npz")
    return {key.removeprefix(kind): arrays[key] for key in arrays.files if key.startswith(kind)}


def compare(name, found):
    expected = part(name, "out:")
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key].shape == value.shape
        if value.dtype.kind in "iu":
            np.testing.assert_array_equal(found[key], value)
        else:  # a few layers of sums in another order
            np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-5)


def run_onnxruntime(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def test_there_are_networks():
    assert len(NAMES) >= 18


@pytest.mark.parametrize("name", NAMES)
def test_converted(name, tmp_path):
    report = json.loads(graft("convert", GOLDEN / f"{name}.onnx", "-o", tmp_path / "out.onnx", "--json"))
    assert report["undone"] == []
    model = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(model)
    assert next(o.version for o in model.opset_import if o.domain == "") >= 17
    compare(name, run_onnxruntime(tmp_path / "out.onnx", part(name, "in:")))


@pytest.mark.parametrize("name", NAMES)
def test_as_it_is_on_the_cpu_engine(name, tmp_path):
    if name in NOT_ON_CPU_ENGINE:
        pytest.skip(NOT_ON_CPU_ENGINE[name])
    np.savez(tmp_path / "in.npz", **part(name, "in:"))
    graft("run", GOLDEN / f"{name}.onnx", "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    compare(name, dict(np.load(tmp_path / "out.npz")))


@pytest.mark.parametrize("name", ["torch_opset11_detector", "torch_opset17_detector", "torch_opset9_detector"])
def test_a_given_shape_fixes_what_follows_from_it(name, tmp_path):
    graft("convert", GOLDEN / f"{name}.onnx", "-o", tmp_path / "out.onnx", "--input", "image:2x3x16x24")
    model = onnx.load(tmp_path / "out.onnx")
    assert {node.op_type for node in model.graph.node}.isdisjoint({"Shape", "ConstantOfShape"})
    for value in [*model.graph.output, *model.graph.value_info]:
        assert all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim), value
    compare(name, run_onnxruntime(tmp_path / "out.onnx", part(name, "in:")))


def test_paddle_network_has_its_operators(tmp_path):
    path = tmp_path / "out.onnx"
    graft("convert", GOLDEN / "paddle_network.onnx", "-o", path)
    model = onnx.load(path)
    own = [node.op_type.split("_")[0] for node in model.graph.node if node.domain == "graft"]
    assert own == ["InstanceNorm", "SpatialPyramidPooling", "L2Normalize"]
    nodes = [node.op_type for node in model.graph.node]
    # Two pads of the image remain: the third, with zeros, is part of the convolution; none is a pad of a volume.
    assert nodes.count("Pad") == 2
    assert nodes.count("LeakyRelu") == 1
    assert {"Unsqueeze", "Squeeze", "Where", "Relu"}.isdisjoint(nodes)


def test_trees_are_kept(tmp_path):
    graft("convert", GOLDEN / "sklearn_forest.onnx", "-o", tmp_path / "out.onnx")
    before, after = (onnx.load(path).graph.node for path in (GOLDEN / "sklearn_forest.onnx", tmp_path / "out.onnx"))
    kept = [node.SerializeToString() for node in before if node.domain == "ai.onnx.ml"]
    assert len(kept) >= 2
    assert [(n.op_type, n.domain) for n in before] == [(n.op_type, n.domain) for n in after]
