# graft convert --cut: both halves run in ONNX Runtime, in the order of the file next to them, and are compared with the
# whole network there.
import json
import shlex

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import DIGITS, SOURCE, needs_plugin_library
from onnx import TensorProto, helper, numpy_helper
from onnx_models import constant, run_onnx, save, session_of


def run_halves(cut_file, feeds):
    """Runs both halves as the documentation describes."""
    cut = json.loads(cut_file.read_text())
    order = ["tensorrt", "host"] if cut["first"] == "tensorrt" else ["host", "tensorrt"]
    known = dict(feeds)
    for half in order:
        session = session_of(cut_file.parent / cut[half]["file"])
        taken = {i.name: known[i.name] for i in session.get_inputs()}
        assert sorted(taken) == sorted(port["name"] for port in cut[half]["inputs"])
        known |= zip([o.name for o in session.get_outputs()], session.run(None, taken), strict=True)
    assert all(port["name"] in known for port in cut["between"])
    return {name: known[name] for name in cut["outputs"]}


def weights(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.fixture
def detector(tmp_path):
    """Saves a detector: a convolution, boxes and scores, and non-maximum suppression followed by a gather."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["features"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["features", "to"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["columns", "box_weight"], ["boxes"]),
        helper.make_node("MatMul", ["columns", "score_weight"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["probabilities"]),
        helper.make_node("Transpose", ["probabilities"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], name="nms"),
        helper.make_node("Slice", ["chosen", "two", "three", "one"], ["places"]),
        helper.make_node("Squeeze", ["places", "one"], ["flat"]),
        helper.make_node("Gather", ["boxes", "flat"], ["detections"], axis=1),
    ]
    constants = {
        "w": weights(8, 3, 3, 3),
        "to": np.array([1, 8, 256]),
        "box_weight": weights(8, 4),
        "score_weight": weights(8, 3),
        "most": np.array([5]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.25], np.float32),
        "one": np.array([1]),
        "two": np.array([2]),
        "three": np.array([3]),
    }
    outputs = [
        ("detections", [1, "found", 4]),
        ("chosen", TensorProto.INT64, ["found", 3]),
    ]
    return save(tmp_path / "detector.onnx", nodes, [("image", [1, 3, 16, 16])], outputs, constants)


def test_a_detector_is_cut_before_its_suppression(graft, detector, tmp_path):
    out = tmp_path / "out.onnx"
    cut = graft("convert", detector, "-o", out, "--cut", "--plugins", "never", "--json", code=0).json["cut"]
    assert cut["first"] == "tensorrt"
    assert cut["verified"] == "same"
    assert cut["share_in_tensorrt"] > 0.95
    assert {port["name"] for port in cut["between"]} == {"boxes", "scores"}
    (tail,) = cut["tails"]
    assert (tail["kind"], tail["node"], tail["form"]) == ("suppression", "nms", "corners")
    assert (tail["most"], tail["overlap"], tail["lowest_score"]) == (5, 0.5, 0.25)
    assert (tail["boxes"], tail["scores"]) == (["boxes"], ["scores"])
    assert not [n for n in onnx.load(out).graph.node if n.op_type == "NonMaxSuppression"]
    onnx.checker.check_model(onnx.load(out), full_check=True)
    onnx.checker.check_model(onnx.load(tmp_path / "out.host.onnx"), full_check=True)
    written = json.loads((tmp_path / "out.cut.json").read_text())
    assert written == {key: cut[key] for key in written}

    feeds = {"image": weights(1, 3, 16, 16)}
    whole, halves = run_onnx(detector, feeds), run_halves(tmp_path / "out.cut.json", feeds)
    assert list(halves) == ["detections", "chosen"]
    assert len(whole["chosen"]) > 1
    np.testing.assert_array_equal(halves["chosen"], whole["chosen"])
    np.testing.assert_allclose(halves["detections"], whole["detections"], rtol=1e-5)


def next_commands(answer):
    """Returns the commands after the word `next`, which is on the line of the first one."""
    lines = answer.out[answer.out.index("\nnext  ") :].removeprefix("\nnext").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("graft ")]


def test_what_a_plugin_runs_stays_in_tensorrt(graft, detector, tmp_path):
    """inspect, build and cut agree: the suppression is a plugin of Graft's."""
    out = tmp_path / "out.onnx"
    answer = graft("convert", detector, "-o", out, "--cut", "--json", code=0)
    assert answer.json["cut"] is None
    assert answer.json["runs"] is True
    assert [n for n in onnx.load(out).graph.node if n.op_type == "NonMaxSuppression"]
    assert not (tmp_path / "out.host.onnx").exists()
    (node,) = [n for n in graft("inspect", out, "--json").json["nodes"] if n["operator"] == "NonMaxSuppression"]
    assert node["verdict"] == "plugin"


@needs_plugin_library
def test_what_is_not_cut_builds(graft, detector, tmp_path):
    out = tmp_path / "out.onnx"
    assert graft("convert", detector, "-o", out, "--cut").code == 0
    answer = graft("build", out, "-o", tmp_path / "out.engine", "--target", "sm120", "--json", code=0)
    assert [plugin["name"] for plugin in answer.json["network"]["plugins"]] == ["NonMaxSuppression"]


def test_only_what_neither_tensorrt_nor_a_plugin_runs_goes_to_the_host(graft, tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["rows"]),
        helper.make_node("NonZero", ["rows"], ["places"]),
        helper.make_node("Unique", ["rows"], ["values"]),
    ]
    outputs = [
        ("places", TensorProto.INT64, [2, "found"]),
        ("values", ["kinds"]),
    ]
    model = save(tmp_path / "both.onnx", nodes, [("x", ["n", 6])], outputs, {"a": weights(6, 8)})
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--json", code=0)
    assert [cause["operator"] for cause in answer.json["cut"]["causes"]] == ["Unique"]
    halves = {half: onnx.load(tmp_path / file) for half, file in (("tensorrt", "out.onnx"), ("host", "out.host.onnx"))}
    assert {half: [n.op_type for n in m.graph.node] for half, m in halves.items()} == {
        "tensorrt": ["MatMul", "NonZero"],
        "host": ["Unique"],
    }


