# make_example_networks.py - writes the small networks of the guides "from TensorFlow", "from Caffe" and "cut a
# network".
"""The weights are random with a fixed seed, not trained: the networks show layers.

    python tools/make_example_networks.py tensorflow   examples/from_tensorflow/boxes.pb, by Keras, frozen by freeze.py there
    python tools/make_example_networks.py caffe        examples/from_caffe/pyramid.prototxt and pyramid.caffemodel
    python tools/make_example_networks.py detector     examples/cut/detector.onnx

Each writes an input and the result of TensorFlow, OpenCV or ONNX Runtime next to the network, as .npz. The environments
are those of tools/make_digits_imports.py.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
RANDOM = np.random.default_rng(3)


def make_tensorflow() -> None:
    """Writes a small 3-D bounding box network: a backbone, Flatten, and heads for size, orientation and confidence.
    The orientation is one vector of length 1 for each of two bins."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    here = EXAMPLES / "from_tensorflow"

    def head(x, size, name):
        x = layers.Dense(24, name=f"{name}_hidden")(x)
        x = layers.Dropout(0.5, name=f"{name}_dropout")(layers.LeakyReLU(negative_slope=0.1, name=f"{name}_leaky")(x))
        return layers.Dense(size, name=f"{name}_out")(x)

    image = tf.keras.Input((32, 32, 3), name="image")
    x = image
    for block, channels in enumerate((8, 8, 16, 16)):
        x = layers.Conv2D(channels, 3, padding="same", activation="relu", name=f"block{block}")(x)
        x = layers.MaxPooling2D(name=f"pool{block}")(x)
    x = layers.Flatten(name="flatten")(x)
    bins = layers.Reshape((2, 2), name="bins")(head(x, 4, "orientation"))
    orientation = layers.Lambda(lambda v: tf.math.l2_normalize(v, axis=2), name="orientation")(bins)
    confidence = layers.Softmax(name="confidence")(head(x, 2, "confidence"))
    model = tf.keras.Model(image, {"size": head(x, 3, "size"), "orientation": orientation, "confidence": confidence})
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        subprocess.run([sys.executable, here / "freeze.py", folder, here / "boxes.pb"], check=True)
        data = RANDOM.uniform(size=(2, 32, 32, 3)).astype("float32")
        results = tf.saved_model.load(folder).signatures["serving_default"](tf.constant(data))
    np.savez_compressed(here / "boxes.npz", image=data, **{name: value.numpy() for name, value in results.items()})


PYRAMID = """\
name: "pyramid"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN } }
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 24 dim: 24 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" relu_param { negative_slope: 0.1 } }
layer { name: "spp" type: "SPP" bottom: "conv1" top: "spp" spp_param { pool: MAX pyramid_height: 3 } }
layer { name: "drop" type: "Dropout" bottom: "spp" top: "spp" dropout_param { dropout_ratio: 0.5 } }
layer { name: "fc" type: "InnerProduct" bottom: "spp" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "accuracy" type: "Accuracy" bottom: "fc" bottom: "label" include { phase: TEST } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


def make_caffe() -> None:
    """Writes a classifier with spatial pyramid pooling, including the layers that only training needs. OpenCV's
    reader has no SPP layer, so NumPy computes the result from OpenCV's output of the previous layer."""
    import cv2
    from make_caffe_cases import weights_file

    here = EXAMPLES / "from_caffe"
    normal = lambda *shape: (RANDOM.normal(size=shape) * 0.3).astype("float32")  # noqa: E731
    blobs = {"conv1": [normal(8, 3, 3, 3), normal(8)], "fc": [normal(5, 8 * 21), normal(5)]}
    (here / "pyramid.prototxt").write_text(PYRAMID)
    (here / "pyramid.caffemodel").write_bytes(weights_file(blobs))

    data = RANDOM.uniform(-1, 1, size=(1, 3, 24, 24)).astype("float32")
    start = "\n".join(PYRAMID.splitlines()[2:6])
    network = cv2.dnn.readNetFromCaffe(
        np.frombuffer(start.encode(), np.uint8), np.frombuffer((here / "pyramid.caffemodel").read_bytes(), np.uint8)
    )
    network.setInput(data, "data")
    conv = network.forward("relu1")
    parts = []
    for level in range(3):
        bins = 2**level
        window = -(-conv.shape[2] // bins)
        pad = (window * bins - conv.shape[2] + 1) // 2
        padded = np.pad(conv, [(0, 0), (0, 0), (pad, window), (pad, window)], constant_values=-np.inf)
        grid = [
            [
                padded[:, :, y * window : (y + 1) * window, x * window : (x + 1) * window].max((2, 3))
                for x in range(bins)
            ]
            for y in range(bins)
        ]
        parts.append(np.moveaxis(np.array(grid), (0, 1), (2, 3)).reshape(1, -1))
    scores = np.concatenate(parts, 1) @ blobs["fc"][0].T + blobs["fc"][1]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.savez_compressed(here / "pyramid.npz", data=data, prob=powers / powers.sum(1, keepdims=True))


DETECTOR = """\
<ir_version: 8, opset_import: ["" : 17]>
detector (float[1, 3, 64, 64] image) => (float[1, found, 4] detections, int64[found, 3] chosen)
{
    stem = Conv<strides=[2, 2], pads=[1, 1, 1, 1]>(image, stem_weight)
    stem_active = Relu(stem)
    features = Conv<strides=[4, 4], pads=[1, 1, 1, 1]>(stem_active, feature_weight)
    active = Relu(features)
    rows = Reshape(active, to_rows)
    cells = Transpose<perm=[0, 2, 1]>(rows)
    box_logits = MatMul(cells, box_weight)
    boxes = Sigmoid(box_logits)
    score_logits = MatMul(cells, score_weight)
    probabilities = Sigmoid(score_logits)
    scores = Transpose<perm=[0, 2, 1]>(probabilities)
    chosen = NonMaxSuppression<center_point_box=1>(boxes, scores, most, overlap, least)
    place_column = Slice(chosen, two, three, one)
    places = Squeeze(place_column, one)
    detections = Gather<axis=1>(boxes, places)
}
"""


def make_detector() -> None:
    """Writes a small one-stage detector: a stride of 8, a box and three scores for each cell, non-maximum
    suppression."""
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    def weight(*shape):
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return RANDOM.normal(size=shape, scale=2 / np.sqrt(fan_in)).astype("float32")

    constants = {
        "stem_weight": weight(16, 3, 3, 3),
        "feature_weight": weight(32, 16, 3, 3),
        "to_rows": np.array([1, 32, 64]),
        "box_weight": weight(32, 4),
        "score_weight": weight(32, 3),
        "most": np.array([10]),
        "overlap": np.array([0.45], "float32"),
        "least": np.array([0.25], "float32"),
        "one": np.array([1]),
        "two": np.array([2]),
        "three": np.array([3]),
    }
    model = onnx.parser.parse_model(DETECTOR)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.checker.check_model(model, full_check=True)
    here = EXAMPLES / "cut"
    onnx.save(model, here / "detector.onnx")
    image = RANDOM.uniform(size=(1, 3, 64, 64)).astype("float32")
    session = onnxruntime.InferenceSession(here / "detector.onnx", providers=["CPUExecutionProvider"])
    detections, chosen = session.run(None, {"image": image})
    np.savez_compressed(here / "detector.npz", image=image, detections=detections, chosen=chosen)


if __name__ == "__main__":
    {"tensorflow": make_tensorflow, "caffe": make_caffe, "detector": make_detector}[sys.argv[1]]()
