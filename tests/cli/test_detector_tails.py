# Tests the plugins of detectors under their own names: `run` computes what their owners describe, `convert` replaces
# them, and `inspect` reports Graft's operator.
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import SOURCE
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(SOURCE) / "tests" / "python" / "arrays"))
import detections

ITEMS, BOXES, CLASSES, PLACES = 12, 17, 3, 9
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
EFFICIENT = {
    "score_threshold": 0.3,
    "iou_threshold": 0.4,
    "max_output_boxes": PLACES,
    "background_class": -1,
    "score_activation": 0,
    "box_coding": 0,
}
BATCHED = {
    "shareLocation": 1,
    "backgroundLabelId": -1,
    "numClasses": CLASSES,
    "topK": 6,
    "keepTopK": PLACES,
    "scoreThreshold": 0.25,
    "iouThreshold": 0.4,
    "isNormalized": 1,
    "clipBoxes": 1,
}
MMDEPLOY = {
    "background_label_id": -1,
    "num_classes": CLASSES,
    "topk": 6,
    "keep_topk": PLACES,
    "score_threshold": 0.25,
    "iou_threshold": 0.4,
    "is_normalized": 0,
    "clip_boxes": 0,
    "return_index": 0,
}
FOUR = [("num", INT32), ("boxes", FLOAT), ("scores", FLOAT), ("classes", INT32)]


def arrays(seed, classes_share_boxes=True, axis=False, dtype=np.float32):
    """Returns boxes and scores of several items; the scores are multiples of 1/16, so that many are equal."""
    random = np.random.default_rng(seed)
    boxes = random.uniform(-0.2, 1.2, (ITEMS, BOXES, 4) if classes_share_boxes else (ITEMS, BOXES, CLASSES, 4))
    scores = random.integers(-2, 16, (ITEMS, BOXES, CLASSES)) / 16
    boxes = boxes[:, :, None] if axis else boxes
    return {"b": boxes.astype(dtype), "s": scores.astype(dtype)}


def write(folder, op_type, domain, given, outputs, opset=13, **attributes):
    path, values = folder / f"{op_type}.onnx", folder / f"{op_type}.npz"
    np.savez(values, **given)
    node = helper.make_node(op_type, list(given), [name for name, _ in outputs], "tail", domain=domain, **attributes)
    types = {np.dtype(np.float32): FLOAT, np.dtype(np.float16): TensorProto.FLOAT16}
    inputs = [helper.make_tensor_value_info(name, types[array.dtype], array.shape) for name, array in given.items()]
    ends = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs]
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    onnx.save(helper.make_model(helper.make_graph([node], "g", inputs, ends), opset_imports=opsets, ir_version=8), path)
    return path, [word for name in given for word in ("--input", f"{name}={values}:{name}")]


def check(graft, folder, model, inputs, names, expected):
    """Runs the model with Graft's kernel, and the converted model with standard operators."""
    converted = folder / "converted.onnx"
    graft("convert", model, "-o", converted, code=0)
    graph = onnx.load(converted).graph
    (own,) = (node for node in graph.node if node.domain == "graft")
    assert own.op_type.startswith("CombinedNonMaxSuppression")
    onnx.checker.check_model(onnx.load(converted))
    for path, kernels in ((model, "own"), (converted, "functions")):
        out = folder / "out.npz"
        graft("run", path, *inputs, "-o", out, "--kernels", kernels, code=0)
        found = np.load(out)
        for name, array in zip(names, expected, strict=True):
            np.testing.assert_allclose(found[name], array, 1e-6, 1e-6, err_msg=f"{path.name}, {kernels}: {name}")
            assert found[name].shape == array.shape
    return own


def efficient_items(given, **fields):
    fields.pop("plugin_version", None)
    return [
        detections.efficient_nms(b, s, *a, **fields)
        for b, s, *a in zip(*(np.broadcast_to(each, (ITEMS, *each.shape[1:])) for each in given.values()), strict=True)
    ]