def test_the_cut_is_judged_by_the_release_that_the_model_is_for(graft, detector, tmp_path):
    """The full TensorRT has a layer of its own for the suppression."""
    options = ("--cut", "--plugins", "never", "--json")
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", "--for", "tensorrt-10.13", *options, code=0)
    assert answer.json["cut"] is None


def test_what_the_command_says_of_a_cut(graft, detector, tmp_path):
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never")
    assert "Cut before 1 node that TensorRT does not run: NonMaxSuppression" in answer.out
    assert "both halves together equal the whole network" in answer.out
    assert "boxes that overlap by more than 0.5 are removed, scores above 0.25, at most 5 per class" in " ".join(
        answer.out.split()
    )
    assert "out.cut.json, which names both halves" in answer.out
    assert next_commands(answer) == [
        f"graft build {tmp_path / 'out.onnx'} -o {tmp_path / 'out.engine'} --plugins never",
        f"graft verify {detector} {tmp_path / 'out.cut.json'}",
    ]
    assert (
        'the engine, and then the half for the host: the guide "TensorRT does not run a part of the network" (cut_a_network.md)'
        in " ".join(answer.out.split())
    )
    # The node is where the user wants it, so nothing is left to do.
    assert "1 node is in the half for the host now" in answer.out and "what to do" not in answer.out


