# Golden values of NonMaxSuppression, see tests/golden/generators/make_goldens.py: ONNX Runtime computes them.
import onnxruntime
import torch
from golden_cases import Golden, random_values, rounded
from onnx import TensorProto, helper

NONE = -3.4028234663852886e38
SCALARS = {
    "max_output_boxes_per_class": TensorProto.INT64,
    "iou_threshold": TensorProto.FLOAT,
    "score_threshold": TensorProto.FLOAT,
}


def suppress(boxes, attributes, scores):
    names = ["boxes", "scores", *SCALARS]
    node = helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=attributes.get("center_point_box", 0))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3) for name in names[:2]]
    scalars = [helper.make_tensor(name, dtype, [1], [attributes[name]]) for name, dtype in SCALARS.items()]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])
    graph = helper.make_graph([node], "suppress", inputs, [output], scalars)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"boxes": boxes.float().numpy(), "scores": scores.float().numpy()}
    return torch.from_numpy(session.run(None, feeds)[0])


def boxes_of(name, items, count):
    """Returns boxes of which many overlap, with their corners in any order."""
    centers = random_values(name, (items, count, 2))
    sizes = random_values(name + " sizes", (items, count, 2))
    return torch.cat([centers - sizes, centers + sizes], dim=2)


def make(out):
    golden = Golden("NonMaxSuppression", suppress)
    cases = [
        ("plain", (1, 1, 20), 20, 0.5, NONE, 0),
        ("classes", (2, 3, 50), 10, 0.3, 0.0, 0),
        ("tiles", (1, 2, 200), 200, 0.4, NONE, 0),
        ("centers", (1, 2, 60), 20, 0.2, -0.5, 1),
        ("limit", (2, 2, 70), 3, 0.6, NONE, 0),
        ("no_overlap_allowed", (1, 2, 40), 40, 0.0, NONE, 0),
        ("every_overlap_allowed", (1, 2, 40), 40, 1.0, NONE, 0),
        ("no_candidates", (1, 2, 30), 30, 0.5, 100.0, 0),
        ("zero_wanted", (1, 2, 30), 0, 0.5, NONE, 0),
    ]
    for dtype in ("f32", "f16"):
        for name, (items, classes, count), most, overlap, score, is_center in cases:
            name = f"{dtype}_{name}"
            boxes = golden.x(f"{name}.x", rounded(boxes_of(name, items, count), dtype))
            values = random_values(name + " scores", (items, classes, count))
            scores = golden.x(f"{name}.scores", rounded(values, dtype))
            attributes = {"center_point_box": is_center, "max_output_boxes_per_class": most}
            attributes |= {"iou_threshold": overlap, "score_threshold": score}
            golden.add(name, dtype, boxes, attributes, more=[scores])
        name = f"{dtype}_equal_scores"
        boxes = golden.x(f"{name}.x", rounded(boxes_of(name, 1, 90), dtype))
        scores = golden.x(f"{name}.scores", torch.round(random_values(name + " scores", (1, 2, 90))).float())
        attributes = {"max_output_boxes_per_class": 90, "iou_threshold": 0.4, "score_threshold": NONE}
        golden.add(name, dtype, boxes, attributes, "of equal scores the first box goes first", more=[scores])
    golden.write(out, "non_max_suppression")
