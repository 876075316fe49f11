# Tests --engine, the choice of the engine that runs models on the CPU.
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import make_model, run_onnx, save, subgraph

# Runs when Python starts, and makes ONNX Runtime compute one operator wrongly.
FAULTY = """
import onnx, onnxruntime
right = onnxruntime.InferenceSession

def faulty(model, *arguments, **keywords):
    network = onnx.load_from_string(model)
    for node in [*network.graph.node, *(node for function in network.functions for node in function.node)]:
        if node.op_type == "LeakyRelu":
            node.op_type = "Relu"
            del node.attribute[:]
    return right(network.SerializeToString(), *arguments, **keywords)

onnxruntime.InferenceSession = faulty
"""
WITHOUT_ONNXRUNTIME = {"GRAFT_PYTHON": sys.base_prefix + "/bin/python3"}


def volume_samples():
    """Returns a GridSample of volumes, which OpenVINO does not support."""
    sizes = {"x": [1, 2, 3, 4, 5], "grid": [1, 2, 3, 4, 3], "y": [1, 2, 2, 3, 4]}
    x, grid, y = sizes.items()
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode="linear")
    return make_model([node], [x, grid], [y], opset=20, ir_version=9)


def test_runs_what_openvino_does_not_read(graft, tmp_path):
    model = tmp_path / "volume.onnx"
    onnx.save(volume_samples(), model)
    random = np.random.default_rng(1)
    given = {"x": random.random((1, 2, 3, 4, 5), np.float32), "grid": random.random((1, 2, 3, 4, 3), np.float32)}
    np.savez(tmp_path / "in.npz", **given)
    command = ["run", model, "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--json"]
    assert graft(*command, "--engine", "openvino").code == 2
    answer = graft(*command, "--engine", "onnxruntime", code=0)
    assert answer.json["engine"] == "onnxruntime"
    assert answer.json["ran_in"] == f"ONNX Runtime {onnxruntime.__version__}"
    [expected] = ReferenceEvaluator(volume_samples()).run(None, given)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], expected, atol=1e-5)
    graft("verify", model, model, "--engine", "onnxruntime", code=0)


@pytest.mark.parametrize("opset", [27, 28])
@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], output_height=2, output_width=2),
        helper.make_node("Attention", ["x", "x", "x"], ["y"]),
    ],
    ids=lambda node: node.op_type,
)
def test_onnxruntime_runs_models_in_opsets_that_it_does_not_load(graft, tmp_path, node, opset):
    """RoiAlign is lowered to opset 21, and Attention, which is new in opset 23, to opset 26."""
    constants = {"rois": np.array([[0, 0, 3, 2], [1, 0, 4, 3]], np.float32), "batch": np.array([1, 0])}
    used = {name: values for name, values in constants.items() if name in node.input}
    graph = subgraph([node], [("x", [2, 3, 4, 5])], [("y", None)], used)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    onnx.save(model, tmp_path / "m.onnx")
    given = np.random.default_rng(1).random((2, 3, 4, 5), np.float32)
    np.savez(tmp_path / "in.npz", x=given)
    command = ["run", tmp_path / "m.onnx", "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--json"]
    answer = graft(*command, "--engine", "onnxruntime", code=0)
    assert answer.json["engine"] == "onnxruntime"
    [expected] = ReferenceEvaluator(model).run(None, {"x": given})
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], expected, atol=1e-5)


def test_gives_onnxruntimes_own_numbers(graft, tmp_path):
    images = np.random.default_rng(2).random((3, 1, 8, 8), np.float32)
    np.savez(tmp_path / "in.npz", image=images)
    graft("run", DIGITS, "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--engine", "onnxruntime", code=0)
    found = np.load(tmp_path / "out.npz")
    for name, expected in run_onnx(DIGITS, {"image": images}, is_optimized=False).items():
        np.testing.assert_array_equal(found[name], expected)


def test_proves_and_compares_and_quantizes(graft, tmp_path):
    converted, typed = tmp_path / "digits.graft.onnx", tmp_path / "digits.f16.onnx"
    answer = graft("convert", DIGITS, "-o", converted, "--engine", "onnxruntime", "--json", code=0)
    assert answer.json["proofs_run"] > 0
    assert graft("verify", DIGITS, converted, "--engine", "onnxruntime").code == 0
    assert graft("verify", DIGITS, converted, "--engine", "onnxruntime", "--layers").code == 0
    assert graft("quantize", converted, "-o", typed, "--precision", "f16", "--engine", "onnxruntime").code == 0
    assert graft("verify", DIGITS, typed, "--engine", "onnxruntime").code == 0


