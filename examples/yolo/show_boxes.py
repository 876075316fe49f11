# show_boxes.py DETECTIONS.npz: prints the boxes that a detector found.
import sys

import numpy as np

found = np.load(sys.argv[1])
# Exporters of EfficientNMS_TRT use one of two sets of names.
names = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
if "num_dets" in found:
    names = ("num_dets", "det_boxes", "det_scores", "det_classes")
counts, boxes, scores, classes = (found[name] for name in names)
for item, count in enumerate(counts.reshape(-1)):
    for box, score, label in zip(boxes[item, :count], scores[item, :count], classes[item, :count], strict=True):
        print(f"picture {item}: class {label} with score {score:.2f} at {box.round(1).tolist()}")
