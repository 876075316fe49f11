# make_digits_imports.py - writes the trained digits network as a TensorFlow graph and as a Caffe network.
"""Reads the trained weights from examples/digits/digits.onnx and writes the network in another format next to it:

    python tools/make_digits_imports.py tensorflow   digits.pb: TensorFlow builds it, channels last, and freezes it
    python tools/make_digits_imports.py caffe        digits.prototxt and digits.caffemodel, run with OpenCV's reader
    python tools/make_digits_imports.py onnx         nothing but the figure below, of ONNX Runtime

Each counts how many of the 450 held-out digits a program other than Graft classifies correctly, and writes the number
to accuracy.json, which the demo shows next to its own measurement. They need different environments (Python 3.11): pip
install tensorflow==2.19.1 onnx==1.18.0; pip install opencv-python-headless==4.12.0.88 protobuf==4.25.8 onnx==1.18.0
with Debian's protobuf-compiler; pip install onnxruntime==1.22.1 onnx==1.18.0.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "digits"
# of the network in tools/train_digits.py; SIDE and CHANNELS before Flatten
SLOPE, SCALE, CHANNELS, SIDE = 0.1, 12.0, 32, 4


def trained_weights() -> dict[str, np.ndarray]:
    graph = onnx.load(HERE / "digits.onnx").graph
    weights = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    (classifier,) = (name for name in weights if name.startswith("onnx::MatMul"))
    weights["classifier"] = weights.pop(classifier)  # 32 x 10
    return weights


def note_accuracy(file: str, judge: str, logits: np.ndarray) -> None:
    labels = np.load(HERE / "digits_test.npz")["labels"]
    right = int((logits.argmax(axis=1) == labels).sum())
    path = HERE / "accuracy.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[file] = {"by": judge, "right": right, "of": len(labels)}
    path.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
    print(f"{file}: {(HERE / file).stat().st_size} bytes; {judge}: {right} of {len(labels)} right")


def write_tensorflow(weights: dict[str, np.ndarray]) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    # PyTorch flattens channel, row, column; TensorFlow row, column, channel.
    embed = weights["embed.weight"].reshape(-1, CHANNELS, SIDE, SIDE).transpose(2, 3, 1, 0).reshape(-1, 32)
    variables = {name: tf.Variable(value) for name, value in weights.items() if name.endswith("bias")}
    for name in ("conv1", "conv2", "conv3"):
        variables[f"{name}.weight"] = tf.Variable(weights[f"{name}.weight"].transpose(2, 3, 1, 0))
    variables["embed.weight"] = tf.Variable(embed)
    variables["classifier"] = tf.Variable(weights["classifier"])

    def convolution(x, name):
        with tf.name_scope(name):
            x = tf.nn.conv2d(x, variables[f"{name}.weight"], strides=1, padding="SAME")
            return tf.nn.leaky_relu(tf.nn.bias_add(x, variables[f"{name}.bias"]), SLOPE)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 1], tf.float32, "image")])
    def network(image):
        x = convolution(convolution(image, "conv1"), "conv2")
        x = convolution(tf.nn.max_pool2d(x, 2, 2, "VALID"), "conv3")
        x = tf.reshape(x, [-1, SIDE * SIDE * CHANNELS], name="flatten")
        with tf.name_scope("embed"):
            x = tf.nn.bias_add(tf.matmul(x, variables["embed.weight"]), variables["embed.bias"])
        embedding = tf.identity(tf.math.l2_normalize(x, axis=1, epsilon=1e-12), "embedding")
        return tf.multiply(tf.matmul(embedding, variables["classifier"]), SCALE, "logits"), embedding

    frozen = convert_variables_to_constants_v2(network.get_concrete_function())
    (HERE / "digits.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString(deterministic=True))
    images = np.load(HERE / "digits_test.npz")["images"].transpose(0, 2, 3, 1)
    logits = frozen(tf.constant(images))[0].numpy()
    note_accuracy("digits.pb", f"TensorFlow {tf.__version__}", logits)


NETWORK = """\
name: "digits"
input: "image"
input_shape { dim: 1 dim: 1 dim: 8 dim: 8 }
layer { name: "conv1" type: "Convolution" bottom: "image" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: "act1" type: "ReLU" bottom: "conv1" top: "conv1" relu_param { negative_slope: 0.1 } }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 } }
layer { name: "act2" type: "ReLU" bottom: "conv2" top: "conv2" relu_param { negative_slope: 0.1 } }
layer { name: "pool" type: "Pooling" bottom: "conv2" top: "pool" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv3" type: "Convolution" bottom: "pool" top: "conv3"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 } }
layer { name: "act3" type: "ReLU" bottom: "conv3" top: "conv3" relu_param { negative_slope: 0.1 } }
layer { name: "embed" type: "InnerProduct" bottom: "conv3" top: "embed" inner_product_param { num_output: 32 } }
layer { name: "norm" type: "Normalize" bottom: "embed" top: "embedding"
  norm_param { across_spatial: false channel_shared: false } }
layer { name: "classifier" type: "InnerProduct" bottom: "embedding" top: "classifier"
  inner_product_param { num_output: 10 bias_term: false } }
layer { name: "scale" type: "Power" bottom: "classifier" top: "logits" power_param { scale: 12 } }
"""


def write_caffe(weights: dict[str, np.ndarray]) -> None:
    import cv2
    from make_caffe_cases import weights_file

    blobs = {
        name: [weights[f"{name}.weight"], weights[f"{name}.bias"]] for name in ("conv1", "conv2", "conv3", "embed")
    }
    blobs["norm"] = [np.ones(32, np.float32)]  # the scale per channel that SSD's layer trains
    blobs["classifier"] = [weights["classifier"].T]
    (HERE / "digits.prototxt").write_text(NETWORK)
    (HERE / "digits.caffemodel").write_bytes(weights_file(blobs))
    network = cv2.dnn.readNetFromCaffe(str(HERE / "digits.prototxt"), str(HERE / "digits.caffemodel"))
    logits = []
    for image in np.load(HERE / "digits_test.npz")["images"]:
        network.setInput(image[None])
        logits.append(network.forward("scale")[0])
    note_accuracy("digits.caffemodel", f"OpenCV {cv2.__version__}", np.stack(logits))


def judge_onnx(_weights: dict[str, np.ndarray]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(HERE / "digits.onnx"), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": np.load(HERE / "digits_test.npz")["images"]})
    note_accuracy("digits.onnx", f"ONNX Runtime {onnxruntime.__version__}", logits)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=["tensorflow", "caffe", "onnx"])
    {"tensorflow": write_tensorflow, "caffe": write_caffe, "onnx": judge_onnx}[parser.parse_args().format](
        trained_weights()
    )