def test_finds_a_difference(graft, tmp_path):
    model = onnx.load(DIGITS)
    weights = next(tensor for tensor in model.graph.initializer if len(tensor.dims) == 4)
    numbers = onnx.numpy_helper.to_array(weights).copy()
    numbers[0] *= 1.01
    weights.CopyFrom(onnx.numpy_helper.from_array(numbers, weights.name))
    onnx.save(model, tmp_path / "other.onnx")
    answer = graft("verify", DIGITS, tmp_path / "other.onnx", "--engine", "onnxruntime", code=1)
    assert "not the same" in answer.out


@pytest.fixture
def faulty(tmp_path):
    """Returns the environment of a program whose ONNX Runtime has a fault."""
    folder = tmp_path / "faulty"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULTY)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}"}


def test_auto_runs_what_openvino_does_not_read(graft, tmp_path):
    onnx.save(volume_samples(), tmp_path / "volume.onnx")
    assert graft("verify", tmp_path / "volume.onnx", tmp_path / "volume.onnx").code == 0
    missing = graft("verify", tmp_path / "volume.onnx", tmp_path / "volume.onnx", env=WITHOUT_ONNXRUNTIME, code=2)
    assert "GridSample" in missing.err


def one_node(path, *arguments, **attributes):
    """Saves a network of one f32 node with an input x."""
    return save(
        path,
        [helper.make_node(*arguments, ["x"], ["y"], **attributes)],
        [("x", ["N", 2, 6, 8])],
        [("y", None)],
        opset=19,
        ir_version=9,
    )


def test_without_onnxruntime_openvino_answers_and_says_so(graft, tmp_path):
    model = one_node(tmp_path / "model.onnx", "Sigmoid")
    x = np.random.default_rng(4).standard_normal((2, 2, 6, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    run = ["run", model, "--input", f"x={tmp_path}/x.npy", "-o", tmp_path / "out.npz"]
    answer = graft(*run, env=WITHOUT_ONNXRUNTIME, code=0)
    assert "on the CPU, by OpenVINO 20" in answer.out
    assert f"ran {model}: ONNX Runtime is not installed" in answer.err
    assert "this engine is known to compute some forms of" in answer.err
    assert "-m pip install onnxruntime" in answer.err
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], 1 / (1 + np.exp(-x)), rtol=1e-5)
    shown = graft(*run, "--json", env=WITHOUT_ONNXRUNTIME).json
    assert shown["ran_in"].startswith("OpenVINO 20")
    assert "ONNX Runtime is not installed" in shown["left_out"][0]
    verified = graft("verify", model, model, env=WITHOUT_ONNXRUNTIME, code=0)
    assert "computed by OpenVINO 20" in verified.out
    assert "ONNX Runtime is not installed" in verified.out
    usual = graft(*run, "--json").json
    assert usual["ran_in"] == f"ONNX Runtime {onnxruntime.__version__}"
    assert usual["left_out"] == []


def test_openvino_that_contradicts_itself_is_not_used(graft, tmp_path):
    """Cubic Resize after an If reads memory that OpenVINO did not write in its first run."""
    text = """<ir_version: 9, opset_import: ["": 17]>
      g (float[B,1,H,W] x, bool c) => (float[B_,1,H2,W2] y) <float[4] scales = {1, 1, 2, 1.5}, float one = {1}> {
        s = If (c) <then_branch = t () => (float[B,1,H,W] a) { a = Add (x, x) },
                    else_branch = e () => (float[B,1,H,W] b) { b = Add (x, one) }>
        y = Resize <mode = "cubic", coordinate_transformation_mode = "align_corners"> (s, "", scales)
      }"""
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), model)
    np.savez(tmp_path / "in.npz", x=np.ones((2, 1, 9, 12), np.float32), c=np.asarray(True))
    run = ["run", model, "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz"]
    assert graft(*run).code == 0
    answer = graft(*run, env=WITHOUT_ONNXRUNTIME, code=2)
    assert "computed different bits of output 'y' from the same inputs in a second run" in answer.err