@pytest.mark.parametrize("judge", ["builder", "none"])
def test_the_build_of_a_half_has_the_shapes_and_the_target_of_the_cut(graft, detector, tmp_path, judge):
    model = onnx.load(detector)
    for port in (model.graph.input[0], model.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.node[1].input[1] = "to_rows"
    model.graph.initializer.append(constant("to_rows", np.array([-1, 8, 256])))
    onnx.save(model, detector)
    given = () if judge == "none" else ("--shapes", "image=1x3x16x16..1x3x16x16..2x3x16x16")
    options = ("--cut", "--plugins", "never", "--probe", judge, *given, "--target", "rtx5090")
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", *options)
    (build, *_) = next_commands(answer)
    assert " --target sm120" in build and " --plugins never" in build
    assert ("--shapes 'image=1x3x16x16..1x3x16x16..2x3x16x16'" in build) == (judge == "builder"), build
    graft(*shlex.split(build)[1:], code=0)


def test_nodes_that_tensorrt_computes_wrongly_are_not_called_nodes_that_it_does_not_run(graft, tmp_path):
    """TensorRT takes the u8 of a quantization for i8, without a message."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["rows"]),
        helper.make_node("QuantizeLinear", ["rows", "scale", "zero"], ["steps"], axis=1, block_size=2),
        helper.make_node("DequantizeLinear", ["steps", "scale", "zero"], ["y"], axis=1, block_size=2),
    ]
    constants = {"w": weights(6, 8), "scale": np.full((4, 4), 0.1, np.float32), "zero": np.zeros((4, 4), np.uint8)}
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 6])], [("y", [4, 8])], constants)
    said = " ".join(graft("inspect", model).out.split())
    assert "one for the host with 2 nodes that TensorRT computes wrongly" in said
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut")
    assert "Cut before 2 nodes that TensorRT computes wrongly: DequantizeLinear, QuantizeLinear" in answer.out


def test_the_pair_runs_and_is_compared_like_one_network(graft, detector, tmp_path):
    assert graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never").code == 0
    pair = tmp_path / "out.cut.json"
    np.save(tmp_path / "image.npy", weights(1, 3, 16, 16))
    for network, result in ((detector, "whole.npz"), (pair, "pair.npz")):
        answer = graft("run", network, "--input", f"image={tmp_path / 'image.npy'}", "-o", tmp_path / result, code=0)
    whole, halves = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "pair.npz")
    np.testing.assert_array_equal(halves["chosen"], whole["chosen"])
    np.testing.assert_array_equal(halves["detections"], whole["detections"])
    answer = graft("verify", detector, pair, code=0)
    assert f"candidate {pair}, computed by" in " ".join(answer.out.split()), "both halves ran"
    # TensorRT runs only one of the halves.
    for command in (
        ["build", pair, "-o", tmp_path / "out.engine", "--target", "sm120"],
        ["canary", pair, "-o", "folder"],
    ):
        answer = graft(*command, code=2)
        assert f"Pass this half: {tmp_path / 'out.onnx'}" in answer.err, answer.err


def test_halves_that_were_changed_are_told_from_the_whole(graft, tmp_path):
    detector = SOURCE / "examples" / "cut" / "detector.onnx"
    assert graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never").code == 0
    assert graft("verify", detector, tmp_path / "out.cut.json").code == 0
    half = onnx.load(tmp_path / "out.onnx")
    (weight,) = (i for i in half.graph.initializer if i.name == "box_weight")
    weight.CopyFrom(constant("box_weight", numpy_helper.to_array(weight) * 1.25))
    onnx.save(half, tmp_path / "out.onnx")
    assert graft("verify", detector, tmp_path / "out.cut.json").code == 1


def test_a_network_that_begins_with_what_does_not_run_keeps_its_end_for_tensorrt(graft, tmp_path):
    nodes = [
        helper.make_node("Cast", ["mask"], ["places"], to=TensorProto.BOOL),
        helper.make_node("Compress", ["features", "places"], ["rows"], axis=0),
        helper.make_node("MatMul", ["rows", "a"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("MatMul", ["active", "b"], ["y"]),
    ]
    constants = {"a": weights(6, 64), "b": weights(64, 5)}
    inputs = [("mask", [20]), ("features", [20, 6])]
    model = save(tmp_path / "end.onnx", nodes, inputs, [("y", ["found", 5])], constants)
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--json", code=0)
    assert answer.json["cut"]["first"] == "host"
    text = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut")
    (build, _) = next_commands(text)
    assert " --shapes 'rows=" in build, "the values between the halves are inputs of the half for TensorRT"
    assert "the half for the host, and then the engine" in " ".join(text.out.split())
    feeds = {"mask": np.maximum(weights(20), 0), "features": weights(20, 6)}
    np.testing.assert_allclose(
        run_halves(tmp_path / "out.cut.json", feeds)["y"], run_onnx(model, feeds)["y"], rtol=1e-4
    )


def test_halves_that_no_engine_runs_are_not_compared_and_the_exit_code_is_1(graft, tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Warp", ["h"], ["y"], domain="acme")]
    model = save(tmp_path / "m.onnx", nodes, [("x", [4, 6])], [("y", [4, 8])], {"a": weights(6, 8)})
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", code=1)
    assert "the halves were not compared with the whole" in answer.err
    assert [command.split()[1] for command in next_commands(answer)] == ["build"], "verify would fail too"
    assert graft("verify", model, tmp_path / "out.cut.json").code == 2
    graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--no-prove", code=0)


def test_nothing_is_cut_where_everything_runs(graft, tmp_path):
    answer = graft("convert", DIGITS, "-o", tmp_path / "out.onnx", "--cut", "--json", code=0)
    assert answer.json["cut"] is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.onnx"]


def test_without_anything_left_for_tensorrt_the_network_is_written_whole(graft, tmp_path):
    model = save(
        tmp_path / "unique.onnx", [helper.make_node("Unique", ["x"], ["y"])], [("x", ["n"])], [("y", ["found"])]
    )
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", code=1)
    assert "no cut is possible" in answer.err
    assert (tmp_path / "out.onnx").exists()
    assert not (tmp_path / "out.cut.json").exists()
    assert next_commands(answer) == [f"graft inspect {tmp_path / 'out.onnx'}"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cut: cut.pop("schema"), 'its field "schema" is not "graft.cut/1"'),
        (lambda cut: cut.update(first="gpu"), "'first' is \"gpu\"; it must be"),
        (lambda cut: cut.pop("host"), "'host' does not name a file"),
        (
            lambda cut: cut["host"].update(file="../elsewhere.onnx"),
            "'host' names the file '../elsewhere.onnx'; it must be the name, without a path,",
        ),
        (lambda cut: cut["outputs"].append("more"), "'outputs' contains 'more', but neither half has"),
        (lambda cut: cut.update(outputs=[3]), "'outputs' contains 3; each entry must be"),
    ],
)
def test_a_file_that_names_halves_wrongly_is_refused(graft, detector, tmp_path, change, said):
    assert graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never").code == 0
    file = tmp_path / "out.cut.json"
    cut = json.loads(file.read_text())
    change(cut)
    file.write_text(json.dumps(cut))
    answer = graft("verify", detector, file, code=2)
    assert said in answer.err
    assert "out.cut.json" in answer.err


def test_a_half_that_cannot_be_read_is_what_the_error_names(graft, detector, tmp_path):
    """A node named "layers.7" must not make the reader treat the file as a Caffe network."""
    assert graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never").code == 0
    file = tmp_path / "out.cut.json"
    written = json.loads(file.read_text())
    file.write_text(json.dumps({"node": "/model/layers.7/lstm/LSTM"} | written))
    half = tmp_path / written["tensorrt"]["file"]
    half.write_bytes(half.read_bytes()[:100])
    answer = graft("verify", detector, file, code=2)
    assert half.name in answer.err
    assert "Caffe" not in answer.err


def test_files_of_a_cut_are_none_of_those_that_are_read(graft, detector, tmp_path):
    (tmp_path / "out.host.onnx").write_bytes(detector.read_bytes())
    graft("convert", tmp_path / "out.host.onnx", "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never", code=2)
    assert (tmp_path / "out.host.onnx").read_bytes() == detector.read_bytes()


def test_probe_is_about_the_cut(graft, detector, tmp_path):
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", "--probe", "parser", code=2)
    assert "--cut" in answer.err


def test_a_half_that_onnx_runtime_refuses_is_not_called_verified(graft, tmp_path):
    """LRN with an even size: OpenVINO computes it, and neither TensorRT nor ONNX Runtime loads it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("LRN", ["a"], ["b"], size=4),
        helper.make_node("Conv", ["b", "v"], ["y"]),
    ]
    constants = {"w": weights(8, 3, 3, 3), "v": weights(2, 8, 3, 3)}
    model = save(tmp_path / "lrn.onnx", nodes, [("x", [1, 3, 9, 9])], [("y", [1, 2, 5, 5])], constants)
    answer = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--probe", "none", code=1)
    with pytest.raises(Exception, match=r"size_ % 2 == 1 was false"):
        session_of(tmp_path / "out.host.onnx")
    assert "2 nodes, which ONNX Runtime refuses" in " ".join(answer.out.split())
    assert "verified" not in answer.out
    assert "the half for the host is not ready, because ONNX Runtime refuses it" in answer.err
    assert "size_ % 2 == 1 was false" in answer.err
    assert "OpenVINO" in answer.err
    for command in next_commands(answer):
        assert graft(*command.split()[1:]).code == 0, command

    cut = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--probe", "none", "--json").json["cut"]
    assert cut["verified"] is None
    assert cut["host_engine"].startswith("OpenVINO")
    assert "size_ % 2 == 1 was false" in cut["host_refused"]
    assert cut["host_refused"] in cut["not_verified"]


