# train_sized_digits.py - trains a network for digits of any size, ending in spatial pyramid pooling, and exports it.
"""Trains with PyTorch and writes tests/golden/quantize/sized_digits.onnx and sized_digits.npz.

The data is scikit-learn's bundled load_digits, as for tools/train_digits.py, with the same 450 scans held out. Each scan
is stretched to one of nine sizes, from 12x12 to 28x28 and seldom square, and rounded back to the values 0..16 that
the scans have. The file has the held-out ones, 50 of each size, and 20 of each size from the others to calibrate with:
`test_HxW`, `labels_HxW`, `calibration_HxW`, all uint8. The network takes them divided by 16.

He et al. 2015 is the model: convolutions that keep any height and width, then a pyramid of 4x4, 2x2 and 1x1 maxima, whose
length is fixed, then a linear layer. PyTorch has no operator for it, so the file has the node that hand-written plugins
are exported as, trt::SPP_TRT, which `graft convert` takes for its SpatialPyramidPooling.

Made with (Python 3.11, CPU): torch==2.8.0 onnx==1.18.0 scikit-learn==1.7.2 numpy==2.1.3
Run: python tests/golden/generators/train_sized_digits.py [--out tests/golden/quantize]
"""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 20
TEST_IMAGES = 450
EPOCHS = 24
BATCH = 64
SIZES = [(12, 12), (12, 16), (16, 12), (16, 16), (20, 14), (17, 23), (24, 24), (28, 20), (28, 28)]
LEVELS = [4, 2, 1]
CALIBRATION_OF_SIZE = 20


class PyramidPooling(torch.autograd.Function):
    """Adaptive pools in PyTorch, and one node in the exported file."""

    @staticmethod
    def forward(_context, x):
        return torch.cat([F.adaptive_max_pool2d(x, level).flatten(1) for level in LEVELS], 1)

    @staticmethod
    def symbolic(graph, x):
        node = graph.op("trt::SPP_TRT", x, levels_i=LEVELS, mode_s="max")
        node.setType(x.type().with_sizes([None, 32 * sum(level * level for level in LEVELS)]))
        return node


class SizedDigitNet(nn.Module):
    """The network: 1xHxW in 0..1 -> logits[10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.norm3 = nn.BatchNorm2d(32)
        self.classifier = nn.Linear(32 * sum(level * level for level in LEVELS), 10)

    def forward(self, image):
        x = F.leaky_relu(self.norm1(self.conv1(image)), 0.1)
        x = self.pool(F.leaky_relu(self.norm2(self.conv2(x)), 0.1))
        x = F.relu(self.norm3(self.conv3(x)))
        # The adaptive pools are differentiable; the Function above is for the export.
        pooled = (
            PyramidPooling.apply(x)
            if torch.onnx.is_in_onnx_export()
            else torch.cat([F.adaptive_max_pool2d(x, level).flatten(1) for level in LEVELS], 1)
        )
        return self.classifier(pooled)


def sized(images, size):
    """Resizes images of N x 8 x 8 in 0..16 bilinearly, and rounds to the steps of the scans."""
    stretched = F.interpolate(torch.from_numpy(images)[:, None], size, mode="bilinear", align_corners=False)
    return stretched.round().clamp(0, 16)


def load_split():
    digits = load_digits()
    images, labels = digits.images.astype(np.float32), digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=TEST_IMAGES, random_state=SEED, stratify=labels)


def train(images, labels):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(SEED)
    model = SizedDigitNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    labels = torch.from_numpy(labels)
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(len(images), generator=generator).split(BATCH):
            size = SIZES[int(torch.randint(len(SIZES), (1,), generator=generator))]
            logits = model(sized(images[index.numpy()], size) / 16)
            loss = F.cross_entropy(logits, labels[index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        schedule.step()
        if (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1}: loss {total / len(images):.4f}", flush=True)
    return model.eval()


def export(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(2, 1, 16, 16),),
            str(path),
            dynamo=False,
            opset_version=17,
            custom_opsets={"trt": 1},
            input_names=["image"],
            output_names=["logits"],
            dynamic_axes={"image": {0: "batch", 2: "height", 3: "width"}, "logits": {0: "batch"}},
        )
    onnx.checker.check_model(onnx.load(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/quantize"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    train_images, test_images, train_labels, test_labels = load_split()
    model = train(train_images, train_labels)
    export(model, out / "sized_digits.onnx")
    arrays, right = {}, 0
    for i, size in enumerate(SIZES):
        name = f"{size[0]}x{size[1]}"
        images, labels = sized(test_images[i :: len(SIZES)], size), test_labels[i :: len(SIZES)]
        with torch.no_grad():
            right += int((model(images / 16).argmax(1).numpy() == labels).sum())
        others = sized(train_images[i :: len(SIZES)][:CALIBRATION_OF_SIZE], size)
        arrays[f"test_{name}"] = images.numpy().astype(np.uint8)
        arrays[f"labels_{name}"] = labels.astype(np.uint8)
        arrays[f"calibration_{name}"] = others.numpy().astype(np.uint8)
    np.savez_compressed(out / "sized_digits.npz", **arrays)
    print(f"held out: {right} of {len(test_labels)} right")
    for name in ("sized_digits.onnx", "sized_digits.npz"):
        print(f"{name}: {(out / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
