# Tests that quantize and verify agree: the command that quantize prints has the same exit code as quantize.
import shlex

import numpy as np
import onnx
import pytest
from conftest import DIGITS, DIGITS_DATA
from onnx import TensorProto, helper, numpy_helper, parser

DATA = f"image={DIGITS_DATA}:images"


def product(path, rest, outputs, columns=20):
    """Saves a matrix product, followed by the nodes in `rest`, which read it as `v`."""
    weights = np.random.default_rng(0).standard_normal((16, columns)).astype("f4")
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[8,16] x) => ({outputs}) <float thirty = {{30}}> {{
        v = MatMul (x, w)
        {rest}
      }}"""
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return path


NETWORKS = {
    "an_index_by_remainder": (
        "s = Mul (v, thirty)  m = Mod <fmod = 1> (s, thirty)  y = Cast <to = 7> (m)",
        "int64[8,20] y, float[8,20] v",
    ),
    "a_rounded_number": ("s = Mul (v, thirty)  y = Round (s)", "float[8,20] y"),
    "a_decision": ("p = Greater (v, thirty)  n = Not (p)  y = Cast <to = 1> (n)", "float[8,20] y"),
    "a_softmax": ("y = Softmax (v)", "float[8,20] y"),
}


def check_that_both_agree(graft, answer):
    """Checks that verify agrees with quantize, and returns whether both accept the model."""
    command = shlex.split(answer.json["check"]["command"])
    assert command[:2] == ["graft", "verify"]
    verified = graft(*command[1:])
    assert verified.code == answer.code, (answer.json["check"], verified.out, verified.err)
    assert (answer.json["check"]["verdict"] == "the same") == (verified.code == 0)
    assert answer.json["met"] == (answer.code == 0)
    return answer.code == 0


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_of_types(graft, tmp_path, name, precision):
    model = product(tmp_path / "model.onnx", *NETWORKS[name])
    answer = graft("quantize", model, "-o", tmp_path / "typed.onnx", "--precision", precision, "--json")
    check_that_both_agree(graft, answer)


def test_of_files_whose_names_have_spaces(graft, tmp_path):
    model = product(tmp_path / "my model.onnx", *NETWORKS["a_softmax"])
    np.savez(tmp_path / "my data.npz", x=np.ones((8, 16), "f4"))
    data = ["--data", tmp_path / "my data.npz"]
    answer = graft("quantize", model, "-o", tmp_path / "typed.onnx", "--precision", "f16", "--json", *data)
    check_that_both_agree(graft, answer)


def test_of_f16_with_data_and_typed_inputs(graft, tmp_path):
    out = tmp_path / "typed.onnx"
    for more in ([], ["--typed-io"]):
        answer = graft("quantize", DIGITS, "-o", out, "--precision", "f16", "--data", DATA, "--json", *more, code=0)
        assert check_that_both_agree(graft, answer)
        layers = graft("verify", DIGITS, out, "--data", DATA, "--layers", "--json")
        assert layers.code == 0, layers.json["problems"]


def test_of_int8_the_bar_is_20_db(graft, tmp_path):
    model = product(tmp_path / "model.onnx", "y = Relu (v)", "float[8,20] y")
    x = np.random.default_rng(1).standard_normal((64, 16)).astype("f4")
    x[0, 0] = 150  # With a scale for this number, the others lose most of their digits.
    np.savez(tmp_path / "x.npz", x=x)
    out = tmp_path / "int8.onnx"
    command = ["quantize", model, "-o", out, "--precision", "int8", "--data", tmp_path / "x.npz", "--method", "minmax"]
    answer = graft(*command, "--json")
    assert answer.json["outputs"][0]["snr_db"] < 20
    assert answer.code == 1
    assert not check_that_both_agree(graft, answer)
    words = graft(*command, code=1)
    assert "each output needs 20 dB" in words.out
    assert f"next  graft verify {model} {out} --data {tmp_path}/x.npz" in words.out
    assert "--limit" in words.err
    lower = graft(*command, "--limit", "3", "--json", code=0)
    assert lower.json["check"]["command"].endswith("--snr 3")
    assert check_that_both_agree(graft, lower)


def test_of_int8_that_is_good(graft, tmp_path):
    out = tmp_path / "int8.onnx"
    answer = graft("quantize", DIGITS, "-o", out, "--precision", "int8", "--data", DATA, "--json", code=0)
    assert check_that_both_agree(graft, answer)


def test_a_metric_judges_alone(graft, tmp_path):
    out = tmp_path / "int8.onnx"
    metric = ["--metric", "echo {} >/dev/null; echo 1", "--max-drop", "0"]
    answer = graft("quantize", DIGITS, "-o", out, "--precision", "int8", "--data", DATA, "--json", *metric, code=0)
    assert answer.json["check"] is None


# ---- Detectors: outputs after a suppression have an order that rounding changes


def detector(path, boxes=300, classes=3, scale=1):
    """Saves a network of images of 72 * scale pixels whose scores are so close that f16 changes their order, before an EfficientNMS_TRT."""
    random = np.random.default_rng(5)
    corners = random.uniform(0, 60, (boxes, 2))
    anchors = scale * np.concatenate([corners, corners + random.uniform(4, 12, (boxes, 2))], axis=1)
    weights = {
        "wb": (0.05 * scale * random.standard_normal((16, boxes * 4))).astype("f4"),
        "ws": (0.02 * random.standard_normal((16, boxes * classes))).astype("f4"),
        "anchors": anchors[np.newaxis].astype("f4"),
        "to_boxes": np.array([1, boxes, 4]),
        "to_scores": np.array([1, boxes, classes]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "wb"], ["b"]),
        helper.make_node("Reshape", ["b", "to_boxes"], ["offsets"]),
        helper.make_node("Add", ["offsets", "anchors"], ["boxes"]),
        helper.make_node("MatMul", ["x", "ws"], ["s"]),
        helper.make_node("Reshape", ["s", "to_scores"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
        helper.make_node(
            "EfficientNMS_TRT",
            ["boxes", "scores"],
            ["num_dets", "det_boxes", "det_scores", "det_classes"],
            "nms",
            score_threshold=0.45,
            iou_threshold=0.5,
            max_output_boxes=100,
            background_class=-1,
            score_activation=0,
            box_coding=0,
        ),
    ]
    ends = [
        helper.make_tensor_value_info("num_dets", TensorProto.INT32, [1, 1]),
        helper.make_tensor_value_info("det_boxes", TensorProto.FLOAT, [1, 100, 4]),
        helper.make_tensor_value_info("det_scores", TensorProto.FLOAT, [1, 100]),
        helper.make_tensor_value_info("det_classes", TensorProto.INT32, [1, 100]),
    ]
    start = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", start, ends, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(path.with_suffix(".npz"), x=random.standard_normal((1, 16)).astype("f4"))
    return path


@pytest.fixture(scope="module")
def detectors(graft, tmp_path_factory):
    return f16_detector(graft, tmp_path_factory.mktemp("detectors"))


@pytest.fixture(scope="module")
def large_detectors(graft, tmp_path_factory):
    """Returns a detector of images of 648 pixels, in which a step of f16 is half a pixel."""
    return f16_detector(graft, tmp_path_factory.mktemp("large"), scale=9)


def f16_detector(graft, folder, **options):
    """Returns the detector, its conversion, and the conversion in f16, with the answer of quantize."""
    original = detector(folder / "detector.onnx", **options)
    converted, typed = folder / "converted.onnx", folder / "f16.onnx"
    graft("convert", original, "-o", converted, "--no-check", code=0)
    data = ["--data", original.with_suffix(".npz")]
    answer = graft("quantize", converted, "-o", typed, "--precision", "f16", *data, "--json")
    return original, converted, typed, data, answer


def test_f16_changes_only_the_order_of_detections(graft, detectors):
    original, converted, typed, data, answer = detectors
    assert answer.code == 0, answer.err
    assert check_that_both_agree(graft, answer)
    outputs = {output["name"]: output for output in answer.json["outputs"]}
    assert outputs["det_boxes"]["snr_db"] > 40
    assert "an input of node 'nms'" in outputs["det_boxes"]["judged_by"]
    for reference in (original, converted):
        verified = graft("verify", reference, typed, *data, "--json", code=0)
        notes = {output["reference_name"]: output["note"] for output in verified.json["outputs"]}
        assert "rounding changes the order of detections with nearly equal scores" in notes["det_boxes"]
        assert "detections match" in notes["det_boxes"]
    # Element by element the outputs differ: a limit for each element is not changed by the suppression.
    assert graft("verify", converted, typed, *data, "--rtol", "0.01").code == 1


def change(model, path, edit):
    changed = onnx.load(model)
    edit(changed.graph)
    onnx.save(changed, path)
    return path


def constant_named(graph, name):
    return next(each for each in graph.initializer if each.name == name)


def shift_before(graph):
    """Moves all boxes by two pixels before the suppression."""
    (tensor,) = (each for each in graph.initializer if list(each.dims) == [1, 300, 4] or each.name == "anchors")
    moved = numpy_helper.to_array(tensor) + 2
    tensor.CopyFrom(numpy_helper.from_array(moved.astype(numpy_helper.to_array(tensor).dtype), tensor.name))


def change_output(graph, name, op, number, dtype):
    """Applies an operator with a constant to an output."""
    maker = next(node for node in graph.node if name in node.output)
    maker.output[list(maker.output).index(name)] = name + "/before"
    graph.initializer.append(numpy_helper.from_array(np.array(number, dtype), name + "/number"))
    graph.node.append(helper.make_node(op, [name + "/before", name + "/number"], [name]))


def drop_detections(graph):
    """Raises the threshold of the suppression, so that it drops the detections with low scores."""
    nms = next(node for node in graph.node if "NonMaxSuppression" in node.op_type)
    attribute = next(each for each in nms.attribute if each.name == "score_threshold")
    attribute.f += 0.1


FAULTS = {
    "boxes that are shifted before the suppression": shift_before,
    "boxes that are shifted after the suppression": lambda graph: change_output(graph, "det_boxes", "Add", 2, "f4"),
    "other scores": lambda graph: change_output(graph, "det_scores", "Mul", 0.9, "f4"),
    "wrong classes": lambda graph: change_output(graph, "det_classes", "Add", 1, "i4"),
    "missing detections": drop_detections,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_detector_is_found(graft, detectors, tmp_path, fault):
    _, converted, typed, data, _ = detectors
    wrong = change(typed, tmp_path / "wrong.onnx", FAULTS[fault])
    answer = graft("verify", converted, wrong, *data, "--json")
    assert answer.code == 1, answer.out


def at_one_place(shape, place, number, dtype):
    array = np.zeros(shape, dtype)
    array[place] = number
    return array


SINGLE_FAULTS = {
    "one box that is moved by five pixels": ("det_boxes", at_one_place((1, 100, 4), (0, 7), 5, "f4")),
    "one class": ("det_classes", at_one_place((1, 100), (0, 7), 1, "i4")),
    "one missing detection": ("num_dets", np.array([[-1]], "i4")),
    "one score": ("det_scores", at_one_place((1, 100), (0, 7), -0.02, "f4")),
}


@pytest.mark.parametrize("fault", SINGLE_FAULTS)
def test_a_single_fault_of_a_detector_is_found(graft, large_detectors, tmp_path, fault):
    """The tolerance of a network in f16 is wider than these faults: 10 pixels for a box at 600 pixels."""
    _, converted, typed, data, _ = large_detectors
    assert graft("verify", converted, typed, *data).code == 0
    output, numbers = SINGLE_FAULTS[fault]
    wrong = change(
        typed, tmp_path / "wrong.onnx", lambda graph: change_output(graph, output, "Add", numbers, numbers.dtype)
    )
    answer = graft("verify", converted, wrong, *data, "--json")
    assert answer.code == 1, answer.out
    verdicts = {each["reference_name"]: each["verdict"] for each in answer.json["outputs"]}
    assert verdicts[output] == "differs"


# ---- Classifiers: only their outputs have a top-1


def test_the_metric_uses_only_the_outputs_of_classifiers(graft, tmp_path):
    out = tmp_path / "int8.onnx"
    command = ["quantize", DIGITS, "-o", out, "--precision", "int8", "--data", DATA, "--max-drop", "0.5"]
    answer = graft(*command, "--json", code=0)
    assert answer.json["metric_outputs"] == ["logits"]
    rows = {output["name"]: output["rows"] for output in answer.json["outputs"]}
    assert rows["embedding"] == 0
    assert rows["logits"] == answer.json["judged"]
    assert "Metric: top-1 agreement of logits with f32" in graft(*command, code=0).out
    chosen = graft(*command, "--judge-output", "embedding", "--json")
    assert chosen.json["metric_outputs"] == ["embedding"]
    unknown = graft(*command, "--judge-output", "logit", code=2)
    assert "--judge-output: the model has no output 'logit'" in unknown.err


def test_a_drop_needs_an_output_of_a_classifier(graft, tmp_path):
    model = product(tmp_path / "model.onnx", "n = Mul (v, v)  y = Relu (n)", "float[8,20] y")
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).standard_normal((64, 16)).astype("f4"))
    command = ["quantize", model, "-o", tmp_path / "q.onnx", "--precision", "int8", "--data", tmp_path / "x.npz"]
    refused = graft(*command, "--max-drop", "1", code=2)
    assert "no output of the model is recognized as the scores of a classifier" in refused.err
    graft(*command, "--max-drop", "100", "--judge-output", "y", code=0)