def test_the_engine_that_computed_the_halves_is_named(graft, detector, tmp_path):
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never")
    assert f"computed by ONNX Runtime {ort.__version__}" in " ".join(answer.out.split())
    answer = graft("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never", "--json")
    assert answer.json["cut"]["host_engine"] == f"ONNX Runtime {ort.__version__}"
    assert answer.json["cut"]["host_refused"] == ""


def test_an_engine_that_runs_a_rewritten_copy_is_said_to(graft, tmp_path):
    """ONNX Runtime itself loads neither operator set 28 nor layout = 1."""
    gru = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=3, layout=1)
    constants = {"w": weights(1, 9, 5), "r": weights(1, 9, 3)}
    layout = save(tmp_path / "gru.onnx", [gru], [("x", [2, 6, 5])], [("y", [2, 6, 1, 3])], constants)
    relu = helper.make_node("Relu", ["x"], ["y"])
    newest = save(tmp_path / "relu.onnx", [relu], [("x", [2, 4])], [("y", [2, 4])])
    changed = onnx.load(newest)
    changed.opset_import[0].version = 28
    onnx.save(changed, newest)
    for model, how in (
        (layout, "layout = 1 of recurrent nodes replaced by layout = 0"),
        (newest, "operator set 28 replaced by "),
    ):
        with pytest.raises(Exception, match=r"layout|opset"):
            session_of(model)
        (line,) = graft("verify", model, model, "--json", code=0).json["left_out"]
        assert f"ONNX Runtime {ort.__version__} ran a rewritten copy of the model, with {how}" in line
    text = " ".join(graft("convert", layout, "-o", tmp_path / "out.onnx", "--no-check").out.split())
    assert "rewritten copy" not in text, "nothing was compared"
    text = " ".join(graft("convert", layout, "-o", tmp_path / "out.onnx", "--tensorrt", "auto").out.split())
    assert "gru.onnx: ONNX Runtime" in text
    assert "ran a rewritten copy of the model, with layout = 1 of recurrent nodes replaced by layout = 0" in text