def test_both_agree(graft, tmp_path):
    converted = tmp_path / "out.onnx"
    answer = graft("convert", DIGITS, "-o", converted, "--engine", "both", "--json", code=0)
    assert answer.json["proofs_run"] > 0
    assert not answer.json["undone"]
    verified = graft("verify", DIGITS, converted, "--engine", "both", "--json", code=0)
    assert verified.json["dispute"] is None


def test_a_fault_of_one_engine_is_no_verdict_on_the_models(graft, tmp_path, faulty):
    answer = graft("verify", DIGITS, DIGITS, "--engine", "both", env=faulty, code=1)
    assert answer.out.startswith("disputed: the CPU engines compute one of the models differently")
    assert "OpenVINO 20" in answer.out
    assert "(LeakyRelu)" in answer.out
    assert "not the same" not in answer.out
    shown = graft("verify", DIGITS, DIGITS, "--engine", "both", "--json", env=faulty).json
    assert shown["verdict"] == "disputed"
    assert not shown["equal"]
    assert shown["dispute"]["operator"] == "LeakyRelu"
    layers = graft("verify", DIGITS, DIGITS, "--engine", "both", "--layers", "--json", env=faulty, code=1)
    assert layers.json["dispute"]["operator"] == "LeakyRelu"
    run = ["run", DIGITS, "--input", f"image={DIGITS_DATA}:images", "-o", tmp_path / "out.npz"]
    disputed = graft(*run, "--engine", "both", env=faulty, code=1)
    assert "set --engine to openvino or onnxruntime for the result of one engine" in disputed.err
    assert not (tmp_path / "out.npz").exists()
    assert graft("verify", DIGITS, DIGITS, "--engine", "onnxruntime", env=faulty).code == 0, "it agrees with itself"


@pytest.mark.parametrize("op", ["Erf", "Elu"])
def test_functions_near_zero_are_no_dispute(graft, tmp_path, op):
    nodes, ends = [helper.make_node(op, ["x"], ["y"])], ([("x", [4, 8])], [("y", [4, 8])])
    model = save(tmp_path / "model.onnx", nodes, *ends, ir_version=9)
    for limit in ("1e-12", "1e-4"):
        answer = graft("verify", model, model, "--engine", "both", "--range", f"x=-{limit}..0", code=0)
        assert answer.out.startswith("the same")


def test_a_proof_that_is_disputed_undoes_the_rewrite(graft, tmp_path, faulty):
    answer = graft(
        "convert", DIGITS, "-o", tmp_path / "out.onnx", "--plugins", "always", "--engine", "both", "--json", env=faulty
    )
    rejected = [rewrite["proof"] for rewrite in answer.json["undone"]]
    assert any("disagree on" in proof and "(LeakyRelu)" in proof for proof in rejected), rejected


def pooled_regions():
    """Returns the maxima of two regions, followed by an activation. OpenVINO computes the regions wrongly (ONNX's
    test_roialign_mode_max)."""
    boxes = np.array([[0.4, 1.1, 6.2, 5.7], [2.3, 0.2, 7.5, 7.1]], np.float32)
    nodes = [
        helper.make_node(
            "RoiAlign", ["x", "boxes", "images"], ["pooled"], "regions", mode="max", output_height=3, output_width=3
        ),
        helper.make_node("LeakyRelu", ["pooled"], ["y"], alpha=0.5),
    ]
    constants = {"boxes": boxes, "images": np.zeros(2, np.int64)}
    return make_model(nodes, [("x", [1, 2, 8, 8])], [("y", [2, 2, 3, 3])], constants, opset=20, ir_version=9)


LEFT_OUT = "OpenVINO is not used for {}, because the model has node 'regions' (RoiAlign), which OpenVINO is known to compute wrongly"


@pytest.mark.parametrize("engine", ["auto", "both"])
def test_a_known_fault_is_routed_round_and_said(graft, tmp_path, engine):
    model, converted = tmp_path / "regions.onnx", tmp_path / "out.onnx"
    onnx.save(pooled_regions(), model)
    left_out = LEFT_OUT.format(model)
    answer = graft("convert", model, "-o", converted, "--plugins", "always", "--engine", engine, "--json", code=0)
    assert answer.json["proofs_run"] > 0
    assert not answer.json["undone"]
    assert any(left_out in warning for warning in answer.json["warnings"])
    verified = graft("verify", model, converted, "--engine", engine, code=0)
    assert verified.out.startswith("the same")
    # ONNX Runtime is the first choice of auto, so no engine is left out.
    assert (left_out in verified.out) == (engine == "both")
    for layers in ([], ["--layers"]):
        shown = graft("verify", model, model, "--engine", engine, "--json", *layers, code=0)
        assert shown.json["dispute"] is None
        assert [left_out in line for line in shown.json["left_out"]] == [True] * (engine == "both")
    x = np.random.default_rng(3).random((1, 2, 8, 8), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    run = ["run", model, "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--engine", engine]
    assert graft(*run).code == 0
    (expected,) = ReferenceEvaluator(pooled_regions()).run(None, {"x": x})
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], expected, atol=1e-5)


