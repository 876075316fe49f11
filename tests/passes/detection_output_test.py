# detection_output_test.py - Tests NVIDIA's NMS_TRT and NMSDynamic_TRT, which decode the boxes of an SSD before they
# suppress boxes.
"""NumPy computes the expected results from NVIDIA's description of nmsPlugin; ONNX Runtime runs the converted
networks."""

import json
import pathlib
import sys

import graft
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "arrays"))
import detections

ITEMS, PRIORS, CLASSES, PLACES = 3, 25, 4, 12
FIELDS = {"backgroundLabelId": 0, "numClasses": CLASSES, "topK": 10, "keepTopK": PLACES}
FIELDS |= {"confidenceThreshold": 0.3, "nmsThreshold": 0.4}
CORNER, CENTER_SIZE, CORNER_SIZE, TF_CENTER = range(4)


def arrays(seed, location_classes=1):
    random = np.random.default_rng(seed)
    low = random.uniform(0, 0.8, (1, PRIORS, 2))
    prior = np.concatenate([low, low + random.uniform(0.05, 0.4, (1, PRIORS, 2))], -1).reshape(1, 1, -1, 1)
    variance = np.tile([0.1, 0.15, 0.2, 0.25], (1, 1, PRIORS)).reshape(1, 1, -1, 1)
    given = [
        random.normal(size=(ITEMS, PRIORS * location_classes * 4, 1, 1)),
        random.uniform(0, 1, (ITEMS, PRIORS * CLASSES, 1, 1)),
        np.repeat(np.concatenate([prior, variance], 1), ITEMS, 0),
    ]
    given[1][-1] *= 0.32  # Few scores of the last item are above the threshold.
    given[2][1:, 0] += 0.125  # Each item has its own prior boxes.
    return [array.astype(np.float32) for array in given]


def decode(location, prior, variance, code):
    """Solves the equations of NVIDIA's description for the box."""
    low, high = prior[..., :2], prior[..., 2:]
    size, center = high - low, (low + high) / 2
    offset = location * variance
    if code == TF_CENTER:
        offset = offset[..., [1, 0, 3, 2]]
    first, second = offset[..., :2], offset[..., 2:]
    if code == CORNER:
        return np.concatenate([low + first, high + second], -1)
    if code == CORNER_SIZE:
        return np.concatenate([low + first * size, high + second * size], -1)
    middle, extent = center + first * size, np.exp(second) * size
    return np.concatenate([middle - extent / 2, middle + extent / 2], -1)


def expected(given, code=TF_CENTER, encoded=0, sigmoid=0, normalized=1, agnostic=False):
    location, scores, priors = given
    location_classes = location.shape[1] // PRIORS // 4
    results = []
    for item in range(ITEMS):
        prior, variance = priors[0 if agnostic else item].reshape(2, PRIORS, 1, 4)
        variance = np.ones_like(variance) if encoded else variance
        boxes = decode(location[item].reshape(PRIORS, location_classes, 4), prior, variance, code).astype(np.float32)
        score = scores[item].reshape(PRIORS, CLASSES)
        score = (1 / (1 + np.exp(-score))).astype(np.float32) if sigmoid else score
        results.append(
            detections.batched_nms(
                boxes, score, score_threshold=0.3, iou_threshold=0.4, top_k=10, keep_top_k=PLACES, background_class=0,
                is_normalized=bool(normalized),
            )
        )  # fmt: skip
    count, boxes, score, label, _ = detections.padded(results, PLACES, np.float32, -1)
    item = np.repeat(np.arange(ITEMS)[:, None, None], PLACES, 1)
    rows = np.concatenate([item, label[..., None], score[..., None], boxes], -1).astype(np.float32)
    return rows[:, None], count.reshape(ITEMS, 1, 1, 1)


def network(op, given, kind=TensorProto.INT32, **fields):
    node = helper.make_node(op, [f"x{i}" for i in range(3)], ["rows", "count"], "tail", domain="TRT", **fields)
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, a.shape) for i, a in enumerate(given)]
    outputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [None] * 4)]
    outputs.append(helper.make_tensor_value_info("count", kind, [None] * 4))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("TRT", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=8)


