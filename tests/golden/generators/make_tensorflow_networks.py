# make_tensorflow_networks.py - writes frozen graphs of whole networks with TensorFlow's own results, at full size.
"""Usage: python tests/golden/generators/make_tensorflow_networks.py FOLDER [--only NAME ...] [--small], with TensorFlow
installed.

For each network: NAME.pb, its frozen graph, and NAME.npz, the input (`in/<name>`) and every float tensor that
TensorFlow computes from it (`tensor/<node>` or `tensor/<node>:1`; outputs are in the list `outputs`). The weights are random, seeded,
and scaled so that numbers neither grow nor vanish on their way. bench/import/networks.py judges what Graft makes of
them. `--small` makes the reduced ones that tests/import holds, outputs alone.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # TensorFlow's own kernels: those of oneDNN add in another order

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

v1 = tf.compat.v1
keras = tf.keras
layers = keras.layers


class Weights:
    """Random weights: He's initialization for factors, small values for biases."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def kernel(self, *shape: int, fan_in: int | None = None) -> np.ndarray:
        fan_in = fan_in or int(np.prod(shape[:-1]))
        return (self.random.standard_normal(shape, dtype="float32") * np.sqrt(2 / fan_in)).astype("float32")

    def bias(self, size: int) -> np.ndarray:
        return self.random.normal(0, 0.05, size).astype("float32")

    def of(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a weight for a variable of Keras, by its name and shape."""
        if "kernel" in name:
            fan_in = int(np.prod(shape[:2])) if "depthwise" in name else None
            return self.kernel(*shape, fan_in=fan_in)
        if "variance" in name or "gamma" in name:
            return self.random.uniform(0.5, 1.5, shape).astype("float32")
        return self.random.normal(0, 0.05, shape).astype("float32")


def freeze_keras(model: keras.Model, seed: int, batch: int | None) -> tf.compat.v1.GraphDef:
    weights = Weights(seed)
    for layer in model.layers:
        layer.set_weights([weights.of(weight.name, tuple(weight.shape)) for weight in layer.weights])
    shape = [batch, *model.input_shape[1:]]
    function = tf.function(lambda image: model(image, training=False))
    concrete = function.get_concrete_function(tf.TensorSpec(shape, tf.float32, name="image"))
    return convert_variables_to_constants_v2(concrete).graph.as_graph_def()


def vgg_features(x: tf.Tensor, weights: Weights, channels: tuple[tuple[int, int], ...]) -> tf.Tensor:
    for block, (size, repeats) in enumerate(channels, 1):
        for i in range(1, repeats + 1):
            with v1.name_scope(f"conv{block}_{i}"):
                kernel = tf.constant(weights.kernel(3, 3, int(x.shape[-1]), size), name="weights")
                x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), weights.bias(size)))
        x = tf.nn.max_pool2d(x, 2, 2, "SAME", name=f"pool{block}")
    return x


def dense(x: tf.Tensor, weights: Weights, size: int, name: str) -> tf.Tensor:
    with v1.name_scope(name):
        kernel = tf.constant(weights.kernel(int(x.shape[-1]), size), name="weights")
        return tf.nn.bias_add(tf.matmul(x, kernel), weights.bias(size), name="BiasAdd")


VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def box(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    """A network for 3-D bounding boxes: dimensions, orientation in bins and confidence of each bin, from features of
    VGG-16.

    The graph is in the style of TensorFlow 1: each head has another form of leaky ReLU, and dropout remains, after
    Switch and Merge on a flag that is false unless it is fed.
    """
    weights = Weights(11)
    side, channels, hidden = (32, ((8, 2), (16, 2), (16, 3)), (24, 16, 16)) if small else (224, VGG16, (512, 256, 256))
    bins, slope, keep = 2, 0.1, 0.5
    graph = tf.Graph()
    with graph.as_default():
        v1.disable_control_flow_v2()
        image = v1.placeholder(tf.float32, [None, side, side, 3], name="image")
        is_training = v1.placeholder_with_default(False, [], name="is_training")
        x = vgg_features(image, weights, channels)
        x = tf.reshape(x, [-1, int(np.prod(x.shape[1:]))], name="flatten")

        def dropout(y: tf.Tensor, name: str) -> tf.Tensor:
            with v1.name_scope(name):
                return v1.cond(is_training, lambda: v1.nn.dropout(y, rate=1 - keep), lambda: tf.identity(y))

        with v1.name_scope("dimension"):
            y = tf.nn.leaky_relu(dense(x, weights, hidden[0], "fc1"), slope)
            y = dense(dropout(y, "dropout"), weights, 3, "fc2")
            tf.identity(y, name="result")
        with v1.name_scope("orientation"):
            y = dense(x, weights, hidden[1], "fc1")
            y = tf.nn.relu(y) - slope * tf.nn.relu(-y)
            y = dense(dropout(y, "dropout"), weights, bins * 2, "fc2")
            y = tf.nn.l2_normalize(tf.reshape(y, [-1, bins, 2]), axis=2)
            tf.identity(y, name="result")
        with v1.name_scope("confidence"):
            y = dense(x, weights, hidden[2], "fc1")
            y = tf.maximum(slope * y, y)
            y = tf.nn.softmax(dense(dropout(y, "dropout"), weights, bins, "fc2"))
            tf.identity(y, name="result")
    return graph.as_graph_def(), (2, side, side, 3)


def vgg16(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    weights = Weights(12)
    side, channels, hidden, classes = (32, ((4, 2), (8, 2)), 16, 10) if small else (224, VGG16, 4096, 1000)
    graph = tf.Graph()
    with graph.as_default():
        image = v1.placeholder(tf.float32, [None, side, side, 3], name="image")
        x = vgg_features(image, weights, channels)
        x = tf.reshape(x, [-1, int(np.prod(x.shape[1:]))], name="flatten")
        x = tf.nn.relu(dense(x, weights, hidden, "fc6"))
        x = tf.nn.relu(dense(x, weights, hidden, "fc7"))
        tf.nn.softmax(dense(x, weights, classes, "fc8"), name="probabilities")
    return graph.as_graph_def(), (1, side, side, 3)


def mobilenet_v2(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    side = 96 if small else 224
    model = keras.applications.MobileNetV2(
        weights=None, input_shape=(side, side, 3), alpha=0.35 if small else 1.0, classes=10 if small else 1000
    )
    return freeze_keras(model, 13, None), (2, side, side, 3)


def inception_v3(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    model = keras.applications.InceptionV3(weights=None, input_shape=(299, 299, 3), classes=1000)
    return freeze_keras(model, 14, None), (2, 299, 299, 3)


def unet(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    """A U-Net with two kinds of upsampling: transposed convolutions, and bilinear resizing followed by a
    convolution."""
    side, first = (32, 2) if small else (256, 64)

    def block(x: tf.Tensor, size: int) -> tf.Tensor:
        for _ in range(2):
            x = layers.Conv2D(size, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    image = keras.Input((side, side, 3))
    x, skips = image, []
    for i in range(4):
        x = block(x, first << i)
        skips.append(x)
        x = layers.MaxPool2D()(x)
    x = layers.Dropout(0.5)(block(x, first << 4))
    for i in (3, 2, 1, 0):
        if i % 2:
            x = layers.Conv2DTranspose(first << i, 2, strides=2, padding="same")(x)
        else:
            x = layers.UpSampling2D(2, interpolation="bilinear")(x)
            x = layers.Conv2D(first << i, 2, padding="same", activation="relu")(x)
        x = block(layers.Concatenate()([skips[i], x]), first << i)
    x = layers.Conv2D(1, 1, activation="sigmoid")(x)
    return freeze_keras(keras.Model(image, x), 15, None), (1, side, side, 3)


def style(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    """Johnson's style transfer network: decomposed instance normalization, reflected borders, nearest-neighbor
    upsampling."""
    weights = Weights(16)
    side, first, blocks = (32, 4, 1) if small else (256, 32, 5)
    graph = tf.Graph()

    def convolve(x: tf.Tensor, size: int, kernel: int, stride: int = 1) -> tf.Tensor:
        pad = kernel // 2
        x = tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]], "REFLECT")
        return tf.nn.conv2d(x, weights.kernel(kernel, kernel, int(x.shape[-1]), size), stride, "VALID")

    def normalize(x: tf.Tensor) -> tf.Tensor:
        size = int(x.shape[-1])
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        scale = weights.random.uniform(0.5, 1.5, size).astype("float32")
        return scale * ((x - mean) / tf.sqrt(variance + 1e-3)) + weights.bias(size)

    def enlarge(x: tf.Tensor) -> tf.Tensor:
        return v1.image.resize_nearest_neighbor(x, [int(x.shape[1]) * 2, int(x.shape[2]) * 2])

    with graph.as_default():
        x = v1.placeholder(tf.float32, [1, side, side, 3], name="image")
        for size, kernel, stride in ((first, 9, 1), (2 * first, 3, 2), (4 * first, 3, 2)):
            x = tf.nn.relu(normalize(convolve(x, size, kernel, stride)))
        for _ in range(blocks):
            y = tf.nn.relu(normalize(convolve(x, 4 * first, 3)))
            x = x + normalize(convolve(y, 4 * first, 3))
        for size in (2 * first, first):
            x = tf.nn.relu(normalize(convolve(enlarge(x), size, 3)))
        tf.add(tf.nn.tanh(convolve(x, 3, 9) * 0.1) * 150, 127.5, name="result")
    return graph.as_graph_def(), (1, side, side, 3)


def recurrent(small: bool) -> tuple[tf.compat.v1.GraphDef, tuple[int, ...]]:
    """A network with Keras' loops and attention."""
    size = 6 if small else 64
    steps = keras.Input((12, 6))
    x = layers.Bidirectional(layers.GRU(size, return_sequences=True))(steps)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, size)(x, x))
    x = layers.Dense(3, activation="softmax")(layers.LSTM(size)(x))
    return freeze_keras(keras.Model(steps, x), 17, None), (3, 12, 6)