def one_sided(path, factor):
    """Saves a transform whose result has other sizes in OpenVINO, times a factor."""
    constants = {"axis": np.int64(2), "factor": np.float32(factor)}
    nodes = [
        helper.make_node("DFT", ["x", "", "axis"], ["d"], onesided=1),
        helper.make_node("Mul", ["d", "factor"], ["y"]),
    ]
    return save(path, nodes, [("x", [3, 4, 8, 1])], [("y", [3, 4, 5, 2])], constants, opset=20, ir_version=9)


def test_a_known_fault_is_no_rounding_noise(graft, tmp_path):
    answer = graft("verify", one_sided(tmp_path / "a.onnx", 1), one_sided(tmp_path / "b.onnx", 1.01), code=1)
    assert answer.out.startswith("not the same")
    assert "changes its dimensions" not in answer.out


def largest_in_regions(path):
    """Saves a RoiAlign node with mode=max, for which OpenVINO computes the maximum of other sampling points than
    ONNX does."""
    regions = np.array([[0, 0, 3, 3], [1, 1, 5, 4]], np.float32)
    constants = {"regions": regions, "batches": np.zeros(2, np.int64)}
    align = helper.make_node(
        "RoiAlign", ["x", "regions", "batches"], ["y"], "regions", mode="max", output_height=2, output_width=2
    )
    return save(path, [align], [("x", [1, 2, 6, 6])], [("y", [2, 2, 2, 2])], constants, ir_version=9)


def test_a_known_fault_of_an_engine_that_is_asked_for_is_said(graft, tmp_path):
    model = largest_in_regions(tmp_path / "regions.onnx")
    asked = graft("verify", model, model, "--engine", "openvino", "--json")
    assert "OpenVINO runs" in asked.json["left_out"][0]
    assert "without --engine the other CPU engine would run the model" in asked.json["left_out"][0]
    missing = graft("verify", model, model, "--json", env=WITHOUT_ONNXRUNTIME)
    assert "ONNX Runtime is not installed" in missing.json["left_out"][0]
    assert "node 'regions' (RoiAlign), which OpenVINO is known to compute wrongly" in missing.json["left_out"][0]
    assert graft("verify", model, model, "--engine", "onnxruntime", "--json").json["left_out"] == []
    assert graft("verify", DIGITS, DIGITS, "--json").json["left_out"] == []


@pytest.mark.parametrize("engine", ["onnxruntime", "both"])
@pytest.mark.parametrize("command", ["verify", "convert"])
def test_where_it_is_not_installed(graft, tmp_path, command, engine):
    rest = [DIGITS] if command == "verify" else ["-o", tmp_path / "out.onnx"]
    answer = graft(command, DIGITS, *rest, "--engine", engine, env=WITHOUT_ONNXRUNTIME, code=3)
    assert "ONNX Runtime is not installed" in answer.err
    assert "-m pip install onnxruntime" in answer.err


def test_has_none_of_grafts_kernels(graft):
    answer = graft("verify", DIGITS, DIGITS, "--engine", "both", "--kernels", "own", code=2)
    assert "--kernels own: ONNX Runtime does not run Graft's own CPU kernels" in answer.err


def test_another_engine(graft):
    answer = graft("verify", DIGITS, DIGITS, "--engine", "tvm", code=2)
    assert "onnxruntime" in answer.err


def test_doctor_names_both(graft):
    found = {finding["name"]: finding for finding in graft("doctor", "--json").json["findings"]}
    assert found["CPU engine"]["text"].startswith("OpenVINO 20")
    assert found["reference for values"]["facts"]["version"] == onnxruntime.__version__
    missing = {f["name"]: f for f in graft("doctor", "--json", env=WITHOUT_ONNXRUNTIME).json["findings"]}
    assert not missing["reference for values"]["found"]
    assert not missing["reference for values"]["needed"]
