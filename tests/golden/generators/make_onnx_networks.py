# make_onnx_networks.py - exports small networks with the constructs of whole networks.
"""Writes tests/golden/onnx/NAME.onnx and NAME.npz: inputs (as in:NAME) and the exporting framework's own results
(as out:NAME), for the test of the ONNX reader.

Made with (Python 3.11): torch==2.8.0 onnxscript==0.5.4 onnx==1.18.0 tensorflow==2.19.1 keras==3.11.3 tf2onnx==1.17.0
scikit-learn==1.7.2 skl2onnx==1.19.1
Run: python tests/golden/generators/make_onnx_networks.py [--out tests/golden/onnx] [NAME...]
"""

import argparse
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HEAD = ["boxes", "scores", "places"]


class Encoder(nn.Module):
    """A block of a transformer: attention with a mask, layer normalization, GELU; batch and length are dynamic."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.position = nn.Parameter(torch.randn(12, 16))
        self.query, self.key, self.value, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens, mask):
        batch, length = tokens.shape
        x = self.embed(tokens) + self.position[:length]

        def heads(y):
            return y.view(batch, length, 2, 8).transpose(1, 2)

        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        weights = q @ k.transpose(-1, -2) / 8**0.5
        weights = weights.masked_fill(mask[:, None, None, :] == 0, -1e9).softmax(-1)
        y = (weights @ v).transpose(1, 2).reshape(batch, length, 16)
        x = self.first(x + self.out(y))
        return self.second(x + self.narrow(F.gelu(self.wide(x))))


class Detector(nn.Module):
    """Features at two sizes, and TopK over positions of the image: sizes follow from the image."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.boxes, self.scores = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 2, 1)

    def forward(self, image):
        fine = F.relu6(self.norm(self.first(image)))
        coarse = F.leaky_relu(self.second(fine), 0.1)
        both = fine + F.interpolate(coarse, size=fine.shape[2:], mode="nearest")
        batch = image.shape[0]
        boxes = self.boxes(both).permute(0, 2, 3, 1).reshape(batch, -1, 4)
        scores = F.softmax(self.scores(both).flatten(2), 1)[:, 1]
        best, places = scores.topk(3, 1)
        picked = boxes.gather(1, places[..., None].expand(-1, -1, 4))
        return torch.cat((picked[..., :2] - picked[..., 2:].exp(), picked[..., :2]), -1), best, places


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 4, batch_first=True)

    def forward(self, x):
        y, _ = self.lstm(x)
        y, last = self.gru(y)
        return y, F.log_softmax(last[0], 1)


class Pieces(nn.Module):
    """Operators whose attributes became inputs in a later opset, and operators that changed their meaning."""

    # PyTorch exports "bilinear" in opset 9 as an Upsample with other results, and warns about it.
    mode = {"mode": "bilinear", "align_corners": False}

    def forward(self, x):
        a, b = x.split([1, 3], 1)
        y = F.pad(torch.cat((b, a), 1), (1, 2, 0, 1), value=0.5).clamp(-0.7, 0.9)
        z = F.interpolate(y, scale_factor=2.0, **self.mode)
        s = y.squeeze(0).unsqueeze(0).mean((2, 3), keepdim=True) + y.amax((2, 3), keepdim=True)
        return z[:, :, 1:-1, 2:], F.softmax(y, 1) * s, y.std(1), F.instance_norm(x), F.group_norm(x, 2)


class NearestPieces(Pieces):
    mode = {"mode": "nearest"}


def torch_export(module, names, outputs, arrays, open_axes, opset, path, dynamo=False):
    torch.manual_seed(3)
    network = module().eval()
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    tensors = tuple(torch.from_numpy(array) for array in arrays)
    with torch.no_grad():
        results = network(*tensors)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    options = {"input_names": names, "output_names": outputs, "opset_version": opset, "dynamo": dynamo}
    if dynamo:
        shapes = [{axis: torch.export.Dim(name) for axis, name in axes.items()} for axes in open_axes]
        torch.onnx.export(network, tensors, path, dynamic_shapes=shapes, external_data=False, **options)
    else:
        axes = dict(zip(names, open_axes, strict=True))
        torch.onnx.export(network, tensors, path, dynamic_axes=axes, **options)
    return dict(zip(names, arrays, strict=True)), dict(zip(outputs, (r.numpy() for r in results), strict=True))


def random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def encoder(opset, dynamo=False):
    tokens = np.array([[1, 4, 2, 7, 9], [3, 3, 10, 0, 0]])
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    axes = {0: "batch", 1: "length"}
    return lambda path: torch_export(
        Encoder, ["tokens", "mask"], ["y"], [tokens, mask], [axes, axes], opset, path, dynamo
    )