def dropout_graph(is_left_in: bool) -> tf.compat.v1.GraphDef:
    """Returns a graph with every form of dropout in TensorFlow's versions, each with an output of its own."""
    weights = Weights(18)
    graph = tf.Graph()
    with graph.as_default():
        image = v1.placeholder(tf.float32, [None, 5, 8], name="image")
        keep = v1.placeholder(tf.float32, [], name="keep_prob")
        keep_all = v1.placeholder_with_default(1.0, [], name="keep_all")
        ways: dict[str, Callable] = {
            "floor": lambda x: x / keep * tf.floor(keep + tf.random.uniform(tf.shape(x))),
            "range": lambda x: tf.floor(tf.random.uniform(tf.shape(x), 0.5, 1.5)) * (x / 0.5),
            "cast": lambda x: x * 2.0 * tf.cast(tf.random.uniform(tf.shape(x)) >= 0.5, tf.float32),
            "where": lambda x: tf.nn.dropout(x, 0.5),
            "probability": lambda x: v1.nn.dropout(x, keep_prob=keep_all),
        }
        for name, way in ways.items():
            with v1.name_scope(name):
                x = tf.nn.relu(image + weights.bias(8))
                x = way(x) if is_left_in else x
                tf.matmul(x, tf.constant(weights.kernel(8, 4)), name="result")
    return graph.as_graph_def()


