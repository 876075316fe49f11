# Writes the TensorFlow network of the tests of rules, with TensorFlow's own results: tests/golden/rules.
"""Needs TensorFlow. The network is a head of 3-D detectors: bins x 2 values, with each pair normalized in its own
scope."""

import pathlib

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "rules"


def main():
    random = np.random.default_rng(5)

    def weights(*shape):
        return tf.constant(random.normal(size=shape).astype("float32"))

    graph = tf.Graph()
    with graph.as_default():
        features = tf.compat.v1.placeholder(tf.float32, [None, 6], name="features")
        hidden = tf.nn.leaky_relu(tf.matmul(features, weights(6, 8)) + weights(8), 0.1, name="hidden")
        with tf.name_scope("orientation"):
            pairs = tf.reshape(tf.matmul(hidden, weights(8, 4)), [-1, 2, 2], name="pairs")
            unit = tf.nn.l2_normalize(pairs, axis=2, name="l2_normalize")
            tf.identity(unit, name="out")
        tf.nn.softmax(tf.matmul(hidden, weights(8, 2)), name="confidence")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "orientation.pb").write_bytes(graph.as_graph_def().SerializeToString())
    data = random.normal(size=(5, 6)).astype("float32")
    with tf.compat.v1.Session(graph=graph) as session:
        orientation, confidence = session.run(["orientation/out:0", "confidence:0"], {"features:0": data})
    np.savez(FOLDER / "orientation.npz", features=data, orientation=orientation, confidence=confidence)


main()