def test_outputs_that_are_always_empty_end_as_in_verify(graft, detector, tmp_path):
    """The verdict is not "same", the cut is written, and the next command compares other inputs."""
    model = onnx.load(detector)
    (least,) = (i for i in model.graph.initializer if i.name == "least")
    least.CopyFrom(constant("least", np.array([2], np.float32)))  # no score is above 1
    onnx.save(model, detector)
    command = ("convert", detector, "-o", tmp_path / "out.onnx", "--cut", "--plugins", "never")
    answer = graft(*command)
    why = "output 'chosen' was not compared: it is empty in all runs"
    assert answer.code == 1
    assert why in " ".join(answer.err.split())
    (_, comparison) = next_commands(answer)
    assert comparison == f"graft verify {detector} {tmp_path / 'out.cut.json'}"
    verified = graft("verify", detector, tmp_path / "out.cut.json")
    assert verified.code == answer.code
    assert why in " ".join(verified.err.split())
    cut = graft(*command, "--json").json["cut"]
    assert cut["verified"] == "nothing_compared"
    assert why in cut["not_verified"]
    least.CopyFrom(constant("least", np.array([0.25], np.float32)))
    onnx.save(model, detector)
    assert graft(*command).code == 0


RANDOM_NODES = {
    "RandomNormalLike": helper.make_node("RandomNormalLike", ["a"], ["r"], "noise"),
    "RandomNormal": helper.make_node("RandomNormal", [], ["r"], "noise", shape=[1, 8]),
    "Bernoulli": helper.make_node("Bernoulli", ["p"], ["r"], "noise"),
    "Dropout": helper.make_node("Dropout", ["a", "half", "training"], ["r"], "noise"),
    "Multinomial": helper.make_node("Multinomial", ["a"], ["drawn"], "noise", sample_size=8, dtype=TensorProto.INT32),
}


