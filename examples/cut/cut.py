# cut.py MODEL.onnx INPUTS.npz OUT.onnx: cuts a network where TensorRT does not run it, and runs both halves on the CPU.
import sys

import graft
import numpy as np

converted = graft.convert(sys.argv[1])
cut = graft.cut(converted.model, plugins=False)  # the suppression runs on the host, although Graft has a plugin for it
if cut is None:
    sys.exit("everything runs in TensorRT")
print(cut, f"{cut.share_in_tensorrt:.1%} of the arithmetic in TensorRT")
for tail in cut.tails:
    print(
        f"boxes {tail.boxes}, scores {tail.scores}: keep scores above {tail.lowest_score}, "
        f"remove boxes that overlap by more than {tail.overlap}"
    )
image = np.load(sys.argv[2])["image"]
print(graft.Session(cut.network).run({"image": image})["detections"].shape, cut.verified)
print(cut.save(sys.argv[3]))