@pytest.mark.parametrize("domain", ["TRT", "acme"])
def test_efficient_nms(graft, tmp_path, domain):
    given = arrays(1)
    model, inputs = write(tmp_path, "EfficientNMS_TRT", domain, given, FOUR, **EFFICIENT, plugin_version="1")
    expected = detections.padded(efficient_items(given, **EFFICIENT), PLACES, np.float32)[:4]
    assert 0 < expected[0].mean() <= PLACES
    own = check(graft, tmp_path, model, inputs, [name for name, _ in FOUR], expected)
    assert len(own.attribute) == 14
    report = graft("inspect", model, "--json", code=0).json
    (node,) = report["nodes"]
    assert node["verdict"] == "plugin"
    assert node["reason"].startswith("Graft's CombinedNonMaxSuppression replaces the plugin EfficientNMS_TRT 1; ")


@pytest.mark.parametrize(
    "more",
    [
        {"box_coding": 1},
        {"score_activation": 1, "score_threshold": 0.6},
        {"class_agnostic": 1, "background_class": 1},
        {"max_output_boxes": 200},
        {"score_threshold": 0.97},
    ],
    ids=lambda more: "_".join(more),
)
def test_fields_of_efficient_nms(graft, tmp_path, more):
    fields = EFFICIENT | more
    given = arrays(2, classes_share_boxes="class_agnostic" in more)
    model, inputs = write(tmp_path, "EfficientNMS_TRT", "TRT", given, FOUR, **fields)
    expected = detections.padded(efficient_items(given, **fields), fields["max_output_boxes"], np.float32)[:4]
    check(graft, tmp_path, model, inputs, [name for name, _ in FOUR], expected)


@pytest.mark.parametrize("box_coding", [0, 1])
def test_anchors_of_efficient_nms(graft, tmp_path, box_coding):
    given = arrays(3) | {"a": np.random.default_rng(4).uniform(0, 1, (1, BOXES, 4)).astype(np.float32)}
    fields = EFFICIENT | {"box_coding": box_coding}
    model, inputs = write(tmp_path, "EfficientNMS_TRT", "", given, FOUR, **fields)
    expected = detections.padded(efficient_items(given, **fields), PLACES, np.float32)[:4]
    check(graft, tmp_path, model, inputs, [name for name, _ in FOUR], expected)


def test_the_defaults_are_those_of_nvidia(graft, tmp_path):
    given = arrays(5)
    model, inputs = write(tmp_path, "EfficientNMS_TRT", "", given, FOUR)
    expected = detections.padded(efficient_items(given), 100, np.float32)[:4]
    check(graft, tmp_path, model, inputs, [name for name, _ in FOUR], expected)


@pytest.mark.parametrize("op_type", ["EfficientNMSX_TRT", "EfficientIdxNMS_TRT"])
def test_variants_with_indices(graft, tmp_path, op_type):
    given, outputs = arrays(6), [*FOUR, ("indices", INT32)]
    model, inputs = write(tmp_path, op_type, "TRT", given, outputs, **EFFICIENT)
    expected = detections.padded(efficient_items(given, **EFFICIENT), PLACES, np.float32)
    check(graft, tmp_path, model, inputs, [name for name, _ in outputs], expected)


@pytest.mark.parametrize("op_type", ["EfficientNMS_Explicit_TF_TRT", "EfficientNMS_Implicit_TF_TRT"])
def test_variants_for_tensorflow(graft, tmp_path, op_type):
    given = arrays(7)
    fields = {"max_output_size_per_class": 2, "max_total_size": PLACES, "iou_threshold": 0.4, "score_threshold": 0.3}
    model, inputs = write(tmp_path, op_type, "", given, FOUR, **fields, pad_per_class=1, clip_boxes=1)
    items = efficient_items(
        given, score_threshold=0.3, iou_threshold=0.4, max_output_boxes=PLACES, most_of_class=2, clip_boxes=1
    )
    check(graft, tmp_path, model, inputs, [n for n, _ in FOUR], detections.padded(items, 2 * CLASSES, np.float32)[:4])