NETWORKS: dict[str, Callable] = {
    "box3d": box,
    "mobilenet_v2": mobilenet_v2,
    "inception_v3": inception_v3,
    "unet": unet,
    "style": style,
    "vgg16": vgg16,
    "recurrent": recurrent,
}


def reached(graph: tf.Graph) -> list[tf.Operation]:
    """Returns the operations that always run; those after a Switch may be dead."""
    dead: set[str] = set()
    result = []
    for operation in graph.get_operations():
        if operation.type in ("Merge", "Exit"):
            result.append(operation)
            continue
        behind = [*(tensor.op.name for tensor in operation.inputs), *(op.name for op in operation.control_inputs)]
        if operation.type == "Switch" or any(name in dead for name in behind):
            dead.add(operation.name)
        else:
            result.append(operation)
    return result


def save(folder: Path, name: str, definition: tf.compat.v1.GraphDef, shape: tuple[int, ...], all_tensors: bool) -> None:
    (folder / f"{name}.pb").write_bytes(definition.SerializeToString())
    image = np.random.default_rng(1).normal(size=shape).astype("float32")
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
        operations = reached(graph)
        read = {tensor.op.name for operation in graph.get_operations() for tensor in operation.inputs}
        idle = ("Const", "NoOp", "Placeholder", "PlaceholderWithDefault")
        outputs = [operation for operation in operations if operation.name not in read and operation.type not in idle]
        # Copies of weights that a loop waits for, and loop variables without readers.
        outputs = [o for o in outputs if o.type != "Exit" and (o.type != "Identity" or o.inputs[0].op.type != "Const")]
        chosen = operations if all_tensors else outputs
        tensors = {}
        for operation in chosen:
            for i, tensor in enumerate(operation.outputs):
                if (
                    tensor.dtype == tf.float32
                    and operation.type not in (*idle, "Merge")
                    or (operation.type == "Merge" and i == 0)
                ):
                    tensors[operation.name if i == 0 else f"{operation.name}:{i}"] = tensor
        with v1.Session(graph=graph) as session:
            values = session.run(tensors, {"image:0": image})
    arrays = {f"tensor/{key}": value for key, value in values.items()}
    np.savez(folder / f"{name}.npz", **{"in/image": image, "outputs": np.array([o.name for o in outputs])}, **arrays)
    print(f"{name}: {definition.ByteSize():,} bytes, {len(definition.node)} nodes, {len(tensors)} tensors", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="frozen graphs of whole networks with TensorFlow's own results")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--small", action="store_true", help="reduced networks, outputs alone")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        definition, shape = NETWORKS[name](arguments.small)
        # Tensors inside a loop cannot be fetched.
        save(arguments.folder, name, definition, shape, not arguments.small and name != "recurrent")
    if arguments.small:
        # Results with dropout are random: the expected results are those of the network without it.
        save(arguments.folder, "dropout", dropout_graph(False), (3, 5, 8), False)
        (arguments.folder / "dropout.pb").write_bytes(dropout_graph(True).SerializeToString())


if __name__ == "__main__":
    main()