def detector(opset, dynamo=False):
    axes = {0: "batch", 2: "height", 3: "width"}
    # The traced form rounds sizes; the dynamo exporter would require a proof that these are even.
    open_axes = {0: "batch"} if dynamo else axes
    return lambda path: torch_export(
        Detector, ["image"], HEAD, [random(2, 3, 16, 24)], [open_axes], opset, path, dynamo
    )


def recurrent(opset):
    return lambda path: torch_export(
        Recurrent, ["x"], ["y", "last"], [random(2, 3, 5)], [{0: "batch", 1: "time"}], opset, path
    )


def pieces(opset, dynamo=False):
    names = ["resized", "weighted", "spread", "instance", "group"]
    module = NearestPieces if opset == 9 else Pieces
    return lambda path: torch_export(module, ["x"], names, [random(1, 4, 5, 6)], [{}], opset, path, dynamo)


def keras_network(opset, own):
    """Exports with the exporter in Keras where `own` is true, otherwise with tf2onnx."""

    def export(path):
        import keras  # noqa: PLC0415
        import tensorflow as tf  # noqa: PLC0415
        import tf2onnx  # noqa: PLC0415

        keras.utils.set_random_seed(5)
        layers = keras.layers
        network = keras.Sequential(
            [
                layers.Input((12, 12, 3), name="image"),
                layers.Conv2D(4, 3, strides=2, padding="same"),
                layers.BatchNormalization(),
                layers.ReLU(6.0),
                layers.DepthwiseConv2D(3, padding="same"),
                layers.LeakyReLU(negative_slope=0.2),
                layers.UpSampling2D(2),
                layers.SeparableConv2D(3, 3, activation="swish"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(5, activation="softmax"),
            ]
        )
        image = random(2, 12, 12, 3)
        expected = network(image).numpy()
        if own:
            network.export(path, format="onnx", verbose=False)
        else:
            signature = [tf.TensorSpec([None, 12, 12, 3], name="image")]
            function = tf.function(network, input_signature=signature)
            tf2onnx.convert.from_function(function, signature, opset=opset, output_path=str(path))
        import onnx  # noqa: PLC0415

        graph = onnx.load(path).graph
        return {graph.input[0].name: image}, {graph.output[0].name: expected}

    return export


def sklearn_pipeline(path):
    from skl2onnx import to_onnx  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    x = random(40, 4)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3, max_depth=3, random_state=0)).fit(x, y)
    proto = to_onnx(model, x[:1], options={"zipmap": False}, target_opset={"": 17, "ai.onnx.ml": 3})
    path.write_bytes(proto.SerializeToString())
    return {"X": x}, {"label": model.predict(x), "probabilities": model.predict_proba(x).astype(np.float32)}


NETWORKS = {
    "torch_opset9_detector": detector(9),
    "torch_opset11_detector": detector(11),
    "torch_opset17_detector": detector(17),
    "torch_dynamo18_detector": detector(18, dynamo=True),
    "torch_opset17_encoder": encoder(17),
    "torch_dynamo18_encoder": encoder(18, dynamo=True),
    "torch_opset9_recurrent": recurrent(9),
    "torch_opset14_recurrent": recurrent(14),
    "torch_opset9_pieces": pieces(9),
    "torch_opset11_pieces": pieces(11),
    "torch_opset17_pieces": pieces(17),
    "torch_dynamo20_pieces": pieces(20, dynamo=True),
    "keras_own": keras_network(None, own=True),
    "tf2onnx_opset9_keras": keras_network(9, own=False),
    "tf2onnx_opset18_keras": keras_network(18, own=False),
    "sklearn_forest": sklearn_pipeline,
}


def without_traces(content):
    """Removes the source locations that PyTorch writes for each node, which are most of a small file."""
    import onnx  # noqa: PLC0415

    model = onnx.ModelProto.FromString(content)
    del model.metadata_props[:], model.graph.metadata_props[:]
    for function in [model.graph, *model.functions]:
        for item in [*function.node, *function.value_info]:
            item.doc_string = ""
            del item.metadata_props[:]
    for item in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        item.doc_string = ""
        del item.metadata_props[:]
    return model.SerializeToString()


def main():
    parser = argparse.ArgumentParser()
    root = pathlib.Path(__file__).resolve().parents[3]
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden" / "onnx")
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "model.onnx"
            inputs, outputs = NETWORKS[name](made)
            (arguments.out / f"{name}.onnx").write_bytes(without_traces(made.read_bytes()))
        arrays = {f"in:{key}": value for key, value in inputs.items()}
        arrays |= {f"out:{key}": value for key, value in outputs.items()}
        np.savez_compressed(arguments.out / f"{name}.npz", **arrays)
        print(name)


if __name__ == "__main__":
    main()