@pytest.mark.parametrize("threshold", [0.3, 2.0])
def test_variant_for_onnx(graft, tmp_path, threshold):
    """Some items have no detections, and with the highest threshold no item has any."""
    given = arrays(8)
    given["s"][:3] = 0
    fields = {"score_threshold": threshold, "iou_threshold": 0.4, "max_output_boxes_per_class": 5}
    model, inputs = write(tmp_path, "EfficientNMS_ONNX_TRT", "", given, [("rows", INT32)], **fields, center_point_box=0)
    items = efficient_items(given, score_threshold=threshold, iou_threshold=0.4, max_output_boxes=5)
    rows = [(i, label, index) for i, item in enumerate(items) for *_, label, index in item]
    rows += [rows[-1] if rows else (-1, -1, -1)] * (5 * ITEMS - len(rows))
    check(graft, tmp_path, model, inputs, ["rows"], [np.array(rows)])


def batched_items(given, fields):
    names = {"scoreThreshold": "score_threshold", "iouThreshold": "iou_threshold", "topK": "top_k"}
    names |= {"keepTopK": "keep_top_k", "topk": "top_k", "keep_topk": "keep_top_k", "background_label_id": ""}
    names |= {"score_threshold": "score_threshold", "iou_threshold": "iou_threshold"}
    names |= {"isNormalized": "is_normalized", "clipBoxes": "clip_boxes"}
    arguments = {names[name]: value for name, value in fields.items() if names.get(name)}
    arguments["background_class"] = fields.get("backgroundLabelId", fields.get("background_label_id"))
    return [detections.batched_nms(b, s, **arguments) for b, s in zip(*given.values(), strict=True)]


@pytest.mark.parametrize(
    ("op_type", "more"),
    [
        ("BatchedNMS_TRT", {}),
        ("BatchedNMS_TRT", {"clipBoxes": 0, "scoreBits": 10}),
        ("BatchedNMSDynamic_TRT", {"isNormalized": 0}),
        ("BatchedNMSDynamic_TRT", {"shareLocation": 0, "backgroundLabelId": 0}),
    ],
)
def test_batched_nms(graft, tmp_path, op_type, more):
    fields = BATCHED | more
    given = arrays(9, classes_share_boxes=fields["shareLocation"] == 1, axis=fields["shareLocation"] == 1)
    outputs = [("num", INT32), ("boxes", FLOAT), ("scores", FLOAT), ("classes", FLOAT)]
    model, inputs = write(tmp_path, op_type, "", given, outputs, **fields, plugin_version="1")
    expected = detections.padded(batched_items(given, fields), PLACES, np.float32, -1)[:4]
    assert expected[0].mean() > 0
    check(graft, tmp_path, model, inputs, [name for name, _ in outputs], expected)


@pytest.mark.parametrize(("share", "return_index"), [(True, 0), (False, 1)])
def test_mmdeploy(graft, tmp_path, share, return_index):
    given = arrays(10, classes_share_boxes=share, axis=share)
    fields = MMDEPLOY | {"return_index": return_index}
    outputs = [("dets", FLOAT), ("labels", INT32), ("index", INT32)][: 2 + return_index]
    model, inputs = write(tmp_path, "TRTBatchedNMS", "mmdeploy", given, outputs, **fields)
    items = batched_items(given, {**fields, "clipBoxes": 0})
    _, boxes, scores, classes, indices = detections.padded(items, PLACES, np.float32, -1)
    expected = [np.concatenate([boxes, scores[..., None]], 2), classes, indices][: len(outputs)]
    check(graft, tmp_path, model, inputs, [name for name, _ in outputs], expected)


def test_f16(graft, tmp_path):
    given = arrays(11, dtype=np.float16)
    outputs = [(name, TensorProto.FLOAT16 if dtype == FLOAT else dtype) for name, dtype in FOUR]
    model, inputs = write(tmp_path, "EfficientNMS_TRT", "TRT", given, outputs, **EFFICIENT)
    out = tmp_path / "out.npz"
    graft("run", model, *inputs, "-o", out, "--kernels", "own", code=0)
    expected = detections.padded(efficient_items(given, **EFFICIENT), PLACES, np.float16)
    for (name, _), array in zip(outputs, expected, strict=False):
        assert np.load(out)[name].dtype == array.dtype
        np.testing.assert_array_equal(np.load(out)[name], array)