def convert(model, folder):
    onnx.save(model, folder / "network.onnx")
    return graft.convert(folder / "network.onnx", check=False)


def check(folder, op, given, result, kind=TensorProto.INT32, **fields):
    after = convert(network(op, given, kind, **fields), folder).model.to_proto()
    assert sum(node.op_type.startswith("CombinedNonMaxSuppression") for node in after.graph.node) == 1
    onnx.checker.check_model(after)
    session = onnxruntime.InferenceSession(after.SerializeToString(), providers=["CPUExecutionProvider"])
    rows, count = session.run(None, {f"x{i}": array for i, array in enumerate(given)})
    assert 0 < result[1].mean() < PLACES
    np.testing.assert_allclose(rows, result[0], 1e-5, 1e-6)
    np.testing.assert_array_equal(count, result[1])
    assert count.dtype == (np.float32 if kind == TensorProto.FLOAT else np.int32)


@pytest.mark.parametrize("code", [CORNER, CENTER_SIZE, CORNER_SIZE, TF_CENTER])
@pytest.mark.parametrize("location_classes", [1, CLASSES])
def test_codes_of_boxes(tmp_path, code, location_classes):
    given = arrays(code, location_classes)
    share = int(location_classes == 1)
    check(
        tmp_path, "NMSDynamic_TRT", given, expected(given, code), **FIELDS, codeType=code, shareLocation=share,
        inputOrder=[0, 1, 2],
    )  # fmt: skip


def test_defaults(tmp_path):
    """The order of the inputs is location, prior boxes, scores, and boxes are in the coding of TensorFlow."""
    given = arrays(9)
    check(tmp_path, "NMSDynamic_TRT", [given[i] for i in (0, 2, 1)], expected(given), **FIELDS)


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"varianceEncodedInTarget": 1}, {"encoded": 1}),
        ({"confSigmoid": 1}, {"sigmoid": 1}),
        ({"isNormalized": 0, "scoreBits": 8}, {"normalized": 0}),
    ],
)
def test_fields(tmp_path, fields, more):
    given = arrays(10)
    if "confSigmoid" in fields:
        given[1] = 4 * given[1] - 3
    result = expected(given, CENTER_SIZE, **more)
    check(tmp_path, "NMSDynamic_TRT", given, result, **FIELDS, codeType=CENTER_SIZE, inputOrder=[0, 1, 2], **fields)


@pytest.mark.parametrize("agnostic", [0, 1])
def test_prior_boxes_of_the_first_item(tmp_path, agnostic):
    """NMS_TRT uses them for all items unless isBatchAgnostic is 0. A file may declare the count as f32."""
    given = arrays(11)
    fields = FIELDS | {"codeType": CENTER_SIZE, "inputOrder": [0, 1, 2], "isBatchAgnostic": agnostic}
    result = expected(given, CENTER_SIZE, agnostic=bool(agnostic))
    check(tmp_path, "NMS_TRT", given, result, TensorProto.FLOAT, **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"numClasses": None}, "`numClasses` is required and missing"),
        ({"nmsThreshold": None}, "`nmsThreshold` is required and missing"),
        ({"codeType": 4}, "codeType is 4; it must be 0, 1, 2 or 3"),
        ({"inputOrder": [0, 1, 1]}, "inputOrder is [0, 1, 1]; it must contain 0, 1 and 2"),
        ({"inputOrder": [0, 2, 1]}, "input 1, the prior boxes according to inputOrder, has the shape [3, 100, 1, 1]"),
    ],
)
def test_faults_are_named(tmp_path, fields, words):
    used = {name: value for name, value in (FIELDS | fields).items() if value is not None}
    result = convert(network("NMSDynamic_TRT", arrays(12), **used), tmp_path)
    assert any(words in near["reason"] for near in json.loads(result.to_json())["near_misses"])
