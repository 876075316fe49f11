# add_suppression.py YOLO.onnx OUT.onnx: adds the suppression of overlapping boxes to an exported YOLO.
"""For an output of shape N, 4 + classes, boxes (Ultralytics YOLOv8, YOLO11 and later with end2end=False)."""

import sys

import onnx
from onnx import TensorProto, helper

FIELDS = {
    "score_threshold": 0.25,
    "iou_threshold": 0.45,
    "max_output_boxes": 100,
    "background_class": -1,
    "score_activation": 0,  # the exported scores are probabilities
    "box_coding": 1,  # center x, center y, width, height
}

model = onnx.load(sys.argv[1])
graph = model.graph
output = graph.output.pop()
items, rows, _ = output.type.tensor_type.shape.dim
batch = items.dim_param or items.dim_value
graph.initializer.append(helper.make_tensor("yolo_parts", TensorProto.INT64, [2], [4, rows.dim_value - 4]))
graph.node.extend(
    [
        helper.make_node("Transpose", [output.name], ["yolo_rows"], perm=[0, 2, 1]),
        helper.make_node("Split", ["yolo_rows", "yolo_parts"], ["yolo_boxes", "yolo_scores"], axis=2),
        helper.make_node(
            "EfficientNMS_TRT",
            ["yolo_boxes", "yolo_scores"],
            ["num_detections", "detection_boxes", "detection_scores", "detection_classes"],
            name="suppression",
            domain="TRT",
            **FIELDS,
        ),
    ]
)
places = FIELDS["max_output_boxes"]
graph.output.extend(
    [
        helper.make_tensor_value_info("num_detections", TensorProto.INT32, [batch, 1]),
        helper.make_tensor_value_info("detection_boxes", TensorProto.FLOAT, [batch, places, 4]),
        helper.make_tensor_value_info("detection_scores", TensorProto.FLOAT, [batch, places]),
        helper.make_tensor_value_info("detection_classes", TensorProto.INT32, [batch, places]),
    ]
)
if not any(opset.domain == "TRT" for opset in model.opset_import):
    model.opset_import.append(helper.make_opsetid("TRT", 1))
onnx.save(model, sys.argv[2])
