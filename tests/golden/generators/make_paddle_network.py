# make_paddle_network.py - writes a small network of PaddlePaddle, as paddle2onnx exports it, with Paddle's own results.
"""Writes tests/golden/onnx/paddle_network.onnx and paddle_network.npz, in the format of make_onnx_networks.py, whose
frameworks cannot be installed together with PaddlePaddle. The weights are seeded, not trained.

Made with (Python 3.11): paddlepaddle==3.0.0 paddle2onnx==2.0.1 onnx==1.17.0 numpy==2.4.6
Run: python tests/golden/generators/make_paddle_network.py [--out tests/golden/onnx]
"""

import argparse
import pathlib
import tempfile

import numpy as np
import onnx
import paddle
import paddle.nn.functional as F
from make_exports import strip_metadata
from paddle import nn


class Network(nn.Layer):
    """A network that returns an image in another style, and its embedding by pyramid pooling; the number of images
    is dynamic."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2D(3, 8, 3, stride=2), nn.InstanceNorm2D(8)
        self.second, self.batch_norm = nn.Conv2D(8, 8, 3), nn.BatchNorm2D(8)
        self.image = nn.Conv2D(8, 3, 3)
        self.embedding = nn.Linear(8 * 21, 6)

    def forward(self, x):
        y = F.relu(self.norm(self.first(F.pad(x, [1, 1, 1, 1], mode="reflect"))))
        z = self.batch_norm(self.second(F.pad(y, [1, 1, 1, 1])))
        y = y + paddle.where(z > 0, z, 0.2 * z)
        image = self.image(F.pad(F.interpolate(y, scale_factor=2, mode="nearest"), [1, 1, 1, 1], mode="replicate"))
        levels = [paddle.flatten(F.adaptive_max_pool2d(y, n), 1) for n in (4, 2, 1)]
        return F.tanh(image), F.normalize(self.embedding(paddle.concat(levels, 1)), axis=1)


def main():
    parser = argparse.ArgumentParser()
    root = pathlib.Path(__file__).resolve().parents[3]
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden" / "onnx")
    out = parser.parse_args().out
    generator = np.random.default_rng(11)
    network = Network()
    for name, value in network.state_dict().items():
        is_factor = name.endswith("_variance") or ("norm" in name and name.endswith("weight"))
        low, high = (0.5, 1.5) if is_factor else (-0.2, 0.2)
        value.set_value(generator.uniform(low, high, value.shape).astype(np.float32))
    network.eval()
    x = generator.standard_normal((2, 3, 16, 16)).astype(np.float32)
    results = [result.numpy() for result in network(paddle.to_tensor(x))]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model"
        spec = [paddle.static.InputSpec([None, 3, 16, 16], "float32", "x")]
        paddle.onnx.export(network, str(path), input_spec=spec, opset_version=13)
        model = onnx.load(f"{path}.onnx")
    strip_metadata(model)
    (out / "paddle_network.onnx").write_bytes(model.SerializeToString())
    names = [output.name for output in model.graph.output]
    arrays = {"in:x": x} | {f"out:{name}": result for name, result in zip(names, results, strict=True)}
    np.savez_compressed(out / "paddle_network.npz", **arrays)


if __name__ == "__main__":
    main()
