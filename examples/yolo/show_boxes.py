# show_boxes.py DETECTIONS.npz: prints the boxes that a detector found.
import sys

import numpy as np

found = np.load(sys.argv[1])
for item, count in enumerate(found["num_detections"][:, 0]):
    boxes = found["detection_boxes"][item, :count]
    scores = found["detection_scores"][item, :count]
    classes = found["detection_classes"][item, :count]
    for box, score, label in zip(boxes, scores, classes, strict=True):
        print(f"picture {item}: class {label} with score {score:.2f} at {box.round(1).tolist()}")