@pytest.mark.parametrize("name", RANDOM_NODES)
def test_why_nothing_is_compared_of_random_numbers(graft, tmp_path, name):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["p"]),
        RANDOM_NODES[name],
        *([helper.make_node("Cast", ["drawn"], ["r"], to=TensorProto.FLOAT)] if name == "Multinomial" else []),
        helper.make_node("Add", ["a", "r"], ["b"]),
        helper.make_node("Unique", ["b"], ["y"], "unique"),
    ]
    constants = {"w": weights(8, 8), "half": np.float32(0.5), "training": True}
    model = save(tmp_path / "m.onnx", nodes, [("x", ["n", 8])], [("y", ["found"])], constants)
    cut = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--json").json["cut"]
    assert cut["verified"] == "nothing_compared"
    why = f"output 'y' was not compared: it depends on the random numbers of node 'noise' ({name})"
    assert cut["not_verified"] == why
    text = " ".join(graft("convert", model, "-o", tmp_path / "out.onnx", "--cut").err.split())
    assert f"the halves were run, and {why}" in text


def test_a_network_is_cut_behind_a_sequence(graft, tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("SequenceAt", ["s", "i"], ["c"]),
        helper.make_node("MatMul", ["c", "u"], ["d"]),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    constants = {"w": weights(8, 8), "u": weights(8, 64), "v": weights(64, 64)}
    model = save(
        tmp_path / "m.onnx", nodes, [("x", ["n", 8]), ("i", TensorProto.INT64, [])], [("y", ["n", 64])], constants
    )
    cut = graft("convert", model, "-o", tmp_path / "out.onnx", "--cut", "--json", code=0).json["cut"]
    assert (cut["first"], [port["name"] for port in cut["between"]], cut["verified"]) == ("host", ["c"], "same")
    feeds = {"x": weights(3, 8), "i": np.array(1)}
    np.testing.assert_array_equal(run_halves(tmp_path / "out.cut.json", feeds)["y"], run_onnx(model, feeds)["y"])
