# train_digits.py - trains the demo network of examples/digits and exports it to ONNX.
"""Trains a small digit classifier with PyTorch and writes examples/digits/digits.onnx and digits_test.npz.

The data is scikit-learn's bundled load_digits: 1,797 scans of handwritten digits, 8x8 pixels, values 0..16. A fixed,
seeded split keeps 450 of them out of training; those are written beside the network with their labels.

The network is a face-recognition network in miniature: convolutions with leaky ReLU, a 32-value embedding ended by
F.normalize, and a scaled linear classifier on top. PyTorch exports F.normalize and the leaky ReLUs as it always does,
nothing is cleaned up afterwards, so the file is what Graft meets in the field.

Made with (Python 3.11, CPU): torch==2.8.0 onnx==1.18.0 onnxruntime==1.22.1 scikit-learn==1.7.2 numpy==2.1.3
Run: python tools/train_digits.py [--out examples/digits]
"""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 20
TEST_IMAGES = 450
EPOCHS = 60
BATCH = 64


class DigitNet(nn.Module):
    """The network: 1x8x8 scan in 0..1 -> (logits[10], embedding[32] of length 1)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.act1 = nn.LeakyReLU(0.1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.act2 = nn.LeakyReLU(0.1)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.act3 = nn.LeakyReLU(0.1)
        self.embed = nn.Linear(32 * 4 * 4, 32)
        self.classifier = nn.Linear(32, 10, bias=False)
        self.scale = 12.0

    def forward(self, image):
        x = self.act1(self.conv1(image))
        x = self.pool(self.act2(self.conv2(x)))
        x = self.act3(self.conv3(x))
        embedding = F.normalize(self.embed(torch.flatten(x, 1)), p=2.0, dim=1, eps=1e-12)
        return self.scale * self.classifier(embedding), embedding


def load_split():
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None, :, :]
    labels = digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=TEST_IMAGES, random_state=SEED, stratify=labels)


def augment(images, generator):
    """Shifts each image by at most one pixel, because 1,347 scans are few."""
    padded = F.pad(images, (1, 1, 1, 1))
    offsets = torch.randint(0, 3, (images.shape[0], 2), generator=generator)
    return torch.stack([p[:, dy : dy + 8, dx : dx + 8] for p, (dy, dx) in zip(padded, offsets.tolist())])


def train(images, labels):
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(SEED)
    model = DigitNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    for epoch in range(EPOCHS):
        total = 0.0
        for index in torch.randperm(len(images), generator=generator).split(BATCH):
            logits, _ = model(augment(images[index], generator))
            loss = F.cross_entropy(logits, labels[index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        schedule.step()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: loss {total / len(images):.4f}")
    return model.eval()


def export(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(2, 1, 8, 8),),
            str(path),
            dynamo=False,
            opset_version=17,
            input_names=["image"],
            output_names=["logits", "embedding"],
            dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}, "embedding": {0: "batch"}},
        )
    onnx.checker.check_model(onnx.load(path), full_check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("examples/digits"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    train_images, test_images, train_labels, test_labels = load_split()
    model = train(train_images, train_labels)
    export(model, out / "digits.onnx")
    np.savez_compressed(out / "digits_test.npz", images=test_images, labels=test_labels)

    session = onnxruntime.InferenceSession(str(out / "digits.onnx"), providers=["CPUExecutionProvider"])
    logits, embedding = session.run(None, {"image": test_images})
    with torch.no_grad():
        reference, _ = model(torch.from_numpy(test_images))
    correct = int((logits.argmax(1) == test_labels).sum())
    difference = float(np.abs(logits - reference.numpy()).max())
    lengths = np.linalg.norm(embedding, axis=1)
    assert np.allclose(lengths, 1.0, atol=1e-5), "embeddings are not unit vectors"
    print(f"held out: {correct} of {len(test_labels)} right ({100 * correct / len(test_labels):.2f} %)")
    print(f"largest difference of ONNX Runtime from PyTorch in the logits: {difference:.1e}")
    print(f"digits.onnx: {(out / 'digits.onnx').stat().st_size} bytes")


if __name__ == "__main__":
    main()
