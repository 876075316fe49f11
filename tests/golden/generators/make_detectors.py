# make_detectors.py - exports a small two-stage detector with PyTorch, and stores PyTorch's own results.
"""Writes tests/golden/detectors/NAME.onnx and NAME.npz: inputs (as in:NAME) and PyTorch's own results (as out:NAME),
for the test that the CPU engine's results for such networks are reproducible. The detector has the parts of
torchvision's detectors: proposals from two sizes of features, regions that are cut out and scattered by their size, and
suppression of boxes within an If.

Made with (Python 3.11): torch==2.11.0 torchvision==0.26.0 onnx==1.23.2
Run: python tests/golden/generators/make_detectors.py [--out tests/golden/detectors]
"""

import argparse
import pathlib
import warnings
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

SIZE, CHANNELS, HIDDEN, CLASSES = 96, 2, 16, 5
NAMES = ["boxes", "labels", "scores"]


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.out_channels = CHANNELS
        self.first = nn.Conv2d(3, CHANNELS, 3, 8, 1)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)

    def forward(self, image):
        fine = self.first(image).relu()
        return OrderedDict([("0", fine), ("1", self.second(fine))])


def two_stage():
    detector = FasterRCNN(
        Features(),
        min_size=SIZE,
        max_size=SIZE,
        rpn_anchor_generator=AnchorGenerator(((32,), (64,)), ((0.5, 1.0, 2.0),) * 2),
        rpn_pre_nms_top_n_test=150,
        rpn_post_nms_top_n_test=100,
        box_detections_per_img=20,
        box_head=TwoMLPHead(CHANNELS * 49, HIDDEN),
        box_predictor=FastRCNNPredictor(HIDDEN, CLASSES),
        box_roi_pool=MultiScaleRoIAlign(["0", "1"], 7, 2),
    )
    with torch.no_grad():
        # Untrained scores are almost equal, so rounding would determine the order of boxes.
        detector.roi_heads.box_predictor.cls_score.weight.mul_(30)
        detector.rpn.head.cls_logits.weight.mul_(30)
    return detector.eval()


def main():
    root = pathlib.Path(__file__).resolve().parents[3]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden" / "detectors")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    detector = two_stage()
    image = torch.rand(3, SIZE, SIZE)
    with torch.no_grad():
        found = detector([image])[0]
        torch.onnx.export(
            detector,
            ([image],),
            str(out / "two_stage.onnx"),
            input_names=["image"],
            output_names=NAMES,
            opset_version=17,
            dynamo=False,
        )
    arrays = {f"out:{name}": found[name].numpy() for name in NAMES}
    np.savez_compressed(out / "two_stage.npz", **{"in:image": image.numpy()}, **arrays)


if __name__ == "__main__":
    main()