@pytest.mark.parametrize(
    ("op_type", "attributes", "outputs", "words"),
    [
        ("EfficientNMS_TRT", {"max_output_box": 5}, FOUR, "no attribute `max_output_box` (did you mean"),
        ("EfficientNMS_TRT", {"max_output_boxes": 0}, FOUR, "max_output_boxes"),
        ("EfficientNMS_TRT", {"box_coding": 2}, FOUR, "box_coding"),
        ("BatchedNMS_TRT", {}, FOUR, "`topK` is required and missing"),
        ("TRTBatchedNMS", MMDEPLOY, FOUR, "it has 4 outputs; it may have at most 3"),
    ],
)
def test_faults_name_the_node(graft, tmp_path, op_type, attributes, outputs, words):
    model, _ = write(tmp_path, op_type, "", arrays(12), outputs, **attributes)
    error = graft("convert", model, "-o", tmp_path / "out.onnx", code=2).err
    assert words in error and "tail" in error
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("prefixes", [("num_detections", "detection_"), ("num_dets", "det_")])
def test_the_example_prints_boxes_under_the_names_of_both_exporters(tmp_path, prefixes):
    count, prefix = prefixes
    boxes = np.zeros((2, 3, 4), np.float32)
    boxes[1, 0] = [1, 2, 3, 4]
    scores, classes = np.full((2, 3), 0.5, np.float32), np.array([[7, 7, 7], [5, 7, 7]], np.int32)
    counts = np.array([[0], [1]], np.int32)
    arrays = {count: counts, f"{prefix}boxes": boxes, f"{prefix}scores": scores, f"{prefix}classes": classes}
    np.savez(tmp_path / "found.npz", **arrays)
    script = pathlib.Path(SOURCE) / "examples" / "yolo" / "show_boxes.py"
    answer = subprocess.run(
        [sys.executable, script, tmp_path / "found.npz"], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "picture 1: class 5 with score 0.50 at [1.0, 2.0, 3.0, 4.0]\n"


def test_inspect_lists_the_plugin_before_native_nodes_and_converts_first(graft, tmp_path):
    """A plugin that Graft replaces needs attention, and native nodes with a remark do not."""
    chain = ["Transpose", "Softplus", "Neg", "Abs", "Sqrt", "Exp"]
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], op.lower()) for i, op in enumerate(chain)]
    nodes[0].attribute.append(helper.make_attribute("perm", [0, 2, 1]))
    nodes.append(helper.make_node("Transpose", [f"v{len(chain)}"], ["b"], "back", perm=[0, 2, 1]))
    outputs = ["num_dets", "det_boxes", "det_scores", "det_classes"]
    nodes.append(helper.make_node("EfficientNMS_TRT", ["b", "s"], outputs, "tail", domain="TRT", **EFFICIENT))
    inputs = [
        helper.make_tensor_value_info("v0", FLOAT, [1, BOXES, 4]),
        helper.make_tensor_value_info("s", FLOAT, [1, BOXES, CLASSES]),
    ]
    types = [INT32, FLOAT, FLOAT, INT32]
    ends = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in zip(outputs, types, strict=True)]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("TRT", 1)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, ends), opset_imports=opsets, ir_version=8), path)
    for probe in ("none", "builder"):
        text = graft("inspect", path, "--probe", probe, "--target", "sm120", code=0).out
        listed = text[text.index("neither TensorRT nor Graft runs it") :]
        assert "EfficientNMS_TRT  tail" in listed and "  native  " in listed
        assert listed.index("EfficientNMS_TRT  tail") < listed.index("  native  "), text
        assert "next  graft convert" in text and "graft build" not in text[text.index("next  ") :]
