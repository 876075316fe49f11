# A network that has BetaSwish in standard ONNX operators, as an exporter writes it.
"""network.py FILE.onnx writes the network."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

SHAPES = {"x": [2, 8, 16, 16]}


def expected(x):
    """What the network computes."""
    return -x / (1 + np.exp(-1.5 * x))


def network():
    beta = onnx.numpy_helper.from_array(np.float32(1.5), "beta")
    nodes = [
        helper.make_node("Mul", ["x", "beta"], ["steep"]),
        helper.make_node("Sigmoid", ["steep"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["activated"]),
        helper.make_node("Neg", ["activated"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPES["x"]) for name in "xy")
    graph = helper.make_graph(nodes, "network", [x], [y], [beta])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(network(), sys.argv[1])
